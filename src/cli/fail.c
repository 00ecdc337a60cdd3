/*
 * How a command of ours ends badly
 *
 * One sentence on stderr for a person. A program that asked for JSON gets the same as an
 * `error` object, and a command that starts a sandbox leaves a result with that object
 * where --result says, so that status 125 never comes alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/errno_name.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/out.h"

enum { ERROR_TEXT_MAX = 4096 };

static json_t *error_object(const struct csn_error *err)
{
	return json_pack("{s:s, s:s, s:s}", "code", errno_name(err->code), "stage", err->stage,
			 "text", err->text);
}

/* A result of nothing: what a reader of caisson.result/1 needs to see that nothing ran. */
static json_t *error_result(const struct csn_error *err)
{
	return json_pack("{s:s, s:n, s:n, s:{s:s, s:n, s:n, s:n, s:n}, s:[], s:o}", "schema",
			 "caisson.result/1", "run_id", "sandbox_id", "termination", "reason",
			 "start_failed", "clock", "exit_code", "signal", "signal_name",
			 "violations", "error", error_object(err));
}

static void write_result(const char *path, json_t *result)
{
	_cleanup_fd_ int fd = -1;
	char *text = result ? json_dumps(result, JSON_INDENT(2)) : NULL;

	if (text && str_is(path, "-")) {
		puts(text);
	} else if (text) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
		if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0 ||
		    fd_write_all(fd, "\n", 1) < 0)
			fprintf(stderr, "caisson: cannot write the result to %s: %s\n", path,
				strerror(errno));
	}
	free(text);
	json_decref(result);
}

int cli_fail(const struct cli *cli, const struct csn_error *err)
{
	_cleanup_buf_ struct buf text;

	buf_init(&text, ERROR_TEXT_MAX);
	if (out_escape(&text, err->text, strlen(err->text), true) == 0)
		fprintf(stderr, "%scaisson:%s %s\n", out_color(cli, stderr, OUT_RED),
			out_plain(cli, stderr), buf_text(&text));
	if (cli->command->starts_sandbox) {
		if (cli->options.result || cli->options.json)
			write_result(cli->options.result ? cli->options.result : "-",
				     error_result(err));
		return CLI_NOT_STARTED;
	}
	if (cli->options.json)
		out_json(json_pack("{s:o}", "error", error_object(err)));
	return CLI_FAILED;
}

int cli_misuse(const struct cli *cli, const struct csn_error *err)
{
	int status = cli_fail(cli, err);

	return status == CLI_NOT_STARTED ? status : CLI_USAGE;
}
