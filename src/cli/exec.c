/*
 * caisson exec, shell: commands in a sandbox that stays
 *
 * The command's output and status are its own, as those of `run`; what was denied is told on
 * stderr.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "serve/answer.h"
#include "cli/call.h"
#include "cli/out.h"
#include "cli/session.h"
#include "cli/tty.h"
#include "monitor/ending.h"
#include "policy/keys.h"

enum { KEEP_BYTES = 64 << 20, PATIENCE_MS = 10000 };

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

/* As for `run`: an end that was not the command's own is said wherever stderr goes, a signal of its
 * own to a person only. A reader who has enough, as head(1), is no news to anybody. */
static bool is_end_said(const struct cli *cli, const csn_exec_result *result, int end_signal)
{
	bool is_person = !cli->options.quiet && (cli->options.verbose || isatty(STDERR_FILENO));

	if (result->reason == CSN_REASON_DETACHED || end_signal == SIGPIPE)
		return false;
	if (result->reason == CSN_REASON_START_FAILED)
		return true;
	if (result->reason == CSN_REASON_EXITED)
		return cli->options.verbose && is_person;
	return result->reason == CSN_REASON_SIGNALED ? is_person : !cli->options.quiet;
}

/* "signal SIGSEGV", "timeout (idle)" */
static void tell_reason(const csn_exec_result *result, int end_signal)
{
	int number = end_signal ? end_signal : result->signal;

	if (result->reason == CSN_REASON_EXITED)
		fprintf(stderr, "exited %d", result->exit_code);
	else if (result->reason == CSN_REASON_SIGNALED)
		fprintf(stderr, "signal %s", ending_signal_name(result->signal));
	else
		out_text(stderr, result->reason_name ? result->reason_name : "lost");
	if (result->reason == CSN_REASON_CANCELLED && number)
		fprintf(stderr, " (%s)", ending_signal_name(number));
	if (result->clock) {
		fprintf(stderr, " (");
		out_text(stderr, result->clock);
		fputc(')', stderr);
	}
}

/* `end_signal`: the one that we were asked to end by, or 0. */
static void tell_end(const struct cli *cli, const csn_exec_result *result, int end_signal)
{
	if (!is_end_said(cli, result, end_signal))
		return;
	fprintf(stderr, "%scaisson:%s ", out_color(cli, stderr, OUT_BOLD), out_plain(cli, stderr));
	if (result->text && (result->reason != CSN_REASON_CANCELLED || !end_signal)) {
		out_text(stderr, result->text);
		fputc('\n', stderr);
		return;
	}
	fprintf(stderr, "ended: ");
	tell_reason(result, end_signal);
	fprintf(stderr, " after %.2f s\n", (double)result->wall_us / 1000000.0);
}

static void tell_violations(const struct cli *cli, const csn_exec_result *result)
{
	for (size_t i = 0; i < result->violation_count && !cli->options.quiet; i++) {
		const csn_violation *violation = &result->violations[i];

		if (violation->expected || !violation->say)
			continue;
		fprintf(stderr, "%scaisson:%s ", out_color(cli, stderr, OUT_BOLD),
			out_plain(cli, stderr));
		out_text(stderr, violation->say);
		fputc('\n', stderr);
	}
}

/* "NAME" passes on ours, as for `run`; borrowed texts and owned ones live as long as we do. */
static int take_env(const struct cli *cli, struct cli_list *ret_env, csn_error *err)
{
	for (size_t i = 0; i < cli->options.env.count; i++) {
		const char *item = cli->options.env.items[i], *value = getenv(item);
		char *pair = NULL, name[256];

		snprintf(name, sizeof name, "%.*s", (int)strcspn(item, "="), item);
		if (!text_is_name(name))
			return call_misuse(err, "--env: not a variable's name, expected letters, "
						"digits and _ (NAME or NAME=VALUE)");

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

/* Of which kind the caller's terminal is, unless a flag says so. */
static int take_term(struct cli_list *env, csn_error *err)
{
	const char *term = getenv("TERM");
	char *pair = NULL;

	for (size_t i = 0; i < env->count; i++)
		if (str_starts(env->items[i], "TERM="))
			return 0;
	if (!term || !*term)
		return 0;
	if (asprintf(&pair, "TERM=%s", term) < 0 || cli_list_add(env, pair) < 0)
		return call_misuse(err, "out of memory");
	return 0;
}

/* Behind a wall without a terminal file system of its own, nothing was started then. */
static int no_terminal(csn_error *err)
{
	return call_misuse(err, "behind this wall a command of a sandbox that stays has no "
				"terminal: `caisson exec --tty never` runs it without one");
}

/* To a person, or to a program; a detached command's tag is what there is to go on with. */
static void tell_result(const struct cli *cli, const csn_exec_request *request,
			const csn_exec_result *result, int end_signal)
{
	json_t *account;

	if (cli->options.json) {
		account = answer_exec(result);
		if (request->tag)
			json_object_set_new(account, "tag",
					    answer_bytes(request->tag, strlen(request->tag)));
		out_json(account);
		return;
	}
	tell_end(cli, result, end_signal);
	tell_violations(cli, result);
	if (result->detached && !cli->options.tag && !cli->options.quiet)
		fprintf(stderr, "caisson: its tag is %s, for logs, wait and kill\n", request->tag);
}

/* A goodbye that is only the name of an ending says little; that of `down` is "cancelled". */
static int explain_loss(int r, csn_error *err)
{
	char why[64];

	if (r != -CSN_LOST || strchr(err->text, ' '))
		return r;
	snprintf(why, sizeof why, "%.60s", err->text);
	snprintf(err->text, sizeof err->text, "the sandbox was ended meanwhile%s%s",
		 str_is(why, "cancelled") ? "" : ": ", str_is(why, "cancelled") ? "" : why);
	return r;
}

/* What a call without a result comes to: a status, or negative with the sentence. */
static int fail(const struct session *session, int r, csn_error *err)
{
	if (session->end_signal)
		return session_status(session, 0);
	if (r == -CSN_EAGAIN && session->has_read)
		return -1;
	return explain_loss(r, err);
}

/* With our streams, and our terminal if it has one; `may_do_without`: or, if it cannot, with none.
 */
static int converse(const struct cli *cli, csn_sandbox *sandbox, csn_exec_request *request,
		    bool may_do_without, csn_error *err)
{
	bool has_tty = request->has_tty;
	csn_exec_result *result = NULL;
	struct session session;
	int r = session_begin(&session, sandbox, has_tty, err), status;

	if (r < 0)
		return r;
	session_request(&session, request);
	if (cli->options.json) {
		request->on_output = NULL;
		request->keep_bytes = KEEP_BYTES;
	}
	r = csn_exec(sandbox, request, &result, err);
	session_end(&session);
	if (r == -CSN_EACCES && has_tty && !session.end_signal) {
		if (!may_do_without)
			return no_terminal(err);
		request->has_tty = false;
		return converse(cli, sandbox, request, false, err);
	}
	if (r < 0)
		return fail(&session, r, err);
	tell_result(cli, request, result, session.end_signal);
	status = request->detach && result->reason != CSN_REASON_START_FAILED ? CLI_OK
									      : status_of(result);
	csn_free(result);
	return session_status(&session, status);
}

/* Too many calls at once, of others: they end. Input that was read already would be missing. */
static int converse_patiently(const struct cli *cli, csn_sandbox *sandbox,
			      csn_exec_request *request, bool may_do_without, csn_error *err)
{
	uint64_t until_ms = clock_now_ms() + PATIENCE_MS;
	long pause_ms = 20;
	int r;

	for (;;) {
		const struct timespec pause = { .tv_nsec = pause_ms * 1000000 };

		r = converse(cli, sandbox, request, may_do_without, err);
		if (r != -CSN_EAGAIN || clock_now_ms() >= until_ms)
			return r;
		nanosleep(&pause, NULL);
		pause_ms = pause_ms < 400 ? 2 * pause_ms : pause_ms;
	}
}

static int take_request(const struct cli *cli, csn_exec_request *request, struct cli_list *env,
			csn_error *err)
{
	int r = take_env(cli, env, err);

	if (r == 0 && request->has_tty)
		r = take_term(env, err);
	request->env = env->items;
	return r < 0 ? r
		     : call_time("timeout", cli->options.call_timeout, &request->call.timeout_ms,
				 err);
}

static int execute(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	const struct cli_options *options = &cli->options;
	csn_exec_request request = {
		.argv = options->text ? NULL : (const char *const *)cli->args + 1,
		.command = options->text,
		.cwd = options->cwd,
		.has_tty = !options->json && tty_is_wanted(options),
		.detach = options->detach,
		.tag = options->tag,
	};
	struct cli_list env = { 0 };
	char tag[32];

	if (!options->text == (cli->arg_count < 2))
		return call_misuse(err, options->text
						? "give either -c TEXT or a command, not both"
						: "a command is missing: caisson exec NAME -- ls");
	if (options->detach && !options->tag) {
		snprintf(tag, sizeof tag, "d%d", (int)getpid());
		request.tag = tag;
	}
	if (take_request(cli, &request, &env, err) < 0)
		return -1;
	return converse_patiently(cli, sandbox, &request,
				  !options->tty || str_is(options->tty, "auto"), err);
}

/* bash where there is one, else sh. Its prompt says where one is; a socket's path is no name. */
static int open_shell(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_exec_request request = { .cwd = cli->options.cwd, .has_tty = isatty(STDIN_FILENO) };
	const char *name = strchr(cli->args[0], '/') ? "caisson" : cli->args[0];
	struct cli_list env = { 0 };
	char text[512];

	if (!request.has_tty && !cli->options.quiet)
		fprintf(stderr, "caisson: stdin is no terminal: commands are read from it, and "
				"there is no prompt\n");
	snprintf(text, sizeof text,
		 "if command -v bash >/dev/null; then export PS1='%s:\\w\\$ '; exec bash%s; fi\n"
		 "export PS1='%s$ '; exec sh%s",
		 name, request.has_tty ? " -i" : " -s", name, request.has_tty ? " -i" : " -s");
	request.command = text;
	if (take_request(cli, &request, &env, err) < 0)
		return -1;
	return converse_patiently(cli, sandbox, &request, false, err);
}

int cli_exec(struct cli *cli)
{
	return call_verb(cli, execute);
}

int cli_shell(struct cli *cli)
{
	return call_verb(cli, open_shell);
}
