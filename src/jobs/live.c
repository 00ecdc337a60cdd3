/* What happens while a job's worker runs; see live.h. */
#include "jobs/live.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/files.h"
#include "base/clock.h"
#include "base/str.h"
#include "jobs/iterations.h"
#include "jobs/state.h"

enum {
	TICK_MS = 30000,      /* the longest time that a kill takes from the books */
	STATE_MS = 2000,      /* how old state.json may be while reports come */
	REFUSALS_TOLD = 100,  /* a launch; later ones are only counted */
	BURST_MS = 2000,      /* reports may be ahead of their rate by so much: */
	LINE_MS = 1,          /* a thousand lines a second … */
	BYTES_A_MS = 1 << 10, /* … and a mebibyte */
};

#define LOG_MAX (UINT64_C(1) << 30)

/* ---- state ---------------------------------------------------------------------------------- */

static json_t *cumulative(const struct book *book)
{
	return json_pack("{s:f, s:I, s:I}", "cost_usd", (double)book->cost_nano / 1e9, "tokens",
			 (json_int_t)book->tokens, "wall_ms", (json_int_t)book->wall_ms);
}

static json_t *state_json(const struct past *past, const char *run_id, const char *status,
			  const char *reason)
{
	const struct book *book = &past->book;
	uint64_t start = 0;
	char now[CLOCK_TEXT];

	clock_format(clock_wall_ms(), now);
	files_process_start(getpid(), &start);
	return json_pack(
		"{s:i, s:s, s:s, s:s?, s:I, s:o, s:o, s:I, s:O, s:s?, s:I, s:I, s:I, s:I, "
		"s:i, s:I, s:s}",
		"schema_version", 1, "run_id", run_id, "status", status, "reason", reason,
		"iteration", (json_int_t)book->iteration, "cumulative", cumulative(book), "limits",
		book_limits_json(&book->limits), "launches", past->launches, "resume_history",
		past->history, "checkpoint", book->checkpoint[0] ? book->checkpoint : NULL,
		"report_seq", (json_int_t)book->report_seq, "reports", (json_int_t)book->reports,
		"refused", (json_int_t)book->refused, "duplicates", (json_int_t)book->duplicates,
		"pid", getpid(), "pid_start", (json_int_t)start, "updated", now);
}

int live_show(int state_fd, const struct past *past, const char *run_id, const char *status,
	      const char *reason)
{
	json_t *state = state_json(past, run_id, status, reason);
	int r = state ? state_write(state_fd, state) : -ENOMEM;

	json_decref(state);
	return r;
}

static void note_error(struct live *live, int r)
{
	if (r < 0 && live->error == 0)
		live->error = r;
}

/* What was entered is on the disk; then it is shown. */
void live_settle(struct live *live, const struct chain *chain)
{
	if (chain->is_incomplete)
		note_error(live, chain->error);
	else if (fdatasync(chain->fd) < 0)
		note_error(live, -errno);
	note_error(live,
		   live_show(live->state_fd, &live->past, live->run_id, live->status, live->limit));
}

/* ---- while it runs -------------------------------------------------------------------------- */

static void tell_time(struct live *live, uint64_t now_ms)
{
	if (live->began_ms)
		live->book->wall_ms = live->wall_before + (int64_t)(now_ms - live->began_ms);
}

static void refuse(struct live *live, const char *why, size_t size)
{
	live->book->refused++;
	if (live->refusals++ >= REFUSALS_TOLD)
		return;
	chain_add(live->chain, EVENT_WORKER_EVENT,
		  json_pack("{s:s, s:I, s:o}", "refused", why, "bytes", (json_int_t)size, "books",
			    book_json(live->book)));
}

static void register_checkpoint(struct live *live, const char *path)
{
	json_array_append_new(live->past.checkpoints, json_string(path));
	if (json_array_size(live->past.checkpoints) > 1000)
		json_array_remove(live->past.checkpoints, 0);
}

/* A path with a secret in it would be written without, and lead a later launch nowhere. */
static bool is_secret(const struct live *live, const char *path)
{
	json_t *clean = redact_text(live->chain->redactor, path, strlen(path));
	bool is_same = clean && str_is(json_string_value(clean), path);

	json_decref(clean);
	return !is_same;
}

static void enter(struct live *live, const struct report *report)
{
	uint64_t seq = live->chain->seq;
	json_t *full = json_pack("{s:s, s:O, s:o}", "kind", report->kind, "report", report->value,
				 "books", book_json(live->book));
	json_t *payload = full ? redact_json(live->chain->redactor, full) : NULL;
	char now[CLOCK_TEXT];

	json_decref(full);
	if (payload)
		json_incref(payload);
	chain_add(live->chain, EVENT_WORKER_EVENT, payload);
	if (report->iteration >= 0 && payload && !live->chain->is_incomplete) {
		clock_format(clock_wall_ms(), now);
		note_error(live, iterations_add(live->iterations_fd, seq, now, payload));
	}
	json_decref(payload);
	if (report->path[0])
		register_checkpoint(live, report->path);
}

static void take_line(void *data, const char *line, size_t size)
{
	struct live *live = data;
	struct report report;
	const char *why = report_read(line, size, &report);

	live->debt_ms += LINE_MS + size / BYTES_A_MS;
	if (*why) {
		refuse(live, why, size);
		return;
	}
	if (report.path[0] && is_secret(live, report.path))
		refuse(live, "path holds a secret: it would be lost in the books", size);
	else if (book_enter(live->book, &report, &why))
		enter(live, &report);
	else if (*why)
		refuse(live, why, size);
	report_done(&report);
}

void live_report(void *data, struct chain *chain, const void *bytes, size_t size)
{
	struct live *live = data;
	int64_t before = live->book->reports + live->book->refused;
	uint64_t now_ms = clock_now_ms();

	live->owed += size;
	live->heard_ms = now_ms;
	if (live->error)
		return;
	tell_time(live, now_ms);
	live->chain = chain;
	report_lines_add(&live->lines, bytes, size, take_line, live);
	if (live->book->reports + live->book->refused == before)
		return;
	live->entered_ms = now_ms;
	live_settle(live, chain);
}

void live_output(void *data, bool is_stderr, const void *bytes, size_t size)
{
	struct live *live = data;

	live->heard_ms = clock_now_ms();
	if (!live->error)
		note_error(live, output_add(&live->output, is_stderr, bytes, size));
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How many more bytes of reports may come; the worker waits for the rest. */
static size_t give_room(struct live *live, uint64_t now_ms, uint64_t *at_ms)
{
	uint64_t passed = now_ms - live->debt_at_ms;
	size_t owed = live->owed;

	live->debt_ms -= earlier(passed, live->debt_ms);
	live->debt_at_ms = now_ms;
	if (owed == 0)
		return 0;
	if (live->debt_ms > BURST_MS) {
		*at_ms = earlier(*at_ms, now_ms + live->debt_ms - BURST_MS);
		return 0;
	}
	live->owed = 0;
	return owed;
}

static void tick(struct live *live, struct chain *chain, uint64_t now_ms)
{
	if (now_ms - live->entered_ms < TICK_MS || live->error)
		return;
	live->entered_ms = now_ms;
	chain_add(chain, EVENT_JOB_CLOCK, json_pack("{s:o}", "books", book_json(live->book)));
	live_settle(live, chain);
}

static void wish_for_end(struct live *live, const struct chain *chain, uint64_t now_ms,
			 struct run_wish *wish)
{
	uint64_t idle_ms = live->order->plan->limits.idle_ms;
	const char *reached = book_reached(live->book);

	if (live->error)
		reached = "books";
	else if (!reached && chain->disk_size > LOG_MAX)
		reached = "log";
	if (reached) {
		bool is_time = str_is(reached, "max_time_minutes");

		*wish = (struct run_wish){ .ending = is_time ? END_TIMEOUT : END_CANCELLED,
					   .clock = is_time ? "budget" : NULL };
	} else if (idle_ms && idle_ms != PLAN_UNLIMITED && now_ms - live->heard_ms >= idle_ms) {
		reached = "idle";
		*wish = (struct run_wish){ .ending = END_TIMEOUT, .clock = "idle" };
	}
	if (reached && !live->limit)
		live->limit = reached;
}

/* When something may be over without anybody telling us. */
static uint64_t next_look(const struct live *live, uint64_t now_ms)
{
	const struct book *book = live->book;
	uint64_t idle_ms = live->order->plan->limits.idle_ms;
	uint64_t at_ms = live->entered_ms + TICK_MS;

	if (book->limits.time_ms > book->wall_ms)
		at_ms = earlier(at_ms, now_ms + (uint64_t)(book->limits.time_ms - book->wall_ms));
	if (idle_ms && idle_ms != PLAN_UNLIMITED)
		at_ms = earlier(at_ms, live->heard_ms + idle_ms);
	return at_ms;
}

void live_look(void *data, struct chain *chain, uint64_t now_ms, struct run_wish *ret_wish)
{
	struct live *live = data;
	struct run_wish wish = { .ending = END_NONE };

	if (!live->began_ms)
		live->began_ms = live->heard_ms = live->entered_ms = live->debt_at_ms = now_ms;
	tell_time(live, now_ms);
	tick(live, chain, now_ms);
	wish_for_end(live, chain, now_ms, &wish);
	wish.at_ms = live->limit ? CLOCK_NEVER : next_look(live, now_ms);
	wish.window = give_room(live, now_ms, &wish.at_ms);
	*ret_wish = wish;
}
