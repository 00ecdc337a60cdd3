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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

enum { NOTES_SIZE = PROTECT_MAX * sizeof(struct placeholder_note) };

struct work {
	const struct plan *plan;
	struct arena *arena;
	struct protect *protect;
	size_t frozen_count, not_enforced_count;
};

/* What one component is. */
enum found { FOUND_NONE, FOUND_FOLDER, FOUND_OTHER, FOUND_OURS };

/* Or -errno: -ELOOP is a link. */
static int look(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? FOUND_NONE : -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (placeholder_is_marked(&st))
		return FOUND_OURS;
	return S_ISDIR(st.st_mode) ? FOUND_FOLDER : FOUND_OTHER;
}

/* Is it a name that is frozen, or beneath one? A placeholder is closed to us too. */
static bool is_frozen(const struct protect *protect, const char *path)
{
	for (const char **frozen = protect->frozen; *frozen; frozen++) {
		size_t n = strlen(*frozen);

		if (strncmp(path, *frozen, n) == 0 && (path[n] == 0 || path[n] == '/'))
			return true;
	}
	return false;
}

static int freeze(struct work *work, const char *path, size_t size)
{
	const char **frozen = work->protect->frozen;

	if (work->frozen_count == PROTECT_MAX)
		return -E2BIG;
	frozen[work->frozen_count] = arena_copy(work->arena, path, size);
	return frozen[work->frozen_count++] ? 0 : -ENOMEM;
}

/* Takes the parent's descriptor. The name will be the next frozen one. */
static int mean(struct work *work, int *parent_fd, const char *name)
{
	struct protect *protect = work->protect;
	struct placeholder *meant = &protect->placeholders[protect->placeholder_count];

	if (protect->placeholder_count == PROTECT_MAX)
		return -E2BIG;
	protect->frozen_at[protect->placeholder_count++] = work->frozen_count;
	meant->parent_fd = fd_take(parent_fd);
	meant->fd = -1;
	snprintf(meant->name, sizeof meant->name, "%s", name);
	return 0;
}

/* Walks `path`. The frozen point is its first component that is absent, which will be a
 * placeholder, or the whole path when all of it exists. */
static int protect_one(struct work *work, const char *path)
{
	_cleanup_fd_ int dir_fd = fcntl(work->protect->workspace_fd, F_DUPFD_CLOEXEC, 3);
	char name[PLACEHOLDER_NAME];
	const char *at = path;

	if (is_frozen(work->protect, path))
		return 0;
	for (;;) {
		size_t n = strcspn(at, "/"), upto = (size_t)(at - path) + n;
		int found, next_fd, r;

		if (n == 0 || n >= sizeof name || dir_fd < 0)
			return 0;
		memcpy(name, at, n);
		name[n] = 0;
		found = look(dir_fd, name);
		if (found == FOUND_NONE || found == FOUND_OURS) {
			r = mean(work, &dir_fd, name);
			return r < 0 ? r : freeze(work, path, upto);
		}
		if (found < 0)
			return 0;
		if (at[n] == 0)
			return freeze(work, path, upto);
		next_fd = found == FOUND_FOLDER
				  ? openat(dir_fd, name,
					   O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				  : -1;
		fd_close(dir_fd);
		dir_fd = next_fd;
		at += n + 1;
	}
}

/* The policy file in force, where it lies in the workspace. */
static const char *policy_name(const struct plan *plan)
{
	const char *path = plan->policy_path;

	return path && path_is_beneath(path, plan->workspace.host)
		       ? path_tail(path, plan->workspace.host)
		       : NULL;
}

/* In a copy-on-write workspace nothing reaches the host, and commit refuses these names. */
static int for_each(struct work *work, int (*each)(struct work *work, const char *path))
{
	const struct plan *plan = work->plan;
	const char *policy = policy_name(plan);
	int r = 0;

	for (const char **path = plan->workspace.protect;
	     r >= 0 && plan->workspace.access == ACCESS_RW && path && *path; path++)
		r = each(work, *path);
	return r >= 0 && policy ? each(work, policy) : r;
}

static int make_notes(struct protect *protect)
{
	void *notes;

	if (protect->placeholder_count == 0)
		return 0;
	notes = mmap(NULL, NOTES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (notes == MAP_FAILED)
		return -errno;
	protect->notes = notes;
	return 0;
}

int protect_look(const struct plan *plan, struct arena *arena, struct protect *ret_protect,
		 struct csn_error *err)
{
	struct work work = { .plan = plan, .arena = arena, .protect = ret_protect };
	struct protect *protect = ret_protect;
	int r;

	protect->workspace_fd = -1;
	protect->placeholder_count = 0;
	protect->notes = NULL;
	protect->frozen = protect->not_enforced = NULL;
	if (!plan->workspace.host || plan->workspace.access == ACCESS_RO)
		return 0;
	protect->frozen = arena_array(arena, PROTECT_MAX + 1, sizeof *protect->frozen);
	protect->not_enforced = arena_array(arena, PROTECT_MAX + 1, sizeof *protect->not_enforced);
	if (!protect->frozen || !protect->not_enforced)
		return csn_fail(err, -ENOMEM, "workspace", "out of memory");
	protect->workspace_fd = open(plan->workspace.host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (protect->workspace_fd < 0)
		return csn_fail(err, -errno, "workspace", "cannot open %s: %m",
				plan->workspace.host);
	r = for_each(&work, protect_one);
	if (r >= 0)
		r = make_notes(protect);
	return r < 0 ? csn_fail(err, r, "workspace", "cannot protect names in the workspace") : 0;
}

/* Does what stands there now, ours or not, have to be mounted read-only, and can it be? */
static bool can_freeze(struct protect *protect, size_t i)
{
	struct placeholder *placeholder = &protect->placeholders[i];
	int r = placeholder_make(placeholder, &protect->notes[i]);

	return r > 0 || (r == 0 && look(placeholder->parent_fd, placeholder->name) > FOUND_NONE);
}

static int list_unless_frozen(struct work *work, const char *path)
{
	if (is_frozen(work->protect, path))
		return 0;
	if (work->not_enforced_count == PROTECT_MAX)
		return -E2BIG;
	work->protect->not_enforced[work->not_enforced_count++] = path;
	return 0;
}

static struct protect_file identify(const struct protect *protect, const char *path)
{
	struct stat st;

	if (fstatat(protect->workspace_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return (struct protect_file){ 0 };
	return (struct protect_file){ st.st_dev, st.st_ino };
}

void protect_recheck(struct protect *protect)
{
	size_t count = 0;

	if (!protect->is_made)
		return;
	while (protect->not_enforced[count])
		count++;
	for (size_t i = 0; protect->frozen[i] && count < PROTECT_MAX; i++) {
		struct protect_file now = identify(protect, protect->frozen[i]);

		if (now.dev != protect->files[i].dev || now.ino != protect->files[i].ino)
			protect->not_enforced[count++] = protect->frozen[i];
	}
	protect->not_enforced[count] = NULL;
}

int protect_make(struct protect *protect, const struct plan *plan, struct arena *arena,
		 struct csn_error *err)
{
	struct work work = { .plan = plan, .arena = arena, .protect = protect };
	size_t count = 0, kept = 0;
	int r;

	if (protect->workspace_fd < 0)
		return 0;
	while (protect->frozen[count])
		count++;
	for (size_t i = 0; i < protect->placeholder_count; i++)
		if (!can_freeze(protect, i))
			protect->frozen[protect->frozen_at[i]] = NULL;
	for (size_t i = 0; i < count; i++)
		if (protect->frozen[i])
			protect->frozen[kept++] = protect->frozen[i];
	protect->frozen[kept] = NULL;
	for (size_t i = 0; i < kept; i++)
		protect->files[i] = identify(protect, protect->frozen[i]);
	protect->is_made = true;
	r = for_each(&work, list_unless_frozen);
	return r < 0 ? csn_fail(err, r, "workspace", "cannot protect names in the workspace") : 0;
}

bool protect_clean(struct protect *protect, uint64_t wait_ms)
{
	bool is_all = true;

	for (size_t i = protect->placeholder_count; i > 0 && protect->notes; i--) {
		struct placeholder *made = &protect->placeholders[i - 1];

		made->fd = fd_close(made->fd); /* our own lock; another run's stays */
		is_all &= placeholder_remove(made->parent_fd, made->name, &protect->notes[i - 1],
					     wait_ms) >= 0;
	}
	return is_all;
}

void protect_done(struct protect *protect)
{
	for (size_t i = 0; i < protect->placeholder_count; i++) {
		fd_cleanup(&protect->placeholders[i].fd);
		fd_cleanup(&protect->placeholders[i].parent_fd);
	}
	protect->placeholder_count = 0;
	if (protect->notes)
		munmap(protect->notes, NOTES_SIZE);
	protect->notes = NULL;
	protect->workspace_fd = fd_close(protect->workspace_fd);
}
