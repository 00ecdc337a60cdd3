/*
 * A job's launch, from its chain to its account; see job.h. What happens in between is in live.c.
 */
#include "jobs/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/files.h"
#include "base/tree.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "jobs/iterations.h"
#include "jobs/live.h"
#include "jobs/state.h"

/* What the worker is told beside what the plan gives it; in the plan's arena. NULL: out of memory.
 */
static const char *const *variables(const struct live *live)
{
	struct plan *plan = live->order->plan;
	struct arena *arena = &plan->arena;
	const char *const pairs[][2] = {
		{ "CAISSON_RUN_ID", live->run_id },
		{ "CAISSON_RUN_DIR", plan->workspace.at },
		{ "CAISSON_DATA_DIR", plan->mount_count ? plan->mounts[0].at : "" },
		{ "CAISSON_STATE", arena_printf(arena, "%s/state.json", plan->workspace.at) },
		{ "CAISSON_PERMISSION_MODE", live->order->permission_mode },
		{ "CAISSON_REPORT_FD", "3" },
		{ "CAISSON_REPORT_SEQ",
		  arena_printf(arena, "%lld", (long long)live->book->report_seq) },
		{ "CAISSON_CHECKPOINT", live->book->checkpoint },
	};
	const char **env = arena_array(arena, ARRAY_SIZE(pairs) + 1, sizeof *env);

	for (size_t i = 0; env && i < ARRAY_SIZE(pairs); i++) {
		env[i] =
			pairs[i][1] ? arena_printf(arena, "%s=%s", pairs[i][0], pairs[i][1]) : NULL;
		if (!env[i])
			return NULL;
	}
	return env;
}

/* ---- the record ----------------------------------------------------------------------------- */

/* Adds a line and waits for the disk. */
static void add(struct record *record, enum audit_event event, json_t *payload)
{
	chain_add(&record->chain, event, payload);
	chain_flush(&record->chain);
	if (record->chain.fd >= 0)
		fdatasync(record->chain.fd);
}

void job_started(struct record *record, json_t *config, const struct book_limits *limits)
{
	struct book book = { .limits = *limits };

	add(record, EVENT_JOB_STARTED,
	    json_pack("{s:O, s:o, s:o}", "config", config, "limits", book_limits_json(limits),
		      "books", book_json(&book)));
}

int job_extended(struct record *record, const struct past *past, const struct book_limits *limits,
		 struct csn_error *err)
{
	add(record, EVENT_JOB_EXTENDED,
	    json_pack("{s:o, s:o, s:o}", "limits", book_limits_json(limits), "old",
		      book_limits_json(&past->book.limits), "books", book_json(&past->book)));
	return record->chain.is_incomplete
		       ? files_fail(err, record->chain.error, "write", "logs/events.jsonl")
		       : 0;
}

/* The worker could lay a fifo or a folder where a file of ours is written first. */
static void clear_way(int dir_fd)
{
	static const char *const names[] = { ".result.json.new", ".manifest.json.new",
					     ".state.json.new" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (unlinkat(dir_fd, names[i], 0) < 0 && errno != ENOENT)
			tree_remove(dir_fd, names[i]); /* a folder */
}

/* Closes the record with `result`. From here on the worker is gone. */
static int close_record(struct record *record, const struct past *past, json_t *result,
			struct csn_error *err)
{
	json_t *path;
	size_t i;
	int r;

	json_array_foreach(past->checkpoints, i, path)
		record_keep(record, json_string_value(path), NULL);
	record_shut_job(record->dir_fd);
	clear_way(record->dir_fd);
	record->chain.syncs = true;
	r = record_close(record, result, err);
	record_done(record);
	return r;
}

int job_close(struct record *record, const struct past *past, json_t *result, struct csn_error *err)
{
	_cleanup_fd_ int state_fd = -1;
	const char *status = past->status[0] ? past->status : "made";
	int r;

	clear_way(record->dir_fd);
	state_fd = state_open(record->dir_fd, err);
	if (state_fd < 0)
		return state_fd;
	/* No end in the chain and nobody who runs it: it was lost. */
	status = str_is(status, "running") ? "lost" : status;
	r = live_show(state_fd, past, record->run_id, status, NULL);
	if (r < 0)
		return files_fail(err, r, "write", "state.json");
	if (result)
		json_incref(result);
	else
		result =
			json_pack("{s:s, s:s, s:s, s:o, s:o}", "schema", "caisson.job/1", "run_id",
				  record->run_id, "status", status, "books", book_json(&past->book),
				  "limits", book_limits_json(&past->book.limits));
	r = close_record(record, past, result, err);
	json_decref(result);
	return r;
}

/* ---- a launch ------------------------------------------------------------------------------- */

static void live_init(struct live *live, const struct record *record, const struct job_order *order)
{
	*live = (struct live){ .order = order,
			       .logs_fd = -1,
			       .state_fd = -1,
			       .iterations_fd = -1,
			       .status = "running" };
	snprintf(live->run_id, sizeof live->run_id, "%s", record->run_id);
	report_lines_init(&live->lines);
}

static void live_done(struct live *live)
{
	report_lines_done(&live->lines);
	if (live->logs_fd >= 0)
		output_done(&live->output);
	past_done(&live->past);
	fd_cleanup(&live->logs_fd);
	fd_cleanup(&live->state_fd);
	fd_cleanup(&live->iterations_fd);
}

/* The files beside the chain, mended where a kill left less than the chain says. */
static int open_books(struct live *live, const struct record *record, struct csn_error *err)
{
	int r;

	live->logs_fd = files_open_dir(record->dir_fd, "logs");
	if (live->logs_fd < 0)
		return files_fail(err, live->logs_fd, "open", "logs");
	output_init(&live->output, live->logs_fd, live->order->plan->limits.output_bytes);
	live->iterations_fd = iterations_open(live->logs_fd, err);
	if (live->iterations_fd < 0)
		return live->iterations_fd;
	r = past_read(record->dir_fd, live->iterations_fd, &live->past, err);
	if (r < 0)
		return r;
	live->book = &live->past.book;
	live->wall_before = live->book->wall_ms;
	clear_way(record->dir_fd);
	live->state_fd = state_open(record->dir_fd, err);
	return live->state_fd < 0 ? live->state_fd : 0;
}

int job_check(const char *id, const struct past *past, const struct book_limits *limits,
	      struct csn_error *err)
{
	struct book book = past->book;
	const char *reached;

	book.limits = *limits;
	reached = book_reached(&book);
	if (!reached)
		return 0;
	return csn_fail(err, -EDQUOT, "job",
			"%s of %s is reached: resume with a higher one, or --add-… what it may use "
			"more",
			reached, id);
}

/* The last lines before the worker: from now on it is running, or lost. */
static int begin(struct live *live, struct record *record, struct csn_error *err)
{
	struct past *past = &live->past;
	char now[CLOCK_TEXT];

	clock_format(clock_wall_ms(), now);
	add(record, EVENT_JOB_RESUMED,
	    json_pack("{s:I, s:O, s:s, s:o}", "launch", past->launches + 1, "config",
		      live->order->config, "permission_mode", live->order->permission_mode, "books",
		      book_json(&past->book)));
	json_array_append_new(past->history,
			      json_pack("{s:s, s:s, s:I, s:I}", "time", now, "after", past->status,
					"iteration", (json_int_t)past->book.iteration, "wall_ms",
					(json_int_t)past->book.wall_ms));
	if (json_array_size(past->history) > PAST_LAUNCHES)
		json_array_remove(past->history, 0);
	past->launches++;
	live_settle(live, &record->chain);
	return live->error ? files_fail(err, live->error, "keep the books of", live->run_id) : 0;
}

static int execute(struct live *live, struct record *record, struct run_outcome *ret_outcome)
{
	const struct job_order *order = live->order;
	const char *const *env = variables(live);
	const struct run_owner owner = {
		.record = record,
		.permission_mode = order->permission_mode,
		.env = env,
		.tools = order->tools,
		.grace_ms = order->grace_ms,
		.report = live_report,
		.output = live_output,
		.look = live_look,
		.data = live,
	};
	const struct run_setup setup = {
		.plan = order->plan,
		.argv = order->argv,
		.cwd = order->plan->workspace.at,
		.host_cwd = order->plan->workspace.host,
		.caller_env = order->caller_env,
		.stdin_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.tty_fd = -1,
		.run_root = order->run_root,
		.hidden_root = order->run_root,
		.hidden_place = order->place,
		.owner = &owner,
	};

	return env ? run_execute(&setup, ret_outcome) : -ENOMEM;
}

static const char *termination(const json_t *result, const char *key)
{
	const json_t *end = json_object_get(result, "termination");
	const char *text = json_string_value(json_object_get(end, key));

	return text ? text : "";
}

/* What the end of the run means for the job. */
static void judge(const struct live *live, const struct run_outcome *run,
		  struct job_outcome *outcome)
{
	const char *reason = termination(run->result, "reason");
	const char *state = "failed";

	outcome->status = run->status;
	if (live->error) {
		reason = strerror(-live->error);
		outcome->status = 1;
	} else if (live->limit) {
		state = "limited";
		reason = live->limit;
		outcome->status = 124;
	} else if (str_is(reason, "exited") && run->status == 0) {
		state = "finished";
		reason = "";
	} else if (str_is(reason, "cancelled")) {
		state = "stopped";
		reason = termination(run->result, "signal_name");
	}
	snprintf(outcome->state, sizeof outcome->state, "%s", state);
	snprintf(outcome->reason, sizeof outcome->reason, "%s", reason);
	outcome->error = run->error;
	outcome->book = *live->book;
}

static void account(struct live *live, struct record *record, json_t *result,
		    struct job_outcome *outcome)
{
	struct csn_error *err = outcome->error.code ? NULL : &outcome->error;
	int r;

	add(record, EVENT_JOB_ENDED,
	    json_pack("{s:s, s:s, s:i, s:o}", "status", outcome->state, "reason", outcome->reason,
		      "exit_status", outcome->status, "books", book_json(live->book)));
	r = live_show(live->state_fd, &live->past, live->run_id, outcome->state,
		      outcome->reason[0] ? outcome->reason : NULL);
	json_object_set(result, "sandbox_id", json_object_get(result, "run_id"));
	json_object_set_new(result, "run_id", json_string(live->run_id));
	json_object_set_new(result, "job",
			    json_pack("{s:s, s:s, s:o, s:o}", "status", outcome->state, "reason",
				      outcome->reason, "books", book_json(live->book), "limits",
				      book_limits_json(&live->book->limits)));
	if (r < 0)
		files_fail(err, r, "write", "state.json");
	close_record(record, &live->past, result, r < 0 ? NULL : err);
}

static int launch(struct live *live, struct record *record, struct job_outcome *ret_outcome,
		  struct csn_error *err)
{
	struct run_outcome run;
	int r = open_books(live, record, err);

	if (r >= 0)
		r = job_check(live->run_id, &live->past, &live->book->limits, err);
	if (r >= 0)
		r = begin(live, record, err);
	if (r < 0)
		return r;
	r = execute(live, record, &run);
	if (r < 0)
		return csn_fail(err, r, "job", "out of memory");
	judge(live, &run, ret_outcome);
	account(live, record, run.result, ret_outcome);
	run_outcome_done(&run);
	return 0;
}

int job_launch(struct record *record, const struct job_order *order,
	       struct job_outcome *ret_outcome, struct csn_error *err)
{
	struct live live;
	int r;

	*ret_outcome = (struct job_outcome){ 0 };
	live_init(&live, record, order);
	r = launch(&live, record, ret_outcome, err);
	if (r < 0 && record->dir_fd >= 0) { /* nothing began: it stands as it stood */
		if (live.past.config)
			job_close(record, &live.past, NULL, NULL);
		record_done(record);
	}
	live_done(&live);
	return r;
}
