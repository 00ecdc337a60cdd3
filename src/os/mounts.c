/* The new mount API; see mounts.h. */
#include "os/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/sys.h"

int mounts_clone(int dir_fd, const char *path)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_NO_AUTOMOUNT |
			 AT_SYMLINK_NOFOLLOW | (*path ? 0 : AT_EMPTY_PATH);
	long fd = syscall(SYS_open_tree, dir_fd, path, flags);

	return fd < 0 ? -errno : (int)fd;
}

int mounts_clone_plain(const char *path)
{
	_cleanup_fd_ int fd = sys_openat2(AT_FDCWD, path, O_PATH, RESOLVE_NO_SYMLINKS);

	return fd < 0 ? fd : mounts_clone(fd, "");
}

static int set_attr(int dir_fd, const char *path, unsigned flags, struct mount_attr *attr)
{
	return syscall(SYS_mount_setattr, dir_fd, path, flags, attr, sizeof *attr) < 0 ? -errno : 0;
}

int mounts_set(int tree_fd, uint64_t attributes)
{
	struct mount_attr attr = { .attr_set = attributes, .propagation = MS_PRIVATE };

	return set_attr(tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);
}

int mounts_set_one(int dir_fd, const char *path, uint64_t attributes)
{
	struct mount_attr attr = { .attr_set = attributes };

	return set_attr(dir_fd, path, 0, &attr);
}

int mounts_let_write(int tree_fd)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	return set_attr(tree_fd, "", AT_EMPTY_PATH, &attr);
}

int mounts_idmap(int tree_fd, int userns_fd)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };

	return set_attr(tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);
}

int mounts_attach(int tree_fd, int dir_fd, const char *path)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH);

	return syscall(SYS_move_mount, tree_fd, "", dir_fd, path, flags) < 0 ? -errno : 0;
}

static int configure(int fs_fd, unsigned command, const char *key, const char *value)
{
	return syscall(SYS_fsconfig, fs_fd, command, key, value, 0) < 0 ? -errno : 0;
}

int mounts_new(const char *type, const struct mounts_option *options, uint64_t attributes)
{
	_cleanup_fd_ int fs_fd = -1;
	long fd;
	int r;

	fs_fd = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	if (fs_fd < 0)
		return -errno;
	for (; options->key; options++) {
		r = configure(fs_fd, options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
			      options->key, options->value);
		if (r < 0)
			return r;
	}
	r = configure(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL);
	if (r < 0)
		return r;
	fd = syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, (unsigned)attributes);
	return fd < 0 ? -errno : (int)fd;
}

int mounts_pivot(int dir_fd)
{
	if (fchdir(dir_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}
