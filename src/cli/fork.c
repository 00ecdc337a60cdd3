/*
 * caisson snapshot, caisson fork: what a sandbox changed, kept under a tag or in another sandbox
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/call.h"
#include "cli/changes_out.h"
#include "cli/out.h"

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

int cli_snapshot(struct cli *cli)
{
	return call_verb(cli, snapshot);
}

int cli_fork(struct cli *cli)
{
	return call_verb(cli, fork_it);
}
