/*
 * What a person is told on stderr after a run: why it ended if that was not its own doing, and
 * each kind of denial in one sentence, with the way to the whole account.
 */
#include "cli/summary.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/out.h"

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

/* An end that was not the command's own is said wherever stderr goes: a bare 137 says nothing. */
static bool is_own_end(const char *reason)
{
	return str_is(reason, "exited") || str_is(reason, "signaled") ||
	       str_is(reason, "start_failed");
}

static void print_ending(const struct cli *cli, const json_t *result)
{
	const json_t *termination = json_object_get(result, "termination");
	const char *reason = text_of(termination, "reason"), *clock = text_of(termination, "clock");
	double wall =
		json_number_value(json_object_get(json_object_get(result, "usage"), "wall_ms"));

	if (is_own_end(reason) ? !(cli->options.verbose && is_shown(cli)) : cli->options.quiet)
		return;
	fprintf(stderr, "%scaisson:%s ended: %s%s%s after %.2f s\n",
		out_color(cli, stderr, OUT_BOLD), out_plain(cli, stderr), reason,
		*clock ? ", clock " : "", clock, wall / 1000.0);
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

static void print_violations(const struct cli *cli, const struct run_outcome *outcome)
{
	const json_t *list = json_object_get(outcome->result, "violations");
	size_t total = 0, shown = 0;

	for (size_t i = 0; i < json_array_size(list); i++)
		total += !json_is_true(json_object_get(json_array_get(list, i), "expected"));
	if (total == 0)
		return;
	fprintf(stderr, "%scaisson:%s %zu kind%s of attempt denied\n",
		out_color(cli, stderr, OUT_BOLD), out_plain(cli, stderr), total,
		total == 1 ? "" : "s");
	for (size_t i = 0; i < json_array_size(list) && shown < SHOWN; i++) {
		const json_t *violation = json_array_get(list, i);

		if (json_is_true(json_object_get(violation, "expected")))
			continue;
		print_violation(cli, violation);
		shown++;
	}
	if (outcome->is_recorded)
		fprintf(stderr, "  %s%s: caisson why %s\n",
			total > shown ? "more, and the rules" : "the rules behind them", "",
			outcome->run_id);
}

void summary_print(const struct cli *cli, const struct plan *plan,
		   const struct run_outcome *outcome)
{
	(void)plan;
	if (outcome->error.code) {
		fputs("caisson: ", stderr);
		out_text(stderr, outcome->error.text);
		fputc('\n', stderr);
	}
	if (str_is(text_of(outcome->result, "backend"), "local") && !cli->options.quiet)
		fprintf(stderr, "caisson: tier local: there was no wall, the command had every "
				"right of yours\n");
	print_ending(cli, outcome->result);
	if (is_shown(cli))
		print_violations(cli, outcome);
}
