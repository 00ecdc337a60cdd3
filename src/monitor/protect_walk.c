/*
 * Where a protected name leads; see protect_walk.h. A walk has what it went through without links
 * (`done`, a path of the host's) and what is left (`rest`). A link puts its target in front of the
 * rest, and so does a `gitdir:` file, with an empty component behind it: the sign that a
 * repository's own folder was entered, which may name another one in `commondir`. Other empty ones
 * are dropped.
 *
 * Attacks in mind: hooks that are a link into the workspace, whose target is written; one that
 * leads out and back in by another link; a `.git` file that is replaced by one that names another
 * repository; a link that is swapped while the wall is made (what was frozen is identified again at
 * the end, see protect_recheck()); a folder that is moved while the walk is in it, whose `..` is
 * then another one than the path says: inside, the way back is the descriptors that led there.
 * tests/unit/test_protect.c, tests/cli/test_run_view.py
 */
#include "monitor/protect_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/placeholder.h"

/* Of links and files together; what is longer is open, and told as such. */
enum { HOPS_MAX = 16 };

/* Folders beneath the workspace, one descriptor each; what is deeper is open, too. */
enum { DEPTH_MAX = 64 };

struct at {
	const struct protect_walk *walk;
	char done[PATH_MAX], rest[PATH_MAX], text[PATH_MAX]; /* text: of a link or a file */
	int dir_fd;
	int above[DEPTH_MAX]; /* the way from the workspace's own folder to dir_fd */
	size_t depth;
	bool is_inside; /* dir_fd was reached from workspace_fd, downwards alone */
	unsigned hops;
};

/* What a step comes to: the walk is over with one of the first two. */
enum step { STEP_OPEN, STEP_CLOSED, STEP_ON };

static bool is_frozen(const struct at *at, const char *path)
{
	for (const char *const *frozen = at->walk->frozen; *frozen; frozen++)
		if (str_is(*frozen, path))
			return true;
	return false;
}

/* False: it does not fit. */
static bool join(const struct at *at, const char *name, char ret_path[PATH_MAX])
{
	int n = snprintf(ret_path, PATH_MAX, "%s/%s", at->done[1] ? at->done : "", name);

	return n > 0 && n < PATH_MAX;
}

static int look(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? PROTECT_ABSENT : -errno;
	if (S_ISLNK(st.st_mode))
		return PROTECT_LINK;
	if (placeholder_is_marked(&st))
		return PROTECT_ABSENT;
	return S_ISDIR(st.st_mode) ? PROTECT_FOLDER : PROTECT_FILE;
}

static bool is_lent_writable(const struct plan *plan, const char *host)
{
	for (size_t i = 0; i < plan->mount_count; i++)
		if (plan->mounts[i].access == ACCESS_RW &&
		    path_is_beneath(host, plan->mounts[i].host))
			return true;
	return false;
}

/* 1: it is frozen now, or out of the program's reach; 0: it is not; or -errno. */
static int close_point(struct at *at, const char *name, enum protect_kind kind)
{
	const struct protect_walk *walk = at->walk;
	struct protect_point point = { .name = name, .parent_fd = at->dir_fd, .kind = kind };
	char path[PATH_MAX];
	int r;

	if (!join(at, name, path))
		return 0;
	if (!at->is_inside)
		return !is_lent_writable(walk->plan, path) &&
		       !path_is_beneath(walk->plan->workspace.host, path);
	point.path = path_tail(path, walk->plan->workspace.host);
	if (kind == PROTECT_LINK && !walk->may_freeze_links)
		return 0;
	if (is_frozen(at, point.path))
		return 1;
	if (!walk->freeze)
		return 0;
	r = walk->freeze(walk->context, &point);
	return r < 0 ? r : 1;
}

/* ---- folders ------------------------------------------------------------------------------ */

static void forget_way(struct at *at)
{
	while (at->depth > 0)
		fd_close(at->above[--at->depth]);
	at->dir_fd = fd_close(at->dir_fd);
}

/* The workspace's own folder, by the descriptor that the wall is made from. */
static int start(struct at *at)
{
	int n = snprintf(at->done, sizeof at->done, "%s", at->walk->plan->workspace.host);

	forget_way(at);
	at->is_inside = true;
	at->dir_fd = fcntl(at->walk->workspace_fd, F_DUPFD_CLOEXEC, 3);
	return at->dir_fd < 0 || n >= (int)sizeof at->done ? STEP_OPEN : STEP_ON;
}

/* Outside, only the path is sure; where it is the workspace's, its own descriptor goes on. */
static int go_on(struct at *at)
{
	if (!at->is_inside && str_is(at->done, at->walk->plan->workspace.host))
		return start(at);
	/* /proc/self is another one for whoever reads the name later. */
	return path_is_beneath(at->done, "/proc") ? STEP_OPEN : STEP_ON;
}

static int enter(struct at *at, const char *name)
{
	char path[PATH_MAX];
	_cleanup_fd_ int fd =
		openat(at->dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || !join(at, name, path) || at->depth == DEPTH_MAX)
		return STEP_OPEN;
	if (at->is_inside)
		at->above[at->depth++] = at->dir_fd;
	else
		fd_close(at->dir_fd);
	at->dir_fd = fd_take(&fd);
	memcpy(at->done, path, sizeof at->done);
	return go_on(at);
}

static int start_at_root(struct at *at)
{
	forget_way(at);
	at->is_inside = false;
	memcpy(at->done, "/", 2);
	at->dir_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return at->dir_fd < 0 ? STEP_OPEN : go_on(at);
}

/* The folder above; inside, the one that this one was entered from, wherever it is by now. Outside
 * is only looked at. */
static int leave(struct at *at)
{
	char *slash = strrchr(at->done, '/');
	int fd = at->depth > 0 ? at->above[--at->depth]
			       : openat(at->dir_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

	at->is_inside = at->is_inside && !str_is(at->done, at->walk->plan->workspace.host);
	slash[slash == at->done] = 0;
	fd_close(at->dir_fd);
	at->dir_fd = fd;
	return fd < 0 ? STEP_OPEN : go_on(at);
}

/* ---- links and files ---------------------------------------------------------------------- */

/* The components of `text` that name something, to `ret_path`. False: it does not fit. */
static bool tidy(char *text, char ret_path[PATH_MAX])
{
	size_t size = 0;
	char *part;

	ret_path[0] = 0;
	while ((part = strsep(&text, "/"))) {
		int n;

		if (!*part || str_is(part, "."))
			continue;
		n = snprintf(ret_path + size, PATH_MAX - size, "%s%s", size ? "/" : "", part);
		if (n < 0 || (size_t)n >= PATH_MAX - size)
			return false;
		size += (size_t)n;
	}
	return true;
}

/* On at `at->text`, from the folder that holds it. `is_git`: it names a repository's folder. */
static int follow(struct at *at, bool is_git)
{
	bool is_absolute = at->text[0] == '/';
	char rest[PATH_MAX], path[PATH_MAX];
	int n;

	if (++at->hops > HOPS_MAX || !at->text[0] || !tidy(at->text, path))
		return STEP_OPEN;
	n = snprintf(rest, sizeof rest, "%s%s%s%s", path, path[0] && at->rest[0] ? "/" : "",
		     is_git ? "/" : "", at->rest);
	if (n < 0 || n >= (int)sizeof rest)
		return STEP_OPEN;
	memcpy(at->rest, rest, (size_t)n + 1);
	return is_absolute ? start_at_root(at) : STEP_ON;
}

/* A file of one line, without the prefix, to `at->text`. False: it is no such file. */
static bool read_line(struct at *at, const char *name, const char *prefix)
{
	_cleanup_fd_ int fd =
		openat(at->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	size_t skip = strlen(prefix);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = read(fd, at->text, sizeof at->text - 1);
	if (n < (ssize_t)skip || memcmp(at->text, prefix, skip) != 0)
		return false;
	while (n > 0 && (at->text[n - 1] == '\n' || at->text[n - 1] == '\r'))
		n--;
	at->text[n] = 0;
	memmove(at->text, at->text + skip, strlen(at->text + skip) + 1);
	return true;
}

/* In a repository's folder: git takes hooks and configuration from what `commondir` names. */
static int enter_common(struct at *at)
{
	int kind = look(at->dir_fd, "commondir"), r;

	if (kind != PROTECT_FILE) /* a folder or a link: git stops there, or it is an odd one */
		return kind == PROTECT_ABSENT || kind == PROTECT_FOLDER ? STEP_ON : STEP_OPEN;
	r = close_point(at, "commondir", PROTECT_FILE);
	if (r <= 0 || !read_line(at, "commondir", ""))
		return r < 0 ? r : STEP_OPEN;
	return follow(at, false);
}

static int pass_link(struct at *at, const char *name)
{
	ssize_t n;
	int r = close_point(at, name, PROTECT_LINK);

	if (r <= 0)
		return r < 0 ? r : STEP_OPEN;
	n = readlinkat(at->dir_fd, name, at->text, sizeof at->text - 1);
	if (n <= 0)
		return STEP_OPEN;
	at->text[n] = 0;
	return follow(at, false);
}

/* While the file is frozen, no folder takes its place. */
static int pass_file(struct at *at, const char *name)
{
	int r = close_point(at, name, PROTECT_FILE);

	if (r <= 0)
		return r < 0 ? r : STEP_OPEN;
	if (!at->rest[0] || !str_is(name, ".git") || !read_line(at, name, "gitdir: "))
		return STEP_CLOSED;
	return follow(at, true);
}

static int pass_folder(struct at *at, const char *name)
{
	char path[PATH_MAX];
	int r;

	if (!at->rest[0]) {
		r = close_point(at, name, PROTECT_FOLDER);
		return r < 0 ? r : r > 0 ? STEP_CLOSED : STEP_OPEN;
	}
	if (at->is_inside && join(at, name, path) &&
	    is_frozen(at, path_tail(path, at->walk->plan->workspace.host)))
		return STEP_CLOSED;
	r = enter(at, name);
	return r == STEP_ON && str_is(name, ".git") ? enter_common(at) : r;
}

/* The next component, out of `at->rest`. False: it is no name. */
static bool take(struct at *at, char *ret_name)
{
	size_t n = strcspn(at->rest, "/"), skip = n + (at->rest[n] == '/');

	if (n >= PLACEHOLDER_NAME)
		return false;
	memcpy(ret_name, at->rest, n);
	ret_name[n] = 0;
	memmove(at->rest, at->rest + skip, strlen(at->rest + skip) + 1);
	return true;
}

static int step(struct at *at)
{
	char name[PLACEHOLDER_NAME];
	int kind, r;

	if (!at->rest[0] || !take(at, name))
		return STEP_OPEN;
	if (!name[0]) /* of a path that was given, or the sign */
		return at->hops > 0 ? enter_common(at) : STEP_OPEN;
	if (str_is(name, "."))
		return STEP_ON;
	if (str_is(name, ".."))
		return leave(at);
	kind = look(at->dir_fd, name);
	switch (kind) {
	case PROTECT_ABSENT:
		r = close_point(at, name, PROTECT_ABSENT);
		return r < 0 ? r : r > 0 ? STEP_CLOSED : STEP_OPEN;
	case PROTECT_LINK:
		return pass_link(at, name);
	case PROTECT_FILE:
		return pass_file(at, name);
	case PROTECT_FOLDER:
		return pass_folder(at, name);
	default:
		return STEP_OPEN;
	}
}

int protect_walk(const struct protect_walk *walk, const char *path)
{
	struct at *at = calloc(1, sizeof *at);
	int r = STEP_OPEN;

	if (!at)
		return -ENOMEM;
	at->walk = walk;
	at->dir_fd = -1;
	if (strlen(path) < sizeof at->rest) {
		memcpy(at->rest, path, strlen(path) + 1);
		r = start(at);
	}
	while (r == STEP_ON)
		r = step(at);
	forget_way(at);
	free(at);
	return r;
}
