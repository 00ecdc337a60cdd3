/*
 * The same as openat2() with RESOLVE_BENEATH or RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS, for
 * kernels that have no openat2: one component at a time, with O_NOFOLLOW, links read as text and
 * put in front of what is left. ".." goes back to a descriptor that we came by, never to the
 * kernel's "..": a folder that is moved away meanwhile would take us with it.
 */
#include "agent/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { DEPTH = 128, LINKS = 40, PROC_ROOT_INO = 1 };

struct steps {
	int root_fd; /* borrowed */
	int fds[DEPTH];
	unsigned depth;
	unsigned links;
	bool is_beneath;
	int flags; /* of the last component */
	char rest[2 * PATH_MAX];
};

static int here(const struct steps *steps)
{
	return steps->depth ? steps->fds[steps->depth - 1] : steps->root_fd;
}

static void go_up(struct steps *steps, unsigned depth)
{
	while (steps->depth > depth)
		fd_cleanup(&steps->fds[--steps->depth]);
}

/* /proc/self and the like are texts; /proc/1/exe and /proc/1/fd/3 only look like it. */
static bool is_magic(int dir_fd)
{
	struct statfs fs;
	struct stat st;

	return fstatfs(dir_fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC &&
	       fstat(dir_fd, &st) == 0 && st.st_ino != PROC_ROOT_INO;
}

/* Puts what a link says before what is left: 1. -EINVAL: it is no link. */
static int follow(struct steps *steps, const char *name, const char *rest)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(here(steps), name, text, sizeof text - 1);
	size_t left = strlen(rest);

	if (n < 0)
		return -errno;
	if (++steps->links > LINKS || is_magic(here(steps)))
		return -ELOOP;
	if (n == 0)
		return -ENOENT;
	if ((size_t)n + left + 1 > sizeof steps->rest || left >= PATH_MAX)
		return -ENAMETOOLONG;
	if (text[0] == '/' && steps->is_beneath)
		return -EXDEV;
	if (text[0] == '/')
		go_up(steps, 0);
	memmove(steps->rest + n, rest, left + 1);
	memcpy(steps->rest, text, (size_t)n);
	return 1;
}

/* What opening failed with, unless it was a link: then it is followed. Only a look tells. */
static int follow_or(struct steps *steps, const char *name, const char *rest, int error)
{
	int r;

	if (error != ELOOP && error != ENOTDIR)
		return -error;
	r = follow(steps, name, rest);
	return r == -EINVAL ? -error : r;
}

/* A component that others follow. 0: it is behind us; 1: `rest` was rewritten. */
static int enter(struct steps *steps, const char *name, const char *rest)
{
	int fd;

	if (str_is(name, "."))
		return 0;
	if (str_is(name, "..")) {
		if (steps->depth == 0)
			return steps->is_beneath ? -EXDEV : 0;
		go_up(steps, steps->depth - 1);
		return 0;
	}
	if (steps->depth == DEPTH)
		return -ENAMETOOLONG;
	fd = openat(here(steps), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return follow_or(steps, name, rest, errno);
	steps->fds[steps->depth++] = fd;
	return 0;
}

/* The last one; `rest` is "" or slashes. 0 with the descriptor; 1: `rest` was rewritten. */
static int finish(struct steps *steps, const char *name, const char *rest, int *ret_fd)
{
	bool is_folder = *rest, stays = (steps->flags & O_NOFOLLOW) && !is_folder;
	int flags = steps->flags | O_NOFOLLOW | O_CLOEXEC | (is_folder ? O_DIRECTORY : 0);
	_cleanup_fd_ int fd = openat(here(steps), name, flags);
	struct stat st;

	if (fd < 0)
		return stays ? -errno : follow_or(steps, name, rest, errno);
	if (!stays && (flags & O_PATH) && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))
		return follow(steps, name, rest);
	*ret_fd = fd_take(&fd);
	return 0;
}

static int step(struct steps *steps, int *ret_fd)
{
	char name[NAME_MAX + 1];
	const char *at = steps->rest + strspn(steps->rest, "/"), *rest;
	size_t size = strcspn(at, "/");
	bool is_last, is_dots;
	int r;

	if (size > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, at, size);
	name[size] = 0;
	if (size == 0) {
		*ret_fd = openat(here(steps), ".", steps->flags | O_CLOEXEC);
		return *ret_fd < 0 ? -errno : 0;
	}
	rest = at + size;
	is_last = !rest[strspn(rest, "/")];
	is_dots = str_is(name, ".") || str_is(name, "..");
	r = is_last && !is_dots ? finish(steps, name, rest, ret_fd) : enter(steps, name, rest);
	if (r == 0)
		memmove(steps->rest, rest, strlen(rest) + 1);
	return r < 0 ? r : 0;
}

int resolve_steps(int root_fd, bool is_beneath, const char *path, int flags)
{
	struct steps steps = { .root_fd = root_fd, .is_beneath = is_beneath, .flags = flags };
	int fd = -1, r = 0;

	if (!path[0])
		return -ENOENT;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(steps.rest, path, strlen(path) + 1);
	while (r == 0 && fd < 0)
		r = step(&steps, &fd);
	go_up(&steps, 0);
	return r < 0 ? r : fd;
}
