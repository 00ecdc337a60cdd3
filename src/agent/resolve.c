/* Paths beneath a descriptor; see resolve.h. */
#include "agent/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/sys.h"

enum {
	TRIES = 32, /* EAGAIN: something on the way was renamed while ".." was looked up */
	LINKS = 40, /* as the kernel follows */
};

int resolve_fail(struct csn_error *err, int code, const char *verb, const char *path)
{
	errno = -code;
	return csn_fail(err, code, "files", "cannot %s %.300s: %m", verb, path);
}

void roots_open(struct roots *roots, const char *workspace)
{
	int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

	roots->top_fd = sys_openat2(AT_FDCWD, "/", O_PATH | O_DIRECTORY, RESOLVE_NO_MAGICLINKS);
	roots->has_openat2 = roots->top_fd >= 0;
	if (!roots->has_openat2)
		roots->top_fd = open("/", flags);
	roots->workspace_fd = open(workspace, flags);
	if (roots->workspace_fd < 0)
		roots->workspace_fd = -errno;
}

static bool is_same(int fd, const struct stat *st)
{
	struct stat other;

	return fd >= 0 && fstat(fd, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

bool roots_has(const struct roots *roots, const struct stat *st)
{
	return is_same(roots->workspace_fd, st) || is_same(roots->top_fd, st);
}

/* RESOLVE_IN_ROOT for absolute paths: they begin at our descriptor of "/", and so do their links.
 */
static int open_beneath(const struct roots *roots, const char *path, int flags)
{
	bool is_beneath = path[0] != '/';
	int root_fd = is_beneath ? roots->workspace_fd : roots->top_fd, fd = -EAGAIN;
	uint64_t how = RESOLVE_NO_MAGICLINKS | (is_beneath ? RESOLVE_BENEATH : RESOLVE_IN_ROOT);

	if (root_fd < 0)
		return root_fd;
	for (int i = 0; i < TRIES && fd == -EAGAIN; i++)
		fd = roots->has_openat2 ? sys_openat2(root_fd, path, (uint64_t)flags, how)
					: resolve_steps(root_fd, is_beneath, path, flags);
	return fd;
}

static int explain(struct csn_error *err, int code, const char *path)
{
	if (code == -EXDEV)
		return csn_fail(err, -EINVAL, "files",
				"%.300s leads out of the workspace: use the absolute path", path);
	return resolve_fail(err, code, "open", path);
}

int resolve_open(const struct roots *roots, const char *path, int flags, int *ret_fd,
		 struct csn_error *err)
{
	int fd = open_beneath(roots, path, flags);

	if (fd < 0)
		return explain(err, fd, path);
	*ret_fd = fd;
	return 0;
}

/* ---- entries -------------------------------------------------------------------------------- */

static int open_folder(const struct roots *roots, const char *path)
{
	return open_beneath(roots, path, O_PATH | O_DIRECTORY);
}

/* Cuts "a/b//" into the folder "a" (or "." or "/") and the name "b/". */
static int split(char *path, const char **ret_folder, char *ret_name)
{
	size_t size = strlen(path), end = size, start;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/';)
		start--;
	if (end - start > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_name, path + start, end - start);
	ret_name[end - start] = 0;
	if (!ret_name[0] || str_is(ret_name, ".") || str_is(ret_name, ".."))
		return -EISDIR;
	if (end < size)
		memcpy(ret_name + (end - start), "/", 2);
	*ret_folder = start == 0 ? "." : path;
	path[start > 1 ? start - 1 : start] = 0;
	return 0;
}

static int copy_path(const char *path, char *ret_path, size_t size)
{
	size_t length = strlen(path);

	if (length >= size)
		return -ENAMETOOLONG;
	memcpy(ret_path, path, length + 1);
	return 0;
}

int resolve_entry(const struct roots *roots, const char *path, struct entry *ret_entry,
		  struct csn_error *err)
{
	char text[PATH_MAX];
	const char *folder;
	int fd, r = copy_path(path, text, sizeof text);

	if (r >= 0)
		r = split(text, &folder, ret_entry->name);
	if (r == -EISDIR)
		return csn_fail(err, -EBUSY, "files",
				"%.300s is a folder's own name, not that of something in a folder",
				path);
	if (r < 0)
		return resolve_fail(err, r, "name", path);
	fd = open_folder(roots, folder);
	if (fd < 0)
		return explain(err, fd, path);
	ret_entry->dir_fd = fd;
	return 0;
}

/* ---- making folders ------------------------------------------------------------------------- */

/* One component at the front of *path, which moves on. Components of ".." are not made: beneath a
 * folder that is not there, there is nothing above it either. */
static int make_one(int *fd, char **path)
{
	char *name = *path, *end = name + strcspn(name, "/");
	bool is_last = !*end;
	int next;

	*end = 0;
	*path = is_last ? end : end + 1;
	if (!name[0] || str_is(name, "."))
		return 0;
	if (str_is(name, ".."))
		return -ENOENT;
	if (mkdirat(*fd, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	next = openat(*fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return -errno;
	fd_cleanup(fd);
	*fd = next;
	return 0;
}

static bool has_dots(const char *path)
{
	while (*path) {
		size_t size = strcspn(path, "/");

		if (size == 2 && memcmp(path, "..", 2) == 0)
			return true;
		path += size + (path[size] == '/');
	}
	return false;
}

/* The folder of a file to come: the longest part that is there, and below it new ones. */
static int make_folders(const struct roots *roots, const char *folder)
{
	char text[PATH_MAX], *rest;
	_cleanup_fd_ int fd = open_folder(roots, folder);
	size_t cut;
	int r = copy_path(folder, text, sizeof text);

	if (r < 0)
		return r;
	for (cut = strlen(text); fd == -ENOENT && cut > 0;) {
		while (cut > 0 && text[cut - 1] == '/')
			text[--cut] = 0;
		while (cut > 0 && text[cut - 1] != '/')
			cut--;
		text[cut] = 0;
		fd = open_folder(roots, cut > 0 ? text : ".");
	}
	rest = text + cut;
	if (fd < 0)
		return fd;
	copy_path(folder + cut, rest, sizeof text - cut);
	if (has_dots(rest))
		return -ENOENT;
	while (*rest) {
		r = make_one(&fd, &rest);
		if (r < 0)
			return r;
	}
	return fd_take(&fd);
}

/* "a/link" that says "b/c" -> "a/b/c", which is resolved from the root again. */
static int follow(const char *folder, const char *target, char *ret_path)
{
	bool is_absolute = target[0] == '/';
	int n = snprintf(ret_path, PATH_MAX, "%s%s%s", is_absolute ? "" : folder,
			 is_absolute ? "" : "/", target);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* One round: the entry of `path`, and 1 with the new path if it is a link. */
static int resolve_once(const struct roots *roots, char *path, struct entry *ret_entry)
{
	char target[PATH_MAX], text[PATH_MAX];
	_cleanup_fd_ int fd = -1;
	bool is_relative = path[0] != '/';
	const char *folder;
	ssize_t n;
	int r;

	memcpy(text, path, PATH_MAX);
	r = split(text, &folder, ret_entry->name);
	if (r >= 0 && ret_entry->name[strlen(ret_entry->name) - 1] == '/')
		r = -EISDIR;
	if (r < 0)
		return r;
	fd = make_folders(roots, folder);
	if (fd < 0)
		return fd;
	n = readlinkat(fd, ret_entry->name, target, sizeof target - 1);
	if (n < 0) { /* no link; what else is wrong shows soon */
		ret_entry->dir_fd = fd_take(&fd);
		return 0;
	}
	target[n] = 0;
	if (is_relative && target[0] == '/')
		return -EXDEV;
	r = follow(folder, target, path);
	return r < 0 ? r : 1;
}

int resolve_target(const struct roots *roots, const char *path, struct entry *ret_entry,
		   struct csn_error *err)
{
	char text[PATH_MAX] = { 0 };
	int r = copy_path(path, text, sizeof text);

	if (r >= 0)
		r = 1;
	for (int i = 0; i < LINKS && r == 1; i++)
		r = resolve_once(roots, text, ret_entry);
	if (r == 1)
		r = -ELOOP;
	return r < 0 ? explain(err, r, path) : 0;
}
