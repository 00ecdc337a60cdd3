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

#include "audit/dump.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/out.h"

static json_t *error_object(const struct csn_error *err)
{
	return json_pack("{s:s, s:s, s:s}", "code", error_name(err), "stage", err->stage, "text",
			 err->text);
}

/* A result of nothing: what a reader of caisson.result/1 needs to see that nothing ran. */
static json_t *error_result(const struct csn_error *err)
{
	return json_pack("{s:s, s:n, s:n, s:{s:s, s:n, s:n, s:n, s:n}, s:[], s:o}", "schema",
			 "caisson.result/1", "run_id", "sandbox_id", "termination", "reason",
			 "start_failed", "clock", "exit_code", "signal", "signal_name",
			 "violations", "error", error_object(err));
}

static int write_file(const char *path, const char *text, size_t size)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, size);

	return r < 0 ? r : fd_write_all(fd, "\n", 1);
}

static void write_result(const char *path, json_t *result)
{
	char *text = NULL;
	size_t size;
	int r;

	if (!result || str_is(path, "-")) {
		out_json(result);
		return;
	}
	r = dump_json(result, JSON_INDENT(2), &text, &size);
	if (r == 0)
		r = write_file(path, text, size);
	if (r < 0)
		fprintf(stderr, "caisson: cannot write the result to %s: %s\n", path, strerror(-r));
	free(text);
	json_decref(result);
}

int cli_fail_with(const struct cli *cli, const struct csn_error *err, json_t *more)
{
	fprintf(stderr, "%scaisson:%s %s\n", out_color(cli, stderr, OUT_RED),
		out_plain(cli, stderr), err->text);
	if (cli->command->starts_sandbox) {
		if (cli->options.result || cli->options.json)
			write_result(cli->options.result ? cli->options.result : "-",
				     error_result(err));
		return CLI_NOT_STARTED;
	}
	if (cli->options.json) {
		json_object_set_new(more, "error", error_object(err));
		out_json(json_incref(more));
	}
	return CLI_FAILED;
}

int cli_fail(const struct cli *cli, const struct csn_error *err)
{
	json_t *object = json_object();
	int status = cli_fail_with(cli, err, object);

	json_decref(object);
	return status;
}

int cli_misuse(const struct cli *cli, const struct csn_error *err)
{
	int status = cli_fail(cli, err);

	return status == CLI_NOT_STARTED ? status : CLI_USAGE;
}
