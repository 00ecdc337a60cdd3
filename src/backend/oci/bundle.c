/*
 * Plan to config.json; see bundle.h. Tables first: what every container has whatever the plan says.
 */
#include "backend/oci/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/seccomp_list.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "launch/launch.h"
#include "launch/stage.h"
#include "os/mounts.h"
#include "os/sys.h"

enum { PLACE_SIZE = 4096, SHOWN_SIZE = 256, CPU_PERIOD_US = 100000 };

/* The runtime's own file systems. It fills /dev with the usual nodes itself. */
static const struct {
	const char *at, *type, *options;
} own_mounts[] = {
	{ "/proc", "proc", "nosuid,noexec,nodev,ro" },
	{ "/dev", "tmpfs", "nosuid,strictatime,mode=755,size=65536k" },
	{ "/dev/pts", "devpts", "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620" },
};

static const char *const programs[] = { "caisson-agent", "caisson-search" };

static const char *const namespaces[] = {
	"pid", "network", "ipc", "uts", "mount", "cgroup", "user"
};

static const char *const masked[] = {
	"/proc/acpi",       "/proc/asound",        "/proc/kcore",       "/proc/key-users",
	"/proc/keys",       "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
	"/proc/timer_list", "/proc/timer_stats",   "/sys/firmware",
};

static const char *const read_only[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
					 "/proc/sysrq-trigger" };

/*
 * What cannot be said must end the start. A mount that is left out shows what it was to hide, and
 * JSON has no words for a path that is not UTF-8; so each of these answers NULL when anything was
 * not added, and takes what it was given with it.
 */
static json_t *and_item(json_t *array, json_t *item)
{
	if (array && item && json_array_append(array, item) == 0) {
		json_decref(item);
		return array;
	}
	json_decref(item);
	json_decref(array);
	return NULL;
}

static json_t *and_key(json_t *object, const char *key, json_t *value)
{
	if (object && value && json_object_set(object, key, value) == 0) {
		json_decref(value);
		return object;
	}
	json_decref(value);
	json_decref(object);
	return NULL;
}

static json_t *texts(const char *const *list, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		array = and_item(array, json_string(list[i]));
	return array;
}

/* A list that is separated by commas. */
static json_t *split(const char *text)
{
	json_t *array = json_array();

	for (; *text; text += strcspn(text, ",")) {
		text += *text == ',';
		array = and_item(array, json_stringn(text, strcspn(text, ",")));
	}
	return array;
}

/* ---- mounts --------------------------------------------------------------------------------- */

/* The list so far; after the first fault, its sentence and nothing more. */
struct mounts {
	const struct bundle *bundle;
	json_t *list; /* NULL: failed */
	struct csn_error *err;
};

static void drop(struct mounts *mounts)
{
	json_decref(mounts->list);
	mounts->list = NULL;
}

static void refuse(struct mounts *mounts, const char *path, const char *why)
{
	char shown[SHOWN_SIZE];

	str_escape(path, false, shown, sizeof shown);
	csn_fail(mounts->err, -EINVAL, "mounts",
		 "a runtime cannot be told of %s: its name is %s. Rename it, or use the process "
		 "wall",
		 shown, why);
	drop(mounts);
}

static void add_mount(struct mounts *mounts, const char *at, const char *type, const char *source,
		      const char *options)
{
	const char *const paths[] = { at, source };

	for (size_t i = 0; mounts->list && i < ARRAY_SIZE(paths); i++)
		if (!str_is_utf8(paths[i], strlen(paths[i])))
			refuse(mounts, paths[i], "not UTF-8");
	if (!mounts->list)
		return;
	mounts->list = and_item(mounts->list,
				json_pack("{s:s, s:s, s:s, s:o}", "destination", at, "type", type,
					  "source", source, "options", split(options)));
}

static void add_tmpfs(struct mounts *mounts, const char *at, uint64_t bytes)
{
	char options[160];

	/* The folder of one who has no other: as behind the process wall. */
	snprintf(options, sizeof options, "nosuid,nodev,mode=1777,size=%llu,nr_inodes=%llu",
		 (unsigned long long)bytes, (unsigned long long)rootfs_inodes(bytes));
	add_mount(mounts, at, "tmpfs", "tmpfs", options);
}

static void add_lent(struct mounts *mounts, const struct rootfs_item *item, const char *at)
{
	const struct bundle *bundle = mounts->bundle;
	char source[PLACE_SIZE];
	int n;

	if (item->kind == ROOTFS_COVER)
		n = snprintf(source, sizeof source, "%s/root/run/caisson/hidden-%s", bundle->stage,
			     item->is_file ? "file" : "folder");
	else
		n = snprintf(source, sizeof source, "%s/lent/%zu", bundle->stage,
			     (size_t)(item - bundle->rootfs->items));
	if (n < 0 || n >= (int)sizeof source) {
		refuse(mounts, bundle->stage, "too long");
		return;
	}
	add_mount(mounts, at, "bind", source,
		  item->kind == ROOTFS_COVER || (item->attributes & MOUNT_ATTR_RDONLY)
			  ? "rbind,ro,nosuid,nodev"
			  : "rbind,rw,nosuid,nodev");
}

/* Has the runtime's own /proc and /dev this? Then it is not for us to mount it there. */
static bool is_runtimes(const char *at)
{
	return path_is_beneath(at, "dev") || path_is_beneath(at, "proc");
}

static void add_item(struct mounts *mounts, const struct rootfs_item *item)
{
	bool is_self = item->kind == ROOTFS_COVER || item->kind == ROOTFS_FREEZE ||
		       item->kind == ROOTFS_PIN;
	char at[PLACE_SIZE];

	if (snprintf(at, sizeof at, "/%s", item->at) >= (int)sizeof at) {
		refuse(mounts, item->at, "too long");
		return;
	}
	if (is_runtimes(item->at) || str_is(at, PLAN_LATE))
		return;
	if (item->kind == ROOTFS_SCRATCH)
		add_tmpfs(mounts, at, mounts->bundle->rootfs->scratch_bytes);
	else if (is_self ? item->is_ahead : rootfs_is_mount(item) && item->fd >= 0)
		add_lent(mounts, item, at);
}

static void add_programs(struct mounts *mounts)
{
	const struct bundle *bundle = mounts->bundle;
	char file[PLACE_SIZE], at[PLACE_SIZE];

	for (size_t i = 0; i < (bundle->has_search ? 2 : 1); i++) {
		snprintf(at, sizeof at, BUNDLE_AGENT "/%s", programs[i]);
		if (snprintf(file, sizeof file, "%s/agent/%s", bundle->stage, programs[i]) >=
		    (int)sizeof file)
			refuse(mounts, bundle->stage, "too long");
		else
			add_mount(mounts, at, "bind", file, "rbind,ro,nosuid,nodev");
	}
}

/* Scratch before what is lent in it, whatever the order of a root of our own. */
static json_t *mounts_of(const struct bundle *bundle, struct csn_error *err)
{
	const struct rootfs *rootfs = bundle->rootfs;
	struct mounts mounts = { .bundle = bundle, .list = json_array(), .err = err };

	for (size_t i = 0; i < ARRAY_SIZE(own_mounts); i++)
		add_mount(&mounts, own_mounts[i].at, own_mounts[i].type, own_mounts[i].type,
			  own_mounts[i].options);
	add_tmpfs(&mounts, "/dev/shm", rootfs->scratch_bytes);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < rootfs->count; i++)
			if ((rootfs->items[i].kind == ROOTFS_SCRATCH) == (pass == 0))
				add_item(&mounts, &rootfs->items[i]);
	add_programs(&mounts);
	return mounts.list;
}

/* ---- the process and its limits ------------------------------------------------------------- */

static json_t *and_rlimit(json_t *list, const char *type, uint64_t value)
{
	return and_item(list, json_pack("{s:s, s:I, s:I}", "type", type, "hard", (json_int_t)value,
					"soft", (json_int_t)value));
}

static json_t *process_of(const struct bundle *bundle)
{
	static const char *const args[] = { BUNDLE_AGENT "/caisson-agent", "--stdio", BUNDLE_HOME };
	static const char *const sets[] = { "bounding", "effective", "permitted", "inheritable",
					    "ambient" };
	const struct plan_limits *limits = &bundle->plan->limits;
	json_t *rlimits = json_array(), *capabilities = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		capabilities = and_key(capabilities, sets[i], json_array());
	if (limits->processes != PLAN_UNLIMITED && !bundle->is_held)
		rlimits = and_rlimit(rlimits, "RLIMIT_NPROC",
				     limits->processes + bundle->own_processes);
	if (bundle->data_bytes != PLAN_UNLIMITED)
		rlimits = and_rlimit(rlimits, "RLIMIT_DATA", bundle->data_bytes);
	return json_pack("{s:b, s:{s:i, s:i, s:i}, s:s, s:o, s:[], s:b, s:o, s:o}", "terminal", 0,
			 "user", "uid", LAUNCH_UID, "gid", LAUNCH_GID, "umask", 022, "cwd", "/",
			 "args", texts(args, ARRAY_SIZE(args)), "env", "noNewPrivileges", 1,
			 "capabilities", capabilities, "rlimits", rlimits);
}

/*
 * Once: where the runtime makes a group beneath ours, ours hold and count (docs/limits.md); the
 * inner one would be full first, and nobody looks at its counters. Other runtimes make none, and
 * tell programs how large their machine is by these numbers.
 */
static json_t *resources_of(const struct bundle *bundle)
{
	const struct plan_limits *limits = &bundle->plan->limits;
	json_t *resources = json_pack("{s:[{s:b, s:s}]}", "devices", "allow", 0, "access", "rwm");

	if (limits->mem_bytes != PLAN_UNLIMITED && !bundle->is_held)
		resources = and_key(resources, "memory",
				    json_pack("{s:I}", "limit", (json_int_t)limits->mem_bytes));
	if (limits->processes != PLAN_UNLIMITED && !bundle->is_held)
		resources =
			and_key(resources, "pids",
				json_pack("{s:I}", "limit",
					  (json_int_t)(limits->processes + bundle->own_processes)));
	if (limits->cpu_milli != PLAN_UNLIMITED)
		resources =
			and_key(resources, "cpu",
				json_pack("{s:I, s:i}", "quota",
					  (json_int_t)(limits->cpu_milli * CPU_PERIOD_US / 1000),
					  "period", CPU_PERIOD_US));
	return resources;
}

/* Never kernel uid 0, not even behind the runtime's own helpers. */
static json_t *ids_of(const struct bundle *bundle)
{
	return json_pack("[{s:i, s:I, s:i}, {s:i, s:I, s:i}]", "containerID", 0, "hostID",
			 (json_int_t)bundle->root_uid, "size", 1, "containerID", LAUNCH_UID,
			 "hostID", (json_int_t)bundle->uid, "size", 1);
}

static json_t *linux_of(const struct bundle *bundle)
{
	json_t *spaces = json_array();
	json_t *section;

	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		spaces = and_item(spaces, json_pack("{s:s}", "type", namespaces[i]));
	section =
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "namespaces", spaces,
			  "uidMappings", ids_of(bundle), "gidMappings", ids_of(bundle), "resources",
			  resources_of(bundle), "maskedPaths", texts(masked, ARRAY_SIZE(masked)),
			  "readonlyPaths", texts(read_only, ARRAY_SIZE(read_only)), "seccomp",
			  seccomp_list(plan_forwards_ports(bundle->plan) ? "command-alone-net"
									 : "command-alone"));
	if (section && bundle->cgroup)
		section = and_key(section, "cgroupsPath", json_string(bundle->cgroup));
	return section;
}

json_t *bundle_config(const struct bundle *bundle, struct csn_error *err)
{
	json_t *mounts = mounts_of(bundle, err);
	char root[PLACE_SIZE];

	if (!mounts)
		return NULL;
	snprintf(root, sizeof root, "%s/root", bundle->stage); /* longer ones were mounted */
	return json_pack("{s:s, s:s, s:{s:s, s:b}, s:o, s:o, s:o}", "ociVersion", "1.0.2",
			 "hostname", "caisson", "root", "path", root, "readonly", 1, "process",
			 process_of(bundle), "mounts", mounts, "linux", linux_of(bundle));
}

/* ---- looking -------------------------------------------------------------------------------- */

static int open_in(const struct rootfs_item *holder, const char *tail)
{
	return sys_openat2(holder->fd, *tail ? tail : ".", O_PATH | O_NOFOLLOW,
			   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* What is covered, frozen or pinned: there, and no link. A link shows nothing that is not in the
 * tree by its own name. */
static int settle_self(const struct rootfs *rootfs, struct rootfs_item *item, struct csn_error *err)
{
	const char *tail = "";
	const struct rootfs_item *holder = stage_holder(rootfs, item, &tail);
	_cleanup_fd_ int fd = holder && *tail ? open_in(holder, tail) : -ENOENT;
	struct stat st;

	/* What cannot be looked at may be there all the same, and would be open. */
	if (fd < 0 && fd != -ENOENT)
		return csn_fail(err, fd, "mounts", "cannot look at /%s, which is to be guarded: %s",
				item->at, strerror(-fd));
	item->is_ahead = fd >= 0 && fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode);
	item->is_file = item->is_ahead && !S_ISDIR(st.st_mode);
	return 0;
}

/* A mount in another one: no runtime is to make its mount point on the host. */
static int settle_place(const struct rootfs *rootfs, const struct rootfs_item *item,
			struct csn_error *err)
{
	const char *tail = "";
	const struct rootfs_item *holder = stage_holder(rootfs, item, &tail);
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (!holder || !*tail)
		return 0;
	fd = open_in(holder, tail);
	if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode))
		return 0;
	return csn_fail(err, fd < 0 ? fd : -ELOOP, "mounts",
			"there is no /%s inside to mount on: create it in the host folder that is "
			"mounted there, or choose a path outside of it",
			item->at);
}

int bundle_settle(struct rootfs *rootfs, struct csn_error *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < rootfs->count; i++) {
		struct rootfs_item *item = &rootfs->items[i];

		if (item->kind == ROOTFS_COVER || item->kind == ROOTFS_FREEZE ||
		    item->kind == ROOTFS_PIN)
			r = settle_self(rootfs, item, err);
		else if (rootfs_is_mount(item) && item->fd >= 0)
			r = settle_place(rootfs, item, err);
	}
	return r;
}
