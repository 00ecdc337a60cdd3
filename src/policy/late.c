/*
 * What may be lent to a sandbox that runs already: no more than at its start, only from beneath
 * the policy's mount_roots, and nothing that the plan hides or protects in the workspace.
 *
 * The questions are about real paths, as everywhere in this room. Each errs to "no": what is
 * refused here may still be lent at the start, by the policy file itself.
 */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"
#include "policy/decide.h"

int policy_split_mount(char *text, struct plan_mount *ret_mount)
{
	struct plan_mount mount = { .access = ACCESS_RO };
	size_t n = strlen(text);

	if (n > 3 && (str_is(text + n - 3, ":ro") || str_is(text + n - 3, ":rw"))) {
		mount.access = text[n - 1] == 'w' ? ACCESS_RW : ACCESS_RO;
		text[n - 3] = 0;
	}
	for (char *at = text; (at = strstr(at, ":/")); at++)
		mount.at = at;
	if (!mount.at || mount.at == text || !text_is_word(text))
		return -EINVAL;
	text[mount.at - text] = 0;
	mount.at++;
	mount.host = text;
	*ret_mount = mount;
	return 0;
}

/* ---- the host's side --------------------------------------------------------------------- */

static int check_roots(const struct plan *plan, const struct plan_mount *mount,
		       struct csn_error *err)
{
	for (const char **root = plan->mount_roots; *root; root++)
		if (path_is_beneath(mount->host, *root))
			return 0;
	return csn_fail(err, -EPERM, "mount",
			"%.70s is beneath none of the policy's mount_roots; a trusted policy "
			"file may permit it from the sandbox's start on (mount_roots: [%.70s])",
			mount->host, mount->host);
}

/* Would the mount be another way to what the policy file in force, or a name in it, guards? */
static bool holds_guarded(const struct plan *plan, const struct plan_mount *mount)
{
	const char *tail = path_tail(mount->host, plan->workspace.host), *rest;

	if (mount->access == ACCESS_RO)
		return false;
	if (plan->policy_path && path_is_beneath(plan->policy_path, mount->host))
		return true;
	for (const char **name = plan->workspace.protect; name && *name; name++)
		if (plan_rebase(*name, tail, &rest) < 0 || rest != *name)
			return true;
	return false;
}

static bool is_hidden(const struct plan *plan, const char *tail)
{
	const char *rest;

	for (const char **name = plan->workspace.hide; *tail && name && *name; name++)
		if (plan_rebase(*name, tail, &rest) < 0)
			return true;
	return false;
}

/* Of the workspace only what it shows anyway, and never its whole. */
static int check_workspace(const struct plan *plan, const struct plan_mount *mount,
			   struct csn_error *err)
{
	const char *workspace = plan->workspace.host;

	if (!workspace)
		return 0;
	if (path_is_beneath(workspace, mount->host))
		return csn_fail(err, -EPERM, "mount",
				"%.100s is or contains the workspace, with what is hidden and "
				"protected there; lend a folder beside it or in it",
				mount->host);
	if (!path_is_beneath(mount->host, workspace))
		return 0;
	if (is_hidden(plan, path_tail(mount->host, workspace)))
		return csn_fail(err, -EPERM, "mount",
				"%.100s is hidden, or lies in what is: workspace.hide",
				mount->host);
	if (holds_guarded(plan, mount))
		return csn_fail(err, -EPERM, "mount",
				"%.100s holds a name that is protected, or lies in one: "
				"workspace.protect; lend it ro",
				mount->host);
	return 0;
}

/* ---- inside ------------------------------------------------------------------------------- */

/* What the mount would cover, NULL: nothing. */
static const char *covered(const struct plan *plan, const char *at)
{
	if (plan->workspace.host && path_is_beneath(plan->workspace.at, at))
		return "the workspace";
	if (path_is_beneath(plan->scratch_at, at) || path_is_beneath("/tmp", at))
		return "the scratch space";
	if (path_is_beneath(PLAN_LATE_RW, at))
		return "the place of other mounts";
	for (size_t i = 0; i < plan->mount_count; i++)
		if (path_is_beneath(plan->mounts[i].at, at))
			return "another mount";
	return NULL;
}

/* Is `at` a name that is guarded in the workspace, above one or in one? */
static bool is_guarded(const struct plan *plan, const char *at)
{
	const struct plan_workspace *workspace = &plan->workspace;
	const char *tail;

	if (!workspace->host || !path_is_beneath(at, workspace->at))
		return false;
	tail = path_tail(at, workspace->at);
	for (const char **name = workspace->protect; name && *name; name++)
		if (path_is_beneath(*name, tail) || path_is_beneath(tail, *name))
			return true;
	if (plan->policy_path && path_is_beneath(plan->policy_path, workspace->host) &&
	    path_is_beneath(path_tail(plan->policy_path, workspace->host), tail))
		return true;
	return is_hidden(plan, tail);
}

static int check_place(const struct plan *plan, const struct plan_mount *mount,
		       struct csn_error *err)
{
	const char *what = covered(plan, mount->at);

	if (!text_is_inside(mount->at) || str_is(mount->at, "host") ||
	    path_is_beneath(mount->at, "/run"))
		return csn_fail(err, -EINVAL, "mount",
				"%.100s is no place for a mount: the system is there; take one "
				"beneath " PLAN_LATE,
				mount->at);
	if (what)
		return csn_fail(err, -EBUSY, "mount",
				"a mount at %.100s would cover %s; choose another place", mount->at,
				what);
	if (is_guarded(plan, mount->at))
		return csn_fail(err, -EPERM, "mount",
				"%.100s is a name that the policy hides or protects; choose "
				"another place",
				mount->at);
	if (mount->access == ACCESS_RO)
		return 0;
	if (!plan_lends_late(plan) || !path_is_beneath(mount->at, PLAN_LATE_RW))
		return csn_fail(err, -EPERM, "mount",
				"%.100s: what is lent to a running sandbox is writable only "
				"beneath " PLAN_LATE_RW "%s",
				mount->at, plan_lends_late(plan) ? "" : ", which this one has not");
	return 0;
}

int policy_may_lend(const struct plan *plan, const struct policy_facts *facts,
		    const struct plan_mount *mount, struct csn_error *err)
{
	const char *flaw = decide_mount_flaw(facts, mount);
	const char *const words[] = { mount->host, mount->at, NULL };
	const struct policy_call call = { .argv = words, .cwd = "/" };
	int r = check_roots(plan, mount, err);

	if (r >= 0 && mount->access == ACCESS_COW)
		r = csn_fail(err, -EINVAL, "mount", "a mount is ro or rw");
	if (r >= 0 && flaw)
		r = csn_fail(err, -EPERM, "mount", "%.100s %s", mount->host, flaw);
	if (r >= 0)
		r = check_workspace(plan, mount, err);
	if (r >= 0)
		r = policy_may_call(plan, &call, err);
	return r < 0 ? r : check_place(plan, mount, err);
}
