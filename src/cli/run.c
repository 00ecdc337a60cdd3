/*
 * caisson run: from flags and policy to a plan, through the monitor, to a status
 *
 * This process becomes the monitor. The command's streams are never mixed with ours: what we
 * say goes to stderr, before it starts or after it ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/dump.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/approve.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cli/project.h"
#include "cli/summary.h"
#include "cli/tty.h"
#include "cli/walls.h"
#include "monitor/run.h"

extern char **environ;

/* The caller's folder as it is called inside; the workspace's top when it lies elsewhere. */
static int inside_cwd(const struct plan *plan, const char *cwd, char *ret_path, size_t size)
{
	const struct plan_workspace *ws = &plan->workspace;
	const char *tail;

	if (!ws->host)
		return snprintf(ret_path, size, "/tmp") < (int)size ? 0 : -ENAMETOOLONG;
	tail = path_is_beneath(cwd, ws->host) ? path_tail(cwd, ws->host) : "";
	return snprintf(ret_path, size, "%s%s%s", ws->at, *tail ? "/" : "", tail) < (int)size
		       ? 0
		       : -ENAMETOOLONG;
}

static int open_stdin(const struct cli_options *options, int *ret_fd, struct csn_error *err)
{
	int fd = tty_unless_closed(STDIN_FILENO);

	if (options->stdin_file) {
		fd = open(options->stdin_file, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return csn_fail(err, -errno, "stdin", "cannot read %s: %m",
					options->stdin_file);
	}
	*ret_fd = fd;
	return 0;
}

static const char *result_path(const struct cli_options *options)
{
	if (options->result)
		return options->result;
	return options->json ? "-" : NULL;
}

static int write_result(const char *path, json_t *result, struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	char *text = NULL;
	size_t size;
	int r = dump_json(result, JSON_INDENT(2), &text, &size);

	if (r >= 0 && !str_is(path, "-")) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
		r = fd < 0 ? -errno : 0;
	}
	if (r >= 0)
		r = fd_write_all(fd < 0 ? STDOUT_FILENO : fd, text, size);
	if (r >= 0)
		r = fd_write_all(fd < 0 ? STDOUT_FILENO : fd, "\n", 1);
	free(text);
	errno = -r;
	return r < 0 ? csn_fail(err, r, "result", "cannot write the result to %s: %m", path) : 0;
}

static int report(const struct cli *cli, const struct run_outcome *outcome)
{
	const char *path = result_path(&cli->options);
	struct csn_error err = { 0 };

	summary_print(cli, outcome);
	if (path && write_result(path, outcome->result, &err) < 0) {
		fprintf(stderr, "caisson: %s\n", err.text);
		return outcome->status ? outcome->status : CLI_NOT_STARTED;
	}
	return outcome->status;
}

static int execute(const struct cli *cli, const struct plan *plan, const char *cwd,
		   const struct cli_policy *policy, struct csn_error *err)
{
	const char *result = result_path(&cli->options);
	bool is_piped = result && str_is(result, "-");
	struct run_setup setup = {
		.plan = plan,
		.argv = cli->options.text ? NULL : (const char *const *)cli->args,
		.text = cli->options.text,
		.cwd = cwd,
		.host_cwd = policy->project.cwd,
		.caller_env = (const char *const *)environ,
		.stdout_fd = is_piped ? -1 : tty_unless_closed(STDOUT_FILENO),
		.stderr_fd = is_piped ? -1 : tty_unless_closed(STDERR_FILENO),
		.tty_fd = -1,
		.run_root = cli->options.no_record ? NULL : policy->project.run_root,
		.hidden_root = policy->project.run_root,
		.hidden_place = policy->project.place,
		.tags = cli->options.tags.items,
	};
	_cleanup_approval_ struct approval approval = { 0 };
	struct run_outcome outcome;
	struct tty tty = { .fd = -1 };
	int r = open_stdin(&cli->options, &setup.stdin_fd, err);

	if (tty_is_wanted(&cli->options))
		setup.tty_fd = STDIN_FILENO;
	if (r == 0)
		r = approve_start(&cli->options, policy, &setup, &approval, err);
	if (r < 0)
		return r;
	if (setup.tty_fd >= 0)
		tty_enter(&tty, setup.tty_fd);
	r = run_execute(&setup, &outcome);
	tty_leave(&tty);
	if (r < 0)
		return csn_fail(err, r, "result", "out of memory");
	r = report(cli, &outcome);
	run_outcome_done(&outcome);
	return r;
}

int cli_run(struct cli *cli)
{
	struct cli_policy policy;
	struct csn_error err = { 0 };
	struct plan plan;
	char cwd[PATH_MAX];
	int r;

	if (!cli->options.text == (cli->arg_count == 0)) {
		csn_fail(&err, -EINVAL, "usage",
			 cli->options.text
				 ? "give either -c TEXT or a command, not both"
				 : "a command is missing: caisson run -- python3 script.py");
		return cli_misuse(cli, &err);
	}
	r = walls_check_built(&cli->options, &err);
	if (r == 0)
		r = cli_load_policy(&cli->options, &policy, &err);
	if (r < 0)
		return cli_fail(cli, &err);
	r = cli_decide(&cli->options, &policy, cli->args, &plan, &err);
	if (r >= 0) {
		r = inside_cwd(&plan, policy.project.cwd, cwd, sizeof cwd);
		if (r >= 0)
			r = execute(cli, &plan, cwd, &policy, &err);
		plan_done(&plan);
	}
	cli_policy_done(&policy);
	return r < 0 ? cli_fail(cli, &err) : r;
}
