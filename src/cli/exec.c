/*
 * caisson exec: commands in a sandbox that stays
 *
 * The command's output and status are its own, as those of `run`; what was denied is told on
 * stderr.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/call.h"
#include "cli/out.h"
#include "monitor/ending.h"

/* The numbers of the library's reasons and of ours are the same list. */
_Static_assert((int)CSN_REASON_EXITED == (int)END_EXITED &&
		       (int)CSN_REASON_START_FAILED == (int)END_START_FAILED,
	       "csn_reason and enum ending differ");

static int status_of(const csn_exec_result *result)
{
	int code = result->exit_code;

	if (result->reason == CSN_REASON_START_FAILED)
		code = result->error == CSN_ENOENT ? 127 : 126;
	return ending_status((enum ending)result->reason, code, result->signal);
}

static void tell(const struct cli *cli, const csn_exec_result *result)
{
	const char *dim = out_color(cli, stderr, OUT_DIM), *plain = out_plain(cli, stderr);

	if (cli->options.quiet)
		return;
	if (result->reason != CSN_REASON_EXITED && result->reason != CSN_REASON_SIGNALED &&
	    result->reason_name) {
		fprintf(stderr, "%scaisson: %s%s%s", dim, result->reason_name,
			result->clock ? " by the clock " : "", result->clock ? result->clock : "");
		if (result->text)
			fprintf(stderr, ": %s", result->text);
		fprintf(stderr, "%s\n", plain);
	}
	for (size_t i = 0; i < result->violation_count; i++) {
		const csn_violation *violation = &result->violations[i];

		if (violation->expected || !violation->say)
			continue;
		fprintf(stderr, "%scaisson: ", dim);
		out_text(stderr, violation->say);
		fprintf(stderr, "%s\n", plain);
	}
}

/* "NAME" passes on ours, as for `run`; borrowed texts and owned ones live as long as we do. */
static int take_env(const struct cli *cli, struct cli_list *ret_env, csn_error *err)
{
	for (size_t i = 0; i < cli->options.env.count; i++) {
		const char *item = cli->options.env.items[i], *value = getenv(item);
		char *pair = NULL;

		if (!strchr(item, '=')) {
			if (!value)
				continue;
			if (asprintf(&pair, "%s=%s", item, value) < 0)
				return call_misuse(err, "out of memory");
			item = pair;
		}
		if (cli_list_add(ret_env, item) < 0)
			return call_misuse(err, "out of memory");
	}
	return 0;
}

static int execute(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	const struct cli_options *options = &cli->options;
	csn_exec_request request = {
		.argv = options->text ? NULL : (const char *const *)cli->args + 1,
		.command = options->text,
		.cwd = options->cwd,
		.on_input = isatty(STDIN_FILENO) || options->detach ? NULL : call_input,
		.on_output = call_output,
		.detach = options->detach,
		.tag = options->tag,
	};
	csn_exec_result *result = NULL;
	struct cli_list env = { 0 };
	int status;

	if (!options->text == (cli->arg_count < 2))
		return call_misuse(err, options->text
						? "give either -c TEXT or a command, not both"
						: "a command is missing: caisson exec NAME -- ls");
	if (take_env(cli, &env, err) < 0)
		return -1;
	request.env = env.items;
	if (call_time("timeout", options->call_timeout, &request.call.timeout_ms, err) < 0 ||
	    csn_exec(sandbox, &request, &result, err) < 0)
		return -1;
	tell(cli, result);
	status = options->detach && result->reason != CSN_REASON_START_FAILED ? CLI_OK
									      : status_of(result);
	csn_free(result);
	return status;
}

int cli_exec(struct cli *cli)
{
	return call_verb(cli, execute);
}
