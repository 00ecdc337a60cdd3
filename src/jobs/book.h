/*
 * book - what a job has used, and how much it may use
 *
 * The books are kept in the job's chain (logs/events.jsonl): every line of a job's holds them as
 * they stand after it, so the last whole line is the truth, whatever was killed when. Here they are
 * numbers. They only grow; money is counted in whole billionths of a dollar, so that nothing is
 * lost to rounding.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "jobs/report.h"

/* Each -1: none. */
struct book_limits {
	int64_t cost_nano;
	int64_t time_ms;
	int64_t tokens;
	int64_t iterations;
};

#define BOOK_UNLIMITED ((struct book_limits){ -1, -1, -1, -1 })

struct book {
	int64_t cost_nano, tokens, wall_ms, iteration;
	int64_t report_seq; /* the worker's own number of the last report that had one; 0: none */
	int64_t reports, refused, duplicates;
	char checkpoint[REPORT_PATH]; /* relative to the job's folder; "": none yet */
	struct book_limits limits;
};

/*
 * Enters a report: true. False, with the reason: its iteration goes back, or "" for one that was
 * entered before (its number is not above the last one).
 */
bool book_enter(struct book *book, const struct report *report, const char **ret_why);

/* The ceiling that is reached: "max_cost_usd" …; NULL: none. Static. */
const char *book_reached(const struct book *book);

/* {"iteration", "cost_usd", …}, and {"max_cost_usd", …} with null for none. New objects. */
json_t *book_json(const struct book *book);
json_t *book_limits_json(const struct book_limits *limits);

/* The same back; what is missing or absurd is 0, and none. Limits are untouched by the first. */
void book_read(const json_t *json, struct book *book);
void book_read_limits(const json_t *json, struct book_limits *ret_limits);

/*
 * One ceiling from the command line: `name` as "max-cost-usd" (a new one) or "add-cost-usd" (so
 * much more than the old one). -EINVAL with a sentence: no such number, or nothing to add to.
 */
int book_set_limit(struct book_limits *limits, const char *name, const char *text,
		   struct csn_error *err);
