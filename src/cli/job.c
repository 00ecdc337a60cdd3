/*
 * caisson job start, resume, extend: this process is the launcher, and holds the job's lock
 */
#include "cli/job.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/files.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/out.h"
#include "jobs/money.h"
#include "jobs/state.h"

enum { BUSY_TRIES = 50, BUSY_PAUSE_NS = 100000000, RESULT_MAX = 16 << 20 };

static void print_outcome(const struct cli *cli, const char *id, const struct job_outcome *outcome)
{
	const struct book *book = &outcome->book;
	char cost[MONEY_TEXT];

	if (cli->options.json) {
		out_json(json_pack("{s:s, s:s, s:s, s:i, s:o, s:o}", "run_id", id, "status",
				   outcome->state, "reason", outcome->reason, "exit_status",
				   outcome->status, "books", book_json(book), "limits",
				   book_limits_json(&book->limits)));
		return;
	}
	if (outcome->error.code) {
		fputs("caisson: ", stderr);
		out_text(stderr, outcome->error.text);
		fputc('\n', stderr);
	}
	if (cli->options.quiet)
		return;
	money_format(book->cost_nano, cost);
	fprintf(stderr, "caisson: job %s: %s%s%s; iteration %lld, %s, %lld tokens, %lld s\n", id,
		outcome->state, outcome->reason[0] ? ": " : "", outcome->reason,
		(long long)book->iteration, cost, (long long)book->tokens,
		(long long)(book->wall_ms / 1000));
}

/* With a command that may be pasted, so with the folder it has to look in. */
static void print_running(const struct cli *cli, const char *id)
{
	char word[PATH_MAX * 4] = "";

	if (cli->options.run_dir && str_shell_word(cli->options.run_dir, word, sizeof word) < 0)
		snprintf(word, sizeof word, "DIR");
	fprintf(stderr, "caisson: job %s: running; `caisson job logs -f %s%s%s%s` follows it\n", id,
		word[0] ? "--run-dir " : "", word, word[0] ? " " : "", id);
}

/* The record is closed afterwards. */
static int launch(const struct cli *cli, struct record *record, const struct job_order *order,
		  int *ret_status, struct csn_error *err)
{
	struct job_outcome outcome;
	char id[RUN_ID_SIZE];
	int r;

	snprintf(id, sizeof id, "%s", record->run_id);
	if (!cli->options.quiet && !cli->options.json)
		print_running(cli, id);
	r = job_launch(record, order, &outcome, err);
	if (r < 0)
		return r;
	print_outcome(cli, id, &outcome);
	*ret_status = outcome.status;
	return 0;
}

static int choose_id(const struct cli *cli, char ret_id[RUN_ID_SIZE], struct csn_error *err)
{
	const char *given = cli->options.job.run_id;
	char run_id[RUN_ID_SIZE];

	if (!given && record_make_id(run_id, sizeof run_id) < 0)
		return csn_fail(err, -EIO, "job", "no id could be made");
	if (given && !record_is_job_id(given))
		return csn_fail(
			err, -EINVAL, "job",
			"--run-id %.60s: at most %d letters, digits, '-', '_', '.', the first "
			"a letter or a digit, and not of a run's form",
			given, RUN_ID_SIZE - 1);
	snprintf(ret_id, RUN_ID_SIZE, "%s%.34s", given ? "" : "job-", given ? "" : run_id);
	if (given)
		snprintf(ret_id, RUN_ID_SIZE, "%s", given);
	return 0;
}

static int start(struct cli *cli, json_t *config, int *ret_status, struct csn_error *err)
{
	struct book_limits limits = BOOK_UNLIMITED;
	struct job_decision decision;
	struct record record;
	char id[RUN_ID_SIZE];
	int r = choose_id(cli, id, err);

	if (r == 0)
		r = job_take_limits(cli, &limits, err);
	if (r < 0)
		return r;
	r = job_decide(cli, id, config, &decision, err);
	if (r == 0)
		r = record_open_job(&record, decision.order.run_root, id, err);
	if (r == 0) {
		job_started(&record, config, &limits);
		r = launch(cli, &record, &decision.order, ret_status, err);
	}
	job_decision_done(&decision);
	return r;
}

int cli_job_start(struct cli *cli)
{
	struct csn_error err = { 0 };
	json_t *config = NULL;
	int status = 0, r = job_config(cli, &config, &err);

	if (r < 0 && str_is(err.stage, "usage"))
		return cli_misuse(cli, &err);
	if (r == 0)
		r = start(cli, config, &status, &err);
	json_decref(config);
	return r < 0 ? cli_fail(cli, &err) : status;
}

/* ---- again ---------------------------------------------------------------------------------- */

/* A state that a dying disk tore names nobody: who holds the folder may be what a kill left. */
static bool names_launcher(const struct job_place *place)
{
	_cleanup_fd_ int dir_fd = files_open_dir(place->root_fd, place->id);
	json_t *state = NULL;
	bool names;

	if (dir_fd < 0 || state_read(dir_fd, &state) < 0)
		return false;
	names = json_integer_value(json_object_get(state, "pid")) > 0;
	json_decref(state);
	return names;
}

/* One whose launcher was killed a moment ago is still being swept. */
static int reopen(const struct job_place *place, struct record *record, struct csn_error *err)
{
	int r = -EBUSY;

	for (int i = 0; i < BUSY_TRIES && r == -EBUSY; i++) {
		if (i)
			nanosleep(&(struct timespec){ .tv_nsec = BUSY_PAUSE_NS }, NULL);
		r = record_reopen(record, place->root_fd, place->id, err);
		if (r == -EBUSY && !strstr(err->text, "ending") && names_launcher(place))
			break;
	}
	return r;
}

static int read_past(const struct job_place *place, struct past *ret_past, struct csn_error *err)
{
	_cleanup_fd_ int dir_fd = files_open_dir(place->root_fd, place->id);

	if (dir_fd < 0)
		return files_fail(err, dir_fd, "open the job", place->id);
	return past_read(dir_fd, -1, ret_past, err);
}

/* Another worker, or other forwards, where flags and words say so. */
static json_t *config_now(const struct cli *cli, const struct past *past)
{
	json_t *config = json_deep_copy(past->config), *worker;

	if (cli->options.forwards.count > 0)
		json_object_set_new(config, "forwards", job_forwards(&cli->options.forwards));
	if (cli->arg_count < 2)
		return config;
	worker = json_array();
	for (int i = 1; i < cli->arg_count; i++)
		json_array_append_new(worker, json_string(cli->args[i]));
	json_object_set_new(config, "worker", worker);
	return config;
}

/* A job that goes on. */
struct again {
	struct job_place place;
	struct past past;
	json_t *config; /* owned */
};

static int resume(struct cli *cli, const struct again *again, int *ret_status,
		  struct csn_error *err)
{
	struct book_limits limits = again->past.book.limits;
	struct job_decision decision;
	struct record record;
	int changed = job_take_limits(cli, &limits, err), r = changed;

	if (r < 0)
		return r;
	r = job_check(again->place.id, &again->past, &limits, err);
	if (r < 0)
		return r;
	r = job_decide(cli, again->place.id, again->config, &decision, err);
	if (r == 0)
		r = reopen(&again->place, &record, err);
	if (r == 0) {
		if (changed)
			r = job_extended(&record, &again->past, &limits, err);
		if (r == 0)
			r = launch(cli, &record, &decision.order, ret_status, err);
		else
			record_done(&record);
	}
	job_decision_done(&decision);
	return r;
}

int cli_job_resume(struct cli *cli)
{
	struct again again = { .place = JOB_PLACE_NONE };
	struct csn_error err = { 0 };
	int status = 0, r = job_place_open(cli, cli->args[0], &again.place, &err);

	if (r == 0)
		r = read_past(&again.place, &again.past, &err);
	if (r == 0) {
		again.config = config_now(cli, &again.past);
		r = resume(cli, &again, &status, &err);
	}
	json_decref(again.config);
	past_done(&again.past);
	job_place_done(&again.place);
	return r < 0 ? cli_fail(cli, &err) : status;
}

static int extend(struct cli *cli, const struct job_place *place, struct past *past,
		  struct csn_error *err)
{
	_cleanup_fd_ int dir_fd = files_open_dir(place->root_fd, place->id);
	json_t *result = NULL;
	struct record record;
	int r, count;

	if (dir_fd >= 0)
		files_read_json(dir_fd, "result.json", RESULT_MAX, &result);
	r = reopen(place, &record, err);
	if (r < 0) {
		json_decref(result);
		return r;
	}
	r = past_read(record.dir_fd, -1, past, err); /* as it is now that nobody else has it */
	if (r == 0) {
		struct book_limits limits = past->book.limits;

		count = job_take_limits(cli, &limits, err);
		r = count < 0 ? count : 0;
		if (r == 0 && count == 0)
			r = csn_fail(
				err, -EINVAL, "usage",
				"say what is extended: --add-cost-usd 5, --max-iterations 200");
		if (r == 0)
			r = job_extended(&record, past, &limits, err);
		if (r == 0)
			past->book.limits = limits;
		count = job_close(&record, past, result, r < 0 ? NULL : err);
		r = r < 0 ? r : count;
	}
	record_done(&record);
	json_decref(result);
	return r;
}

int cli_job_extend(struct cli *cli)
{
	_cleanup_job_place_ struct job_place place = JOB_PLACE_NONE;
	struct csn_error err = { 0 };
	struct past past = { 0 };
	int r = job_place_open(cli, cli->args[0], &place, &err);

	if (r == 0)
		r = extend(cli, &place, &past, &err);
	if (r == 0 && cli->options.json)
		out_json(json_pack("{s:s, s:o}", "run_id", place.id, "limits",
				   book_limits_json(&past.book.limits)));
	past_done(&past);
	return r < 0 ? cli_fail(cli, &err) : CLI_OK;
}
