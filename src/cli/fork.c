/*
 * caisson snapshot, caisson fork: what a sandbox changed, kept under a tag or in another sandbox
 *
 * A living one is forked by its own monitor. A finished run has none: its fork is a sandbox under
 * the policy that is in force now for the workspace of then.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/tree.h"
#include "base/place.h"
#include "cli/call.h"
#include "cli/changes_out.h"
#include "cli/cow.h"
#include "cli/out.h"
#include "cli/up.h"
#include "monitor/copy_save.h"

static int tell(const struct cli *cli, const csn_copied *copied, const char *key, const char *name)
{
	if (cli->options.json)
		out_json(json_pack("{s:s, s:s, s:I, s:I, s:I}", "sandbox", cli->args[0], key, name,
				   "entries", (json_int_t)copied->entries, "bytes",
				   (json_int_t)copied->bytes, "torn", (json_int_t)copied->torn));
	else
		puts(name);
	if (copied->torn > 0 && !cli->options.quiet) {
		fputs("caisson: ", stderr);
		out_text(stderr, copied->torn_name);
		fprintf(stderr, " changed all the time while it was copied (%" PRIu64 " such)\n",
			copied->torn);
	}
	return CLI_OK;
}

static int snapshot(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_snapshot_request request = { .tag = cli->args[1] };
	csn_copied *copied = NULL;
	int status = csn_snapshot(sandbox, &request, &copied, err);

	if (status == 0)
		status = tell(cli, copied, "tag", cli->args[1]);
	csn_free(copied);
	return status;
}

static int fork_it(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_fork_request request = { .name = cli->args[1], .tag = cli->args[2] };
	csn_copied *copied = NULL;
	int status = csn_fork(sandbox, &request, &copied, err);

	if (status == 0)
		status = tell(cli, copied, "name", cli->args[1]);
	csn_free(copied);
	return status;
}

/* What is said of it, as of a living one. */
static csn_copied copied_of(const struct layer_copied *copied)
{
	return (csn_copied){ copied->entries, copied->bytes, copied->torn, copied->first };
}

static int start_fork(struct cli *cli, const struct cow *cow, const struct copy_forked *forked,
		      struct csn_error *err)
{
	char layer[PATH_MAX + RUN_ID_SIZE + sizeof forked->name + 8];

	snprintf(layer, sizeof layer, "%s/%s/cow/%s", cow->run.root, cow->run.id, forked->name);
	cli->options.workspace = cow->copy.facts.workspace;
	cli->options.workspace_mode = "cow";
	/* There the policy file is looked for, as it was then. */
	if (chdir(cow->copy.facts.workspace) < 0)
		return csn_fail(err, -errno, "fork", "cannot enter the workspace %s: %s",
				cow->copy.facts.workspace, strerror(errno));
	return up_named(cli, cli->args[1], layer, err);
}

static int fork_run(struct cli *cli, struct cow *cow, struct copy_forked *forked,
		    struct csn_error *err)
{
	struct cli named = *cli;
	int r;

	named.arg_count = 1; /* the others are no paths */
	if (!place_is_name(cli->args[1]))
		return csn_fail(err, -EINVAL, "fork", "that is no name of a sandbox");
	r = cow_open(&named, cow, err);
	if (r == 0)
		r = copy_fork(cow->copy.cow_fd, cli->args[2], cow->started_ms, forked, err);
	if (r < 0)
		return r;
	r = start_fork(cli, cow, forked, err);
	if (r < 0)
		tree_remove(cow->copy.cow_fd, forked->name);
	return r;
}

static int fork_finished(struct cli *cli)
{
	_cleanup_cow_ struct cow cow = COW_NONE;
	struct copy_forked forked = { 0 };
	struct csn_error err = { 0 };
	csn_copied copied;

	if (fork_run(cli, &cow, &forked, &err) < 0)
		return cli_fail(cli, &err);
	copied = copied_of(&forked.copied);
	return tell(cli, &copied, "name", cli->args[1]);
}

int cli_snapshot(struct cli *cli)
{
	return call_verb(cli, snapshot);
}

int cli_fork(struct cli *cli)
{
	return changes_is_living(cli->args[0]) ? call_verb(cli, fork_it) : fork_finished(cli);
}
