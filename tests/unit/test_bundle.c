/*
 * The bundle of a plan, whole, against tests/oci/bundle.json: what a runtime is told is what the
 * plan says and no more. CAISSON_WRITE_DOCS=1 writes that file anew; look at what changed.
 */
#include "backend/oci/bundle.h"

#include "backend/seccomp_list.h"
#include "base/fd.h"
#include "os/mounts.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct plan plan;
static struct rootfs rootfs;
static struct csn_error err;

static void make_file(int dir_fd, const char *name)
{
	fd_close(openat(dir_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

/* A workspace with something to hide and to protect, as a tree. */
static int make_workspace(void)
{
	char path[] = "/tmp/csn-bundle-XXXXXX";
	int fd;

	CHECK(mkdtemp(path));
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && mkdirat(fd, ".git", 0755) == 0 && mkdirat(fd, ".git/hooks", 0755) == 0 &&
	      mkdirat(fd, "keys", 0755) == 0 && mkdirat(fd, "data", 0755) == 0);
	make_file(fd, ".env");
	CHECK(symlinkat("/etc/shadow", fd, "link.pem") == 0);
	return fd;
}

static void remove_workspace(int fd)
{
	static const char *const folders[] = { ".git/hooks", ".git", "keys", "data" };
	char path[64], name[256];
	ssize_t n;

	unlinkat(fd, ".env", 0);
	unlinkat(fd, "link.pem", 0);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		unlinkat(fd, folders[i], AT_REMOVEDIR);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof name - 1);
	if (n > 0) {
		name[n] = 0;
		rmdir(name);
	}
}

static struct rootfs_item *add(enum rootfs_kind kind, const char *at, int fd, bool is_writable)
{
	struct rootfs_item *item = rootfs_add(&rootfs, kind, at, "");

	item->fd = fd;
	if (is_writable)
		item->attributes &= ~(uint64_t)MOUNT_ATTR_RDONLY;
	return item;
}

static void fill(int workspace_fd)
{
	rootfs_init(&rootfs, 512 << 20);
	add(ROOTFS_FOLDER, "etc", -1, false);
	add(ROOTFS_BIND, "usr", open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC), false);
	add(ROOTFS_BIND, "dev/null", -1, false);
	add(ROOTFS_PTS, "dev/pts", -1, false);
	add(ROOTFS_SCRATCH, "tmp", -1, true);
	add(ROOTFS_PROC, "proc", -1, false);
	add(ROOTFS_COVER, "proc/keys", -1, false);
	add(ROOTFS_TREE, "workspace", workspace_fd, true);
	add(ROOTFS_TREE, "workspace/data", open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC), false);
	add(ROOTFS_PIN, "workspace/.git", -1, true);
	add(ROOTFS_FREEZE, "workspace/.git/hooks", -1, false);
	add(ROOTFS_FREEZE, "workspace/.envrc", -1, false); /* not there */
	add(ROOTFS_COVER, "workspace/.env", -1, false);
	add(ROOTFS_COVER, "workspace/keys", -1, false);
	add(ROOTFS_COVER, "workspace/link.pem", -1, false); /* a link is not followed */
}

static json_t *config_of(bool is_held)
{
	const struct bundle bundle = { .plan = &plan,
				       .rootfs = &rootfs,
				       .stage = "/mnt",
				       .cgroup = is_held ? "20290101-000000-0123456789ab" : NULL,
				       .uid = 1879048200,
				       .root_uid = 1883242504,
				       .has_search = true,
				       .own_processes = 2,
				       .data_bytes = PLAN_UNLIMITED,
				       .is_held = is_held };

	return bundle_config(&bundle, &err);
}

/* All but the list of syscalls, which has its own test. */
static void golden(void)
{
	int fd = make_workspace();
	json_t *config, *file, *told;

	CHECK(plan_init(&plan, TIER_ASSISTED) == 0);
	fill(dup(fd));
	CHECK(bundle_settle(&rootfs, &err) == 0);
	config = config_of(false);
	CHECK(config && json_object_del(json_object_get(config, "linux"), "seccomp") == 0);
	if (getenv("CAISSON_WRITE_DOCS"))
		CHECK(json_dump_file(config, BUNDLE_GOLDEN, JSON_INDENT(1)) == 0);
	file = json_load_file(BUNDLE_GOLDEN, 0, NULL);
	CHECK(file && json_equal(config, file));
	told = config_of(true);
	CHECK(!json_object_get(json_object_get(json_object_get(told, "linux"), "resources"),
			       "memory"));
	CHECK(json_object_get(json_object_get(told, "linux"), "cgroupsPath"));
	json_decref(told);
	json_decref(file);
	json_decref(config);
	rootfs_done(&rootfs);
	plan_done(&plan);
	remove_workspace(fd);
	close(fd);
}

static void no_place(void)
{
	int fd = make_workspace();

	fill(dup(fd));
	add(ROOTFS_TREE, "workspace/missing", open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC),
	    false);
	CHECK(bundle_settle(&rootfs, &err) == -ENOENT);
	CHECK(strstr(err.text, "there is no /workspace/missing inside"));
	rootfs_done(&rootfs);
	remove_workspace(fd);
	close(fd);
}

/* Only what is absent needs no guard: an error of another kind does not open a name. */
static void not_looked_at(void)
{
	int fd = make_workspace();

	fill(dup(fd));
	add(ROOTFS_FREEZE, "workspace/.env/beneath", -1, false);
	CHECK(bundle_settle(&rootfs, &err) == -ENOTDIR);
	CHECK(strstr(err.text, "cannot look at /workspace/.env/beneath"));
	rootfs_done(&rootfs);
	remove_workspace(fd);
	close(fd);
}

/* JSON has no words for them, and a mount that is left out hides nothing. */
static void no_words(void)
{
	static char long_name[5000];
	int fd = make_workspace();

	memset(long_name, 'n', sizeof long_name - 1);
	CHECK(plan_init(&plan, TIER_ASSISTED) == 0);
	for (int i = 0; i < 2; i++) {
		err = (struct csn_error){ 0 };
		fill(dup(fd));
		add(ROOTFS_TREE, i == 0 ? "workspace/bad\xff" : long_name, dup(fd), true);
		CHECK(!config_of(false));
		CHECK(err.code == EINVAL && strstr(err.text, "use the process wall"));
		CHECK(strstr(err.text, i == 0 ? "/workspace/bad\\xff" : "too long"));
		rootfs_done(&rootfs);
	}
	plan_done(&plan);
	remove_workspace(fd);
	close(fd);
}

/* "ALLOW", "1" (EPERM), or "" for the default. */
static bool answers(json_t *list, const char *name, const char *action, int error)
{
	size_t i, j;
	json_t *group, *one;

	json_array_foreach(json_object_get(list, "syscalls"), i, group) {
		json_array_foreach(json_object_get(group, "names"), j, one) {
			if (strcmp(json_string_value(one), name) != 0)
				continue;
			return strcmp(json_string_value(json_object_get(group, "action")),
				      action) == 0 &&
			       json_integer_value(json_object_get(group, "errnoRet")) == error;
		}
	}
	return strcmp(action, "") == 0;
}

static void syscalls(void)
{
	static const char *const denied[] = {
		"mount", "ptrace", "setns", "unshare", "bpf", "kexec_load", "open_by_handle_at"
	};
	json_t *list = seccomp_list("command-alone");

	CHECK(list && json_integer_value(json_object_get(list, "defaultErrnoRet")) == ENOSYS);
	CHECK(strcmp(json_string_value(json_object_get(list, "defaultAction")), "SCMP_ACT_ERRNO") ==
	      0);
	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
		CHECK(answers(list, denied[i], "SCMP_ACT_ERRNO", EPERM));
	CHECK(answers(list, "read", "SCMP_ACT_ALLOW", 0));
	CHECK(answers(list, "clone", "SCMP_ACT_ALLOW", 0)); /* by its flags, inside */
	CHECK(answers(list, "openat2", "SCMP_ACT_ALLOW", 0));
	CHECK(answers(list, "connect", "SCMP_ACT_ERRNO", EACCES));
	CHECK(answers(list, "io_uring_setup", "", 0));
	json_decref(list);
}

static const struct tap_test tests[] = {
	{ "a bundle is what the plan says", golden },
	{ "a mount without a place is refused", no_place },
	{ "a guarded place that cannot be looked at", not_looked_at },
	{ "a path that JSON cannot say ends the start", no_words },
	{ "the list for engines", syscalls },
};

TAP_MAIN(tests)
