/*
 * Where a path leads in the sandbox's own view, and whether the plan permits writing there.
 *
 * The kernel walks the path for us, from the command's root or a folder of the thread, with
 * openat2(): symbolic links, ".." and mounts are then the sandbox's, never the host's. What is
 * missing is cut off until a parent exists. The verdict comes from that descriptor: mount
 * flags, file system, device number; the plan's paths decide only where the view is the host's
 * own (the landlock wall).
 *
 * A thread may swap the path while we look: that blurs the record. Walls do not depend on it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/linux.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/notify_private.h"
#include "os/sys.h"
#include "os/tracee.h"

enum { LINKS_MAX = 8, PARTS_MAX = PATH_MAX / 2 };

/* A walk in progress: where it starts and what is still to be walked. */
struct walk {
	int base;     /* the notifier's root, or owned */
	bool is_root; /* base is the sandbox's root: ".." and absolute links stay beneath it */
	bool is_nofollow;
	char path[PATH_MAX];
};

void place_done(struct place *place)
{
	place->fd = fd_close(place->fd);
}

/* Borrowed. All processes of a command have one root: the filter forbids chroot, setns, unshare. */
static int root_of(const struct call *call, int *ret_fd)
{
	struct notify *notify = call->notify;
	int r = 0;

	if (notify->root < 0)
		r = tracee_open_root(call->tid, &notify->root);
	if (r == 0)
		*ret_fd = notify->root;
	return r;
}

static void walk_done(struct walk *walk)
{
	if (!walk->is_root)
		walk->base = fd_close(walk->base);
}

static int step(const struct walk *walk, const char *path, uint64_t flags)
{
	uint64_t how = walk->is_root ? RESOLVE_IN_ROOT : RESOLVE_BENEATH;

	return sys_openat2(walk->base, *path ? path : ".", O_PATH | flags,
			   how | RESOLVE_NO_MAGICLINKS);
}

/* Goes on from the root: `prefix`/`path`. */
static int restart(const struct call *call, struct walk *walk, const char *prefix, const char *path)
{
	char text[PATH_MAX];
	int n = snprintf(text, sizeof text, "%s/%s", prefix, path);

	if (n < 0 || (size_t)n >= sizeof text)
		return -ENAMETOOLONG;
	memcpy(walk->path, text, (size_t)n + 1);
	if (walk->is_root)
		return 0;
	walk_done(walk);
	walk->is_root = true;
	return root_of(call, &walk->base);
}

/* ".." or an absolute link left the folder we started from: from the root, by its name. */
static int leave_folder(const struct call *call, struct walk *walk)
{
	char name[PATH_MAX];
	int r = tracee_name_of(walk->base, name, sizeof name);

	if (r < 0)
		return r;
	if (name[0] != '/')
		return -ENOENT;
	return restart(call, walk, name, walk->path);
}

/*
 * The longest prefix of the path that exists, by bisection: a path may have 2048 parts, and
 * trying each of them would let a program keep the monitor busy. *ret_tail is what is left.
 */
static int nearest_parent(const struct walk *walk, int *ret_fd, size_t *ret_tail)
{
	_cleanup_fd_ int best = -1;
	uint16_t cuts[PARTS_MAX];
	size_t count = 0, low = 0, high, tail = 0;
	char prefix[PATH_MAX];

	for (size_t i = 1; walk->path[i] && count < PARTS_MAX; i++) {
		if (walk->path[i] == '/' && walk->path[i - 1] != '/')
			cuts[count++] = (uint16_t)i;
	}
	best = step(walk, walk->path[0] == '/' ? "/" : ".", O_DIRECTORY);
	if (best < 0)
		return best;
	for (high = count; low < high;) {
		size_t middle = low + (high - low) / 2;
		int fd;

		memcpy(prefix, walk->path, cuts[middle]);
		prefix[cuts[middle]] = 0;
		fd = step(walk, prefix, O_DIRECTORY);
		if (fd == -EXDEV)
			return fd;
		if (fd < 0) {
			high = middle;
			continue;
		}
		fd_close(best);
		best = fd;
		tail = cuts[middle];
		low = middle + 1;
	}
	*ret_fd = fd_take(&best);
	*ret_tail = tail + strspn(walk->path + tail, "/");
	return 0;
}

/*
 * The first missing part may be a link that leads nowhere yet: creating it creates its target.
 * Returns 1 and sets the walk to the target, 0 if it is no link.
 */
static int follow_dangling(const struct call *call, struct walk *walk, int parent, size_t tail)
{
	char name[NAME_MAX + 1], target[PATH_MAX], text[PATH_MAX];
	const char *part = walk->path + tail;
	size_t length = strcspn(part, "/");
	bool is_last = part[length] == 0;
	ssize_t n;
	int r;

	if (length == 0 || length > NAME_MAX || (is_last && walk->is_nofollow))
		return 0;
	memcpy(name, part, length);
	name[length] = 0;
	n = readlinkat(parent, name, target, sizeof target - 1);
	if (n <= 0)
		return 0;
	target[n] = 0;
	r = snprintf(text, sizeof text, "%s%s", target, part + length);
	if (r < 0 || (size_t)r >= sizeof text)
		return -ENAMETOOLONG;
	if (target[0] == '/') {
		r = restart(call, walk, "", text);
		return r < 0 ? r : 1;
	}
	r = tracee_name_of(parent, target, sizeof target);
	if (r == 0)
		r = restart(call, walk, target, text);
	return r < 0 ? r : 1;
}

/* One attempt: 0 found, 1 walk again from what `walk` now says, or a negative errno. */
static int attempt(const struct call *call, struct walk *walk, struct place *place)
{
	_cleanup_fd_ int parent = -1;
	size_t tail;
	int r = step(walk, walk->path, walk->is_nofollow ? O_NOFOLLOW : 0);

	if (r >= 0) {
		place->fd = r;
		place->exists = true;
		place->rest[0] = 0;
		return 0;
	}
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
		r = nearest_parent(walk, &parent, &tail);
	if (r == -EXDEV) {
		r = leave_folder(call, walk);
		return r < 0 ? r : 1;
	}
	if (r < 0)
		return r;
	r = follow_dangling(call, walk, parent, tail);
	if (r != 0)
		return r;
	snprintf(place->rest, sizeof place->rest, "%s", walk->path + tail);
	place->exists = false;
	place->fd = fd_take(&parent);
	return 0;
}

/* "/dev/fd/3", "/dev/stdout", "/proc/self/fd/3" name an open descriptor: its number, else -1. */
static int named_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/",
					       "/proc/thread-self/fd/" };
	static const char *const standard[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };
	uint64_t fd;

	for (size_t i = 0; i < ARRAY_SIZE(standard); i++) {
		if (str_is(path, standard[i]))
			return (int)i;
	}
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		if (str_starts(path, folders[i]) &&
		    str_parse_u64(path + strlen(folders[i]), INT_MAX, &fd) == 0)
			return (int)fd;
	}
	return -1;
}

/* "/proc/self/root/etc/x" is "/etc/x": links by which a path could hide from the record. */
static const char *without_magic(const char *path)
{
	static const char *const prefixes[] = { "/proc/self/root/", "/proc/thread-self/root/" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		while (str_starts(path, prefixes[i]))
			path += strlen(prefixes[i]) - 1;
	}
	return path;
}

int place_of_fd(const struct call *call, int fd, struct place *ret_place)
{
	ret_place->exists = true;
	ret_place->rest[0] = 0;
	if (fd == AT_FDCWD)
		return tracee_open_cwd(call->tid, &ret_place->fd);
	return tracee_open_fd(call->tid, fd, &ret_place->fd);
}

static int start(const struct call *call, int dir_fd, struct walk *walk)
{
	if (walk->is_root)
		return root_of(call, &walk->base);
	if (dir_fd == AT_FDCWD)
		return tracee_open_cwd(call->tid, &walk->base);
	return tracee_open_fd(call->tid, dir_fd, &walk->base);
}

int place_find(const struct call *call, int dir_fd, const char *path, bool is_nofollow,
	       struct place *ret_place)
{
	struct walk walk = { .base = -1, .is_root = path[0] == '/', .is_nofollow = is_nofollow };
	int fd, r;

	ret_place->fd = -1;
	if (walk.is_root)
		path = without_magic(path);
	fd = is_nofollow ? -1 : named_descriptor(path);
	if (fd >= 0)
		return place_of_fd(call, fd, ret_place);
	if (strlen(path) >= sizeof walk.path)
		return -ENAMETOOLONG;
	memcpy(walk.path, path, strlen(path) + 1);
	r = start(call, dir_fd, &walk);
	for (int i = 0; r == 0 && i < LINKS_MAX; i++) {
		r = attempt(call, &walk, ret_place);
		if (r == 0) {
			walk_done(&walk);
			return 0;
		}
		r = r == 1 ? 0 : r;
	}
	walk_done(&walk);
	return r < 0 ? r : -ELOOP;
}

/*
 * Root's monitor walks with the command's ids: folders closed to it stay closed, also those open to
 * a group of the monitor's. Raw calls, of this thread alone. 0 or a negative errno.
 */
static int become_command(const struct notify *notify)
{
	uid_t id = notify->setup.as_uid;

	if (!id)
		return 0;
	/* Refused where the kernel refused it to the command too. */
	if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
		return -errno;
	setfsgid(id);
	setfsuid(id);
	/* Neither says that it failed; -1 is no id and changes nothing. */
	return (uid_t)setfsuid((uid_t)-1) == id && (gid_t)setfsgid((gid_t)-1) == id ? 0 : -EACCES;
}

static void become_monitor(const struct notify *notify)
{
	if (!notify->setup.as_uid)
		return;
	setfsuid(geteuid());
	setfsgid(getegid());
	syscall(SYS_setgroups, notify->group_count, notify->groups);
}

int place_walk(const struct call *call, int dir_fd, const char *path, bool is_nofollow, int *ret_fd)
{
	_cleanup_place_ struct place base = { .fd = -1 };
	int fd, r = 0;

	if (path[0] == '/')
		path = without_magic(path);
	fd = is_nofollow ? -1 : named_descriptor(path);
	if (fd >= 0)
		return tracee_open_fd(call->tid, fd, ret_fd);
	if (path[0] != '/')
		r = place_of_fd(call, dir_fd, &base);
	if (r < 0)
		return r == -ENOENT && dir_fd != AT_FDCWD ? -EBADF : r;
	fd = become_command(call->notify);
	if (fd == 0)
		fd = sys_openat2(base.fd, path, O_PATH | (is_nofollow ? O_NOFOLLOW : 0),
				 RESOLVE_NO_MAGICLINKS);
	become_monitor(call->notify);
	if (fd < 0)
		return fd == -EPERM ? -EACCES : fd;
	*ret_fd = fd;
	return 0;
}

int place_name(const struct place *place, char *ret_name, size_t size)
{
	char name[PATH_MAX];
	int n, r = tracee_name_of(place->fd, name, sizeof name);

	if (r < 0)
		return r;
	n = snprintf(ret_name, size, "%s%s%s", str_is(name, "/") && place->rest[0] ? "" : name,
		     place->rest[0] ? "/" : "", place->rest);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* null zero full random urandom tty ptmx and pseudo terminals: writing them changes no file. */
static bool is_harmless_device(dev_t device)
{
	static const struct {
		unsigned major, minor;
	} harmless[] = { { 1, 3 }, { 1, 5 }, { 1, 7 }, { 1, 8 }, { 1, 9 }, { 5, 0 }, { 5, 2 } };

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++) {
		if (major(device) == harmless[i].major && minor(device) == harmless[i].minor)
			return true;
	}
	return major(device) >= 136 && major(device) <= 143;
}

/*
 * Files of processes guard themselves (comm, oom_score_adj, fd); all else in /proc is the
 * machine's. "self" is missing for us, who are outside its pid namespace.
 */
static bool is_own_proc(const struct place *place)
{
	char name[PATH_MAX];
	const char *entry = place->rest;

	if (!*entry || tracee_name_of(place->fd, name, sizeof name) < 0 || !str_is(name, "/proc")) {
		if (place_name(place, name, sizeof name) < 0 || !str_starts(name, "/proc/"))
			return false;
		entry = name + strlen("/proc/");
	}
	return (*entry >= '1' && *entry <= '9') || str_starts(entry, "self/") ||
	       str_starts(entry, "thread-self/");
}

static bool is_on_scratch(const struct notify *notify, const char *name)
{
	char scratch[PATH_MAX];

	return notify->setup.scratch_fd >= 0 &&
	       tracee_name_of(notify->setup.scratch_fd, scratch, sizeof scratch) == 0 &&
	       path_is_beneath(name, scratch);
}

/* The innermost of the workspace and the mounts that `name` lies in decides. */
static bool plan_permits_name(const struct notify *notify, const char *name)
{
	const struct plan *plan = notify->setup.plan;
	const char *best = NULL;
	bool may_write = false;

	if (is_on_scratch(notify, name))
		return true;
	if (plan->workspace.host && path_is_beneath(name, plan->workspace.host)) {
		best = plan->workspace.host;
		may_write = plan->workspace.access != ACCESS_RO;
	}
	for (size_t i = 0; i < plan->mount_count; i++) {
		const struct plan_mount *mount = &plan->mounts[i];

		if (path_is_beneath(name, mount->host) &&
		    (!best || strlen(mount->host) > strlen(best))) {
			best = mount->host;
			may_write = mount->access != ACCESS_RO;
		}
	}
	return may_write;
}

/* The landlock wall shows the host's own tree: there only the plan's paths can decide. */
static bool plan_permits(const struct call *call, const struct place *place)
{
	char name[PATH_MAX];

	return place_name(place, name, sizeof name) < 0 || name[0] != '/' ||
	       plan_permits_name(call->notify, name);
}

bool place_may_write(const struct call *call, const struct place *place)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(place->fd, &fs) < 0)
		return true;
	if (place->exists && fstat(place->fd, &st) == 0) {
		if (S_ISCHR(st.st_mode))
			return is_harmless_device(st.st_rdev);
		if (S_ISBLK(st.st_mode))
			return false;
		if (st.st_nlink == 0)
			return true; /* a memfd or a removed file: it has no name left */
	}
	if (fs.f_type == PROC_SUPER_MAGIC)
		return is_own_proc(place);
	if (fs.f_type == PIPEFS_MAGIC || fs.f_type == SOCKFS_MAGIC)
		return true; /* reopened by /dev/stdout */
	if (fs.f_flags & ST_RDONLY)
		return false;
	return call->notify->setup.has_own_view || plan_permits(call, place);
}

bool place_is_hidden(const struct call *call, const char *name)
{
	const struct notify_setup *setup = &call->notify->setup;
	const char *workspace = setup->plan->workspace.host;

	if (!workspace || !path_is_beneath(name, workspace))
		return false;
	for (const char *const *hidden = setup->hidden; hidden && *hidden; hidden++)
		if (path_is_beneath(path_tail(name, workspace), *hidden))
			return true;
	return false;
}

/* What only descriptors lead to: pipes, sockets, files in memory. They are the command's own. */
static bool is_nameless(int fd, const struct stat *st, const char *name)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	if (fs.f_type == PIPEFS_MAGIC || fs.f_type == SOCKFS_MAGIC)
		return true;
	return fs.f_type == TMPFS_MAGIC && st->st_nlink == 0 && str_starts(name, "/memfd:");
}

bool place_may_change(const struct call *call, const struct place *place)
{
	char name[PATH_MAX];
	struct stat st;

	if (fstat(place->fd, &st) < 0 || tracee_name_of(place->fd, name, sizeof name) < 0)
		return false;
	if (is_nameless(place->fd, &st, name))
		return true;
	/* A device's rights are the machine's; "(unreachable)/x" is nobody's to judge. */
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) || name[0] != '/')
		return false;
	return plan_permits_name(call->notify, name) && !place_is_hidden(call, name);
}

/* The scratch mount: lent by the wall, or looked up once in the sandbox's root. */
static int scratch_of(const struct call *call)
{
	struct notify *notify = call->notify;
	int fd, root;

	if (notify->setup.scratch_fd >= 0)
		return notify->setup.scratch_fd;
	if (notify->scratch < 0 && notify->setup.plan->scratch_at && root_of(call, &root) == 0) {
		fd = sys_openat2(root, notify->setup.plan->scratch_at, O_PATH | O_DIRECTORY,
				 RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
		notify->scratch = fd < 0 ? -1 : fd;
	}
	return notify->scratch;
}

/* The number of the mount a descriptor was reached through, 0: the kernel does not tell (5.8). */
static uint64_t mount_of(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 || !(st.stx_mask & STATX_MNT_ID))
		return 0;
	return st.stx_mnt_id;
}

bool place_is_scratch(const struct call *call, const struct place *place)
{
	char name[PATH_MAX], folder[PATH_MAX];
	int scratch = scratch_of(call);
	struct stat a, b;
	struct statfs fs;

	if (scratch < 0 || fstat(scratch, &a) < 0 || fstat(place->fd, &b) < 0 ||
	    a.st_dev != b.st_dev)
		return false;
	/* A tmpfs of its own is nobody else's; a folder of a shared file system needs its mount. */
	if (call->notify->setup.has_own_view)
		return (fstatfs(scratch, &fs) == 0 && fs.f_type == TMPFS_MAGIC) ||
		       (mount_of(scratch) != 0 && mount_of(scratch) == mount_of(place->fd));
	return tracee_name_of(scratch, folder, sizeof folder) == 0 &&
	       place_name(place, name, sizeof name) == 0 && path_is_beneath(name, folder);
}

/* Folders that programs probe on many machines and whose absence means nothing. */
static bool is_probe(const char *name)
{
	static const char *const probes[] = { "/sys", "/run",   "/opt",  "/var",
					      "/nix", "/lib32", "/snap", "/libx32" };

	for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
		if (path_is_beneath(name, probes[i]))
			return true;
	}
	return false;
}

bool place_is_shown(const struct call *call, const struct place *place)
{
	const struct plan_workspace *workspace = &call->notify->setup.plan->workspace;
	char folder[PATH_MAX], name[PATH_MAX];

	if (place_name(place, name, sizeof name) < 0)
		return true;
	if (!call->notify->setup.has_own_view && !is_probe(name) && !view_shows(call, place, name))
		return false;
	if (place->exists) {
		if (!workspace->host || !workspace->hide || !path_is_beneath(name, workspace->at))
			return true;
		for (size_t i = 0; workspace->hide[i]; i++) {
			if (str_path_matches(workspace->hide[i], path_tail(name, workspace->at)))
				return false;
		}
		return true;
	}
	return tracee_name_of(place->fd, folder, sizeof folder) < 0 || !str_is(folder, "/") ||
	       !strchr(place->rest, '/') || is_probe(name);
}
