/*
 * See copy_bare.h
 *
 * The layer can change between two looks, and its file system may tell head from HEAD where the
 * workspace's does not. Neither helps: the two names guard each other. Whichever is written first,
 * in this commit or an earlier one, stands in the workspace when the other is judged. Nor does a
 * repository whose config is elsewhere: that takes a commondir beside its HEAD.
 */
#include "monitor/copy_bare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"

/* Of a path that has more folders named hooks than this, nobody needs to know more. */
enum { MAX_LOOKS = 4 };

static const char *const head[] = { "HEAD", NULL };
static const char *const running[] = { "hooks", "config", "config.worktree", "commondir", NULL };

static bool is_absent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/* May one of the names be in the folder that holds `path`? */
static bool has_beside(int root_fd, const char *path, const char *const *names)
{
	const char *own;
	_cleanup_fd_ int fd = layer_open_parent(root_fd, path, &own);
	struct stat st;

	if (fd < 0)
		return !is_absent(-fd);
	for (; *names; names++)
		if (fstatat(fd, *names, &st, AT_SYMLINK_NOFOLLOW) == 0 || !is_absent(errno))
			return true;
	return false;
}

static bool is_name(const char *part, size_t length, const char *name)
{
	return strlen(name) == length && strncasecmp(part, name, length) == 0;
}

/* What has to stand beside this part of a path for it to matter; NULL: it does not. */
static const char *const *partners(const char *part, size_t length)
{
	if (is_name(part, length, running[0]))
		return head;
	if (part[length])
		return NULL;
	for (const char *const *name = running; *name; name++)
		if (is_name(part, length, *name))
			return head;
	return is_name(part, length, head[0]) ? running : NULL;
}

bool copy_is_bare(const struct copy *copy, const char *path)
{
	char upto[PATH_MAX];
	size_t length;
	int looks = 0;

	for (const char *part = path; *part; part += length + (part[length] == '/')) {
		const char *const *names;

		length = strcspn(part, "/");
		names = partners(part, length);
		if (!names)
			continue;
		if (looks++ == MAX_LOOKS)
			return true;
		snprintf(upto, sizeof upto, "%.*s", (int)(part + length - path), path);
		if (has_beside(copy->upper_fd, upto, names) ||
		    has_beside(copy->lower_fd, upto, names))
			return true;
	}
	return false;
}
