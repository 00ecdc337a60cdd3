/*
 * job - long unattended work that keeps its books
 *
 *   start    record_open_job() · job_started() · job_launch()
 *   resume   record_reopen()   · job_extended()? · job_launch()
 *   extend   record_reopen()   · job_extended() · job_close()
 *
 * A job is a folder with a chain of events; a launch is one sandbox that works in it. The launcher,
 * who holds the folder's lock, enters in the chain what the worker reports, enforces the ceilings,
 * and shows where it stands in state.json. It may be killed at any moment: a report is entered when
 * its line in the chain is whole, and not before; what the books say is what the last whole line
 * says. A worker that numbers its reports ("seq") learns at its next start up to which one they
 * were entered (CAISSON_REPORT_SEQ), and reports the rest again; one that comes twice counts once.
 */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "audit/audit.h"
#include "base/error.h"
#include "jobs/book.h"
#include "jobs/past.h"
#include "plan/plan.h"

/* Where a job's folder and data set stand inside, behind a wall with a view of its own. */
#define JOB_RUN_AT "/workspace/run"
#define JOB_DATA_AT "/workspace/data"

enum { JOB_GRACE_MS = 30000 };

/* What one launch runs, and with what. All is borrowed. */
struct job_order {
	struct plan *plan;             /* decided; its arena is used */
	const char *const *argv;       /* the worker, inner runners included */
	const char *const *caller_env; /* "NAME=VALUE" */
	json_t *config;                /* for the record, and for the next resume */
	const char *permission_mode;
	const char *run_root;
	const char *place; /* of the sockets of sandboxes that stay: never lent */
	const char *tools; /* folder of caisson-report; NULL: none */
	uint64_t grace_ms; /* JOB_GRACE_MS, usually */
};

struct job_outcome {
	int status;       /* what the CLI exits with */
	char state[16];   /* finished, failed, limited, stopped */
	char reason[128]; /* of the last three: a ceiling's name, a termination … */
	struct book book;
	struct csn_error error; /* code 0: none */
};

/* The first line of a new job. */
void job_started(struct record *record, json_t *config, const struct book_limits *limits);

/* Is there something left to use under these ceilings? 0, or -EDQUOT with the way out. Changes
 * nothing. */
int job_check(const char *id, const struct past *past, const struct book_limits *limits,
	      struct csn_error *err);

/* New ceilings for a job that is not running. `past` is what job_past() read. 0 or -errno. */
int job_extended(struct record *record, const struct past *past, const struct book_limits *limits,
		 struct csn_error *err);

/*
 * One launch, from the books as they stand to its end, and the record is closed. 0 with an outcome;
 * a negative errno with a sentence when nothing was launched: -EDQUOT, a ceiling is reached. The
 * record is closed then, too.
 */
int job_launch(struct record *record, const struct job_order *order,
	       struct job_outcome *ret_outcome, struct csn_error *err);

/*
 * Ends what changed no more than the books: state.json, result.json, manifest, head. `result` is
 * what the last launch left there, borrowed; NULL: none did. 0 or -errno.
 */
int job_close(struct record *record, const struct past *past, json_t *result,
	      struct csn_error *err);
