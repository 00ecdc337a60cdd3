/*
 * A write that was not permitted: which path of the call is to blame, which rule of the plan
 * refuses it, and the sentence for that.
 *
 * A rename names two paths, and the lists hide and protect overlap with the mode of the
 * workspace. Rule, sentence and (in the commands) suggestion have to come from the same answer,
 * or a reader is sent to a flag that changes nothing. The texts stand in one table.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"
#include "monitor/fact.h"

enum refusal {
	NOT_REFUSED, /* by the plan as it is written */
	BY_OUTSIDE,
	BY_MOUNT,
	BY_MODE,
	BY_MODE_HIDE,
	BY_MODE_PROTECT,
	BY_HIDE,
	BY_PROTECT,
};

/* Where writing is permitted, and what would permit this; both may be asked for in a sentence. */
struct advice {
	char places[192];
	char flag[128];
};

static const struct {
	const char *rule; /* NULL: as whoever made the fact says */
	const char *why;
	bool has_flag;
} refusals[] = {
	[NOT_REFUSED] = { "built-in: read-only file system", "it is read-only here", false },
	[BY_OUTSIDE] = { NULL, "it is outside the writable places", false },
	[BY_MOUNT] = { NULL, "its mount is read-only", true },
	[BY_MODE] = { "workspace.mode: ro", "the workspace is read-only here", true },
	[BY_MODE_HIDE] = { "workspace.mode: ro, workspace.hide",
			   "the workspace is read-only here and the policy hides this file "
			   "(workspace.hide)",
			   false },
	[BY_MODE_PROTECT] = { "workspace.mode: ro, workspace.protect",
			      "the workspace is read-only here and the policy protects this name "
			      "(workspace.protect)",
			      false },
	[BY_HIDE] = { "workspace.hide", "the policy hides this file (workspace.hide)", false },
	[BY_PROTECT] = { "workspace.protect", "the policy protects this name (workspace.protect)",
			 false },
};

/* Appends " or PATH". */
static size_t add_place(char *text, size_t size, size_t used, const char *path)
{
	int n = snprintf(text + used, size - used, "%s%s", used ? " or " : "", path);

	return n < 0 || (size_t)n >= size - used ? size - 1 : used + (size_t)n;
}

static void list_writable(const struct plan *plan, char *ret_text, size_t size)
{
	size_t used = add_place(ret_text, size, 0, plan->scratch_at ? plan->scratch_at : "/tmp");

	if (plan->workspace.host && plan->workspace.access != ACCESS_RO && plan->workspace.at)
		used = add_place(ret_text, size, used, plan->workspace.at);
	for (size_t i = 0; i < plan->mount_count; i++)
		if (plan->mounts[i].access != ACCESS_RO)
			used = add_place(ret_text, size, used, plan->mounts[i].at);
}

/* The innermost mount that holds `path`, NULL: none of the policy's. */
static const struct plan_mount *mount_of(const struct plan *plan, const char *path)
{
	const struct plan_mount *best = NULL;

	for (size_t i = 0; i < plan->mount_count; i++) {
		const struct plan_mount *mount = &plan->mounts[i];

		if (path_is_beneath(path, mount->at) &&
		    (!best || strlen(mount->at) > strlen(best->at)))
			best = mount;
	}
	return best;
}

/* A pattern matches the path or a folder above it. */
static bool is_hidden(const struct plan *plan, const char *tail)
{
	for (const char **pattern = plan->workspace.hide; pattern && *pattern; pattern++)
		if (str_path_covers(*pattern, tail))
			return true;
	return false;
}

/* A protected name, what lies in it, or a folder that holds it: to move that moves the name. */
static bool is_protected(const struct plan *plan, const char *tail)
{
	for (const char **name = plan->workspace.protect; *tail && name && *name; name++)
		if (path_is_beneath(tail, *name) || path_is_beneath(*name, tail))
			return true;
	return false;
}

static enum refusal judge_workspace(const struct plan *plan, const char *path)
{
	const char *tail = path_tail(path, plan->workspace.at);
	bool is_ro = plan->workspace.access == ACCESS_RO;

	if (is_hidden(plan, tail))
		return is_ro ? BY_MODE_HIDE : BY_HIDE;
	/* In a copy they are written like all else, and left out when it is committed. */
	if (plan->workspace.access != ACCESS_COW && is_protected(plan, tail))
		return is_ro ? BY_MODE_PROTECT : BY_PROTECT;
	return is_ro ? BY_MODE : NOT_REFUSED;
}

static enum refusal judge(const struct plan *plan, const char *path)
{
	const struct plan_mount *mount = mount_of(plan, path);

	if (mount)
		return mount->access == ACCESS_RO ? BY_MOUNT : NOT_REFUSED;
	if (plan->workspace.host && plan->workspace.at && path_is_beneath(path, plan->workspace.at))
		return judge_workspace(plan, path);
	return path_is_beneath(path, plan->scratch_at ? plan->scratch_at : "/tmp") ? NOT_REFUSED
										   : BY_OUTSIDE;
}

/* The path of the call that the plan refuses: of a rename it may be the second. */
static enum refusal blame(const struct fact *fact, const struct plan *plan, const char **ret_path)
{
	const struct fact_detail *detail = &fact->detail;
	enum refusal refusal = judge(plan, detail->path);

	*ret_path = detail->path;
	if (refusal != NOT_REFUSED || !detail->to[0] || judge(plan, detail->to) == NOT_REFUSED)
		return refusal;
	*ret_path = detail->to;
	return judge(plan, detail->to);
}

void fact_judge(struct fact *fact, const struct plan *plan)
{
	enum refusal refusal;
	const char *path;

	if (fact->event != FACT_FILESYSTEM_WRITE || fact->detail.path_unknown ||
	    !str_starts(fact->rule, "workspace."))
		return;
	refusal = blame(fact, plan, &path);
	if (refusals[refusal].rule)
		fact_print(fact->rule, sizeof fact->rule, "%s", refusals[refusal].rule);
}

/* The flag that would permit it, or the command where a file says otherwise. */
static void find_flag(const struct plan *plan, enum refusal refusal, const char *path,
		      struct advice *ret_advice)
{
	const struct plan_mount *mount = mount_of(plan, path);
	char text[2 * PATH_MAX], word[sizeof ret_advice->flag - sizeof "--mount "];
	int n = 0;

	ret_advice->flag[0] = 0;
	if (!refusals[refusal].has_flag)
		return;
	if (!mount) {
		snprintf(ret_advice->flag, sizeof ret_advice->flag, "%s",
			 plan->policy_path ? "`caisson policy set workspace.mode=rw`" : "--rw");
		return;
	}
	n = snprintf(text, sizeof text, "%s:%s:rw", mount->host, mount->at);
	/* Half a path is no advice. */
	if (n > 0 && (size_t)n < sizeof text && str_shell_word(text, word, sizeof word) == 0)
		snprintf(ret_advice->flag, sizeof ret_advice->flag, "--mount %s", word);
}

void fact_say_write(struct fact *fact, const struct plan *plan)
{
	enum refusal refusal;
	struct advice advice;
	const char *path;

	list_writable(plan, advice.places, sizeof advice.places);
	if (fact->detail.path_unknown) {
		fact_print(fact->say, sizeof fact->say,
			   "A change of files was attempted and its path could not be read (%s); "
			   "write only to %s.",
			   fact->detail.text, advice.places);
		return;
	}
	refusal = blame(fact, plan, &path);
	find_flag(plan, refusal, path, &advice);
	fact_print(fact->say, sizeof fact->say, "Writing %s is not permitted: %s; write to %s%s%s.",
		   path, refusals[refusal].why, advice.places,
		   advice.flag[0] ? ", or ask for " : "", advice.flag);
}
