/*
 * The policy in force: found, read, parsed, and whether its owner vouches for it
 *
 * Trust is a property of where the file came from: named by the caller, or found by search
 * and its digest accepted before. The policy room decides what an untrusted file may do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cli/project.h"
#include "cli/trust.h"
#include "cli/walls.h"

/* Path, folder and trust of the file; "" without one. */
static int locate(const struct cli_options *options, struct cli_policy *policy,
		  struct csn_error *err)
{
	const char *cwd = policy->project.cwd;

	policy->is_explicit = options->policy != NULL;
	snprintf(policy->folder, PATH_MAX, "%s", cwd);
	if (options->policy) {
		if (path_join(cwd, options->policy, policy->path, PATH_MAX) < 0)
			return csn_fail(err, -EINVAL, "policy", "--policy %s is no usable path",
					options->policy);
		return 0;
	}
	if (policy_file_find(&policy->project, policy->path, PATH_MAX) < 0)
		return csn_fail(err, -ENAMETOOLONG, "policy",
				"the current folder's path is too long");
	if (policy->path[0]) {
		snprintf(policy->folder, PATH_MAX, "%s", policy->path);
		*strrchr(policy->folder, '/') = 0;
		if (!policy->folder[0])
			snprintf(policy->folder, PATH_MAX, "/");
	}
	return 0;
}

static int read_and_parse(struct cli_policy *policy, struct csn_error *err)
{
	_cleanup_buf_ struct buf bytes;
	int r;

	buf_init(&bytes, POLICY_MAX_BYTES);
	r = policy_file_read(policy->path, !policy->is_explicit, &bytes, policy->sha256, err);
	if (r < 0)
		return r;
	policy_git_look(policy->path, &bytes, &policy->git);
	policy->is_trusted = policy->is_explicit;
	if (!policy->is_explicit) {
		r = trust_check(policy->path, policy->sha256, &policy->is_trusted, err);
		if (r < 0)
			return r;
	}
	return policy_parse(policy->path, buf_at(&bytes), buf_size(&bytes), &policy->policy, err);
}

/* What a path is behind all its links; policy decides about that, not about a name. */
static int resolve(const char *path, struct policy_real *ret_real)
{
	struct stat st;

	_Static_assert(POLICY_PATH_MAX >= PATH_MAX, "realpath() writes up to PATH_MAX bytes");
	if (!realpath(path, ret_real->path) || lstat(ret_real->path, &st) < 0)
		return -errno;
	ret_real->kind = S_ISDIR(st.st_mode)   ? POLICY_FOLDER
			 : S_ISREG(st.st_mode) ? POLICY_FILE
					       : POLICY_SPECIAL;
	return 0;
}

int cli_load_policy(const struct cli_options *options, struct cli_policy *ret_policy,
		    struct csn_error *err)
{
	struct project *project = &ret_policy->project;
	int r;

	*ret_policy = (struct cli_policy){ .git = { .is_modified = -1 } };
	r = project_find(options->run_dir, project, err);
	if (r == 0)
		r = locate(options, ret_policy, err);
	if (r == 0 && ret_policy->path[0])
		r = read_and_parse(ret_policy, err);
	if (r < 0)
		return r;
	ret_policy->facts = (struct policy_facts){
		.resolve = resolve,
		.cwd = project->cwd,
		.project = project->folder,
		.home = project->home[0] ? project->home : NULL,
		.run_root = project->run_root,
		.place = project->place,
		.policy_dir = ret_policy->folder,
		.policy_is_trusted = ret_policy->is_trusted,
		.policy_is_explicit = ret_policy->is_explicit,
	};
	return 0;
}

void cli_policy_done(struct cli_policy *policy)
{
	policy_free(policy->policy);
	policy->policy = NULL;
}

/* What the result says of the file; the plan is gone if this fails. */
static int describe_file(const struct cli_policy *policy, struct plan *plan, struct csn_error *err)
{
	const char *path = policy->path, *commit = policy->git.commit;

	plan->policy_is_trusted = policy->is_trusted;
	plan->policy_is_modified = policy->git.is_modified;
	snprintf(plan->policy_sha256, sizeof plan->policy_sha256, "%s", policy->sha256);
	plan->policy_path = path[0] ? arena_text(&plan->arena, path) : NULL;
	plan->policy_commit = commit[0] ? arena_text(&plan->arena, commit) : NULL;
	if (!path[0] == !plan->policy_path && !commit[0] == !plan->policy_commit)
		return 0;
	plan_done(plan);
	return csn_fail(err, -ENOMEM, "policy", "out of memory");
}

int cli_keep_within(const struct cli_options *options, const struct cli_policy *policy,
		    struct plan *plan, struct csn_error *err)
{
	const struct policy_request nothing = { .stays = true };
	struct policy_facts facts = policy->facts;
	_cleanup_buf_ struct buf bytes;
	struct policy *bound = NULL;
	struct plan widest;
	char sha256[65];
	int r;

	facts.policy_is_trusted = facts.policy_is_explicit = true;
	buf_init(&bytes, POLICY_MAX_BYTES);
	r = policy_file_read(options->within, false, &bytes, sha256, err);
	if (r == 0)
		r = policy_parse(options->within, buf_at(&bytes), buf_size(&bytes), &bound, err);
	if (r == 0)
		r = policy_decide(bound, &nothing, &facts, &widest, err);
	policy_free(bound);
	if (r < 0)
		return r;
	plan_lower(plan, &widest, options->limits.items);
	r = plan_within(plan, &widest, err);
	plan_done(&widest);
	return r;
}

int cli_decide(const struct cli_options *options, const struct cli_policy *policy,
	       char *const *argv, struct plan *ret_plan, struct csn_error *err)
{
	static const char *const nothing[] = { NULL };
	/* -c TEXT is the command as rules see it: strict_when must not end at a flag. */
	const char *const text[] = { options->text, NULL };
	struct policy_request request = {
		.tier = options->tier,
		.backend = options->backend,
		.backend_from = options->backend_from,
		.workspace = options->workspace,
		.workspace_mode = options->workspace_mode,
		.workspace_at = options->workspace_at,
		.mounts = options->mounts.items,
		.network = options->network,
		.allow = options->allow.items,
		.limits = options->limits.items,
		.env = options->env.items,
		.forwards = options->forwards.items,
		.tags = options->tags.items,
		.lends_itself = options->job.is_job,
		.gates = options->gates.items,
		.brings_wall = options->wall_fd != NULL,
		.stays = options->stays,
		.argv = options->text ? text
			: argv        ? (const char *const *)argv
				      : nothing,
	};
	int r = walls_check_names(options, err);

	if (r == 0)
		r = policy_decide(policy->policy, &request, &policy->facts, ret_plan, err);
	if (r == 0)
		r = describe_file(policy, ret_plan, err);
	return r;
}
