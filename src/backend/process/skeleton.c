/*
 * Finding and making skeletons; see skeleton.h. Runs in the monitor with the caller's rights,
 * before the clone, on the path of every start: a look is some 40 system calls.
 *
 * Attacks in mind: another user who plants a tree (every folder on the way must be the caller's,
 * and his alone to write), and root's monitor copying what the sandbox's id could not read.
 * tests/cli/test_skeleton.py
 */
#include "backend/process/skeleton.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "os/mounts.h"
#include "os/sys.h"

#ifndef ZFS_SUPER_MAGIC
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#endif

#define ROOTS ".roots" /* audit/roots.c knows these names too */

enum {
	KEY_MAX = 32 << 10,
	NAME_SIZE = 32,
	TOUCH_AFTER_S = 3600, /* audit/roots.c counts days */
	SETTLED_S = 1         /* a file may change twice within one tick of its clock */
};

/* What a tree is made from. */
struct key {
	struct buf text;
	time_t newest; /* change of a copied file, seconds */
};

/* One that was found: all of it checked. */
struct found {
	int lock_fd, tree_fd;
};

/* ---- the key --------------------------------------------------------------------------- */

static int add_number(struct buf *key, uint64_t number)
{
	return buf_add(key, &number, sizeof number);
}

static int add_string(struct buf *key, const char *text)
{
	return buf_add(key, text, strlen(text) + 1);
}

/* Root's sandbox has an id that owns nothing: what others may not read it never could. */
static bool is_public(const char *path, const struct stat *st)
{
	char above[256];
	struct stat folder;

	if (geteuid() != 0)
		return true;
	if (!(st->st_mode & S_IROTH) || strlen(path) >= sizeof above)
		return false;
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
		if (stat(above, &folder) < 0 || !(folder.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

/* Is there a host file to mount? Says what kind of mount point it needs. */
static bool has_source(struct rootfs_item *item)
{
	struct stat st;
	int r;

	if (item->is_system && !item->is_optional)
		return true; /* looked at a moment ago */
	r = item->fd >= 0 ? fstat(item->fd, &st) : lstat(item->source, &st);
	item->is_file = r == 0 && !S_ISDIR(st.st_mode);
	return r == 0;
}

/* Is there something to make? `ret_st`: of what is copied. */
static bool is_there(struct rootfs_item *item, struct stat *ret_st)
{
	if (item->kind == ROOTFS_COPY)
		return lstat(item->source, ret_st) == 0 && S_ISREG(ret_st->st_mode) &&
		       is_public(item->source, ret_st);
	if (item->kind == ROOTFS_BIND || item->kind == ROOTFS_TREE)
		return has_source(item);
	return item->kind <= ROOTFS_LINK || rootfs_is_mount(item);
}

/* Does an earlier item lie over its place? Then it is made there, when that is attached. */
static bool is_covered(const struct rootfs *rootfs, size_t index)
{
	const char *at = rootfs->items[index].at;

	if (path_is_beneath(at, rootfs_scratch) && !str_is(at, rootfs_scratch))
		return true;
	for (size_t i = 0; i < index; i++) {
		const struct rootfs_item *item = &rootfs->items[i];

		if (item->is_ahead && rootfs_is_mount(item) && path_is_beneath(at, item->at))
			return true;
	}
	return false;
}

static int add_copied(struct key *key, const struct stat *st)
{
	const uint64_t facts[] = {
		st->st_dev,
		st->st_ino,
		(uint64_t)st->st_size,
		(uint64_t)st->st_mtim.tv_sec,
		(uint64_t)st->st_mtim.tv_nsec,
		(uint64_t)st->st_ctim.tv_sec,
		(uint64_t)st->st_ctim.tv_nsec,
	};

	if (st->st_ctim.tv_sec > key->newest)
		key->newest = st->st_ctim.tv_sec;
	return buf_add(&key->text, facts, sizeof facts);
}

static int add_item(struct key *key, const struct rootfs_item *item, const struct stat *st)
{
	int r = add_number(&key->text, (uint64_t)item->kind << 40 |
					       (uint64_t)item->is_system << 33 |
					       (uint64_t)item->is_file << 32 | item->mode);

	if (r >= 0)
		r = add_string(&key->text, item->at);
	if (r >= 0 && (item->kind == ROOTFS_FILE || item->kind == ROOTFS_LINK))
		r = add_string(&key->text, item->source);
	if (r >= 0 && item->kind == ROOTFS_COPY)
		r = add_copied(key, st);
	return r;
}

/* What a power failure left is not worth looking at: each boot has skeletons of its own. */
static int add_boot(struct buf *key)
{
	_cleanup_fd_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char id[64];
	ssize_t n = fd < 0 ? -1 : read(fd, id, sizeof id);

	return n <= 0 ? -ENOENT : buf_add(key, id, (size_t)n);
}

void skeleton_mark(struct rootfs *rootfs)
{
	struct stat st;

	for (size_t i = 0; i < rootfs->count; i++)
		rootfs->items[i].is_ahead =
			is_there(&rootfs->items[i], &st) && !is_covered(rootfs, i);
}

/* Marks the items that can be made ahead, and writes down what they are. */
static int make_key(struct rootfs *rootfs, struct key *key)
{
	int r = add_string(&key->text, "caisson root 1");

	if (r >= 0)
		r = add_boot(&key->text);
	if (r >= 0)
		r = add_number(&key->text, (uint64_t)geteuid() << 32 | getegid());
	for (size_t i = 0; r >= 0 && i < rootfs->count; i++) {
		struct rootfs_item *item = &rootfs->items[i];
		struct stat st;

		item->is_ahead = is_there(item, &st) && !is_covered(rootfs, i);
		if (item->is_ahead || item->kind == ROOTFS_OVERLAY)
			r = add_item(key, item, &st);
	}
	return r;
}

/* A name, no proof: keys are compared. An odd factor and a shift spread the bits of each word. */
static void name_of(const struct buf *key, char ret_name[NAME_SIZE])
{
	const uint8_t *at = buf_at((struct buf *)key);
	size_t size = buf_size(key);
	uint64_t hash = size, word;

	for (size_t i = 0; i < size; i += sizeof word) {
		word = 0;
		memcpy(&word, at + i, size - i < sizeof word ? size - i : sizeof word);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	snprintf(ret_name, NAME_SIZE, "%016llx", (unsigned long long)hash);
}

/* ---- finding --------------------------------------------------------------------------- */

/* A folder of the caller's with exactly that mode; descriptor or -errno. */
static int open_own(int dir_fd, const char *name, mode_t mode)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 07777) != mode)
		return -EPERM;
	return fd_take(&fd);
}

static bool is_same(int fd, off_t size, const struct buf *key)
{
	char there[KEY_MAX];

	return size == (off_t)buf_size(key) && pread(fd, there, sizeof there, 0) == size &&
	       memcmp(there, buf_at((struct buf *)key), buf_size(key)) == 0;
}

/* How long unused is told by the lock's time; written seldom, since every run would. */
static void touch(int fd, const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec - st->st_mtim.tv_sec > TOUCH_AFTER_S || now.tv_sec < st->st_mtim.tv_sec)
		futimens(fd, NULL);
}

/* Shared, never waited for: who holds it alone is removing the tree. He unlinks it first, so a
 * lock that came too late is seen. */
static int take_lock(int dir_fd, const struct buf *key)
{
	_cleanup_fd_ int fd =
		openat(dir_fd, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid() ||
	    (st.st_mode & 07777) != 0600 || !is_same(fd, st.st_size, key))
		return -EPERM;
	touch(fd, &st);
	return fd_take(&fd);
}

static int find(int roots_fd, const char *name, const struct buf *key, struct found *ret_found)
{
	_cleanup_fd_ int dir_fd = open_own(roots_fd, name, 0700);
	_cleanup_fd_ int lock_fd = -1, tree_fd = -1;
	struct stat st;

	if (dir_fd < 0)
		return dir_fd;
	lock_fd = take_lock(dir_fd, key);
	if (lock_fd < 0)
		return lock_fd;
	tree_fd = open_own(dir_fd, "tree", 0755);
	if (tree_fd < 0)
		return tree_fd;
	if (fstat(tree_fd, &st) < 0 || st.st_gid != getegid())
		return -EPERM;
	*ret_found = (struct found){ fd_take(&lock_fd), fd_take(&tree_fd) };
	return 0;
}

/* ---- making ---------------------------------------------------------------------------- */

/* Those of which it is known that mount points stay what they are, and that locks lock. */
static bool is_fit(int fd)
{
	static const uint32_t fit[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC,
					TMPFS_MAGIC,      F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
					ZFS_SUPER_MAGIC };
	struct statfs fs;

	for (size_t i = 0; fstatfs(fd, &fs) == 0 && i < ARRAY_SIZE(fit); i++)
		if ((uint32_t)fs.f_type == fit[i])
			return true;
	return false;
}

/* A new folder of exactly that mode and the caller's group, whatever the one above hands down. */
static int make_folder(int dir_fd, const char *name, mode_t mode)
{
	_cleanup_fd_ int fd = -1;

	if (mkdirat(dir_fd, name, 0700) < 0)
		return -errno;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchown(fd, (uid_t)-1, getegid()) < 0)
		return -errno;
	fremovexattr(fd, "system.posix_acl_default");
	fremovexattr(fd, "system.posix_acl_access");
	return fchmod(fd, mode) < 0 ? -errno : fd_take(&fd);
}

static int write_key(int dir_fd, const struct buf *key)
{
	_cleanup_fd_ int fd =
		openat(dir_fd, "lock", O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fchmod(fd, 0600) < 0)
		return -errno;
	return fd_write_all(fd, buf_at((struct buf *)key), buf_size(key));
}

/* Fills the new folder; `key` must be the same after as before. */
static int fill(struct rootfs *rootfs, int dir_fd, const struct buf *key)
{
	_cleanup_fd_ int tree_fd = make_folder(dir_fd, "tree", 0755);
	struct key after;
	int r = tree_fd;

	if (r >= 0)
		r = write_key(dir_fd, key);
	if (r >= 0)
		r = rootfs_fill(rootfs, tree_fd, NULL);
	if (r < 0)
		return r;
	after = (struct key){ 0 };
	buf_init(&after.text, KEY_MAX);
	r = make_key(rootfs, &after);
	if (r >= 0 && (buf_size(&after.text) != buf_size(key) ||
		       memcmp(buf_at(&after.text), buf_at((struct buf *)key), buf_size(key)) != 0))
		r = -ESTALE;
	buf_done(&after.text);
	return r;
}

static int make(struct rootfs *rootfs, int roots_fd, const char *name, const struct key *key)
{
	_cleanup_fd_ int dir_fd = -1;
	char made[NAME_SIZE];
	uint64_t number;
	int r;

	if (!is_fit(roots_fd) || time(NULL) - key->newest <= SETTLED_S)
		return -EAGAIN;
	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return -EIO;
	snprintf(made, sizeof made, ".new-%016llx", (unsigned long long)number);
	dir_fd = make_folder(roots_fd, made, 0700);
	if (dir_fd < 0)
		return dir_fd;
	flock(dir_fd, LOCK_SH | LOCK_NB); /* audit/roots.c removes one whose maker died */
	r = fill(rootfs, dir_fd, &key->text);
	/* Somebody may have been quicker: his is as good. */
	if (r >= 0 && renameat(roots_fd, made, roots_fd, name) < 0)
		r = errno == ENOTEMPTY || errno == EEXIST ? -EEXIST : -errno;
	if (r < 0)
		tree_remove(roots_fd, made); /* audit/roots.c takes what stays */
	return r == -EEXIST ? 0 : r;
}

static int find_or_make(const char *run_root, struct rootfs *rootfs, char ret_name[NAME_SIZE],
			struct found *ret_found)
{
	_cleanup_fd_ int root_fd = open(run_root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_fd_ int roots_fd = -1;
	struct key key = { 0 };
	struct stat st;
	int r;

	/* Made by the first record: the first run of all has none. */
	if (root_fd < 0 || fstat(root_fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022))
		return -EPERM;
	roots_fd = open_own(root_fd, ROOTS, 0700);
	if (roots_fd == -ENOENT && is_fit(root_fd)) {
		fd_close(make_folder(root_fd, ROOTS, 0700));
		roots_fd = open_own(root_fd, ROOTS, 0700);
	}
	if (roots_fd < 0)
		return roots_fd;
	buf_init(&key.text, KEY_MAX);
	r = make_key(rootfs, &key);
	if (r >= 0) {
		name_of(&key.text, ret_name);
		r = find(roots_fd, ret_name, &key.text, ret_found);
	}
	if (r == -ENOENT && make(rootfs, roots_fd, ret_name, &key) >= 0)
		r = find(roots_fd, ret_name, &key.text, ret_found);
	buf_done(&key.text);
	return r;
}

/* ---- using ----------------------------------------------------------------------------- */

static bool are_apart(const char *run_root, const char *lent)
{
	return !lent || (!path_is_beneath(run_root, lent) && !path_is_beneath(lent, run_root));
}

bool skeleton_is_apart(const struct tree *tree)
{
	const char *root = tree->how->run_root;
	const struct plan *plan = tree->plan;
	bool is_apart = are_apart(root, plan->workspace.host);

	for (size_t i = 0; is_apart && i < plan->mount_count; i++)
		is_apart = are_apart(root, plan->mounts[i].host);
	for (const char *const *path = tree->how->toolchains; is_apart && path && *path; path++)
		is_apart = are_apart(root, *path);
	return is_apart;
}

/* Root's: the sandbox's id may not walk to it, and sees it as its own. */
static int clone_mapped(int tree_fd, int userns_fd)
{
	_cleanup_fd_ int fd = mounts_clone(tree_fd, "");
	int r = fd < 0 ? fd : mounts_idmap(fd, userns_fd);

	if (r >= 0)
		r = mounts_set(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return r < 0 ? r : fd_take(&fd);
}

static int note(const struct tree *tree, const char *name, const struct found *found,
		struct rootfs *rootfs)
{
	struct rootfs_skeleton skeleton = { .fd = -1 };
	struct stat st;

	if (tree->userns_fd >= 0) {
		skeleton.fd = clone_mapped(found->tree_fd, tree->userns_fd);
		if (skeleton.fd < 0)
			return skeleton.fd;
	} else {
		skeleton.path = arena_printf(tree->arena, "%s/" ROOTS "/%s/tree",
					     tree->how->run_root, name);
		if (!skeleton.path || fstat(found->tree_fd, &st) < 0)
			return -ENOMEM;
		skeleton.dev = st.st_dev;
		skeleton.ino = st.st_ino;
	}
	rootfs->skeleton = skeleton;
	return 0;
}

int skeleton_use(const struct tree *tree, struct rootfs *rootfs)
{
	struct found found = { -1, -1 };
	char name[NAME_SIZE];
	int r;

	if (!tree->how->run_root || !skeleton_is_apart(tree) ||
	    find_or_make(tree->how->run_root, rootfs, name, &found) < 0)
		return -1;
	r = note(tree, name, &found, rootfs);
	fd_close(found.tree_fd);
	return r < 0 ? fd_close(found.lock_fd) : found.lock_fd;
}
