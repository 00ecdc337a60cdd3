/*
 * Which files of a workspace a plan hides. Walks by getdents64 and openat with O_NOFOLLOW,
 * without a stat per file; an own stack instead of recursion. The tree may have been written
 * by untrusted code earlier: names are bytes, depth and count are bounded.
 */
#include "monitor/hide.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { READ_SIZE = 32 << 10 };

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

/* As the kernel writes it into a buffer: linux_dirent64 of getdents64(2). */
struct entry {
	uint64_t inode;
	int64_t offset;
	unsigned short size;
	unsigned char type;
	char name[];
};

/* An open folder, what was read of it, and how long its path is ("" or with a trailing '/'). */
struct level {
	int fd;
	size_t path_size;
	size_t at, end; /* of `bytes` */
	char *bytes;    /* owned, READ_SIZE, kept for the next folder of this depth */
};

/* A stack of open folders and the path of the topmost entry. */
struct stack {
	struct level levels[HIDE_DEPTH];
	size_t depth;
	char path[8192];
};

/* One entry. 1: it is a folder to enter. */
static int visit(struct walk *walk, int dir_fd, const struct entry *entry, const char *path)
{
	struct stat st;

	if (++walk->entries > HIDE_ENTRIES)
		return too_large(walk);
	if (is_hidden(walk->plan, path))
		return note(walk, path);
	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR;
	return fstatat(dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

static int cannot_look(struct walk *walk, int error)
{
	errno = error;
	return csn_fail(walk->err, -error, "workspace", "cannot look for files to hide in %s: %m",
			walk->plan->workspace.host);
}

/* A folder beneath the workspace that is not ours to enter, or is none any more, is not entered
 * inside either. Anything else (no descriptors, a bad disk) would leave one that nobody looked
 * into, and what it holds would be seen. */
static bool may_skip(const struct stack *stack, int error)
{
	return stack->depth > 0 &&
	       (error == EACCES || error == ENOENT || error == ENOTDIR || error == ELOOP);
}

static int push(struct walk *walk, struct stack *stack, int dir_fd, const char *name, size_t size)
{
	struct level *level = &stack->levels[stack->depth];

	if (stack->depth == HIDE_DEPTH)
		return too_large(walk);
	if (!level->bytes)
		level->bytes = malloc(READ_SIZE);
	if (!level->bytes)
		return -ENOMEM;
	level->fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (level->fd < 0)
		return may_skip(stack, errno) ? 0 : cannot_look(walk, errno);
	level->path_size = size;
	level->at = level->end = 0;
	stack->depth++;
	return 0;
}

static void pop(struct stack *stack)
{
	fd_cleanup(&stack->levels[--stack->depth].fd);
}

/* The next entry of the topmost folder. 1, 0 at its end, or a negative errno. */
static int next_entry(struct level *level, const struct entry **ret_entry)
{
	if (level->at == level->end) {
		long n = syscall(SYS_getdents64, level->fd, level->bytes, READ_SIZE);

		level->at = 0;
		level->end = n > 0 ? (size_t)n : 0;
		if (n <= 0)
			return n < 0 ? -errno : 0;
	}
	*ret_entry = (const struct entry *)(level->bytes + level->at);
	level->at += (*ret_entry)->size;
	return 1;
}

static int step(struct walk *walk, struct stack *stack)
{
	struct level *level = &stack->levels[stack->depth - 1];
	const struct entry *entry = NULL;
	size_t size = level->path_size, n;
	int r = next_entry(level, &entry);

	if (r < 0 && r != -ENOENT) /* ENOENT: removed while it was read */
		return cannot_look(walk, -r);
	if (r <= 0) {
		pop(stack);
		return 0;
	}
	if (is_dots(entry->name))
		return 0;
	n = strlen(entry->name);
	if (size + n + 2 > sizeof stack->path)
		return too_large(walk);
	memcpy(stack->path + size, entry->name, n + 1);
	r = visit(walk, level->fd, entry, stack->path);
	if (r <= 0)
		return r;
	memcpy(stack->path + size + n, "/", 2);
	return push(walk, stack, level->fd, entry->name, size + n + 1);
}

static void stack_done(struct stack *stack)
{
	while (stack->depth > 0)
		pop(stack);
	for (size_t i = 0; i < HIDE_DEPTH && stack->levels[i].bytes; i++)
		free(stack->levels[i].bytes);
	free(stack);
}

int hide_find(const struct plan *plan, struct arena *arena, const char *const **ret_paths,
	      struct csn_error *err)
{
	struct walk walk = { .plan = plan, .arena = arena, .err = err };
	struct stack *stack = calloc(1, sizeof *stack);
	int r = 0;

	walk.found = arena_array(arena, HIDE_MATCHES + 3, sizeof *walk.found);
	if (!walk.found || !stack) {
		free(stack);
		return -ENOMEM;
	}
	if (plan->workspace.host && plan->workspace.hide && plan->workspace.hide[0])
		r = push(&walk, stack, AT_FDCWD, plan->workspace.host, 0);
	while (r >= 0 && stack->depth > 0)
		r = step(&walk, stack);
	stack_done(stack);
	if (r < 0)
		return r;
	*ret_paths = walk.found;
	return 0;
}
