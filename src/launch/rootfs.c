/*
 * The file tree inside the wall; see rootfs.h. Runs in the child, as the only code that
 * touches host paths after the clone, with capabilities in its own user namespace only.
 *
 * Attack in mind: folders that untrusted code wrote earlier (a workspace) may hold symlinks
 * where a mount point is expected. Every target is therefore resolved beneath the new root
 * with RESOLVE_NO_SYMLINKS, and attached by descriptor. tests/escape/mount_symlink.py
 */
#include "launch/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/linux.h"
#include "base/str.h"
#include "os/mounts.h"
#include "os/sys.h"

#define STAGE "rootfs"
#define BASE_ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

enum { COPY_PIECE = 64 << 10 };

/* Where the scratch file system lies: beneath /tmp, its own part, which is attached last. */
const char rootfs_scratch[] = "tmp";
static const char parts_dir[] = "run/caisson"; /* empty file, empty folder, overlay layers */

void rootfs_init(struct rootfs *rootfs, uint64_t scratch_bytes)
{
	rootfs->count = 0;
	rootfs->scratch_bytes = scratch_bytes;
	rootfs->skeleton = (struct rootfs_skeleton){ .fd = -1 };
}

void rootfs_done(struct rootfs *rootfs)
{
	for (size_t i = 0; i < rootfs->count; i++) {
		rootfs->items[i].fd = fd_close(rootfs->items[i].fd);
		rootfs->items[i].layer_fd = fd_close(rootfs->items[i].layer_fd);
	}
	rootfs->count = 0;
	rootfs->skeleton.fd = fd_close(rootfs->skeleton.fd);
}

struct rootfs_item *rootfs_add(struct rootfs *rootfs, enum rootfs_kind kind, const char *at,
			       const char *source)
{
	struct rootfs_item *item;

	if (rootfs->count == ROOTFS_ITEMS)
		return NULL;
	item = &rootfs->items[rootfs->count++];
	*item = (struct rootfs_item){ .kind = kind,
				      .at = at,
				      .source = source,
				      .fd = -1,
				      .layer_fd = -1,
				      .mode = 0755,
				      .attributes = BASE_ATTRIBUTES | MOUNT_ATTR_RDONLY };
	return item;
}

/* ---- phase 1: sources ----------------------------------------------------------------- */

static int clone_source(struct rootfs_item *item, struct csn_error *err)
{
	int fd = item->is_plain ? mounts_clone_plain(item->source)
				: mounts_clone(AT_FDCWD, item->source);
	int r;

	if (fd == -ENOENT && item->is_optional)
		return 0;
	if (fd < 0) {
		errno = -fd;
		return csn_fail(err, fd, STAGE, "cannot take a view of %s: %m", item->source);
	}
	item->fd = fd;
	r = mounts_set(fd, item->attributes); /* without a flag too: it also cuts the tree off */
	if (r < 0) {
		errno = -r;
		return csn_fail(err, r, STAGE, "cannot set mount flags on %s: %m", item->source);
	}
	return 0;
}

static int new_proc(struct rootfs_item *item, struct csn_error *err)
{
	static const struct mounts_option options[] = { { "hidepid", "invisible" }, { 0 } };
	uint64_t flags =
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;

	item->fd = mounts_new("proc", options, flags);
	if (item->fd == -EPERM)
		return csn_fail(err, -EPERM, STAGE,
				"cannot mount proc: parts of the host's /proc are masked, as in a "
				"container; run it with --security-opt systempaths=unconfined, or "
				"use the landlock wall (tier auto)");
	return item->fd < 0 ? csn_fail(err, item->fd, STAGE, "cannot mount proc") : 0;
}

static int new_pts(struct rootfs_item *item, struct csn_error *err)
{
	static const struct mounts_option options[] = { { "ptmxmode", "0666" },
							{ "mode", "0620" },
							{ 0 } };

	item->fd = mounts_new("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	return item->fd < 0 ? csn_fail(err, item->fd, STAGE, "cannot mount devpts") : 0;
}

/* The workspace and its layer become detached trees, unless the monitor made them already. */
static int clone_overlay(struct rootfs_item *item, struct csn_error *err)
{
	if (item->fd < 0) {
		int r = clone_source(item, err);

		if (r < 0)
			return r;
	}
	if (item->layer_fd < 0)
		item->layer_fd = mounts_clone(AT_FDCWD, item->layer);
	return item->layer_fd < 0 ? csn_fail(err, item->layer_fd, STAGE, "cannot take a view of %s",
					     item->layer)
				  : 0;
}

static int make_source(struct rootfs_item *item, struct csn_error *err)
{
	switch (item->kind) {
	case ROOTFS_BIND:
		return clone_source(item, err);
	case ROOTFS_PROC:
		return new_proc(item, err);
	case ROOTFS_PTS:
		return new_pts(item, err);
	case ROOTFS_OVERLAY:
		return clone_overlay(item, err);
	default:
		return 0;
	}
}

/* ---- phase 2: targets ------------------------------------------------------------------ */

static int resolve(int root_fd, const char *path, uint64_t flags)
{
	return sys_openat2(root_fd, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/*
 * Is `fd` on the new root's own mount or on scratch, where creating a mount point is ours to do?
 * Nothing of the program's is there yet. The device would not do for the root: a skeleton may lie
 * on the same one as the workspace. tests/unit/test_rootfs.c
 */
static bool is_ours(int root_fd, int fd)
{
	struct statx root, st;
	struct stat scratch, here;

	if (statx(root_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &root) < 0 ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 ||
	    !(root.stx_mask & st.stx_mask & STATX_MNT_ID))
		return false; /* before Linux 5.8, which has not all calls of this file either */
	if (st.stx_mnt_id == root.stx_mnt_id)
		return true;
	return fstat(fd, &here) == 0 &&
	       fstatat(root_fd, rootfs_scratch, &scratch, AT_SYMLINK_NOFOLLOW) == 0 &&
	       here.st_dev == scratch.st_dev;
}

/* Makes one missing component of a target. */
static int make_component(int root_fd, const char *path, bool is_file, mode_t mode)
{
	const char *slash = strrchr(path, '/');
	char parent[4096] = ".";
	_cleanup_fd_ int dir_fd = -1, file_fd = -1;

	if (slash) {
		if ((size_t)(slash - path) >= sizeof parent)
			return -ENAMETOOLONG;
		memcpy(parent, path, (size_t)(slash - path));
		parent[slash - path] = 0;
	}
	dir_fd = resolve(root_fd, parent, O_PATH | O_DIRECTORY);
	if (dir_fd < 0)
		return dir_fd;
	if (!is_ours(root_fd, dir_fd))
		return -EXDEV;
	path = slash ? slash + 1 : path;
	if (!is_file)
		return mkdirat(dir_fd, path, mode) < 0 ? -errno : 0;
	file_fd = openat(dir_fd, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
	return file_fd < 0 ? -errno : 0;
}

/* Makes every missing part of a target; the last one is a file or a folder. */
static int make_target(int root_fd, const char *at, bool is_file, mode_t mode)
{
	char path[4096];
	size_t size = strlen(at);

	if (size >= sizeof path)
		return -ENAMETOOLONG;
	memcpy(path, at, size + 1);
	for (size_t i = 1; i <= size; i++) {
		_cleanup_fd_ int fd = -1;
		bool is_last = i == size;
		int r;

		if (at[i] != '/' && !is_last)
			continue;
		path[i] = 0;
		fd = resolve(root_fd, path, O_PATH | O_NOFOLLOW);
		if (fd == -ENOENT) {
			r = make_component(root_fd, path, is_last && is_file,
					   is_last ? mode : 0755);
			if (r < 0)
				return r;
		} else if (fd < 0) {
			return fd;
		}
		path[i] = at[i];
	}
	return 0;
}

static int target_failed(const struct rootfs_item *item, int r, struct csn_error *err)
{
	if (r == -EXDEV)
		return csn_fail(err, r, STAGE,
				"there is no /%s inside to mount on: create it in the host folder "
				"that is mounted there, or choose a path outside of it",
				item->at);
	if (r == -ELOOP)
		return csn_fail(err, r, STAGE,
				"/%s leads through a symbolic link, which a mount point may not",
				item->at);
	errno = -r;
	return csn_fail(err, r, STAGE, "cannot make /%s: %m", item->at);
}

/* O_PATH with O_NOFOLLOW opens a link that is the last component, RESOLVE_NO_SYMLINKS or not. */
static bool is_link(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

static bool is_folder(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static int attach_anywhere(int root_fd, const struct rootfs_item *item, int tree_fd,
			   struct csn_error *err)
{
	_cleanup_fd_ int target_fd = -1;
	int r = 0;

	if (!item->is_ahead)
		r = make_target(root_fd, item->at, !is_folder(tree_fd), item->mode);
	if (r < 0)
		return target_failed(item, r, err);
	target_fd = resolve(root_fd, item->at, O_PATH | O_NOFOLLOW);
	if (target_fd < 0)
		return target_failed(item, target_fd, err);
	r = is_link(target_fd) ? -ELOOP : mounts_attach(tree_fd, target_fd, "");
	return r < 0 ? target_failed(item, r, err) : 0;
}

/* Beneath a folder that we made ourselves there is nothing of anybody else's. */
static int attach_system(int root_fd, const struct rootfs_item *item, int tree_fd,
			 struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	int r = 0;

	if (item->is_ahead) {
		r = 0;
	} else if (item->is_file) {
		fd = openat(root_fd, item->at, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
		r = fd < 0 ? -errno : 0;
	} else if (mkdirat(root_fd, item->at, item->mode) < 0 && errno != EEXIST) {
		r = -errno;
	}
	if (r >= 0)
		r = mounts_attach(tree_fd, root_fd, item->at);
	return r < 0 ? target_failed(item, r, err) : 0;
}

static int attach(int root_fd, const struct rootfs_item *item, int tree_fd, struct csn_error *err)
{
	if (item->is_system)
		return attach_system(root_fd, item, tree_fd, err);
	return attach_anywhere(root_fd, item, tree_fd, err);
}

static int make_folder(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	int r;

	if (item->is_system)
		return mkdirat(root_fd, item->at, item->mode) < 0 ? target_failed(item, -errno, err)
								  : 0;
	r = make_target(root_fd, item->at, false, item->mode);

	return r < 0 ? target_failed(item, r, err) : 0;
}

static int make_file(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;

	fd = openat(root_fd, item->at, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (fd < 0)
		return target_failed(item, -errno, err);
	if (fd_write_all(fd, item->source, strlen(item->source)) < 0)
		return target_failed(item, -EIO, err);
	return 0;
}

/* Cheaper than a mount for what is small. What changes on the host meanwhile stays outside. */
static int make_copy(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	_cleanup_fd_ int from_fd = -1, fd = -1;
	char data[COPY_PIECE];
	ssize_t n;

	from_fd = open(item->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (from_fd < 0) /* missing, or unreadable for the caller too; anything else may pass */
		return errno == ENOENT || errno == EACCES || errno == EPERM
			       ? 0
			       : target_failed(item, -errno, err);
	fd = openat(root_fd, item->at, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
	if (fd < 0)
		return target_failed(item, -errno, err);
	while ((n = read(from_fd, data, sizeof data)) > 0)
		if (fd_write_all(fd, data, (size_t)n) < 0)
			return target_failed(item, -EIO, err);
	return n < 0 ? target_failed(item, -errno, err) : 0;
}

static int make_link(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	if (symlinkat(item->source, root_fd, item->at) < 0)
		return target_failed(item, -errno, err);
	return 0;
}

static int attach_tree(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	return item->fd < 0 ? 0 : attach(root_fd, item, item->fd, err);
}

/* One part of the scratch file system; all parts share its size. */
static int attach_scratch(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	_cleanup_fd_ int scratch_fd =
		openat(root_fd, rootfs_scratch, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int fd = mounts_clone(scratch_fd, item->source);

	if (fd == -ENOENT && mkdirat(scratch_fd, item->source, 0755) == 0)
		fd = mounts_clone(scratch_fd, item->source);
	if (fd < 0)
		return target_failed(item, fd, err);
	return attach(root_fd, item, fd, err);
}

static int cover(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	_cleanup_fd_ int target_fd = resolve(root_fd, item->at, O_PATH | O_NOFOLLOW);
	_cleanup_fd_ int tree_fd = -1;
	char path[64];
	int r;

	if (target_fd == -ENOENT && item->is_optional)
		return 0;
	if (target_fd < 0)
		return target_failed(item, target_fd, err);
	snprintf(path, sizeof path, "%s/%s", parts_dir,
		 is_folder(target_fd) ? "hidden-folder" : "hidden-file");
	tree_fd = mounts_clone(root_fd, path);
	r = tree_fd < 0 ? tree_fd : mounts_set(tree_fd, item->attributes | MOUNT_ATTR_NOEXEC);
	if (r >= 0)
		r = mounts_attach(tree_fd, target_fd, "");
	return r < 0 ? target_failed(item, r, err) : 0;
}

/* What is there, read-only (FREEZE) or as it is (PIN), mounted over itself. */
static int freeze(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	_cleanup_fd_ int target_fd = resolve(root_fd, item->at, O_PATH | O_NOFOLLOW);
	_cleanup_fd_ int tree_fd = -1;
	int r;

	if (target_fd == -ENOENT && item->is_optional)
		return 0;
	if (target_fd < 0)
		return target_failed(item, target_fd, err);
	tree_fd = mounts_clone(target_fd, "");
	r = tree_fd < 0 ? tree_fd : mounts_set(tree_fd, item->attributes);
	if (r >= 0)
		r = mounts_attach(tree_fd, target_fd, "");
	return r < 0 ? target_failed(item, r, err) : 0;
}

/* Last: until then mount points are made there. */
static int close_mount(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	int r = mounts_set_one(root_fd, item->at, item->attributes);

	return r < 0 ? target_failed(item, r, err) : 0;
}

/* Overlay's layers, both attached for a moment only. */
static const char lower_part[] = "run/caisson/lower", layer_part[] = "run/caisson/layer";

static int attach_part(int root_fd, const char *path, int tree_fd)
{
	int r = make_target(root_fd, path, false, 0700);

	return r < 0 ? r : mounts_attach(tree_fd, root_fd, path);
}

/*
 * Overlay needs attached layers, so both trees are attached under parts_dir for a moment;
 * the sandbox never sees the upper. `userxattr` because trusted.* needs init's privilege.
 */
static int attach_overlay(int root_fd, struct rootfs_item *item, struct csn_error *err)
{
	static const struct mounts_option options[] = {
		{ "lowerdir", lower_part },
		{ "upperdir", "run/caisson/layer/upper" },
		{ "workdir", "run/caisson/layer/work" },
		{ "userxattr", NULL },
		{ 0 },
	};
	_cleanup_fd_ int fd = -1;
	int r = attach_part(root_fd, lower_part, item->fd);

	if (r >= 0)
		r = attach_part(root_fd, layer_part, item->layer_fd);
	if (r < 0 || fchdir(root_fd) < 0)
		return target_failed(item, r < 0 ? r : -errno, err);
	fd = mounts_new("overlay", options, BASE_ATTRIBUTES);
	if (fd < 0) {
		errno = -fd;
		return csn_fail(err, fd, STAGE,
				"cannot make a copy-on-write workspace: %m (overlayfs in a user "
				"namespace needs Linux 5.11 and a file system that takes it)");
	}
	if (umount2(lower_part, MNT_DETACH) < 0 || umount2(layer_part, MNT_DETACH) < 0)
		return target_failed(item, -errno, err);
	return attach(root_fd, item, fd, err);
}

typedef int (*maker)(int root_fd, struct rootfs_item *item, struct csn_error *err);

static const maker makers[] = {
	[ROOTFS_FOLDER] = make_folder,
	[ROOTFS_FILE] = make_file,
	[ROOTFS_LINK] = make_link,
	[ROOTFS_COPY] = make_copy,
	[ROOTFS_BIND] = attach_tree,
	[ROOTFS_TREE] = attach_tree,
	[ROOTFS_SCRATCH] = attach_scratch,
	[ROOTFS_PROC] = attach_tree,
	[ROOTFS_PTS] = attach_tree,
	[ROOTFS_COVER] = cover,
	[ROOTFS_PIN] = freeze,
	[ROOTFS_FREEZE] = freeze,
	[ROOTFS_CLOSE] = close_mount,
	[ROOTFS_OVERLAY] = attach_overlay,
};

/* The file system is attached where one of its own parts will cover it: unmounting it again
 * would wait for the kernel (a grace period, up to a millisecond). */
static int add_scratch(int root_fd, int scratch_tree)
{
	_cleanup_fd_ int fd = -1;

	if (mounts_attach(scratch_tree, root_fd, rootfs_scratch) < 0)
		return -EINVAL;
	fd = openat(root_fd, rootfs_scratch, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || mkdirat(fd, "tmp", 01777) < 0 || mkdirat(fd, "shm", 01777) < 0 ||
	    mkdirat(fd, "tmp/home", 0755) < 0)
		return -errno;
	return 0;
}

static int make_parts(int root_fd)
{
	_cleanup_fd_ int file_fd = -1;

	if (mkdirat(root_fd, "run", 0755) < 0 || mkdirat(root_fd, parts_dir, 0755) < 0 ||
	    mkdirat(root_fd, "run/caisson/hidden-folder", 0) < 0 ||
	    mkdirat(root_fd, rootfs_scratch, 0755) < 0)
		return -errno;
	file_fd = openat(root_fd, "run/caisson/hidden-file",
			 O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0);
	return file_fd < 0 ? -errno : 0;
}

static int new_tmpfs(uint64_t bytes, uint64_t inodes)
{
	char size[24], count[24];
	const struct mounts_option options[] = {
		{ "size", size }, { "nr_inodes", count }, { "mode", "0755" }, { 0 }
	};

	snprintf(size, sizeof size, "%llu", (unsigned long long)bytes);
	snprintf(count, sizeof count, "%llu", (unsigned long long)inodes);
	return mounts_new("tmpfs", options, BASE_ATTRIBUTES);
}

uint64_t rootfs_inodes(uint64_t bytes)
{
	uint64_t inodes = bytes / 4096;

	return inodes < 1024 ? 1024 : inodes > 1 << 20 ? 1 << 20 : inodes;
}

/* ---- ahead ----------------------------------------------------------------------------- */

bool rootfs_is_mount(const struct rootfs_item *item)
{
	static const bool are[] = {
		[ROOTFS_BIND] = true, [ROOTFS_TREE] = true, [ROOTFS_SCRATCH] = true,
		[ROOTFS_PROC] = true, [ROOTFS_PTS] = true,  [ROOTFS_OVERLAY] = true,
	};

	return (size_t)item->kind < ARRAY_SIZE(are) && are[item->kind];
}

static int fill_item(int tree_fd, struct rootfs_item *item, struct csn_error *err)
{
	mode_t mode = item->is_system && item->is_file ? 0444 : item->mode;
	int r = 0;

	if (item->kind == ROOTFS_OVERLAY) /* as attach_overlay() leaves them */
		r = make_target(tree_fd, lower_part, false, 0700);
	if (r >= 0 && item->kind == ROOTFS_OVERLAY)
		r = make_target(tree_fd, layer_part, false, 0700);
	if (r < 0 || !item->is_ahead)
		return r;
	if (!rootfs_is_mount(item))
		return makers[item->kind](tree_fd, item, err);
	r = make_target(tree_fd, item->at, item->is_file, mode);
	return r < 0 ? target_failed(item, r, err) : 0;
}

int rootfs_fill(struct rootfs *rootfs, int tree_fd, struct csn_error *err)
{
	mode_t mask = umask(0);
	int r = make_parts(tree_fd);

	if (r < 0)
		csn_fail(err, r, STAGE, "cannot make the parts of the root");
	for (size_t i = 0; r >= 0 && i < rootfs->count; i++)
		r = fill_item(tree_fd, &rootfs->items[i], err);
	umask(mask);
	return r;
}

/* A read-only view of the skeleton, detached; negative: there is none, or it is another one than
 * the monitor looked at. */
static int take_skeleton(struct rootfs_skeleton *skeleton)
{
	_cleanup_fd_ int fd = -1, tree_fd = -1;
	struct stat st;
	int r;

	if (skeleton->fd >= 0)
		return fd_take(&skeleton->fd);
	if (!skeleton->path)
		return -ENOENT;
	/* By path: a descriptor of the monitor's leads to its mounts, which are not ours to clone.
	 */
	fd = open(skeleton->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != skeleton->dev || st.st_ino != skeleton->ino)
		return -ESTALE;
	tree_fd = mounts_clone(fd, "");
	r = tree_fd < 0 ? tree_fd : mounts_set(tree_fd, BASE_ATTRIBUTES | MOUNT_ATTR_RDONLY);
	return r < 0 ? r : fd_take(&tree_fd);
}

/* ---- all of it ------------------------------------------------------------------------- */

/* In a skeleton? Then it is made; or was not there a moment ago, and its place is not either. */
static bool is_settled(const struct rootfs_item *item)
{
	if (item->is_ahead)
		return !rootfs_is_mount(item);
	return item->is_system && item->is_optional;
}

static int make_all(struct rootfs *rootfs, int root_fd, bool is_skeletal, struct csn_error *err)
{
	for (size_t i = 0; i < rootfs->count; i++) {
		struct rootfs_item *item = &rootfs->items[i];
		int r;

		item->is_ahead &= is_skeletal;
		if (is_skeletal && is_settled(item))
			continue;
		r = makers[item->kind](root_fd, item, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_root(struct rootfs *rootfs, int root_fd, bool is_skeletal, struct csn_error *err)
{
	_cleanup_fd_ int scratch_tree =
		new_tmpfs(rootfs->scratch_bytes, rootfs_inodes(rootfs->scratch_bytes));
	int r = scratch_tree;

	if (r >= 0 && !is_skeletal)
		r = make_parts(root_fd);
	if (r >= 0)
		r = add_scratch(root_fd, scratch_tree);
	if (r < 0)
		return csn_fail(err, r, STAGE, "cannot make the parts of the root");
	return make_all(rootfs, root_fd, is_skeletal, err);
}

static int make_sources(struct rootfs *rootfs, struct csn_error *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < rootfs->count; i++)
		r = make_source(&rootfs->items[i], err);
	return r;
}

int rootfs_add_to(struct rootfs *rootfs, int (*enter)(void *data, struct csn_error *err),
		  void *data, struct csn_error *err)
{
	_cleanup_fd_ int root_fd = -1;
	int r = make_sources(rootfs, err);

	if (r >= 0)
		r = enter(data, err);
	if (r < 0)
		return r;
	umask(0);
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return csn_fail(err, -errno, STAGE, "cannot open the root: %m");
	return make_all(rootfs, root_fd, false, err);
}

int rootfs_enter(struct rootfs *rootfs, struct csn_error *err)
{
	_cleanup_fd_ int root_tree = -1, root_fd = -1;
	bool is_skeletal;
	int r = make_sources(rootfs, err);

	if (r < 0)
		return r;
	umask(0);
	root_tree = take_skeleton(&rootfs->skeleton);
	is_skeletal = root_tree >= 0;
	if (!is_skeletal)
		root_tree = new_tmpfs(4 << 20, 8192);
	if (root_tree < 0)
		return csn_fail(err, -EIO, STAGE, "cannot make a tmpfs");
	/* Any folder would do: what it hides was cloned above. */
	if (mounts_attach(root_tree, AT_FDCWD, "/usr") < 0)
		return csn_fail(err, -EIO, STAGE, "cannot attach the new root: %m");
	root_fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return csn_fail(err, -errno, STAGE, "cannot open the new root: %m");
	r = make_root(rootfs, root_fd, is_skeletal, err);
	if (r < 0)
		return r;
	r = mounts_pivot(root_fd);
	if (r >= 0 && !is_skeletal)
		r = mounts_set_one(AT_FDCWD, "/", BASE_ATTRIBUTES | MOUNT_ATTR_RDONLY);
	umask(022);
	return r < 0 ? csn_fail(err, r, STAGE, "cannot enter the new root: %m") : 0;
}
