/*
 * Which files of a workspace a plan hides. Walks by getdents64 and openat with O_NOFOLLOW,
 * without a stat per file; an own stack instead of recursion. The tree may have been written
 * by untrusted code earlier: names are bytes, depth and count are bounded.
 */
#include "monitor/hide.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

struct walk {
	const struct plan *plan;
	struct arena *arena;
	const char **found;
	size_t found_count;
	size_t entries;
	struct csn_error *err;
};

static bool is_hidden(const struct plan *plan, const char *path)
{
	for (const char **pattern = plan->workspace.hide; pattern && *pattern; pattern++)
		if (str_path_matches(*pattern, path))
			return true;
	return false;
}

static int note(struct walk *walk, const char *path)
{
	if (walk->found_count == HIDE_MATCHES)
		return csn_fail(walk->err, -E2BIG, "workspace",
				"more than %d files match workspace.hide: name their folders, or "
				"mount a smaller workspace with -w",
				HIDE_MATCHES);
	walk->found[walk->found_count] = arena_text(walk->arena, path);
	return walk->found[walk->found_count++] ? 0 : -ENOMEM;
}

static int too_large(struct walk *walk)
{
	return csn_fail(walk->err, -E2BIG, "workspace",
			"the workspace has more than %d entries or is nested deeper than %d, too "
			"many to look for files to hide: choose a smaller one with -w, or set "
			"workspace.hide to []",
			HIDE_ENTRIES, HIDE_DEPTH);
}

/* One entry of an open folder. 1: it is a folder to enter. */
static int visit(struct walk *walk, int dir_fd, const struct dirent *entry, const char *path)
{
	struct stat st;

	if (++walk->entries > HIDE_ENTRIES)
		return too_large(walk);
	if (is_hidden(walk->plan, path))
		return note(walk, path);
	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool is_dots(const char *name)
{
	return str_is(name, ".") || str_is(name, "..");
}

/* A stack of open folders; `path` is the current one with a trailing '/', or "". */
struct stack {
	DIR *dirs[HIDE_DEPTH];
	size_t lengths[HIDE_DEPTH];
	size_t depth;
	char path[8192];
};

static int push(struct stack *stack, int dir_fd, const char *name, size_t length)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		fd_close(fd);
		return 0; /* unreadable for us: unreadable inside */
	}
	stack->dirs[stack->depth] = dir;
	stack->lengths[stack->depth++] = length;
	return 0;
}

static int step(struct walk *walk, struct stack *stack)
{
	DIR *dir = stack->dirs[stack->depth - 1];
	size_t length = stack->lengths[stack->depth - 1];
	struct dirent *entry = readdir(dir);
	size_t n;
	int r;

	if (!entry) {
		closedir(dir);
		stack->depth--;
		return 0;
	}
	if (is_dots(entry->d_name))
		return 0;
	n = strlen(entry->d_name);
	if (length + n + 2 > sizeof stack->path)
		return too_large(walk);
	memcpy(stack->path + length, entry->d_name, n + 1);
	r = visit(walk, dirfd(dir), entry, stack->path);
	if (r <= 0)
		return r;
	if (stack->depth == HIDE_DEPTH)
		return too_large(walk);
	memcpy(stack->path + length + n, "/", 2);
	return push(stack, dirfd(dir), entry->d_name, length + n + 1);
}

int hide_find(const struct plan *plan, struct arena *arena, const char *const **ret_paths,
	      struct csn_error *err)
{
	struct walk walk = { .plan = plan, .arena = arena, .err = err };
	struct stack stack = { .depth = 0 };
	int r = 0;

	walk.found = arena_array(arena, HIDE_MATCHES + 1, sizeof *walk.found);
	if (!walk.found)
		return -ENOMEM;
	if (plan->workspace.host && plan->workspace.hide && plan->workspace.hide[0])
		r = push(&stack, AT_FDCWD, plan->workspace.host, 0);
	while (r >= 0 && stack.depth > 0)
		r = step(&walk, &stack);
	while (stack.depth > 0)
		closedir(stack.dirs[--stack.depth]);
	if (r < 0)
		return r;
	*ret_paths = walk.found;
	return 0;
}
