/*
 * Into a sandbox; see cp.h. Contents go by `write`; folders and links, which have no verb, by a
 * command inside, so what they become is as trustworthy as the sandbox. Names are read before
 * anything is made: a copy into a workspace that is seen here does not find itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cp.h"

enum { NAMES_MAX = 256 << 20 };

static void put(struct cp *cp, int folder, const char *name, const struct stat *st);

/* ---- what has no verb ----------------------------------------------------------------------- */

static void run_inside(struct cp *cp, const char *const *argv)
{
	csn_exec_request request = { .argv = argv };
	csn_exec_result *result = NULL;
	csn_error err = { 0 };

	if (csn_exec(cp->sandbox, &request, &result, &err) < 0)
		cp_say_error(cp, &err);
	else if (result->reason == CSN_REASON_START_FAILED)
		cp_say_inside(cp, "there is no sh inside, which makes folders and links");
	else if (result->reason != CSN_REASON_EXITED || result->exit_code != 0)
		cp_say_inside(cp, "%.*s", (int)strcspn(result->errors.data, "\n"),
			      result->errors.size ? result->errors.data : "cannot be made");
	csn_free(result);
}

/* Also where it is there by now: only its mode is missing then. */
static void make_folder(struct cp *cp, mode_t mode)
{
	char octal[8];
	const char *const argv[] = {
		"sh",  "-c", "mkdir -p -- \"$1\" && chmod -- \"$2\" \"$1\"", "sh", cp->inside,
		octal, NULL
	};

	snprintf(octal, sizeof octal, "%o", mode & 0777);
	run_inside(cp, argv);
}

static void make_link(struct cp *cp, const char *target)
{
	char parent[CP_PATH];
	const char *slash = strrchr(cp->inside, '/');
	const char *const argv[] = {
		"sh",   "-c",   "mkdir -p -- \"$3\" && ln -sfn -- \"$1\" \"$2\"",
		"sh",   target, cp->inside,
		parent, NULL
	};

	snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - cp->inside) : 1,
		 slash ? cp->inside : ".");
	run_inside(cp, argv);
}

/* "directory" for a link to one, too. */
static bool is_folder_inside(struct cp *cp, bool *ret_is_there)
{
	csn_path_request request = { .path = cp->inside };
	csn_error err = { 0 };
	csn_stat_result *what = cp_stat(cp, &err);
	csn_list_result *list = NULL;
	bool is_folder = what && what->type && str_is(what->type, "directory");

	*ret_is_there = what;
	if (what && what->type && str_is(what->type, "symlink"))
		is_folder = csn_list(cp->sandbox, &request, &list, &err) == 0;
	csn_free(list);
	csn_free(what);
	return is_folder;
}

/* ---- a file, a link ------------------------------------------------------------------------- */

struct source {
	int fd;
	int error;
};

static ptrdiff_t give(void *data, void *ret_bytes, size_t size)
{
	struct source *source = data;
	ssize_t n;

	do
		n = read(source->fd, ret_bytes, size);
	while (n < 0 && errno == EINTR);
	source->error = n < 0 ? errno : 0;
	return n < 0 ? -1 : n;
}

static void file_in(struct cp *cp, int folder, const char *name)
{
	_cleanup_fd_ int fd =
		openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct source source = { .fd = fd };
	csn_write_request request = { .path = cp->inside, .on_input = give, .data = &source };
	csn_error err = { 0 };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		cp_say_host(cp, "%s", strerror(errno));
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		cp_say_host(cp, "is something else by now");
		return;
	}
	request.mode = st.st_mode & 0777;
	if (csn_write(cp->sandbox, &request, &err) == 0)
		return;
	if (source.error)
		cp_say_host(cp, "%s", strerror(source.error));
	else
		cp_say_error(cp, &err);
}

static void link_in(struct cp *cp, int folder, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(folder, name, target, sizeof target - 1);
	bool is_there;

	if (n < 0) {
		cp_say_host(cp, "%s", strerror(errno));
		return;
	}
	target[n] = 0;
	if (is_folder_inside(cp, &is_there)) {
		csn_error err = { 0 };
		csn_stat_result *what = cp_stat(cp, &err);
		bool is_link = what && what->type && str_is(what->type, "symlink");

		csn_free(what);
		if (!is_link) {
			cp_say_inside(cp, "is a folder, which no link replaces");
			return;
		}
	}
	make_link(cp, target);
}

/* ---- a folder ------------------------------------------------------------------------------- */

/* Names with their NULs; "." and ".." are not among them. */
static int read_names(int fd, struct buf *ret_names)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = -errno;
		fd_close(copy);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir)))
		if (!str_is(entry->d_name, ".") && !str_is(entry->d_name, ".."))
			r = buf_add(ret_names, entry->d_name, strlen(entry->d_name) + 1);
	if (r == 0)
		r = -errno;
	closedir(dir);
	return r;
}

static void entries_in(struct cp *cp, int folder, const struct buf *names)
{
	const char *name = (const char *)buf_at(names), *end = name + buf_size(names);

	for (; name < end && !cp->is_lost; name += strlen(name) + 1) {
		struct cp_level level;
		struct stat st;

		if (!cp_enter(cp, name, &level))
			return;
		if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			put(cp, folder, name, &st);
		else
			cp_say_host(cp, "%s", strerror(errno));
		cp_leave(cp, &level);
	}
}

/* Into a folder that is there, or is made: by the first file in it, with the usual mode. */
static void content_in(struct cp *cp, int folder, mode_t mode)
{
	_cleanup_buf_ struct buf names;
	bool is_there, is_folder = is_folder_inside(cp, &is_there), is_made;
	int r;

	buf_init(&names, NAMES_MAX);
	if (cp->is_lost || (is_there && !is_folder)) {
		cp_say_inside(cp, cp->is_lost ? "the sandbox is gone"
					      : "is no folder, and not replaced");
		return;
	}
	r = read_names(folder, &names);
	if (r < 0)
		cp_say_host(cp, "%s", strerror(-r));
	entries_in(cp, folder, &names);
	if (is_there || cp->is_lost)
		return;
	is_made = is_folder_inside(cp, &is_there);
	if (!is_made || (mode & 0777) != 0755)
		make_folder(cp, mode);
}

static void folder_in(struct cp *cp, int parent, const char *name, mode_t mode)
{
	_cleanup_fd_ int folder =
		openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder < 0)
		cp_say_host(cp, "%s", strerror(errno));
	else
		content_in(cp, folder, mode);
}

static void put(struct cp *cp, int folder, const char *name, const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		file_in(cp, folder, name);
	else if (S_ISDIR(st->st_mode))
		folder_in(cp, folder, name, st->st_mode);
	else if (S_ISLNK(st->st_mode))
		link_in(cp, folder, name);
	else
		cp_say_host(cp, "is a %s, and skipped",
			    S_ISFIFO(st->st_mode)   ? "fifo"
			    : S_ISSOCK(st->st_mode) ? "socket"
						    : "device");
}

/* ---- the first one -------------------------------------------------------------------------- */

/* Beneath a folder inside it keeps its name; one without a name is what it holds. */
static bool choose_path(struct cp *cp, const char *name, const struct stat *st)
{
	size_t length = strlen(cp->inside);
	bool is_there, is_folder = is_folder_inside(cp, &is_there);

	if (!is_folder && cp->inside[length - 1] == '/' && !S_ISDIR(st->st_mode)) {
		cp_say_inside(cp, "is no folder");
		return false;
	}
	if (!is_folder || str_is(name, "."))
		return true;
	if (length + 1 + strlen(name) >= sizeof cp->inside) {
		cp_say_inside(cp, "the path gets too long");
		return false;
	}
	snprintf(cp->inside + length, sizeof cp->inside - length, "%s%s",
		 cp->inside[length - 1] == '/' ? "" : "/", name);
	return true;
}

void cp_in(struct cp *cp, const char *host)
{
	char name[CP_PATH];
	_cleanup_fd_ int parent = cp_host_folder(cp, host, name, sizeof name);
	struct stat st;

	if (parent < 0)
		return;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		cp_say_host(cp, "%s", strerror(errno));
	else if (host[strlen(host) - 1] == '/' && S_ISLNK(st.st_mode))
		cp_say_host(cp, "is a symbolic link, which is not followed");
	else if (choose_path(cp, name, &st))
		put(cp, parent, name, &st);
}
