/*
 * Laying out a root tree for a runtime; see stage.h. Runs in the child, before the runtime is
 * executed, with the caller's rights in a mount namespace of its own.
 *
 * Attack in mind: a name in a lent folder that another run's program swaps for a link. The
 * runtime would follow it on the host; so what is mounted over itself is opened beneath the tree it
 * lies in, without links, and handed over as a tree of its own.
 */
#include "launch/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "os/mounts.h"
#include "os/sys.h"

#define STAGE "stage"

const struct rootfs_item *stage_holder(const struct rootfs *rootfs, const struct rootfs_item *item,
				       const char **ret_tail)
{
	const struct rootfs_item *holder = NULL;

	for (size_t i = 0; i < rootfs->count && &rootfs->items[i] != item; i++)
		if (rootfs_is_mount(&rootfs->items[i]) && rootfs->items[i].fd >= 0 &&
		    path_is_beneath(item->at, rootfs->items[i].at))
			holder = &rootfs->items[i];
	if (holder)
		*ret_tail = path_tail(item->at, holder->at);
	return holder;
}

static int leave_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

/* A mount point of the tree's own kind, and the tree on it. */
static int lay(int dir_fd, const char *name, int tree_fd)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (fstat(tree_fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return mkdirat(dir_fd, name, 0755) < 0 ? -errno
						       : mounts_attach(tree_fd, dir_fd, name);
	fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
	return fd < 0 ? -errno : mounts_attach(tree_fd, dir_fd, name);
}

static int lay_self(int lent_fd, const struct rootfs *rootfs, const struct rootfs_item *item,
		    const char *name)
{
	const char *tail = "";
	const struct rootfs_item *holder = stage_holder(rootfs, item, &tail);
	_cleanup_fd_ int dir_fd = -1, target_fd = -1, tree_fd = -1;
	char place[32];
	int r;

	if (!holder || !*tail)
		return -EINVAL;
	snprintf(place, sizeof place, "%zu", (size_t)(holder - rootfs->items));
	dir_fd = openat(lent_fd, place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	target_fd = sys_openat2(dir_fd, tail, O_PATH | O_NOFOLLOW,
				RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (target_fd < 0)
		return target_fd;
	tree_fd = mounts_clone(target_fd, "");
	r = tree_fd < 0 ? tree_fd : mounts_set(tree_fd, item->attributes);
	return r < 0 ? r : lay(lent_fd, name, tree_fd);
}

static int lay_item(int lent_fd, const struct rootfs *rootfs, const struct rootfs_item *item)
{
	char name[32];

	snprintf(name, sizeof name, "%zu", (size_t)(item - rootfs->items));
	if (item->is_ahead && (item->kind == ROOTFS_FREEZE || item->kind == ROOTFS_PIN))
		return lay_self(lent_fd, rootfs, item, name);
	return rootfs_is_mount(item) && item->fd >= 0 ? lay(lent_fd, name, item->fd) : 0;
}

static int lay_programs(int top_fd, const struct stage *stage)
{
	_cleanup_fd_ int dir_fd = -1;
	int r;

	if (mkdirat(top_fd, "agent", 0755) < 0)
		return -errno;
	dir_fd = openat(top_fd, "agent", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = dir_fd < 0 ? -errno : lay(dir_fd, "caisson-agent", stage->agent_fd);
	if (r >= 0 && stage->search_fd >= 0)
		r = lay(dir_fd, "caisson-search", stage->search_fd);
	return r;
}

static int lay_all(const struct stage *stage, const struct rootfs *rootfs, struct csn_error *err)
{
	_cleanup_fd_ int top_fd = open(stage->at, O_PATH | O_DIRECTORY | O_CLOEXEC), lent_fd = -1;
	int r = top_fd < 0 ? -errno : lay(top_fd, "root", stage->root_fd);

	if (r >= 0)
		r = lay_programs(top_fd, stage);
	if (r >= 0 && mkdirat(top_fd, "lent", 0711) < 0)
		r = -errno;
	if (r >= 0)
		lent_fd = openat(top_fd, "lent", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r < 0 || lent_fd < 0)
		return csn_fail(err, r < 0 ? r : -errno, STAGE, "cannot lay out %s: %s", stage->at,
				strerror(r < 0 ? -r : errno));
	for (size_t i = 0; r >= 0 && i < rootfs->count; i++) {
		const struct rootfs_item *item = &rootfs->items[i];

		r = lay_item(lent_fd, rootfs, item);
		if (r < 0)
			return csn_fail(err, r, STAGE, "cannot lay out /%s: %s", item->at,
					strerror(-r));
	}
	return 0;
}

int stage_enter(const struct stage *stage, struct rootfs *rootfs, struct csn_error *err)
{
	static const struct mounts_option options[] = { { "size", "1m" },
							{ "mode", "0711" },
							{ 0 } };
	_cleanup_fd_ int top_fd = -1;
	int r = leave_mounts();

	if (r < 0)
		return csn_fail(err, r, STAGE, "cannot make a mount namespace: %s", strerror(-r));
	top_fd = mounts_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	r = top_fd < 0 ? top_fd : mounts_attach(top_fd, AT_FDCWD, stage->at);
	if (r < 0)
		return csn_fail(err, r, STAGE, "cannot cover %s: %s", stage->at, strerror(-r));
	if (stage->hides_v2) /* where there is none, nothing is hidden */
		umount2("/sys/fs/cgroup/unified", MNT_DETACH);
	umask(0);
	r = lay_all(stage, rootfs, err);
	umask(022);
	return r;
}
