/*
 * The file tree inside: built in namespaces of the test's own from a host folder that hostile
 * code wrote, /mnt/host. What is refused leaves nothing behind on the host; what is inside is
 * looked at from inside.
 */
#include "launch/rootfs.h"

#include "base/str.h"
#include "os/privs.h"
#include "own_space.h"

#include <dirent.h>
#include <sys/statvfs.h>

enum { MiB = 1 << 20 };

static struct rootfs rootfs;
static struct csn_error err;

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* Opens and closes; 0 or errno. */
static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static struct rootfs_item *add(enum rootfs_kind kind, const char *at, const char *source)
{
	struct rootfs_item *item = rootfs_add(&rootfs, kind, at, source);

	CHECK(item);
	return item;
}

static void add_bind(const char *at, const char *source, bool is_writable)
{
	struct rootfs_item *item = add(ROOTFS_BIND, at, source);

	item->attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	item->attributes |= is_writable ? 0 : MOUNT_ATTR_RDONLY;
}

static void add_scratch(void)
{
	add(ROOTFS_FOLDER, "dev", "")->is_system = true;
	add(ROOTFS_SCRATCH, "dev/shm", "shm")->is_system = true;
	add(ROOTFS_SCRATCH, "tmp", "tmp")->is_system = true;
}

/* The host: /mnt/host is the workspace, /mnt/other lies beside it. */
static void start(void)
{
	own_mounts();
	CHECK(mkdir("host", 0755) == 0 && mkdir("host/dir", 0755) == 0);
	CHECK(mkdir("host/secrets", 0755) == 0 && mkdir("other", 0755) == 0);
	put_text("host/file", "of the host");
	put_text("host/.env", "TOKEN=1");
	put_text("host/dir/config", "of the host");
	put_text("host/secrets/key", "secret");
	put_text("other/precious", "of the host");
	rootfs_init(&rootfs, MiB);
}

static void enter(void)
{
	int r = rootfs_enter(&rootfs, &err);

	if (r < 0)
		printf("# %s\n", err.text);
	CHECK(r == 0);
}

/* ---- what is there --------------------------------------------------------------------------- */

static void items(void)
{
	struct stat st;
	char target[64] = "";

	start();
	add(ROOTFS_FOLDER, "etc", "")->is_system = true;
	add(ROOTFS_FILE, "etc/hostname", "caisson\n");
	add(ROOTFS_LINK, "bin", "usr/bin");
	add(ROOTFS_COPY, "etc/copy", "/mnt/host/file");
	add(ROOTFS_COPY, "etc/missing", "/mnt/host/missing");
	add(ROOTFS_FOLDER, "var/lib/deep", "")->mode = 0711;
	add_bind("workspace", "/mnt/host", false);
	add_bind("somewhere/else/file", "/mnt/other/precious", false);
	add_scratch();
	enter();
	CHECK_STR(get_text("/etc/hostname"), "caisson\n");
	CHECK_STR(get_text("/etc/copy"), "of the host");
	CHECK(stat("/etc/copy", &st) == 0 && (st.st_mode & 07777) == 0444);
	CHECK(!exists("/etc/missing"));
	CHECK(readlink("/bin", target, sizeof target - 1) == 7);
	CHECK_STR(target, "usr/bin");
	CHECK(stat("/var/lib/deep", &st) == 0 && (st.st_mode & 07777) == 0711);
	CHECK(stat("/var/lib", &st) == 0 && (st.st_mode & 07777) == 0755);
	CHECK_STR(get_text("/workspace/dir/config"), "of the host");
	CHECK_STR(get_text("/somewhere/else/file"), "of the host");
	CHECK(umask(0) == 022);
}

/* The view is what was listed: nothing of the host's beside it, and none of it writable. */
static void nothing_else(void)
{
	static const char *const gone[] = { "/usr", "/mnt", "/home", "/root", "/proc", "/old" };
	static const char *const tries[] = { "/new", "/workspace/new", "/workspace/file",
					     "/run/new" };
	struct statvfs st;

	start();
	add_bind("workspace", "/mnt/host", false);
	add_scratch();
	enter();
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		CHECK(!exists(gone[i]));
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++)
		CHECK(try_open(tries[i], O_WRONLY | O_CREAT) == EROFS);
	CHECK(statvfs("/workspace", &st) == 0);
	CHECK((st.f_flag & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
	CHECK(statvfs("/tmp", &st) == 0);
	CHECK((st.f_flag & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
	CHECK(chdir("/workspace") == 0 && chdir("../../..") == 0 && !exists("usr"));
}

/* A copy is what it was: what changes on the host afterwards stays outside, a view does not. */
static void copies_and_views(void)
{
	int host;

	start();
	host = open("host", O_PATH | O_DIRECTORY | O_CLOEXEC);
	add(ROOTFS_COPY, "copy", "/mnt/host/file");
	add_bind("view", "/mnt/host", false);
	add_scratch();
	enter();
	CHECK(fchdir(host) == 0);
	put_text("file", "changed");
	CHECK_STR(get_text("/copy"), "of the host");
	CHECK_STR(get_text("/view/file"), "changed");
}

static void sources(void)
{
	start();
	add(ROOTFS_BIND, "optional", "/mnt/missing")->is_optional = true;
	add_bind("workspace", "/mnt/host", true);
	add_bind("needed", "/mnt/missing", false);
	CHECK(rootfs_enter(&rootfs, &err) == -ENOENT);
	CHECK(strstr(err.text, "/mnt/missing"));
	CHECK(exists("/usr") && exists("/mnt/host")); /* refused before anything was covered */
	rootfs_done(&rootfs);
	rootfs_init(&rootfs, MiB);
	add(ROOTFS_BIND, "optional", "/mnt/missing")->is_optional = true;
	add_scratch();
	enter();
	CHECK(!exists("/optional"));
}

/* ---- scratch --------------------------------------------------------------------------------- */

/* Writes until it is full; how many bytes that took. */
static long fill(const char *path)
{
	static char piece[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	long size = 0;
	ssize_t n;

	CHECK(fd >= 0);
	while (size < 16 * MiB && (n = write(fd, piece, sizeof piece)) > 0)
		size += n;
	CHECK(size < 16 * MiB && errno == ENOSPC);
	close(fd);
	return size;
}

static void scratch_is_one(void)
{
	long first, second;

	start();
	add(ROOTFS_SCRATCH, "var/scratch", "tmp");
	add_scratch();
	enter();
	first = fill("/dev/shm/all");
	CHECK(first > MiB - 65536 && first <= MiB);
	second = fill("/tmp/more");
	CHECK(second <= 8192); /* both live in the one size */
	CHECK(unlink("/dev/shm/all") == 0);
	CHECK(fill("/tmp/again") > MiB - 131072);
	CHECK(exists("/var/scratch/again") && exists("/tmp/home"));
	CHECK(!exists("/tmp/tmp") && !exists("/tmp/shm"));
}

static void scratch_has_inodes(void)
{
	char path[32];
	int made = 0;

	start();
	add_scratch();
	enter();
	for (; made < 100000; made++) {
		snprintf(path, sizeof path, "/tmp/%d", made);
		if (mkdir(path, 0700) < 0)
			break;
	}
	CHECK(made > 500 && made < 5000 && errno == ENOSPC);
}

/* ---- hidden and frozen ------------------------------------------------------------------- */

static void hides(void)
{
	start();
	add_bind("workspace", "/mnt/host", true);
	add(ROOTFS_COVER, "workspace/.env", "");
	add(ROOTFS_COVER, "workspace/secrets", "");
	add(ROOTFS_COVER, "workspace/absent", "")->is_optional = true;
	add_scratch();
	enter();
	CHECK(try_open("/workspace/.env", O_WRONLY) == EROFS);
	CHECK(unlink("/workspace/.env") < 0 && errno == EBUSY);
	CHECK(rename("/workspace/.env", "/workspace/moved") < 0);
	CHECK(rmdir("/workspace/secrets") < 0 && errno == EBUSY);
	CHECK(chmod("/workspace/.env", 0644) < 0 && errno == EROFS);
	CHECK_STR(get_text("/workspace/.env"), ""); /* with every capability */
	CHECK(!exists("/workspace/secrets/key"));
	CHECK(privs_drop_caps() == 0); /* and without */
	CHECK(try_open("/workspace/.env", O_RDONLY) == EACCES);
	CHECK(try_open("/workspace/secrets", O_RDONLY) == EACCES);
	CHECK(try_open("/workspace/secrets/key", O_RDONLY) == EACCES);
	CHECK_STR(get_text("/workspace/file"), "of the host");
	CHECK(try_open("/workspace/new", O_WRONLY | O_CREAT) == 0);
}

static void freezes(void)
{
	start();
	add_bind("workspace", "/mnt/host", true);
	add(ROOTFS_FREEZE, "workspace/dir", "");
	add(ROOTFS_FREEZE, "workspace/file", "");
	add(ROOTFS_FREEZE, "workspace/absent", "")->is_optional = true;
	add_scratch();
	enter();
	CHECK_STR(get_text("/workspace/dir/config"), "of the host");
	CHECK(try_open("/workspace/dir/config", O_WRONLY) == EROFS);
	CHECK(try_open("/workspace/dir/new", O_WRONLY | O_CREAT) == EROFS);
	CHECK(try_open("/workspace/file", O_WRONLY) == EROFS);
	CHECK(unlink("/workspace/file") < 0 && errno == EBUSY);
	CHECK(rename("/workspace/dir", "/workspace/moved") < 0 && errno == EBUSY);
	CHECK(rename("/workspace/new", "/workspace/file") < 0);
	CHECK(try_open("/workspace/new", O_WRONLY | O_CREAT) == 0);
	CHECK(mount(NULL, "/workspace/dir", NULL, MS_REMOUNT | MS_BIND, NULL) == 0 ||
	      errno == EPERM); /* who still has capabilities is not held; they are dropped next */
}

/* The folder above a frozen name stays where it is: else a new one would take its place. */
static void pins(void)
{
	struct rootfs_item *item;

	start();
	add_bind("workspace", "/mnt/host", true);
	item = add(ROOTFS_PIN, "workspace/dir", "");
	item->attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	add(ROOTFS_FREEZE, "workspace/dir/config", "");
	add_scratch();
	enter();
	CHECK(rename("/workspace/dir", "/workspace/moved") < 0 && errno == EBUSY);
	CHECK(try_open("/workspace/dir/new", O_WRONLY | O_CREAT) == 0);
	CHECK(try_open("/workspace/dir/config", O_WRONLY) == EROFS);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void expect_refused(int error, const char *words)
{
	int r = rootfs_enter(&rootfs, &err);

	if (r != error || !strstr(err.text, words))
		printf("# %d %s\n", r, err.text);
	CHECK(r == error && strstr(err.text, words));
	CHECK_STR(err.stage, "rootfs");
}

/* A folder beneath another that a symlink in the workspace leads to. */
static void link_on_the_way(void)
{
	start();
	CHECK(symlink("/mnt/other", "host/link") == 0 && symlink("../other", "host/near") == 0);
	add_bind("workspace", "/mnt/host", true);
	add_bind("workspace/link/in", "/mnt/other", false);
	expect_refused(-ELOOP, "/workspace/link/in leads through a symbolic link");
	CHECK(!exists("/mnt/other/in") && exists("/mnt/other/precious"));
	CHECK(!exists("/mnt/host/in"));
}

static void link_at_the_end(void)
{
	static const char *const targets[] = { "/mnt/other", "../other", "missing", "/etc/passwd",
					       "/proc/self/root" };

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			start();
			CHECK(symlink(targets[i], "host/link") == 0);
			add_bind("workspace", "/mnt/host", true);
			add_bind("workspace/link", i == 3 ? "/mnt/other/precious" : "/mnt/other",
				 false);
			expect_refused(-ELOOP, "/workspace/link leads through a symbolic link");
			CHECK(!exists("/mnt/host/missing"));
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		CHECK(WEXITSTATUS(status) == 0);
	}
}

static void link_above_a_folder(void)
{
	start();
	CHECK(symlink("/mnt/other", "host/link") == 0);
	add_bind("workspace", "/mnt/host", true);
	add(ROOTFS_FOLDER, "workspace/link/made", "");
	expect_refused(-ELOOP, "symbolic link");
	CHECK(!exists("/mnt/other/made"));
}

static void link_above_a_hidden_name(void)
{
	start();
	CHECK(symlink("/mnt/other", "host/link") == 0);
	add_bind("workspace", "/mnt/host", true);
	add(ROOTFS_COVER, "workspace/link/precious", "");
	expect_refused(-ELOOP, "symbolic link");
}

static void missing_in_host_folder(void)
{
	static const struct {
		const char *at;
		const char *source;
	} table[] = {
		{ "workspace/missing", "/mnt/other" },
		{ "workspace/missing", "/mnt/other/precious" },
		{ "workspace/dir/a/b/c", "/mnt/other" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			start();
			add_bind("workspace", "/mnt/host", true);
			add_bind(table[i].at, table[i].source, false);
			expect_refused(-EXDEV, "create it in the host folder");
			CHECK(strstr(err.text, table[i].at));
			CHECK(!exists("/mnt/host/missing") && !exists("/mnt/host/dir/a"));
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		CHECK(WEXITSTATUS(status) == 0);
	}
}

/* What exists in the host folder is a mount point, and there nothing had to be made. */
static void present_in_host_folder(void)
{
	start();
	add_bind("workspace", "/mnt/host", true);
	add_bind("workspace/dir", "/mnt/other", false);
	add_scratch();
	enter();
	CHECK(exists("/workspace/dir/precious") && !exists("/workspace/dir/config"));
	CHECK(try_open("/workspace/dir/precious", O_WRONLY) == EROFS);
}

static void places_that_are_not(void)
{
	char deep[5000];

	start();
	memset(deep, 'a', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	add(ROOTFS_FOLDER, deep, "");
	CHECK(rootfs_enter(&rootfs, &err) == -ENAMETOOLONG);
}

static void beneath_a_file(void)
{
	start();
	add_bind("workspace", "/mnt/host", true);
	add_bind("workspace/file/in", "/mnt/other", false);
	CHECK(rootfs_enter(&rootfs, &err) == -ENOTDIR && strstr(err.text, "/workspace/file/in"));
}

/* ---- with a skeleton ---------------------------------------------------------------------- */

/* Fills /mnt/tree for the items so far and notes it; it lies on the file system of /mnt/host. */
static void use_skeleton(void)
{
	int fd;
	struct stat st;

	for (size_t i = 0; i < rootfs.count; i++)
		rootfs.items[i].is_ahead = !str_starts(rootfs.items[i].at, "workspace/") &&
					   rootfs.items[i].kind != ROOTFS_COVER;
	CHECK(mkdir("tree", 0755) == 0);
	fd = open("tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	umask(077);
	if (rootfs_fill(&rootfs, fd, &err) < 0)
		printf("# %s\n", err.text);
	CHECK(umask(022) == 077);
	close(fd);
	rootfs.skeleton = (struct rootfs_skeleton){ "/mnt/tree", st.st_dev, st.st_ino, -1 };
}

static void add_some(void)
{
	add(ROOTFS_FOLDER, "etc", "")->is_system = true;
	add(ROOTFS_FILE, "etc/hostname", "caisson\n");
	add(ROOTFS_LINK, "bin", "usr/bin");
	add(ROOTFS_COPY, "etc/copy", "/mnt/host/file");
	add_bind("workspace", "/mnt/host", true);
	add_bind("somewhere/else/file", "/mnt/other/precious", false);
	rootfs.items[rootfs.count - 1].is_file = true;
	add_scratch();
	add(ROOTFS_COVER, "workspace/.env", "");
}

static void check_some(mode_t type)
{
	struct statvfs fs;
	struct stat st;

	CHECK_STR(get_text("/etc/hostname"), "caisson\n");
	CHECK_STR(get_text("/etc/copy"), "of the host");
	CHECK_STR(get_text("/workspace/dir/config"), "of the host");
	CHECK_STR(get_text("/workspace/.env"), "");
	CHECK_STR(get_text("/somewhere/else/file"), "of the host");
	CHECK(stat("/somewhere", &st) == 0 && st.st_mode == (type | 0755));
	CHECK(stat("/etc/hostname", &st) == 0 && (st.st_mode & 07777) == 0444);
	CHECK(try_open("/new", O_WRONLY | O_CREAT) == EROFS);
	CHECK(try_open("/etc/hostname", O_WRONLY) == EROFS);
	CHECK(try_open("/run/caisson/hidden-file", O_WRONLY) == EROFS);
	CHECK(try_open("/workspace/new", O_WRONLY | O_CREAT) == 0);
	CHECK(try_open("/tmp/new", O_WRONLY | O_CREAT) == 0);
	CHECK(statvfs("/", &fs) == 0);
	CHECK((fs.f_flag & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
	CHECK(exists("/tmp/home") && !exists("/mnt") && umask(0) == 022);
}

static void skeleton(void)
{
	int tree;

	start();
	add_some();
	use_skeleton();
	CHECK(exists("tree/bin") && exists("tree/workspace") && exists("tree/proc") == false);
	put_text("tree/mark", "");
	tree = open("tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
	enter();
	check_some(S_IFDIR);
	CHECK(exists("/mark"));
	CHECK(faccessat(tree, "new", F_OK, 0) < 0 && faccessat(tree, "tmp/new", F_OK, 0) < 0);
}

/* Another folder than the one that was looked at is none. */
static void skeleton_exchanged(void)
{
	start();
	add_some();
	use_skeleton();
	put_text("tree/mark", "");
	CHECK(rename("tree", "old") == 0 && mkdir("tree", 0755) == 0);
	put_text("tree/mark", "");
	enter();
	check_some(S_IFDIR);
	CHECK(!exists("/mark"));
}

/* The workspace lies on the skeleton's file system; it is not the root's own for that. */
static void skeleton_beside_the_workspace(void)
{
	start();
	add_some();
	add_bind("workspace/missing", "/mnt/other", false);
	use_skeleton();
	CHECK(rootfs_enter(&rootfs, &err) == -EXDEV);
	CHECK(strstr(err.text, "create it in the host folder"));
	CHECK(!exists("/mnt/host/missing") && !exists("/mnt/tree/workspace/missing"));
}

/* What came after the look has no place, and needs none. */
static void skeleton_and_latecomers(void)
{
	struct rootfs_item *item;

	start();
	add_some();
	item = add(ROOTFS_BIND, "etc/late", "/mnt/other");
	item->is_optional = item->is_system = true;
	item = add(ROOTFS_COPY, "etc/late-copy", "/mnt/host/file");
	item->is_optional = item->is_system = true;
	rootfs.count -= 2;
	use_skeleton();
	rootfs.count += 2;
	enter();
	check_some(S_IFDIR);
	CHECK(!exists("/etc/late") && !exists("/etc/late-copy"));
}

/* ---- the list ---------------------------------------------------------------------------- */

static void list_is_bounded(void)
{
	int fd;

	rootfs_init(&rootfs, MiB);
	for (int i = 0; i < ROOTFS_ITEMS; i++)
		CHECK(rootfs_add(&rootfs, ROOTFS_FOLDER, "x", ""));
	CHECK(!rootfs_add(&rootfs, ROOTFS_FOLDER, "x", "") && rootfs.count == ROOTFS_ITEMS);
	fd = open("/", O_PATH | O_CLOEXEC);
	rootfs.items[7].fd = fd;
	rootfs_done(&rootfs);
	CHECK(rootfs.count == 0 && fcntl(fd, F_GETFD) < 0);
}

/* What a caller forgets to say is the narrow thing. */
static void defaults_are_narrow(void)
{
	const struct rootfs_item *item;

	rootfs_init(&rootfs, MiB);
	item = rootfs_add(&rootfs, ROOTFS_BIND, "x", "/x");
	CHECK(item->attributes == (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
	CHECK(item->fd == -1 && item->layer_fd == -1 && !item->is_optional && !item->is_system);
}

AS_BOTH(items)
AS_BOTH(nothing_else)
AS_BOTH(copies_and_views)
AS_BOTH(scratch_is_one)
AS_BOTH(hides)
AS_BOTH(freezes)
AS_BOTH(pins)
AS_BOTH(link_on_the_way)
AS_BOTH(link_at_the_end)
AS_BOTH(missing_in_host_folder)
AS_BOTH(skeleton)
AS_BOTH(skeleton_exchanged)
AS_BOTH(skeleton_beside_the_workspace)

static const struct tap_test tests[] = {
	BOTH_ROWS(items, "folders, files, links, copies and views"),
	BOTH_ROWS(nothing_else, "nothing else is there, and nothing is writable"),
	BOTH_ROWS(copies_and_views, "a copy stays, a view follows"),
	{ "a missing source is refused by name, or skipped", sources },
	BOTH_ROWS(scratch_is_one, "scratch parts share one size"),
	{ "scratch has a limit on names too", scratch_has_inodes },
	BOTH_ROWS(hides, "hidden names cannot be read, written or removed"),
	BOTH_ROWS(freezes, "frozen names are read-only"),
	BOTH_ROWS(pins, "a pinned folder cannot be moved away"),
	BOTH_ROWS(link_on_the_way, "a symlink on the way to a mount point is refused"),
	BOTH_ROWS(link_at_the_end, "a symlink as a mount point is refused"),
	{ "a symlink above a folder is refused", link_above_a_folder },
	{ "a symlink above a hidden name is refused", link_above_a_hidden_name },
	BOTH_ROWS(missing_in_host_folder, "no mount point is made in a host folder"),
	{ "what is there is a mount point", present_in_host_folder },
	{ "a path that is too long is refused", places_that_are_not },
	{ "nothing is mounted beneath a file", beneath_a_file },
	BOTH_ROWS(skeleton, "a skeleton shows the same, and stays as it is"),
	BOTH_ROWS(skeleton_exchanged, "another folder in its place is no skeleton"),
	BOTH_ROWS(skeleton_beside_the_workspace,
		  "beside a skeleton nothing is made in host folders"),
	{ "what came after the skeleton is left out", skeleton_and_latecomers },
	{ "the list is bounded, its descriptors are closed", list_is_bounded },
	{ "items are read-only until they are told", defaults_are_narrow },
};

TAP_MAIN(tests)
