/*
 * story - a job's chain, read once and told within bounds
 *
 * A chain may have a million lines. What a page shows of it is kept while it is read, in room that
 * does not grow with it: the curve of the books is sampled by the time the job ran, lists keep
 * their first and their last rows and count what is between, equal violations are folded. What the
 * worker chose is cut to STORY_TEXT bytes and never interpreted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/error.h"
#include "jobs/book.h"

enum {
	STORY_TEXT = 240,
	STORY_POINTS = 512,
	STORY_FIRST = 20, /* rows of a list that are kept … */
	STORY_LAST = 60,  /* … and of its end */
	STORY_CEILINGS = 64,
	STORY_VIOLATIONS = 100,
	STORY_KINDS = 24,
	STORY_LAUNCHES_FIRST = 4,
	STORY_LAUNCHES_LAST = 12,
	STORY_MARKS = 200,
	STORY_CHECKPOINTS = 1000,
};

/* The beginning of a text; may hold any character that JSON can, NUL too. */
struct story_text {
	char data[STORY_TEXT];
	size_t size;
	bool is_cut;
};

enum story_kind {
	STORY_MADE,
	STORY_LAUNCH,
	STORY_CEILING,
	STORY_APPROVED,
	STORY_END,
	STORY_ITERATION,
	STORY_CHECKPOINT,
	STORY_SAID,
	STORY_REFUSED,
};

struct story_row {
	uint64_t seq; /* of its line */
	char time[CLOCK_TEXT];
	enum story_kind kind;
	int64_t number;         /* of the launch, of the iteration */
	char name[REPORT_KIND]; /* of a report, a status */
	struct story_text text;
	struct book_limits limits, old; /* of STORY_CEILING */
};

/* The first rows, then a ring of the last ones. */
struct story_list {
	struct story_row first[STORY_FIRST], last[STORY_LAST];
	uint64_t count;
};

/* What was used when the job had run for so long; the order is that of enum story_used. */
enum story_used { STORY_COST, STORY_TIME, STORY_TOKENS, STORY_ITERATIONS, STORY_USED };

struct story_point {
	int64_t wall_ms;
	int64_t used[STORY_USED];
};

struct story_curve {
	struct story_point points[STORY_POINTS];
	size_t count;
	int64_t gap_ms; /* of two points, at least */
};

struct story_step {
	int64_t wall_ms; /* from here on */
	struct book_limits limits;
};

struct story_violation {
	struct story_text event, say, rule;
	uint64_t count, seq;
	char first[CLOCK_TEXT], last[CLOCK_TEXT];
	bool is_certain;
};

struct story_launch {
	int64_t number;
	uint64_t seq;
	char began[CLOCK_TEXT], ended[CLOCK_TEXT]; /* "": it has no end */
	int64_t wall_from, wall_to;
	uint64_t steps, grants, violations;     /* lines of it */
	json_t *started, *exited, *end, *usage; /* payloads; NULL: there is none; owned */
};

struct story_tally {
	char name[REPORT_KIND];
	uint64_t count;
};

struct story {
	uint64_t lines;
	uint64_t events[EVENT_COUNT];
	char made[CLOCK_TEXT], last[CLOCK_TEXT];
	char status[16]; /* of the last launch: "" before the first, "running" with no end */
	struct story_text reason;
	json_int_t exit_status;
	struct book book;
	json_t *config;             /* owned */
	json_t *checkpoints;        /* path: time, of the first STORY_CHECKPOINTS; owned */
	struct story_list turns;    /* launches, ceilings, ends */
	struct story_list progress; /* iterations, checkpoints */
	struct story_list said;     /* reports of any other kind, and refused ones */
	struct story_curve curve;
	struct story_step steps[STORY_CEILINGS];
	size_t step_count, steps_lost;
	struct story_violation violations[STORY_VIOLATIONS];
	size_t violation_count;
	uint64_t attempts, attempts_elsewhere; /* all together, and beyond those kinds */
	struct story_tally kinds[STORY_KINDS];
	size_t kind_count;
	uint64_t kinds_elsewhere;
	int64_t marks[STORY_MARKS]; /* where launches began, by wall_ms */
	size_t mark_count;
	struct story_launch launches[STORY_LAUNCHES_FIRST + STORY_LAUNCHES_LAST];
	uint64_t launch_count;
	bool has_job;
};

/*
 * Reads the first `lines` whole lines of logs/events.jsonl in `dir_fd`, within its first `bytes`
 * bytes: what was verified, and nothing that came later. 0, or a negative errno with a sentence.
 * Lines that tell of no job are a story too: `has_job` says so. story_free() takes NULL.
 */
int story_read(int dir_fd, uint64_t bytes, uint64_t lines, struct story **ret_story,
	       struct csn_error *err);
void story_free(struct story *story);

/* How many rows of a list are kept, and the i-th of them, oldest first. */
size_t story_kept(const struct story_list *list);
const struct story_row *story_row(const struct story_list *list, size_t i);

/* The same of launches. */
size_t story_launches(const struct story *story);
const struct story_launch *story_launch(const struct story *story, size_t i);

/* A ceiling in the unit of `used`; -1: none. */
int64_t story_ceiling(const struct book_limits *limits, enum story_used used);

/* How much the book has of it. */
int64_t story_amount(const struct book *book, enum story_used used);
