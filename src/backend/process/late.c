/*
 * A path lent to a sandbox that runs already; see late.h. Runs in a worker with the caller's
 * rights over files at first, with those of the sandbox's own id when it looks inside.
 *
 * Attacks in mind: a program of another run that swaps what is lent for a link between the decision
 * and the clone (no link is followed, and it must be the same file); a program inside that puts a
 * link where the mount point is to be, or moves it meanwhile (no link is followed there either,
 * and what is attached to is a descriptor). tests/cli/test_late_mounts.py
 */
#include "backend/process/late.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/process/userns.h"
#include "base/fd.h"
#include "base/linux.h"
#include "launch/launch.h"
#include "os/mounts.h"
#include "os/privs.h"
#include "os/sys.h"

#define STAGE "mount"

enum { TARGET_MAX = 4096 };

/* ---- what is lent ------------------------------------------------------------------------ */

static int enter_users(const struct wall *wall, struct csn_error *err)
{
	if (setns(wall->pidfd, CLONE_NEWUSER) < 0)
		return csn_fail(err, -errno, STAGE,
				"cannot enter the sandbox: %m; it may have ended");
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* other rights clear it */
	return 0;
}

static bool is_same(int fd, int other_fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstat(other_fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Root's: the files belong to the sandbox's id, as those lent at the start do. */
static int map_ids(const struct wall *wall, int tree_fd, const char *host, struct csn_error *err)
{
	pid_t helper = 0;
	_cleanup_fd_ int userns_fd = userns_make(wall->kernel_uid, 0, &helper, err);
	int r = userns_fd < 0 ? userns_fd : mounts_idmap(tree_fd, userns_fd);

	while (helper > 0 && waitpid(helper, NULL, 0) < 0 && errno == EINTR)
		;
	if (userns_fd < 0 || r >= 0)
		return r;
	errno = -r;
	return csn_fail(err, r, STAGE,
			"%s lies on a file system whose ids cannot be mapped (%m): run caisson as "
			"an ordinary user, or copy the files elsewhere",
			host);
}

static int take_view(const struct plan_mount *mount, int source_fd, struct csn_error *err)
{
	_cleanup_fd_ int fd = sys_openat2(AT_FDCWD, mount->host, O_PATH, RESOLVE_NO_SYMLINKS);
	int r;

	if (fd >= 0 && !is_same(fd, source_fd))
		return csn_fail(err, -ESTALE, STAGE,
				"%s is not what it was a moment ago: somebody changes it meanwhile",
				mount->host);
	r = fd < 0 ? fd : mounts_clone(fd, "");
	if (r >= 0)
		return r;
	errno = -r;
	return csn_fail(err, r, STAGE, "cannot take a view of %s: %m", mount->host);
}

/* A detached tree, with its flags; afterwards we are in the sandbox's user namespace. */
static int take_tree(const struct wall *wall, const struct plan_mount *mount, int source_fd,
		     int *ret_fd, struct csn_error *err)
{
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			      (mount->access == ACCESS_RW ? 0 : MOUNT_ATTR_RDONLY);
	bool is_root = geteuid() == 0;
	_cleanup_fd_ int fd = -1;
	int r = is_root ? 0 : enter_users(wall, err);

	if (r >= 0 && !is_root && unshare(CLONE_NEWNS) < 0)
		r = csn_fail(err, -errno, STAGE, "cannot copy the mounts of the host: %m");
	if (r >= 0)
		r = fd = take_view(mount, source_fd, err);
	if (r >= 0 && is_root)
		r = map_ids(wall, fd, mount->host, err);
	if (r < 0)
		return r;
	r = mounts_set(fd, attributes);
	if (r < 0)
		return csn_fail(err, r, STAGE, "cannot set mount flags on %s", mount->host);
	r = is_root ? enter_users(wall, err) : 0;
	if (r >= 0)
		*ret_fd = fd_take(&fd);
	return r;
}

/* ---- where it appears --------------------------------------------------------------------- */

static int resolve(int root_fd, const char *path, uint64_t flags)
{
	return sys_openat2(root_fd, *path ? path : ".", flags,
			   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* On the sandbox's own scratch file system: what is made there is made on no disk. */
static bool is_scratch(int root_fd, int fd)
{
	struct stat scratch, here;

	return fstat(fd, &here) == 0 &&
	       fstatat(root_fd, rootfs_scratch, &scratch, AT_SYMLINK_NOFOLLOW) == 0 &&
	       here.st_dev == scratch.st_dev;
}

/* A view of the folder in which names can be made: /mnt is read-only for all but us. */
static int open_to_write(int dir_fd)
{
	_cleanup_fd_ int fd = -1;
	struct statvfs fs;
	int r;

	if (fstatvfs(dir_fd, &fs) < 0)
		return -errno;
	if (!(fs.f_flag & ST_RDONLY))
		return fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	fd = mounts_clone(dir_fd, "");
	r = fd < 0 ? fd : mounts_let_write(fd);
	return r < 0 ? r : fd_take(&fd);
}

static int make_part(int root_fd, const char *parent, const char *name, bool is_file)
{
	_cleanup_fd_ int dir_fd = resolve(root_fd, parent, O_PATH | O_DIRECTORY);
	_cleanup_fd_ int open_fd = -1, file_fd = -1;

	if (dir_fd < 0)
		return dir_fd;
	if (!is_scratch(root_fd, dir_fd))
		return -EXDEV;
	open_fd = open_to_write(dir_fd);
	if (open_fd < 0)
		return open_fd;
	if (!is_file)
		return mkdirat(open_fd, name, 0755) < 0 && errno != EEXIST ? -errno : 0;
	file_fd = openat(open_fd, name, O_CREAT | O_EXCL | O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
	return file_fd < 0 && errno != EEXIST ? -errno : 0;
}

/* Opens `path`, beneath the root; each part that is missing is made. */
static int open_target(int root_fd, char *path, bool is_file)
{
	size_t size = strlen(path);

	for (size_t i = 0; i <= size; i++) {
		_cleanup_fd_ int fd = -1;
		char here = path[i], *slash;
		int r = 0;

		if (here && here != '/')
			continue;
		path[i] = 0;
		fd = resolve(root_fd, path, O_PATH | O_NOFOLLOW);
		slash = strrchr(path, '/');
		if (fd == -ENOENT && slash) {
			*slash = 0;
			r = make_part(root_fd, path, slash + 1, is_file && !here);
			*slash = '/';
		} else if (fd == -ENOENT) {
			r = make_part(root_fd, "", path, is_file && !here);
		} else if (fd < 0) {
			r = fd;
		}
		path[i] = here;
		if (r < 0)
			return r;
	}
	return resolve(root_fd, path, O_PATH | O_NOFOLLOW);
}

/* Covers of hidden files, protected names, what is lent already: all of them are mounts. */
static int check_target(int fd, int tree_fd)
{
	struct statx target, tree;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &target) < 0 ||
	    statx(tree_fd, "", AT_EMPTY_PATH, STATX_TYPE, &tree) < 0)
		return -errno;
	if (S_ISLNK(target.stx_mode))
		return -ELOOP;
	if (target.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return -EBUSY;
	if (S_ISDIR(tree.stx_mode) != S_ISDIR(target.stx_mode))
		return S_ISDIR(tree.stx_mode) ? -ENOTDIR : -EISDIR;
	return 0;
}

static int target_failed(const char *at, int r, struct csn_error *err)
{
	static const struct {
		int error;
		const char *why;
	} known[] = {
		{ EXDEV, "is not there, and is made only beneath " PLAN_LATE " and in scratch" },
		{ ELOOP, "is a symbolic link or lies behind one, which a mount point may not" },
		{ EBUSY, "is taken: something is mounted there already, or guards that name" },
		{ ENOTDIR, "is no folder, or lies in none; a folder is mounted on a folder" },
		{ EISDIR, "is a folder; a file is mounted on a file" },
		{ ENOSPC, "cannot be made: the sandbox's scratch space is full" },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].error == -r)
			return csn_fail(err, r, STAGE, "%.100s %s", at, known[i].why);
	errno = -r;
	return csn_fail(err, r, STAGE, "cannot mount on %.100s: %m", at);
}

static int attach(const struct plan_mount *mount, int tree_fd, struct csn_error *err)
{
	_cleanup_fd_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int fd = -1;
	char path[TARGET_MAX];
	size_t size = strlen(mount->at);
	struct stat st;
	int r;

	if (root_fd < 0 || fstat(tree_fd, &st) < 0)
		return target_failed(mount->at, -errno, err);
	if (size >= sizeof path)
		return target_failed(mount->at, -ENAMETOOLONG, err);
	memcpy(path, mount->at + 1, size);
	r = fd = open_target(root_fd, path, !S_ISDIR(st.st_mode));
	if (r >= 0)
		r = check_target(fd, tree_fd);
	if (r >= 0)
		r = mounts_attach(tree_fd, fd, "");
	return r < 0 ? target_failed(mount->at, r, err) : 0;
}

/* Files made inside are the sandbox's own; none of its processes can see this one. */
static int enter_view(const struct wall *wall, struct csn_error *err)
{
	int r = setns(wall->pidfd, CLONE_NEWNS) < 0 ? -errno
						    : privs_set_ids(LAUNCH_UID, LAUNCH_GID);

	if (r < 0)
		return csn_fail(err, r, STAGE, "cannot enter the sandbox: %s; it may have ended",
				strerror(-r));
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	umask(022);
	return 0;
}

int late_mount(const struct wall *wall, const struct plan_mount *mount, int source_fd,
	       struct csn_error *err)
{
	_cleanup_fd_ int tree_fd = -1;
	int r = take_tree(wall, mount, source_fd, &tree_fd, err);

	if (r >= 0)
		r = enter_view(wall, err);
	return r < 0 ? r : attach(mount, tree_fd, err);
}
