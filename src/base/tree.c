/*
 * Trees that a sandbox may have made: 10,000 levels deep, modes 000, names of any bytes, links
 * to anywhere. Removal goes down a bounded number of levels; what is deeper is moved up to the
 * top folder and met there again, so neither the stack nor the table of descriptors grows.
 * An overlay's own work/work has mode 000, too.
 */
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { LEVELS_REMOVED = 24, LEVELS_MEASURED = 64, ENTRIES_MEASURED = 200000, MOVE_TRIES = 64 };

/* A folder in a folder: no link, no other mount. */
static int open_here(int dir_fd, const char *name, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_BENEATH,
	};
	int fd = (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof how);

	return fd < 0 ? -errno : fd;
}

/* Opens a folder for emptying; one that forbids it is made to permit it. */
static int open_forced(int dir_fd, const char *name)
{
	_cleanup_fd_ int handle = -1;
	char self[32];
	int fd = open_here(dir_fd, name, O_RDONLY);

	if (fd >= 0) {
		fchmod(fd, 0700); /* it may lack w or x; if it cannot be had, unlinking says so */
		return fd;
	}
	if (fd != -EACCES)
		return fd;
	handle = open_here(dir_fd, name, O_PATH);
	if (handle < 0)
		return handle;
	/* fchmod() refuses an O_PATH descriptor; its magic link reaches the very same folder. */
	snprintf(self, sizeof self, "/proc/self/fd/%d", handle);
	if (chmod(self, 0700) < 0)
		return -errno;
	return open_here(dir_fd, name, O_RDONLY);
}

static bool is_dot(const char *name)
{
	return str_is(name, ".") || str_is(name, "..");
}

/* ---- removing ---------------------------------------------------------------------------- */

struct sweep {
	int top_fd;     /* borrowed: where what is too deep goes */
	unsigned moved; /* for names in it */
};

static int move_up(struct sweep *sweep, int dir_fd, const char *name)
{
	char there[32];
	int r = -EEXIST;

	for (int i = 0; i < MOVE_TRIES && (r == -EEXIST || r == -ENOTEMPTY || r == -ENOTDIR); i++) {
		snprintf(there, sizeof there, ".deep-%u", sweep->moved++);
		r = renameat(dir_fd, name, sweep->top_fd, there) < 0 ? -errno : 0;
	}
	return r;
}

static int empty_folder(struct sweep *sweep, int take_fd, unsigned levels);

static int remove_entry(struct sweep *sweep, int dir_fd, const char *name, unsigned levels)
{
	int fd, r;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM) /* the kernel's and POSIX's word for a folder */
		return -errno;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno == ENOTDIR) /* a file that may not be unlinked: immutable */
		return -EPERM;
	fd = open_forced(dir_fd, name);
	if (fd < 0)
		return fd;
	if (levels == 0) {
		fd_close(fd);
		return move_up(sweep, dir_fd, name);
	}
	r = empty_folder(sweep, fd, levels - 1);
	if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

/* One pass over a folder; counts what it met. */
static int pass(struct sweep *sweep, DIR *dir, unsigned levels, size_t *ret_count)
{
	struct dirent *entry;
	size_t count = 0;
	int r = 0;

	rewinddir(dir);
	while (r == 0 && (entry = readdir(dir))) {
		if (is_dot(entry->d_name))
			continue;
		count++;
		r = remove_entry(sweep, dirfd(dir), entry->d_name, levels);
	}
	*ret_count = count;
	return r;
}

/* Repeats until a pass meets nothing: entries come up from below, and readdir may skip some. */
static int empty_folder(struct sweep *sweep, int take_fd, unsigned levels)
{
	DIR *dir = fdopendir(take_fd);
	size_t count = 0;
	int r;

	if (!dir) {
		fd_close(take_fd);
		return -ENOMEM;
	}
	do {
		r = pass(sweep, dir, levels, &count);
	} while (r == 0 && count > 0);
	closedir(dir);
	return r;
}

int tree_remove(int dir_fd, const char *name)
{
	_cleanup_fd_ int top = open_forced(dir_fd, name);
	struct sweep sweep = { .top_fd = top };
	int fd, r;

	if (top < 0)
		return top;
	fd = fcntl(top, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	r = empty_folder(&sweep, fd, LEVELS_REMOVED);
	if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

/* ---- measuring --------------------------------------------------------------------------- */

static uint64_t measure(int take_fd, unsigned levels, unsigned *budget)
{
	DIR *dir = fdopendir(take_fd);
	struct dirent *entry;
	uint64_t size = 0;
	struct stat st;
	int fd;

	if (!dir) {
		fd_close(take_fd);
		return 0;
	}
	while (*budget > 0 && (entry = readdir(dir))) {
		if (is_dot(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*budget -= 1;
		size += (uint64_t)st.st_blocks * 512;
		fd = S_ISDIR(st.st_mode) && levels ? open_here(dirfd(dir), entry->d_name, O_RDONLY)
						   : -1;
		if (fd >= 0)
			size += measure(fd, levels - 1, budget);
	}
	closedir(dir);
	return size;
}

uint64_t tree_size(int dir_fd, const char *name)
{
	unsigned budget = ENTRIES_MEASURED;
	int fd = open_here(dir_fd, name, O_RDONLY);

	return fd < 0 ? 0 : measure(fd, LEVELS_MEASURED, &budget);
}
