/*
 * caisson eval: a piece of code in a session, behind the wall
 *
 *   without --session    a sandbox for this one eval: its monitor is a child of ours, and
 *                        ends with us
 *   with --session NAME  the sandbox of that name; it is started where there is none
 *
 * What the code printed and its value go to stdout, why there is no value to stderr.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/call.h"
#include "cli/changes_out.h"
#include "cli/out.h"
#include "cli/up.h"
#include "client/eval.h"
#include "medium/builtin.h"
#include "medium/media.h"
#include "medium/session.h"
#include "monitor/eval_json.h"

/* ---- what is evaluated ----------------------------------------------------------------------- */

static int read_code(const struct cli *cli, struct buf *code, csn_error *err)
{
	const char *text = cli->arg_count ? cli->args[0] : "-";
	ssize_t n = 1;

	if (!str_is(text, "-"))
		return buf_add(code, text, strlen(text)) < 0
			       ? call_misuse(err, "the code is too long: at most 1 MiB")
			       : 0;
	while (n > 0) {
		char piece[4096];

		n = read(STDIN_FILENO, piece, sizeof piece);
		if (n > 0 && buf_add(code, piece, (size_t)n) < 0)
			return call_misuse(err, "the code is too long: at most 1 MiB");
	}
	return n < 0 ? call_misuse(err, "cannot read the code from standard input") : 0;
}

/* --timeout is a limit of the sandbox's commands, and the eval's own time. */
static int read_timeout(const struct cli *cli, uint32_t *ret_ms, csn_error *err)
{
	const struct cli_list *limits = &cli->options.limits;

	*ret_ms = 0;
	for (size_t i = 0; i < limits->count; i++)
		if (str_starts(limits->items[i], "command="))
			return call_time("timeout", strchr(limits->items[i], '=') + 1, ret_ms, err);
	return 0;
}

/* ---- what is told ---------------------------------------------------------------------------- */

static json_t *bytes_json(csn_bytes text)
{
	return eval_json_bytes((const uint8_t *)text.data, text.size);
}

static int tell_json(const struct eval_result *result)
{
	bool is_good = result->value.data != NULL;
	json_t *value = is_good ? json_loadb(result->value.data, result->value.size,
					     JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
				: NULL;

	out_json(json_pack("{s:o, s:o, s:o, s:b}", "value", value ? value : json_null(), "reason",
			   is_good ? json_null() : bytes_json(result->reason), "output",
			   bytes_json(result->output), "done", result->is_done));
	return is_good ? CLI_OK : CLI_FAILED;
}

/* A text is printed as it is, anything else as JSON; nothing, where there is no value. */
static int tell_value(const struct eval_result *result)
{
	json_t *value = json_loadb(result->value.data, result->value.size,
				   JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	if (json_is_string(value))
		fwrite(json_string_value(value), 1, json_string_length(value), stdout);
	else if (!json_is_null(value))
		fwrite(result->value.data, 1, result->value.size, stdout);
	if (!json_is_null(value))
		putchar('\n');
	json_decref(value);
	return fflush(stdout) < 0 ? CLI_FAILED : CLI_OK;
}

static int tell(const struct cli *cli, const struct eval_result *result)
{
	if (cli->options.json)
		return tell_json(result);
	if (result->output.size > 0)
		fwrite(result->output.data, 1, result->output.size, stdout);
	if (result->value.data)
		return tell_value(result);
	fflush(stdout);
	fputs("caisson: ", stderr);
	out_text(stderr, result->reason.data ? (const char *)result->reason.data : "");
	fputc('\n', stderr);
	return CLI_FAILED;
}

static int evaluate(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	struct eval_request request = { .medium = cli->options.medium };
	struct eval_result *result = NULL;
	_cleanup_buf_ struct buf code;
	int status;

	buf_init(&code, SESSION_CODE_BYTES);
	if (read_code(cli, &code, err) < 0 || read_timeout(cli, &request.timeout_ms, err) < 0)
		return -1;
	request.code = buf_at(&code);
	request.size = buf_size(&code);
	if (eval_call(sandbox, &request, &result, err) < 0)
		return -1;
	status = tell(cli, result);
	csn_free(result);
	return status;
}

/* ---- where ----------------------------------------------------------------------------------- */

/* As libcaisson would start one, but for the exec: this program is the monitor's already. */
static _Noreturn void become_monitor(struct cli *cli, int fd)
{
	struct up up = UP_NONE;
	struct csn_error err = { 0 };
	char number[16];

	snprintf(number, sizeof number, "%d", fd);
	cli->options.fd = number;
	up.owner = fd;
	if (up_leave_caller() < 0)
		_exit(CLI_NOT_STARTED);
	if (up_become(cli, &up, &err) < 0 && !up.error.code)
		up_refuse(&cli->options, &err);
	_exit(CLI_OK);
}

static int evaluate_alone(struct cli *cli)
{
	csn_error failure = { 0 };
	csn_sandbox *sandbox;
	int pair[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		call_misuse(&failure, "cannot make a socket");
		return call_failed(cli, &failure);
	}
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		fd_set_nonblock(pair[1], 1);
		become_monitor(cli, pair[1]);
	}
	close(pair[1]);
	sandbox = pid < 0 ? NULL : csn_adopt(pair[0], &failure);
	status = sandbox ? evaluate(cli, sandbox, &failure) : -1;
	csn_close(sandbox);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return status >= 0 ? status : call_failed(cli, &failure);
}

static int evaluate_in(struct cli *cli, const char *name)
{
	struct csn_error err = { 0 };

	if (!changes_is_living(name) && up_named(cli, name, NULL, &err) < 0)
		return cli_fail(cli, &err);
	return call_named(cli, name, evaluate);
}

/* ---- --describe ------------------------------------------------------------------------------ */

static void print_parts(const struct surface_part *parts)
{
	for (; parts->names; parts++)
		printf("  %s%s%s\n", parts->table ? parts->table : "", parts->table ? ": " : "",
		       parts->names);
}

static int describe(const struct medium *medium)
{
	printf("medium %s, sandbox port\n\n%s\nThere is:\n", medium->name, medium->notes);
	print_parts(medium->allowed);
	puts("\nRestricted (* is all of it):");
	print_parts(medium->refused);
	puts("\nGates; those of the policy take one table of names and values:");
	for (size_t i = 0; i < builtin_count; i++) {
		const struct builtin *gate = &builtins[i];

		printf("  %s(%s%s%s): %s%s\n", gate->name, gate->params[0],
		       gate->params[1] ? ", " : "", gate->params[1] ? gate->params[1] : "",
		       gate->what, gate->needs_root ? " (where there is one)" : "");
	}
	printf("\nBounds: %d bytes of source, %d of output, %d of memory, %d steps, %d s unless "
	       "--timeout says otherwise\n",
	       SURFACE_SOURCE, SURFACE_OUTPUT, SURFACE_MEMORY, SURFACE_STEPS,
	       SESSION_TIMEOUT_MS / 1000);
	return CLI_OK;
}

static int refuse(const struct cli *cli, const char *sentence)
{
	struct csn_error err = { 0 };

	csn_fail(&err, -EINVAL, "usage", "%s", sentence);
	return cli_misuse(cli, &err);
}

int cli_eval(struct cli *cli)
{
	const struct cli_options *options = &cli->options;
	const char *name = options->medium;
	const struct medium *medium = name ? media_find(name, strlen(name)) : NULL;

	if (!medium)
		return refuse(cli, "--medium names what the code is written in; there is: lua");
	if (options->variant && !str_is(options->variant, "port"))
		return refuse(cli, "--sandbox: there is only port yet, restricted and in a process "
				   "of its own behind the wall");
	if (options->describe)
		return describe(medium);
	return options->session ? evaluate_in(cli, options->session) : evaluate_alone(cli);
}
