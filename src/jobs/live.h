/*
 * live - a job while its worker runs: reports into the books, the books against the ceilings
 *
 *   worker ──fd 3── agent ══{data, Ref, report, …}══ run ──live_report()── chain, then state.json
 *
 * The calls are those of struct run_owner, made by the run's loop. What waits for a disk waits
 * there: a launcher that cannot write its books down lets nobody spend.
 */
#pragma once

#include "audit/audit.h"
#include "jobs/job.h"
#include "jobs/output.h"
#include "monitor/run.h"

struct live {
	char run_id[RUN_ID_SIZE];
	const struct job_order *order;
	struct past past;
	struct book *book; /* that of `past` */
	struct report_lines lines;
	struct output output;
	int logs_fd, state_fd, iterations_fd;
	struct chain *chain; /* while a report is taken */
	const char *status;
	const char *limit;            /* the ceiling that ended it; NULL: none */
	int error;                    /* the books cannot be written: a negative errno */
	uint64_t began_ms;            /* monotonic; 0: the worker does not run yet */
	int64_t wall_before;          /* of earlier launches */
	uint64_t heard_ms;            /* the last report or output */
	uint64_t entered_ms;          /* the last line with books */
	uint64_t debt_ms, debt_at_ms; /* of the rate of reports */
	size_t owed;                  /* bytes of reports, whose room is not given back yet */
	unsigned refusals;
};

/* struct run_owner; `data` is a struct live. */
void live_report(void *data, struct chain *chain, const void *bytes, size_t size);
void live_output(void *data, bool is_stderr, const void *bytes, size_t size);
void live_look(void *data, struct chain *chain, uint64_t now_ms, struct run_wish *ret_wish);

/* Waits until what was entered is on the disk, and shows it. A failure is in `error`. */
void live_settle(struct live *live, const struct chain *chain);

/* Writes state.json. 0 or a negative errno. */
int live_show(int state_fd, const struct past *past, const char *run_id, const char *status,
	      const char *reason);
