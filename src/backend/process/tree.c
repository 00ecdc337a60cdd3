/*
 * What a program behind the process wall sees; see tree.h. Tables first: system folders,
 * the files of /etc that are its own, the entries of the host's /etc that programs need to
 * work (none holds a secret), devices, and what /proc must not show.
 */
#include "backend/process/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "os/mounts.h"

#define STAGE "mounts"
#define READ_WRITE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define READ_ONLY (READ_WRITE | MOUNT_ATTR_RDONLY)

/* Merged into /usr on most systems, then they are symlinks and stay symlinks. */
static const char *const system_folders[] = { "usr",   "bin",   "sbin",  "lib",
					      "lib32", "lib64", "libx32" };

static const struct {
	const char *at;
	const char *text;
} own_files[] = {
	{ "etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
			"sandbox:x:1000:1000:sandbox:/tmp/home:/bin/bash\n"
			"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\nsandbox:x:1000:\ntty:x:5:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost caisson\n::1 localhost ip6-localhost\n" },
	{ "etc/hostname", "caisson\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			       "networks: files\nprotocols: files\nservices: files\n" },
	/* One dead address (TEST-NET-1, RFC 5737): a look-up fails at once and is seen. */
	{ "etc/resolv.conf", "nameserver 192.0.2.1\noptions timeout:1 attempts:1\n" },
	{ "etc/gitconfig", "[safe]\n\tdirectory = *\n" },
};

/*
 * What programs look for in the host's /etc: folders and large files are shown, small files copied
 * (a mount costs 15 us to make and to take down, as much as 10 KiB), links stay links. Missing
 * ones are left out.
 */
static const struct {
	const char *name;
	enum rootfs_kind kind;
	bool is_file; /* a mount point of that kind */
} host_etc[] = {
	{ "alternatives", ROOTFS_BIND, false },    { "fonts", ROOTFS_BIND, false },
	{ "java-11-openjdk", ROOTFS_BIND, false }, { "java-17-openjdk", ROOTFS_BIND, false },
	{ "java-21-openjdk", ROOTFS_BIND, false }, { "ld.so.conf.d", ROOTFS_BIND, false },
	{ "ssl/certs", ROOTFS_BIND, false },       { "ld.so.cache", ROOTFS_BIND, true },
	{ "mime.types", ROOTFS_BIND, true },       { "ld.so.conf", ROOTFS_COPY, true },
	{ "localtime", ROOTFS_COPY, true },        { "os-release", ROOTFS_COPY, true },
	{ "protocols", ROOTFS_COPY, true },        { "services", ROOTFS_COPY, true },
	{ "ssl/openssl.cnf", ROOTFS_COPY, true },  { "timezone", ROOTFS_COPY, true },
};

static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

static const struct {
	const char *at;
	const char *to;
} links[] = {
	{ "dev/ptmx", "pts/ptmx" },
	{ "dev/fd", "/proc/self/fd" },
	{ "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" },
	{ "dev/stderr", "/proc/self/fd/2" },
	{ "var/tmp", "/tmp" },
	{ "var/run", "/run" },
};

/* World-readable entries that tell of the host or of other users' keys. Those that only uid 0
 * may open (kcore, timer_list) are closed by the id behind the sandbox. */
static const char *const proc_covered[] = { "proc/keys",          "proc/key-users",
					    "proc/latency_stats", "proc/sched_debug",
					    "proc/scsi",          "proc/acpi" };

/* State of one filling: the first failure sticks and ends the rest. */
struct filling {
	const struct plan *plan;
	const struct backend_start *how;
	struct arena *arena;
	struct launch *launch;
	struct csn_error *err;
	int userns_fd;
	int result;
	struct rootfs_item sink; /* what callers fill in after a failure */
};

static struct rootfs_item *add(struct filling *f, enum rootfs_kind kind, const char *at,
			       const char *source)
{
	struct rootfs_item *item;

	if (f->result < 0)
		return &f->sink;
	item = at && source ? rootfs_add(&f->launch->rootfs, kind, at, source) : NULL;
	if (item)
		return item;
	f->result = csn_fail(f->err, -E2BIG, STAGE, "too many mounts and hidden files: at most %d",
			     ROOTFS_ITEMS);
	return &f->sink;
}

static void allow(struct filling *f, const char *path, enum landlock_grant grant)
{
	if (f->result >= 0 && launch_allow(f->launch, path, grant) < 0)
		f->result = csn_fail(f->err, -E2BIG, STAGE, "more than %d writable places",
				     LAUNCH_RULES);
}

static void add_system(struct filling *f)
{
	char target[256];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(system_folders); i++) {
		char *host = arena_printf(f->arena, "/%s", system_folders[i]);
		ssize_t n;

		if (!host || lstat(host, &st) < 0)
			continue;
		if (!S_ISLNK(st.st_mode)) {
			add(f, ROOTFS_BIND, system_folders[i], host)->is_system = true;
			continue;
		}
		n = readlink(host, target, sizeof target);
		if (n > 0 && (size_t)n < sizeof target)
			add(f, ROOTFS_LINK, system_folders[i],
			    arena_copy(f->arena, target, (size_t)n));
	}
}

static void add_system_folder(struct filling *f, const char *at)
{
	add(f, ROOTFS_FOLDER, at, "")->is_system = true;
}

static void add_etc(struct filling *f)
{
	char target[256];

	add_system_folder(f, "etc");
	add_system_folder(f, "etc/ssl");
	for (size_t i = 0; i < ARRAY_SIZE(own_files); i++)
		add(f, ROOTFS_FILE, own_files[i].at, own_files[i].text);
	for (size_t i = 0; i < ARRAY_SIZE(host_etc); i++) {
		char *host = arena_printf(f->arena, "/etc/%s", host_etc[i].name);
		ssize_t n = host ? readlink(host, target, sizeof target) : -1;
		struct rootfs_item *item;

		if (n > 0 && (size_t)n < sizeof target) {
			add(f, ROOTFS_LINK, host + 1, arena_copy(f->arena, target, (size_t)n));
		} else if (host && errno == EINVAL) {
			item = add(f, host_etc[i].kind, host + 1, host);
			item->is_optional = item->is_system = true;
			item->is_file = host_etc[i].is_file;
		}
	}
}

static void add_devices(struct filling *f)
{
	add_system_folder(f, "dev");
	add_system_folder(f, "var");
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		char *host = arena_printf(f->arena, "/dev/%s", devices[i]);
		struct rootfs_item *item = add(f, ROOTFS_BIND, host ? host + 1 : NULL, host);

		item->attributes = 0; /* a device node: nothing to execute, no set-id bits */
		item->is_optional = item->is_system = item->is_file = true;
	}
	add(f, ROOTFS_PTS, "dev/pts", "")->is_system = true;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		add(f, ROOTFS_LINK, links[i].at, links[i].to);
}

/*
 * /mnt is for what is lent later: read-only, since only we make mount points there. Landlock looks
 * at the folders above a mount, so what is granted now counts for what appears later.
 *
 * /tmp comes last: it covers the file system that it is a part of.
 */
static void add_scratch(struct filling *f)
{
	const char *at = f->plan->scratch_at + 1;

	add(f, ROOTFS_SCRATCH, "dev/shm", "shm")->is_system = true;
	if (plan_lends_late(f->plan)) {
		add(f, ROOTFS_SCRATCH, &PLAN_LATE[1], "late")->is_system = true;
		add(f, ROOTFS_FOLDER, &PLAN_LATE_RW[1], "");
	}
	if (!str_is(at, "tmp"))
		add(f, ROOTFS_SCRATCH, at, "tmp");
	add(f, ROOTFS_SCRATCH, "tmp", "tmp")->is_system = true;
}

/* On what is there before anything is lent. */
static void allow_own(struct filling *f)
{
	allow(f, "/", LANDLOCK_READ);
	allow(f, "/dev", LANDLOCK_DEVICE);
	if (plan_lends_late(f->plan))
		allow(f, PLAN_LATE_RW, LANDLOCK_WRITE);
	allow(f, "/dev/shm", LANDLOCK_SCRATCH);
	allow(f, "/tmp", LANDLOCK_SCRATCH);
	allow(f, f->plan->scratch_at, LANDLOCK_SCRATCH);
}

static void add_proc(struct filling *f)
{
	add(f, ROOTFS_PROC, "proc", "")->is_system = true;
	for (size_t i = 0; i < ARRAY_SIZE(proc_covered); i++)
		add(f, ROOTFS_COVER, proc_covered[i], "")->is_optional = true;
}

/* A host tree whose files belong to the caller: id-mapped when root started us. */
static int take_tree(struct filling *f, const char *host, uint64_t attributes, bool is_plain)
{
	_cleanup_fd_ int fd = is_plain ? mounts_clone_plain(host) : mounts_clone(-1, host);
	int r = fd < 0 ? fd : mounts_idmap(fd, f->userns_fd);

	if (r >= 0)
		r = mounts_set(fd, attributes);
	if (r >= 0)
		return fd_take(&fd);
	errno = -r;
	f->result =
		csn_fail(f->err, r, STAGE,
			 fd < 0 ? "cannot take a view of %s: %m"
				: "%s lies on a file system whose ids cannot be mapped (%m): run "
				  "caisson as an ordinary user, or copy the files elsewhere",
			 host);
	return -1;
}

static void add_host_tree(struct filling *f, const char *host, const char *at, uint64_t attributes,
			  bool is_plain)
{
	struct rootfs_item *item =
		add(f, f->userns_fd < 0 ? ROOTFS_BIND : ROOTFS_TREE, at + 1, host);

	item->attributes = attributes;
	item->is_plain = is_plain;
	if (f->userns_fd >= 0 && f->result >= 0)
		item->fd = take_tree(f, host, attributes, is_plain);
}

/*
 * The workspace or a mount: the policy decided about a path without links. Another run's program
 * that may write in the project swaps a folder of it for a link meanwhile; that is refused here,
 * or it would choose what is lent. tests/cli/test_cli_mounts.py
 */
static void add_lent(struct filling *f, const char *host, const char *at, bool is_writable)
{
	add_host_tree(f, host, at, is_writable ? READ_WRITE : READ_ONLY, true);
	if (is_writable)
		allow(f, at, LANDLOCK_WRITE);
}

static void add_cow(struct filling *f, const char *host, const char *at)
{
	struct rootfs_item *item = add(f, ROOTFS_OVERLAY, at + 1, host);

	item->layer = f->how->cow_dir;
	item->is_plain = true;
	item->attributes = READ_WRITE;
	if (f->userns_fd >= 0 && f->result >= 0) {
		item->fd = take_tree(f, host, READ_ONLY, true);
		item->layer_fd =
			f->result < 0 ? -1 : take_tree(f, f->how->cow_dir, READ_WRITE, false);
	}
	allow(f, at, LANDLOCK_WRITE);
}

static void add_workspace(struct filling *f)
{
	const struct plan_workspace *ws = &f->plan->workspace;

	if (!ws->host)
		return;
	if (ws->access == ACCESS_COW)
		add_cow(f, ws->host, ws->at);
	else
		add_lent(f, ws->host, ws->at, ws->access == ACCESS_RW);
}

static void add_in_workspace(struct filling *f, enum rootfs_kind kind, const char *const *paths)
{
	for (; paths && *paths; paths++) {
		char *at = arena_printf(f->arena, "%s/%s", f->plan->workspace.at + 1, *paths);

		add(f, kind, at, "")->is_optional = true;
	}
}

/*
 * The folders above a frozen or hidden path are pinned. Renamed away, they would make room for a
 * new one with other contents; and the path would have a name by which nobody knows at the next
 * start, or in another view of the same folder, that it is hidden. `top`: where `path` begins,
 * without the first '/'. tests/cli/test_run_view.py
 */
static void pin_above(struct filling *f, const char *top, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *at = arena_printf(f->arena, "%s/%.*s", top, (int)(slash - path), path);
		struct rootfs_item *item;
		bool is_new = at;

		for (size_t i = 0; is_new && i < f->launch->rootfs.count; i++)
			is_new = f->launch->rootfs.items[i].kind != ROOTFS_PIN ||
				 !str_is(f->launch->rootfs.items[i].at, at);
		if (!is_new)
			continue;
		item = add(f, ROOTFS_PIN, at, "");
		item->is_optional = true;
		item->attributes = READ_WRITE;
	}
}

static void add_frozen(struct filling *f, const char *const *paths)
{
	for (const char *const *path = paths; path && *path; path++)
		pin_above(f, f->plan->workspace.at + 1, *path);
	add_in_workspace(f, ROOTFS_FREEZE, paths);
}

/* What the workspace hides is hidden in a mount that shows a part of it, too; lent by its own name
 * it is meant. */
static void hide_in_mount(struct filling *f, const struct plan_mount *mount, const char *path)
{
	const struct plan_workspace *ws = &f->plan->workspace;
	char *host = arena_printf(f->arena, "%s/%s", ws->host, path);
	const char *tail;
	char *at;

	if (!host || !path_is_beneath(host, mount->host))
		return;
	tail = path_tail(host, mount->host);
	if (!*tail)
		return;
	at = arena_printf(f->arena, "%s/%s", mount->at + 1, tail);
	if (mount->access == ACCESS_RW)
		pin_above(f, mount->at + 1, tail);
	add(f, ROOTFS_COVER, at, "")->is_optional = true;
}

static void add_hidden(struct filling *f, const char *const *paths)
{
	const struct plan *plan = f->plan;

	if (plan->workspace.access == ACCESS_RW)
		for (const char *const *path = paths; path && *path; path++)
			pin_above(f, plan->workspace.at + 1, *path);
	add_in_workspace(f, ROOTFS_COVER, paths);
	for (const char *const *path = paths; path && *path; path++)
		for (size_t i = 0; i < plan->mount_count; i++)
			hide_in_mount(f, &plan->mounts[i], *path);
}

/* A file's item makes no folder above it. */
static void add_above(struct filling *f, const char *at)
{
	const char *slash = strrchr(at, '/');

	if (slash > at)
		add(f, ROOTFS_FOLDER, arena_printf(f->arena, "%.*s", (int)(slash - at) - 1, at + 1),
		    "");
}

bool tree_has_place(const struct plan *plan, const char *at, size_t before)
{
	bool has = path_is_beneath(at, "/tmp") || path_is_beneath(at, plan->scratch_at) ||
		   (plan_lends_late(plan) && path_is_beneath(at, PLAN_LATE));

	if (plan->workspace.host)
		has |= path_is_beneath(at, plan->workspace.at);
	for (size_t i = 0; !has && i < before; i++)
		has = path_is_beneath(at, plan->mounts[i].at);
	return has;
}

/*
 * For what will be lent when it is known: mount points on the root, which is read-only by then. In
 * scratch and in what is lent itself they are made, or found, later.
 */
static void add_places(struct filling *f)
{
	const struct plan *plan = f->plan;
	struct stat st;

	if (plan->workspace.host)
		add(f, ROOTFS_FOLDER, plan->workspace.at + 1, "");
	for (size_t i = 0; i < plan->mount_count; i++) {
		const struct plan_mount *mount = &plan->mounts[i];
		bool is_folder = stat(mount->host, &st) < 0 || S_ISDIR(st.st_mode);

		if (tree_has_place(plan, mount->at, i))
			continue;
		add_above(f, mount->at);
		add(f, is_folder ? ROOTFS_FOLDER : ROOTFS_FILE, mount->at + 1, "");
	}
}

static void add_lents(struct filling *f)
{
	const struct plan *plan = f->plan;
	const struct backend_start *how = f->how;

	for (const char *const *path = how->toolchains; path && *path; path++)
		add_host_tree(f, *path, *path, READ_ONLY, false);
	add_workspace(f);
	for (size_t i = 0; i < plan->mount_count; i++)
		add_lent(f, plan->mounts[i].host, plan->mounts[i].at,
			 plan->mounts[i].access == ACCESS_RW);
	if (plan->workspace.host && plan->workspace.access != ACCESS_RO)
		add_frozen(f, how->frozen);
	if (plan->workspace.host)
		add_hidden(f, how->hidden);
	if (plan_lends_late(plan))
		add(f, ROOTFS_CLOSE, &PLAN_LATE[1], "");
}

static struct filling start_filling(const struct tree *tree, struct launch *launch,
				    struct csn_error *err)
{
	rootfs_init(&launch->rootfs, tree->plan->limits.scratch_bytes);
	return (struct filling){ .plan = tree->plan,
				 .how = tree->how,
				 .arena = tree->arena,
				 .launch = launch,
				 .err = err,
				 .userns_fd = tree->userns_fd };
}

int tree_plan_lent(const struct tree *tree, struct launch *launch, struct csn_error *err)
{
	struct filling f = start_filling(tree, launch, err);

	allow_own(&f);
	add_lents(&f);
	return f.result;
}

int tree_plan(const struct tree *tree, struct launch *launch, struct csn_error *err)
{
	struct filling f = start_filling(tree, launch, err);

	allow_own(&f);
	add_system(&f);
	add_etc(&f);
	add_devices(&f);
	add_scratch(&f);
	add_proc(&f);
	if (tree->how->waits)
		add_places(&f);
	else
		add_lents(&f);
	return f.result;
}
