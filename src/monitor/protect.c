/*
 * Names in a writable workspace that a program may not write; see protect.h. The workspace may
 * have been written by untrusted code before: every step is one component, by descriptor,
 * without following links. A protected name that is a symlink cannot be frozen by a mount, and
 * is listed as not enforced.
 */
#include "monitor/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

struct list {
	const char **items;
	size_t count;
};

struct work {
	struct arena *arena;
	struct protect *protect;
	struct list frozen, not_enforced;
};

/* Takes the parent's descriptor. */
static int add_placeholder(struct protect *protect, int *parent_fd, const char *name)
{
	struct placeholder *made;

	if (protect->placeholder_count == PROTECT_MAX)
		return -E2BIG;
	made = &protect->placeholders[protect->placeholder_count++];
	made->parent_fd = fd_take(parent_fd);
	snprintf(made->name, sizeof made->name, "%s", name);
	return 0;
}

static int add(struct work *work, struct list *list, const char *path, size_t size)
{
	if (list->count == PROTECT_MAX)
		return -E2BIG;
	list->items[list->count] = arena_copy(work->arena, path, size);
	return list->items[list->count++] ? 0 : -ENOMEM;
}

/* One component: 1 exists as a folder, 0 exists as something else, negative errno otherwise. */
static int look(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	return S_ISDIR(st.st_mode);
}

/* Is it a name that is frozen already, or beneath one? Our own placeholder is closed to us too. */
static bool is_frozen(const struct work *work, const char *path)
{
	for (size_t i = 0; i < work->frozen.count; i++) {
		size_t n = strlen(work->frozen.items[i]);

		if (strncmp(path, work->frozen.items[i], n) == 0 &&
		    (path[n] == 0 || path[n] == '/'))
			return true;
	}
	return false;
}

/* Only if there is room to remember it: 0, -E2BIG, or the errno of mkdir. */
static int make_placeholder(struct work *work, int *parent_fd, const char *name)
{
	if (work->protect->placeholder_count == PROTECT_MAX)
		return -E2BIG;
	if (mkdirat(*parent_fd, name, 0555) < 0)
		return -errno;
	return add_placeholder(work->protect, parent_fd, name);
}

/* Walks `path`; what is missing becomes a placeholder. The frozen point is the first of those,
 * or the whole path when all of it exists. */
static int protect_one(struct work *work, const char *path)
{
	_cleanup_fd_ int dir_fd = fcntl(work->protect->workspace_fd, F_DUPFD_CLOEXEC, 3);
	const char *at = path;
	char name[256];

	if (is_frozen(work, path))
		return 0;
	for (;;) {
		size_t n = strcspn(at, "/"), upto = (size_t)(at - path) + n;
		int state, next_fd;

		if (n == 0 || n >= sizeof name || dir_fd < 0)
			return add(work, &work->not_enforced, path, strlen(path));
		memcpy(name, at, n);
		name[n] = 0;
		state = look(dir_fd, name);
		if (state == -ENOENT)
			state = make_placeholder(work, &dir_fd, name);
		if (state == -E2BIG)
			return state;
		if (dir_fd < 0) /* the placeholder has it now */
			return add(work, &work->frozen, path, upto);
		if (state < 0)
			return add(work, &work->not_enforced, path, strlen(path));
		if (at[n] == 0)
			return add(work, &work->frozen, path, upto);
		next_fd = state == 1 ? openat(dir_fd, name,
					      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				     : -1;
		fd_close(dir_fd);
		dir_fd = next_fd;
		at += n + 1;
	}
}

static bool make_list(struct work *work, struct list *list)
{
	list->items = arena_array(work->arena, PROTECT_MAX + 1, sizeof *list->items);
	return list->items;
}

/* The policy file in force, where it lies in the workspace, and any that could come into force. */
static int protect_policy(struct work *work, const struct plan *plan)
{
	const char *path = plan->policy_path;

	if (path && path_is_beneath(path, plan->workspace.host))
		return protect_one(work, path_tail(path, plan->workspace.host));
	return 0;
}

int protect_open(const struct plan *plan, struct arena *arena, struct protect *ret_protect,
		 struct csn_error *err)
{
	struct work work = { .arena = arena, .protect = ret_protect };
	int r = 0;

	ret_protect->workspace_fd = -1;
	ret_protect->placeholder_count = 0;
	ret_protect->frozen = ret_protect->not_enforced = NULL;
	if (!plan->workspace.host || plan->workspace.access == ACCESS_RO)
		return 0;
	if (!make_list(&work, &work.frozen) || !make_list(&work, &work.not_enforced))
		return csn_fail(err, -ENOMEM, "workspace", "out of memory");
	ret_protect->workspace_fd = open(plan->workspace.host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret_protect->workspace_fd < 0)
		return csn_fail(err, -errno, "workspace", "cannot open %s: %m",
				plan->workspace.host);
	/* In a copy-on-write workspace nothing reaches the host, and commit refuses these names. */
	for (const char **path = plan->workspace.protect;
	     r >= 0 && plan->workspace.access == ACCESS_RW && path && *path; path++)
		r = protect_one(&work, *path);
	if (r >= 0)
		r = protect_policy(&work, plan);
	ret_protect->frozen = work.frozen.items;
	ret_protect->not_enforced = work.not_enforced.items;
	return r < 0 ? csn_fail(err, r, "workspace", "cannot protect names in the workspace") : 0;
}

/* rmdir() only: what is no longer an empty folder is not ours any more. */
void protect_clean(const struct protect *protect)
{
	for (size_t i = protect->placeholder_count; i > 0; i--)
		unlinkat(protect->placeholders[i - 1].parent_fd, protect->placeholders[i - 1].name,
			 AT_REMOVEDIR);
}

void protect_done(struct protect *protect)
{
	for (size_t i = 0; i < protect->placeholder_count; i++)
		fd_cleanup(&protect->placeholders[i].parent_fd);
	protect->placeholder_count = 0;
	protect->workspace_fd = fd_close(protect->workspace_fd);
}
