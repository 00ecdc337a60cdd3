/*
 * caisson logs, wait, kill: commands that outlive their call, by their tags
 *
 * Each can be left at any time, by Ctrl-C too: the stream's end cancels the call, and the command
 * goes on.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/str.h"
#include "cli/call.h"
#include "cli/out.h"
#include "monitor/ending.h"

enum { LISTED_MAX = 1024 };

/* ---- a tag that nobody has ------------------------------------------------------------------ */

static bool is_over(const csn_process *command)
{
	return str_is(command->state, "ended") || str_is(command->state, "lost");
}

/* "; running: a, b": what has a tag and is over, or is not. A text that is cut is no harm. */
static void list_tags(struct buf *text, const csn_ps_result *list, bool wants_over)
{
	const char *before = wants_over ? "; ended: " : "; running: ";

	for (size_t i = 0; i < list->count; i++) {
		const csn_process *command = &list->commands[i];

		if (!command->tag || is_over(command) != wants_over)
			continue;
		if (buf_add_text(text, before) < 0 || buf_add_text(text, command->tag) < 0)
			return;
		before = ", ";
	}
}

/* Says which tags there are, where the one that was given is none; who prints it escapes it.
 * Returns -1. */
static int explain(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_ps_result *list = NULL;
	_cleanup_buf_ struct buf text;
	csn_error other;

	buf_init(&text, LISTED_MAX);
	if (err->code != CSN_ENOENT || csn_ps(sandbox, NULL, &list, &other) < 0)
		return -1;
	list_tags(&text, list, false);
	list_tags(&text, list, true);
	csn_free(list);
	if (buf_size(&text) == 0)
		buf_add_text(&text, "; none has one: caisson exec --detach --tag TAG gives one");
	snprintf(err->text, sizeof err->text, "no detached command of %.64s has the tag %.80s%.*s",
		 cli->args[0], cli->args[1], (int)buf_size(&text), (const char *)buf_at(&text));
	return -1;
}

/* ---- logs ----------------------------------------------------------------------------------- */

static int print_logs(const csn_logs_result *result)
{
	return out_json(json_pack("{s:o, s:o, s:I, s:I, s:b}", "output",
				  redact_text(NULL, result->output.data, result->output.size),
				  "errors",
				  redact_text(NULL, result->errors.data, result->errors.size),
				  "bytes", (json_int_t)result->bytes, "cut_bytes",
				  (json_int_t)result->cut_bytes, "running", result->running));
}

static int show_logs(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_logs_request request = { .tag = cli->args[1],
				     .follow = cli->options.follow,
				     .on_output = cli->options.json ? NULL : call_output,
				     .keep_bytes = 64 << 20 };
	csn_logs_result *result = NULL;
	int status = CLI_OK;

	if (csn_logs(sandbox, &request, &result, err) < 0)
		return explain(cli, sandbox, err);
	if (cli->options.json)
		status = print_logs(result);
	else if (result->cut_bytes && !cli->options.quiet)
		fprintf(stderr,
			"caisson: %llu bytes before are not kept any more, only the last MiB is\n",
			(unsigned long long)result->cut_bytes);
	csn_free(result);
	return status;
}

/* ---- wait ----------------------------------------------------------------------------------- */

static int print_wait(const csn_wait_result *result)
{
	return out_json(json_pack(
		"{s:b, s:b, s:b, s:o, s:o, s:o}", "reached", result->reached, "timed_out",
		result->timed_out, "running", result->running, "exit_code",
		result->exit_code < 0 ? json_null() : json_integer(result->exit_code), "signal",
		result->signal ? json_integer(result->signal) : json_null(), "line",
		result->line.data ? redact_text(NULL, result->line.data, result->line.size)
				  : json_null()));
}

static void say_unreached(const struct cli *cli, const csn_wait_result *result)
{
	const char *why = "the time is over; the command goes on";

	if (!result->timed_out)
		why = cli->options.line ? "the command ended and wrote no such line"
					: "the command ended and listened on no such port";
	fprintf(stderr, "caisson: %s; what it wrote: caisson logs %s ", why, cli->args[0]);
	out_text(stderr, cli->args[1]);
	fputc('\n', stderr);
}

static int take_wait(const struct cli *cli, csn_wait_request *request, csn_error *err)
{
	uint64_t port = 0;

	if (call_number("port", cli->options.port, &port, err) < 0 || port > UINT16_MAX ||
	    (cli->options.port && port == 0))
		return call_misuse(err, "--port takes a port, 1 to 65535");
	if (port && request->line)
		return call_misuse(err, "give --port or --line, one of them");
	request->port = (uint16_t)port;
	return call_time("timeout", cli->options.call_timeout, &request->call.timeout_ms, err);
}

static int wait_for(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_wait_request request = { .tag = cli->args[1], .line = cli->options.line };
	csn_wait_result *result = NULL;
	int status;

	if (take_wait(cli, &request, err) < 0)
		return -1;
	if (csn_wait(sandbox, &request, &result, err) < 0)
		return explain(cli, sandbox, err);
	status = result->reached ? CLI_OK : CLI_FAILED;
	if (result->reached && !request.port && !request.line)
		status = ending_status(result->signal ? END_SIGNALED : END_EXITED,
				       result->exit_code, result->signal);
	if (cli->options.json && print_wait(result) != CLI_OK)
		status = CLI_FAILED;
	if (!cli->options.json && !result->reached)
		say_unreached(cli, result);
	csn_free(result);
	return status;
}

/* ---- kill ----------------------------------------------------------------------------------- */

/* "9", "KILL", "SIGKILL"; 0: none. */
static uint64_t signal_number(const char *text)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	uint64_t number = 0;

	if (str_parse_u64(text, 64, &number) == 0)
		return number;
	for (int i = 1; i < 32; i++)
		if (strcasecmp(name, ending_signal_name(i) + 3) == 0)
			return (uint64_t)i;
	return 0;
}

static int kill_command(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_kill_request request = { .tag = cli->args[1] };
	uint64_t number = 0;

	if (cli->args[2])
		number = signal_number(cli->args[2]);
	if (cli->args[2] && (!number || number > 64))
		return call_misuse(err, "the signal is a number, 1 to 64, or a name, as 9 or KILL");
	request.signal = (int)number;
	if (csn_kill(sandbox, &request, err) < 0)
		return explain(cli, sandbox, err);
	return CLI_OK;
}

int cli_logs(struct cli *cli)
{
	return call_verb(cli, show_logs);
}

int cli_wait(struct cli *cli)
{
	return call_verb(cli, wait_for);
}

int cli_kill(struct cli *cli)
{
	return call_verb(cli, kill_command);
}
