/*
 * What a person is told on stderr after a run: why it ended if that was not its own doing, and
 * each kind of denial in one sentence, with the way to the whole account.
 */
#include "cli/summary.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/str.h"
#include "cli/out.h"
#include "cli/runs.h"

enum { SHOWN = 5 };

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool is_shown(const struct cli *cli)
{
	return !cli->options.quiet && (cli->options.verbose || isatty(STDERR_FILENO));
}

/*
 * An end that was not the command's own is said wherever stderr goes: a bare 137 says nothing. A
 * signal is the command's own, and told to a person as a shell would.
 */
static bool is_ending_said(const struct cli *cli, const char *reason)
{
	if (str_is(reason, "exited") || str_is(reason, "start_failed"))
		return cli->options.verbose && is_shown(cli);
	return str_is(reason, "signaled") ? is_shown(cli) : !cli->options.quiet;
}

static void print_ending(const struct cli *cli, const json_t *result)
{
	const json_t *usage = json_object_get(result, "usage");
	const char *reason = text_of(json_object_get(result, "termination"), "reason");
	double wall = json_number_value(json_object_get(usage, "wall_ms"));
	char end[64];

	if (!is_ending_said(cli, reason))
		return;
	run_describe_end(result, end, sizeof end);
	fprintf(stderr, "%scaisson:%s ended: %s after %.2f s\n", out_color(cli, stderr, OUT_BOLD),
		out_plain(cli, stderr), end, wall / 1000.0);
}

static void print_violation(const struct cli *cli, const json_t *violation)
{
	json_int_t count = json_integer_value(json_object_get(violation, "count"));

	fprintf(stderr, "  %s%s%s ", out_color(cli, stderr, OUT_YELLOW),
		text_of(violation, "event"), out_plain(cli, stderr));
	if (count > 1)
		fprintf(stderr, "(%lld times) ", (long long)count);
	out_text(stderr, text_of(violation, "say"));
	fputc('\n', stderr);
}

/* What kind of fact: an attempt, a bound that was met, or what our own sentence told already. */
static enum kind { KIND_ATTEMPT, KIND_BOUND, KIND_TOLD } kind_of(const json_t *violation)
{
	const char *event = text_of(violation, "event");

	if (json_is_true(json_object_get(violation, "expected")) || str_starts(event, "StrictMode"))
		return KIND_TOLD;
	return strstr(event, "Limit") || str_starts(event, "Timeout") ? KIND_BOUND : KIND_ATTEMPT;
}

/* "2 kinds of attempt denied, 1 limit met" */
static void print_counts(const struct cli *cli, size_t attempts, size_t bounds)
{
	fprintf(stderr, "%scaisson:%s ", out_color(cli, stderr, OUT_BOLD), out_plain(cli, stderr));
	if (attempts)
		fprintf(stderr, "%zu kind%s of attempt denied%s", attempts,
			attempts == 1 ? "" : "s", bounds ? ", " : "");
	if (bounds)
		fprintf(stderr, "%zu limit%s met", bounds, bounds == 1 ? "" : "s");
	fputc('\n', stderr);
}

static void print_violations(const struct cli *cli, const struct run_outcome *outcome)
{
	const json_t *list = json_object_get(outcome->result, "violations"), *violation;
	size_t counts[] = { 0, 0, 0 }, total, shown = 0, i;

	json_array_foreach(list, i, violation)
		counts[kind_of(violation)]++;
	total = counts[KIND_ATTEMPT] + counts[KIND_BOUND];
	if (total == 0)
		return;
	print_counts(cli, counts[KIND_ATTEMPT], counts[KIND_BOUND]);
	json_array_foreach(list, i, violation)
		if (shown < SHOWN && kind_of(violation) != KIND_TOLD) {
			print_violation(cli, violation);
			shown++;
		}
	if (outcome->is_recorded)
		fprintf(stderr, "  %s: caisson why %s\n",
			total > shown ? "more, and the rules" : "the rules behind them",
			outcome->run_id);
}

static void print_own(const struct cli *cli)
{
	fprintf(stderr, "%scaisson:%s ", out_color(cli, stderr, OUT_RED), out_plain(cli, stderr));
}

/* What only a shell understands. */
static const char shell_marks[] = "|&;<>()$`\\\"'*?[]#~={}\n";

/* A whole command line in one word: the name of no program. */
static bool is_line(const struct cli *cli, const struct run_outcome *outcome)
{
	return outcome->status == 127 && !cli->options.text && cli->arg_count == 1 &&
	       (strpbrk(cli->args[0], " \t\n") || strpbrk(cli->args[0], "|&;<>"));
}

static void print_line(const struct cli *cli)
{
	const char *line = cli->args[0];
	bool has_quote = strchr(line, '\'');

	print_own(cli);
	fputc('"', stderr);
	out_text(stderr, line);
	fputs("\" is one word, and no program inside has that name. ", stderr);
	if (!strpbrk(line, shell_marks)) {
		fputs("As a program and its arguments: caisson run -- ", stderr);
		out_text(stderr, line);
		fputs("; as text", stderr);
	} else {
		fputs("As text", stderr);
	}
	fputs(" for a shell: caisson run -c ", stderr);
	fputs(has_quote ? "TEXT" : "'", stderr);
	if (!has_quote)
		out_text(stderr, line);
	fputs(has_quote ? "\n" : "'\n", stderr);
}

/* A program of this machine's by its name, through PATH. */
static bool find_here(const char *name, char *ret_path)
{
	const char *path = getenv("PATH");
	struct stat st;

	while (path && *path && !strchr(name, '/')) {
		size_t n = strcspn(path, ":");

		if (path[0] == '/' &&
		    snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)n, path, name) < PATH_MAX &&
		    stat(ret_path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

/* Does something that was shown hold it? Then it lacks something else. */
static bool was_shown(const json_t *result, const char *path)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(result, "toolchains"), i, item)
		if (path_is_beneath(path, json_string_value(item)))
			return true;
	json_array_foreach(json_object_get(result, "mounts"), i, item)
		if (path_is_beneath(path, text_of(item, "host")))
			return true;
	return path_is_beneath(path, "/usr") || path_is_beneath(path, "/bin") ||
	       path_is_beneath(path, "/sbin");
}

/* A program that is here and was not shown: where it is, and how to lend it. */
static bool is_hidden(const struct cli *cli, const struct run_outcome *outcome, char *ret_path)
{
	return outcome->status == 127 && !cli->options.text && cli->arg_count > 0 &&
	       find_here(cli->args[0], ret_path) && !was_shown(outcome->result, ret_path);
}

static void print_hidden(const struct cli *cli, const char *path)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof folder, "%s", path);
	*strrchr(folder, '/') = 0;
	print_own(cli);
	out_text(stderr, cli->args[0]);
	fputs(" lies in ", stderr);
	out_text(stderr, folder);
	fputs(", which is not shown inside. To lend that folder: caisson run -m ", stderr);
	out_text(stderr, folder);
	fputc(':', stderr);
	out_text(stderr, folder);
	fputs(" -- ", stderr);
	out_text(stderr, path);
	fputs(cli->arg_count > 1 ? " …\n" : "\n", stderr);
}

static void print_error(const struct cli *cli, const struct run_outcome *outcome)
{
	print_own(cli);
	out_text(stderr, outcome->error.text);
	fputc('\n', stderr);
}

void summary_print(const struct cli *cli, const struct run_outcome *outcome)
{
	char path[PATH_MAX];

	if (is_line(cli, outcome))
		print_line(cli);
	else if (is_hidden(cli, outcome, path))
		print_hidden(cli, path);
	else if (outcome->error.code)
		print_error(cli, outcome);
	if (str_is(text_of(outcome->result, "backend"), "local") && !cli->options.quiet)
		fprintf(stderr, "caisson: tier local: there was no wall, the command had every "
				"right of yours\n");
	print_ending(cli, outcome->result);
	if (is_shown(cli))
		print_violations(cli, outcome);
}
