/*
 * See layer_copy.h. Depth first, nothing followed, everything beneath two descriptors a level;
 * folders get their mode last, since it may keep their owner out.
 */
#include "os/layer_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/clone.h"
#include "os/layer.h"

enum { ATTRIBUTES = 64 << 10 };

#define OPEN_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

struct copying {
	struct layer_copied done;
	char value[ATTRIBUTES]; /* of one attribute at a time */
	struct csn_error *err;
};

static int copy_folder(struct copying *copying, int from_fd, int to_fd, unsigned depth);

static int fail(struct copying *copying, int r, const char *what, const char *name)
{
	return csn_fail(copying->err, r, "layer", "cannot copy %s of the layer (%s): %s", name,
			what, strerror(-r));
}

/* Those of users, which the overlay's own are; others mean something to this host. */
static int copy_attributes(struct copying *copying, int from_fd, int to_fd)
{
	ssize_t size = flistxattr(from_fd, NULL, 0), length;
	char *names;
	int r = 0;

	if (size <= 0)
		return size < 0 && errno != ENOTSUP ? -errno : 0;
	names = malloc((size_t)size);
	if (!names)
		return -ENOMEM;
	size = flistxattr(from_fd, names, (size_t)size);
	for (char *name = names; r == 0 && size > 0 && name < names + size;
	     name += strlen(name) + 1) {
		if (!str_starts(name, "user."))
			continue;
		length = fgetxattr(from_fd, name, copying->value, sizeof copying->value);
		if (length >= 0 && fsetxattr(to_fd, name, copying->value, (size_t)length, 0) < 0)
			r = -errno;
	}
	free(names);
	return r;
}

/* Owner before mode: chown() drops set-id bits. */
static int finish(int to_fd, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (geteuid() == 0 && fchown(to_fd, st->st_uid, st->st_gid) < 0)
		return -errno;
	if (fchmod(to_fd, st->st_mode & 07777) < 0 || futimens(to_fd, times) < 0)
		return -errno;
	return 0;
}

static int finish_name(int dir_fd, const char *name, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (geteuid() == 0 &&
	    fchownat(dir_fd, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static void note_torn(struct copying *copying, const char *name)
{
	if (copying->done.torn++ == 0)
		snprintf(copying->done.first, sizeof copying->done.first, "%s", name);
}

static int copy_file(struct copying *copying, int from_dir, int to_dir, const char *name)
{
	_cleanup_fd_ int from = openat(from_dir, name, OPEN_FLAGS), to = -1;
	struct stat st;
	int r;

	if (from < 0)
		return -errno;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	r = clone_file(from, to, &st);
	if (r == -EAGAIN) {
		note_torn(copying, name);
		r = fstat(from, &st) < 0 ? -errno : 0;
	}
	if (r == 0)
		r = copy_attributes(copying, from, to);
	copying->done.bytes += r == 0 ? (uint64_t)st.st_size : 0;
	return r < 0 ? r : finish(to, &st);
}

static int copy_link(int from_dir, int to_dir, const char *name, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_dir, name, target, sizeof target - 1);

	if (n < 0)
		return -errno;
	target[n] = 0;
	if (symlinkat(target, to_dir, name) < 0)
		return -errno;
	return finish_name(to_dir, name, st);
}

static int copy_into(struct copying *copying, int from_dir, int to_dir, const char *name,
		     unsigned depth)
{
	_cleanup_fd_ int from = openat(from_dir, name, OPEN_FLAGS | O_DIRECTORY), to = -1;

	if (from < 0)
		return -errno;
	if (depth == LAYER_MAX_DEPTH)
		return -E2BIG;
	if (mkdirat(to_dir, name, 0700) < 0)
		return -errno;
	to = openat(to_dir, name, OPEN_FLAGS | O_DIRECTORY);
	if (to < 0)
		return -errno;
	return copy_folder(copying, from, to, depth + 1);
}

static int copy_name(struct copying *copying, int from_dir, int to_dir, const char *name,
		     unsigned depth)
{
	struct stat st;
	int r;

	if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (copying->done.entries++ == LAYER_MAX_ENTRIES)
		return -E2BIG;
	if (S_ISDIR(st.st_mode))
		return copy_into(copying, from_dir, to_dir, name, depth);
	if (S_ISREG(st.st_mode))
		return copy_file(copying, from_dir, to_dir, name);
	if (S_ISLNK(st.st_mode))
		return copy_link(from_dir, to_dir, name, &st);
	/* A whiteout needs no right (kernel 5.8); other devices no sandbox can make. */
	r = mknodat(to_dir, name, st.st_mode & (S_IFMT | 0777), st.st_rdev) < 0 ? -errno : 0;
	return r < 0 ? r : finish_name(to_dir, name, &st);
}

/* One that changed its kind while it was looked at is gone, too. */
static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -ENXIO;
}

static int copy_names(struct copying *copying, DIR *dir, int to_fd, unsigned depth)
{
	struct dirent *entry;
	int r = 0;

	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		if (str_is(entry->d_name, ".") || str_is(entry->d_name, ".."))
			continue;
		r = copy_name(copying, dirfd(dir), to_fd, entry->d_name, depth);
		if (r == -EEXIST || is_gone(r)) /* readdir may tell a name twice */
			r = 0;
		else if (r < 0 && !(copying->err && copying->err->code))
			fail(copying, r, "an entry", entry->d_name);
	}
	return r == 0 && errno ? -errno : r;
}

static int copy_folder(struct copying *copying, int from_fd, int to_fd, unsigned depth)
{
	_cleanup_fd_ int fd = openat(from_fd, ".", OPEN_FLAGS | O_DIRECTORY);
	struct stat st;
	DIR *dir;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !(dir = fdopendir(fd)))
		return -errno;
	fd_take(&fd); /* closedir() closes it */
	r = copy_names(copying, dir, to_fd, depth);
	if (r == 0)
		r = copy_attributes(copying, dirfd(dir), to_fd);
	closedir(dir);
	return r < 0 ? r : finish(to_fd, &st);
}

int layer_copy(int from_fd, int to_fd, struct layer_copied *ret_copied, struct csn_error *err)
{
	struct csn_error own = { 0 };
	struct copying *copying = calloc(1, sizeof *copying);
	int r;

	if (!copying)
		return csn_fail(err, -ENOMEM, "layer", "out of memory");
	copying->err = &own;
	r = copy_folder(copying, from_fd, to_fd, 0);
	*ret_copied = copying->done;
	free(copying);
	if (r < 0 && !own.code)
		csn_fail(&own, r, "layer", "cannot copy the layer: %s", strerror(-r));
	if (r < 0)
		*err = own;
	return r;
}
