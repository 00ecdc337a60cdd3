/* Mounts: flags are on before anything is seen, on all that lies beneath, and links lead nowhere.
 */
#include "os/mounts.h"

#include "os/sys.h"
#include "own_space.h"

#include <limits.h>
#include <sys/statvfs.h>

static const struct mounts_option no_options[] = { { 0 } };

static int make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* source/file, and a mount of its own at source/sub with sub/inner. */
static void make_source(void)
{
	own_mounts();
	CHECK(mkdir("source", 0755) == 0 && mkdir("source/sub", 0755) == 0);
	CHECK(mkdir("at", 0755) == 0);
	CHECK(mount("tmpfs", "source/sub", "tmpfs", 0, NULL) == 0);
	CHECK(make_file("source/file") == 0 && make_file("source/sub/inner") == 0);
}

static void clone_set_attach(void)
{
	int tree;

	make_source();
	tree = mounts_clone(AT_FDCWD, "source");
	CHECK(tree >= 0 && fcntl(tree, F_GETFD) == FD_CLOEXEC);
	CHECK(mounts_set(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC) == 0);
	CHECK(!exists("at/file")); /* detached: nobody sees it yet */
	CHECK(mounts_attach(tree, AT_FDCWD, "at") == 0);
	CHECK(exists("at/file") && exists("at/sub/inner"));
	CHECK(make_file("at/new") == -EROFS);
	CHECK(make_file("at/sub/new") == -EROFS); /* what is mounted beneath as well */
	CHECK(make_file("source/new") == 0 && make_file("source/sub/new") == 0);
}

/* A path that had no link when somebody decided about it. */
static void no_links(void)
{
	char top[PATH_MAX], path[PATH_MAX + 32];
	int tree;

	make_source();
	CHECK(getcwd(top, sizeof top) != NULL);
	CHECK(symlink("source", "link") == 0 && symlink("sub", "source/inner") == 0);
	snprintf(path, sizeof path, "%s/source/sub", top);
	tree = mounts_clone_plain(path);
	CHECK(tree >= 0 && fcntl(tree, F_GETFD) == FD_CLOEXEC);
	CHECK(mounts_attach(tree, AT_FDCWD, "at") == 0 && exists("at/inner"));
	snprintf(path, sizeof path, "%s/link/sub", top);
	CHECK(mounts_clone_plain(path) == -ELOOP);
	snprintf(path, sizeof path, "%s/source/inner", top);
	CHECK(mounts_clone_plain(path) == -ELOOP);
	snprintf(path, sizeof path, "%s/source/missing", top);
	CHECK(mounts_clone_plain(path) == -ENOENT);
}

/* On a shared tree a clone is the source's peer until it is cut off: mounts would go both ways. */
static void cut_off(void)
{
	int tree;

	make_source();
	CHECK(mkdir("target", 0755) == 0);
	CHECK(mount(NULL, "/mnt", NULL, MS_SHARED | MS_REC, NULL) == 0);
	CHECK(mkdir("source/plain", 0755) == 0 && mkdir("source/late", 0755) == 0);
	tree = mounts_clone(AT_FDCWD, "source");
	CHECK(tree >= 0 && mounts_set(tree, MOUNT_ATTR_NOSUID) == 0);
	CHECK(mounts_attach(tree, AT_FDCWD, "target") == 0);
	CHECK(mount("none", "target/plain", "tmpfs", 0, NULL) == 0);
	CHECK(make_file("target/plain/inside") == 0);
	CHECK(exists("target/plain/inside") && !exists("source/plain/inside"));
	CHECK(mount("none", "source/late", "tmpfs", 0, NULL) == 0);
	CHECK(make_file("source/late/host") == 0);
	CHECK(exists("source/late/host") && !exists("target/late/host"));
}

static void set_one(void)
{
	make_source();
	CHECK(mount("source", "source", NULL, MS_BIND | MS_REC, NULL) == 0);
	CHECK(mounts_set_one(AT_FDCWD, "source", MOUNT_ATTR_RDONLY) == 0);
	CHECK(make_file("source/new") == -EROFS);
	CHECK(make_file("source/sub/new") == 0);
	CHECK(mounts_set_one(AT_FDCWD, "missing", MOUNT_ATTR_RDONLY) == -ENOENT);
	CHECK(mkdir("plain", 0755) == 0);
	CHECK(mounts_set_one(AT_FDCWD, "plain", MOUNT_ATTR_RDONLY) == -EINVAL); /* no mount */
}

static void clone_by_descriptor(void)
{
	int fd, tree;

	make_source();
	fd = open("source", O_PATH | O_CLOEXEC);
	tree = mounts_clone(fd, "");
	CHECK(tree >= 0 && mounts_attach(tree, AT_FDCWD, "at") == 0 && exists("at/file"));
	CHECK(mounts_clone(fd, "missing") == -ENOENT);
	CHECK(mounts_clone(-1, "source") == -EBADF);
}

/* A link at the end is not followed, neither as a source nor as a target. */
static void links(void)
{
	int tree, fd;

	make_source();
	CHECK(mkdir("secret", 0755) == 0 && make_file("secret/key") == 0);
	CHECK(symlink("secret", "link") == 0);
	tree = mounts_clone(AT_FDCWD, "link");
	if (tree >= 0)
		CHECK(mounts_attach(tree, AT_FDCWD, "at") < 0);
	CHECK(!exists("at/key"));
	tree = mounts_clone(AT_FDCWD, "source");
	CHECK(tree >= 0 && mounts_attach(tree, AT_FDCWD, "link") < 0);
	CHECK(exists("secret/key") && !exists("secret/file"));
	/* and by a descriptor of the place itself it is attached */
	fd = open("secret", O_PATH | O_CLOEXEC);
	CHECK(mounts_attach(tree, fd, "") == 0 && exists("secret/file"));
}

static void attach_refused(void)
{
	int tree;

	make_source();
	tree = mounts_clone(AT_FDCWD, "source");
	CHECK(mounts_attach(tree, AT_FDCWD, "missing") == -ENOENT);
	CHECK(mounts_attach(tree, AT_FDCWD, "source/file") < 0); /* a folder on a file */
	CHECK(mounts_attach(-1, AT_FDCWD, "at") == -EBADF);
	CHECK(mounts_attach(tree, AT_FDCWD, "at") == 0);
}

static void new_file_system(void)
{
	static const struct mounts_option sized[] = { { "size", "65536" },
						      { "mode", "0700" },
						      { 0 } },
					  unknown[] = { { "no-such-option", "1" }, { 0 } };
	struct statvfs st;
	struct stat mode;
	int tree;

	own_mounts();
	CHECK(mkdir("at", 0755) == 0);
	tree = mounts_new("tmpfs", sized, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	CHECK(tree >= 0 && fcntl(tree, F_GETFD) == FD_CLOEXEC);
	CHECK(mounts_attach(tree, AT_FDCWD, "at") == 0);
	CHECK(statvfs("at", &st) == 0 && st.f_blocks * st.f_frsize == 65536);
	CHECK((st.f_flag & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
	CHECK(!(st.f_flag & ST_RDONLY) && stat("at", &mode) == 0 && (mode.st_mode & 0777) == 0700);
	CHECK(mounts_new("no-such-type", no_options, 0) == -ENODEV);
	CHECK(mounts_new("tmpfs", unknown, 0) == -EINVAL);
}

static void pivot(void)
{
	int root;

	make_source();
	root = mounts_clone(AT_FDCWD, "source");
	CHECK(root >= 0 && mounts_attach(root, AT_FDCWD, "at") == 0);
	CHECK(mounts_pivot(root) == 0);
	CHECK(exists("/file") && exists("/sub/inner") && exists("file"));
	CHECK(!exists("/usr") && !exists("/mnt") && !exists("/../usr"));
	/* no mount of the old root is left to be reached by `..` */
	CHECK(chdir("..") == 0 && exists("file"));
}

/* Ids that are mapped from `inside` on to `outside` on. */
static int namespace_with(const char *map)
{
	char path[64];
	int ready[2], fd;
	pid_t pid;

	CHECK(pipe(ready) == 0);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
	}
	CHECK(read(ready[0], path, 1) == 1);
	snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
	put_text(path, map);
	snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
	put_text(path, map);
	snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(fd >= 0);
	return fd;
}

static void idmap(void)
{
	struct stat st;
	int tree, users, r;

	if (geteuid() != 0)
		SKIP("root: only its owner maps a file system");
	make_source();
	CHECK(chown("source/file", 5, 6) == 0 && chown("source/sub/inner", 70000, 70000) == 0);
	users = namespace_with("0 100000 1000");
	tree = mounts_clone(AT_FDCWD, "source");
	CHECK(tree >= 0);
	r = mounts_idmap(tree, users);
	if (r == -EINVAL)
		SKIP("idmapped tmpfs: Linux 6.3 and later map its ids");
	CHECK(r == 0);
	CHECK(mounts_attach(tree, AT_FDCWD, "at") == 0);
	CHECK(stat("at/file", &st) == 0 && st.st_uid == 100005 && st.st_gid == 100006);
	CHECK(stat("source/file", &st) == 0 && st.st_uid == 5);
	/* beneath as well; an id without a place in the map is nobody's */
	CHECK(stat("at/sub/inner", &st) == 0 && st.st_uid == 65534);
	CHECK(make_file("at/new") == -EOVERFLOW); /* uid 0 of the host has none either */
	CHECK(mounts_idmap(tree, users) < 0);     /* attached: too late */
}

/* An ordinary user maps no file system of the host's: that would make him anybody. */
static void idmap_refused(void)
{
	int tree, users;

	be_ordinary();
	own_mounts();
	users = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	tree = mounts_clone(AT_FDCWD, "/usr");
	CHECK(users >= 0 && tree >= 0);
	CHECK(mounts_idmap(tree, users) == -EPERM);
}

AS_BOTH(clone_set_attach)
AS_BOTH(set_one)
AS_BOTH(clone_by_descriptor)
AS_BOTH(links)
AS_BOTH(no_links)
AS_BOTH(attach_refused)
AS_BOTH(new_file_system)
AS_BOTH(pivot)

static const struct tap_test tests[] = {
	BOTH_ROWS(clone_set_attach, "a clone gets its flags, then is seen"),
	BOTH_ROWS(set_one, "one mount's flags are its own"),
	BOTH_ROWS(clone_by_descriptor, "a clone of what a descriptor names"),
	BOTH_ROWS(links, "links at the end are not followed"),
	BOTH_ROWS(no_links, "a path decided about has no link later"),
	BOTH_ROWS(attach_refused, "a place that is missing or of another kind is refused"),
	BOTH_ROWS(new_file_system, "a new file system has its options and flags"),
	BOTH_ROWS(pivot, "after the pivot there is no way back"),
	{ "a tree is cut off from what it was cloned from", cut_off },
	{ "ids are mapped through a namespace", idmap },
	{ "the host's file systems are not mapped (ordinary user)", idmap_refused },
};

TAP_MAIN(tests)
