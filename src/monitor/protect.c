/*
 * Names in a writable workspace that a program may not write; see protect.h. What has to be frozen
 * for one is for protect_walk.c to say; here is what is kept of it, the placeholders of what is
 * absent, and whether it held.
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
#include "monitor/protect_walk.h"

enum { NOTES_SIZE = PROTECT_MAX * sizeof(struct placeholder_note) };

struct work {
	const struct plan *plan;
	struct arena *arena;
	struct protect *protect;
	size_t frozen_count, not_enforced_count;
};

static int freeze(struct work *work, const char *path)
{
	const char **frozen = work->protect->frozen;

	if (work->frozen_count == PROTECT_MAX)
		return -E2BIG;
	frozen[work->frozen_count] = arena_text(work->arena, path);
	return frozen[work->frozen_count++] ? 0 : -ENOMEM;
}

/* The name will be the next frozen one. */
static int mean(struct work *work, int parent_fd, const char *name)
{
	struct protect *protect = work->protect;
	struct placeholder *meant = &protect->placeholders[protect->placeholder_count];

	if (protect->placeholder_count == PROTECT_MAX)
		return -E2BIG;
	protect->frozen_at[protect->placeholder_count++] = work->frozen_count;
	meant->parent_fd = fcntl(parent_fd, F_DUPFD_CLOEXEC, 3);
	meant->fd = -1;
	snprintf(meant->name, sizeof meant->name, "%s", name);
	return meant->parent_fd < 0 ? -errno : 0;
}

static int freeze_point(void *context, const struct protect_point *point)
{
	struct work *work = context;
	int r = point->kind == PROTECT_ABSENT ? mean(work, point->parent_fd, point->name) : 0;

	return r < 0 ? r : freeze(work, point->path);
}

static int walk(struct work *work, const char *path, bool is_to_freeze)
{
	const struct protect_walk how = {
		.plan = work->plan,
		.workspace_fd = work->protect->workspace_fd,
		.frozen = work->protect->frozen,
		.may_freeze_links = work->protect->may_freeze_links,
		.freeze = is_to_freeze ? freeze_point : NULL,
		.context = work,
	};

	return protect_walk(&how, path);
}

static int protect_one(struct work *work, const char *path)
{
	int r = walk(work, path, true);

	return r < 0 ? r : 0;
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

int protect_look(const struct plan *plan, bool may_freeze_links, struct arena *arena,
		 struct protect *ret_protect, struct csn_error *err)
{
	struct work work = { .plan = plan, .arena = arena, .protect = ret_protect };
	struct protect *protect = ret_protect;
	int r;

	protect->workspace_fd = -1;
	protect->may_freeze_links = may_freeze_links;
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

/* Somebody's own came there meanwhile. */
static bool is_no_link(const struct placeholder *placeholder)
{
	struct stat st;

	return fstatat(placeholder->parent_fd, placeholder->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       !S_ISLNK(st.st_mode);
}

/* Does what stands there now, ours or not, have to be mounted read-only, and can it be? */
static bool can_freeze(struct protect *protect, size_t i)
{
	struct placeholder *placeholder = &protect->placeholders[i];
	int r = placeholder_make(placeholder, &protect->notes[i]);

	return r > 0 || (r == 0 && is_no_link(placeholder));
}

static int list_unless_frozen(struct work *work, const char *path)
{
	int r = walk(work, path, false);

	if (r != 0)
		return r < 0 ? r : 0;
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

static bool is_same(struct protect_file a, struct protect_file b)
{
	return a.dev == b.dev && a.ino == b.ino;
}

static bool is_listed(const struct protect *protect, const char *path)
{
	for (const char **name = protect->not_enforced; *name; name++)
		if (str_is(*name, path))
			return true;
	return false;
}

void protect_recheck(struct protect *protect)
{
	size_t count = 0;

	if (!protect->is_made)
		return;
	while (protect->not_enforced[count])
		count++;
	for (size_t i = 0; protect->frozen[i] && count < PROTECT_MAX; i++) {
		struct protect_file then = protect->files[i];

		if (then.ino != 0 && is_same(then, identify(protect, protect->frozen[i])))
			continue;
		if (is_listed(protect, protect->frozen[i]))
			continue;
		protect->not_enforced[count++] = protect->frozen[i];
		protect->not_enforced[count] = NULL;
	}
}

/* Its folder was moved since the look: the placeholder stands elsewhere, so whatever has the name
 * is none of ours. {0} then, which never counts as held. */
static struct protect_file identify_made(const struct protect *protect, size_t i, const char *path)
{
	const struct placeholder_note *note = &protect->notes[i];
	struct protect_file now = identify(protect, path);

	return note->state != PLACEHOLDER_HELD ||
			       is_same(now, (struct protect_file){ note->dev, note->ino })
		       ? now
		       : (struct protect_file){ 0 };
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
	for (size_t i = 0; i < count; i++)
		protect->files[i] = identify(protect, protect->frozen[i]);
	for (size_t i = 0; i < protect->placeholder_count; i++) {
		size_t at = protect->frozen_at[i];

		if (can_freeze(protect, i))
			protect->files[at] = identify_made(protect, i, protect->frozen[at]);
		else
			protect->frozen[at] = NULL;
	}
	for (size_t i = 0; i < count; i++)
		if (protect->frozen[i]) {
			protect->files[kept] = protect->files[i];
			protect->frozen[kept++] = protect->frozen[i];
		}
	protect->frozen[kept] = NULL;
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
