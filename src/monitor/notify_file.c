/*
 * Calls that open or change files: a fact if the plan does not permit the place, then CONTINUE.
 *
 * The kernel enforces; the answer never depends on what is found here. What cannot change
 * anything is no attempt: mkdir of what exists, removal of what does not, a missing file
 * opened without O_CREAT.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"
#include "monitor/notify_private.h"
#include "os/tracee.h"

void notify_write_rule(const struct plan *plan, const char *name, struct fact *fact)
{
	const struct plan_mount *best = NULL;
	bool is_workspace = plan->workspace.host && plan->workspace.at &&
			    path_is_beneath(name, plan->workspace.at);

	for (size_t i = 0; i < plan->mount_count; i++) {
		if (path_is_beneath(name, plan->mounts[i].at) &&
		    (!best || strlen(plan->mounts[i].at) > strlen(best->at)))
			best = &plan->mounts[i];
	}
	if (best)
		fact_print(fact->rule, sizeof fact->rule, "mounts: %s %s", best->at,
			   plan_access_name(best->access));
	else if (is_workspace && plan->workspace.access == ACCESS_RO)
		fact_print(fact->rule, sizeof fact->rule, "workspace.mode: ro");
	else if (is_workspace)
		fact_print(fact->rule, sizeof fact->rule, "workspace.protect");
	else
		fact_print(fact->rule, sizeof fact->rule, "built-in: read-only root");
}

static void put_name(const struct place *place, char *ret_text, size_t size)
{
	char name[PATH_MAX];
	int r = place_name(place, name, sizeof name);

	if (r < 0)
		fact_print(ret_text, size, "...");
	else
		fact_text(ret_text, size, name, strlen(name));
}

/* `blamed` is what the plan does not permit; the others are named beside it. */
static void record_write(struct call *call, const struct place *blamed, const struct place *from,
			 const struct place *to)
{
	struct fact fact;
	char name[sizeof fact.detail.path];

	call_fact(call, FACT_FILESYSTEM_WRITE, &fact);
	put_name(from ? from : blamed, fact.detail.path, sizeof fact.detail.path);
	if (to)
		put_name(to, fact.detail.to, sizeof fact.detail.to);
	put_name(blamed, name, sizeof name);
	notify_write_rule(call->notify->setup.plan, name, &fact);
	fact.is_certain = false; /* the path was in the program's memory, and the call goes on */
	call_record(call, &fact);
}

static void record_read(struct call *call, const struct place *place)
{
	const struct plan_workspace *workspace = &call->notify->setup.plan->workspace;
	struct fact fact;

	call_fact(call, FACT_FILESYSTEM_READ, &fact);
	put_name(place, fact.detail.path, sizeof fact.detail.path);
	fact_print(fact.rule, sizeof fact.rule, "%s",
		   workspace->host && path_is_beneath(fact.detail.path, workspace->at)
			   ? "workspace.hide"
			   : "built-in: not in view");
	fact.is_certain = false;
	call_record(call, &fact);
}

/* The kernel forbids a look (Yama, not dumpable): one folded fact says so. */
static void record_unreadable(struct call *call, int error)
{
	struct fact fact;

	call->notify->unreadable++;
	call_fact(call, FACT_FILESYSTEM_WRITE, &fact);
	fact.detail.path_unknown = true;
	fact_print(fact.detail.text, sizeof fact.detail.text, "not observed: %s", strerror(-error));
	fact_print(fact.rule, sizeof fact.rule, "none: the call was not refused by us");
	fact.is_expected =
		true; /* most such calls are permitted; unknown is no reason to end a run */
	fact.is_certain = false;
	call_record(call, &fact);
}

/* The place that registers `dir` and `path` name. Negative: no fact can be made. */
static int locate(struct call *call, int dir, int path, bool is_nofollow, struct place *ret_place)
{
	char text[PATH_MAX];
	int dir_fd = dir == ARG_NONE ? AT_FDCWD : call_int(call, dir);
	ssize_t n;

	if (path == ARG_NONE || call->request->data.args[path] == 0)
		return dir == ARG_NONE ? -EFAULT : place_of_fd(call, dir_fd, ret_place);
	n = tracee_read_text(call->tid, call->request->data.args[path], text, sizeof text);
	if (n == -EPERM || n == -EACCES)
		record_unreadable(call, (int)n);
	if (n < 0)
		return (int)n;
	if (n > 0)
		return place_find(call, dir_fd, text, is_nofollow, ret_place);
	/* AT_EMPTY_PATH: the descriptor itself. Elsewhere "" is ENOENT. */
	if (call->shape->flags != ARG_NONE && call->shape->class != CALL_OPEN &&
	    (call_int(call, call->shape->flags) & AT_EMPTY_PATH))
		return place_of_fd(call, dir_fd, ret_place);
	return -ENOENT;
}

static void look_at_open(struct call *call, uint64_t flags)
{
	_cleanup_place_ struct place place = PLACE_NONE;
	bool is_write = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
	bool is_made = flags & O_CREAT;

	if (flags & O_PATH)
		return;
	if (locate(call, call->shape->dir, call->shape->path, flags & O_NOFOLLOW, &place) < 0)
		return;
	if (place.exists && is_made && (flags & O_EXCL))
		return; /* EEXIST */
	if (place.exists ? is_write : is_made) {
		if (!place_may_write(call, &place))
			record_write(call, &place, NULL, NULL);
	} else if (!is_write && !place_is_shown(call, &place)) {
		record_read(call, &place);
	}
}

static void file_open(struct call *call)
{
	if (call->shape->flags == ARG_NONE)
		look_at_open(call, (uint64_t)call->shape->open_flags);
	else
		look_at_open(call, (uint32_t)call_int(call, call->shape->flags));
}

static void file_open_how(struct call *call)
{
	struct open_how how;

	if (tracee_read_all(call->tid, call->request->data.args[2], &how, sizeof how) == 0)
		look_at_open(call, how.flags);
}

static void file_create(struct call *call)
{
	_cleanup_place_ struct place place = PLACE_NONE;

	if (locate(call, call->shape->dir, call->shape->path, true, &place) < 0)
		return;
	if (!place.exists && !place_may_write(call, &place))
		record_write(call, &place, NULL, NULL);
}

static void file_remove(struct call *call)
{
	_cleanup_place_ struct place place = PLACE_NONE;

	if (locate(call, call->shape->dir, call->shape->path, true, &place) < 0)
		return;
	if (place.exists && !place_may_write(call, &place))
		record_write(call, &place, NULL, NULL);
}

static void file_rename(struct call *call)
{
	_cleanup_place_ struct place from = PLACE_NONE, to = PLACE_NONE;
	const struct call_shape *shape = call->shape;

	if (locate(call, shape->dir, shape->path, true, &from) < 0 || !from.exists)
		return;
	if (locate(call, shape->dir2, shape->path2, true, &to) < 0)
		return;
	if (!place_may_write(call, &from))
		record_write(call, &from, &from, &to);
	else if (!place_may_write(call, &to))
		record_write(call, &to, &from, &to);
}

static void file_change(struct call *call)
{
	_cleanup_place_ struct place place = PLACE_NONE;
	const struct call_shape *shape = call->shape;
	bool is_nofollow = shape->is_nofollow;

	if (shape->flags != ARG_NONE && (call_int(call, shape->flags) & AT_SYMLINK_NOFOLLOW))
		is_nofollow = true;
	if (locate(call, shape->dir, shape->path, is_nofollow, &place) < 0)
		return;
	if (place.exists && !place_may_write(call, &place))
		record_write(call, &place, NULL, NULL);
}

static void (*const looks[CALL_CLASS_COUNT])(struct call *) = {
	[CALL_OPEN] = file_open,     [CALL_OPEN_HOW] = file_open_how, [CALL_CREATE] = file_create,
	[CALL_REMOVE] = file_remove, [CALL_RENAME] = file_rename,     [CALL_CHANGE] = file_change,
	[CALL_META] = file_change,
};

void notify_file(struct call *call)
{
	looks[call->shape->class](call);
}
