/*
 * cow - the copy-on-write layer of a finished or lost run, opened for diff and commit
 *
 * The work itself is monitor/copy.h's; here the run is found and its result read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/runs.h"
#include "monitor/copy.h"

struct cow {
	struct run run;
	int64_t started_ms;   /* wall clock; 0 if unknown */
	const char **protect; /* owned; texts of run.result */
	const char **hide;
	struct copy copy;
	bool is_lost; /* it has no result, and gets none: retention would take the record */
	bool reaches; /* set before cow_open(): this process changes itself to read all (os/reach.h)
		       */
};

#define COW_NONE ((struct cow){ .run = RUN_NONE, .copy = COPY_NONE })
#define _cleanup_cow_ __attribute__((cleanup(cow_done)))

/* Does a run of the root keep a layer? */
bool cow_is_kept(int root_fd, const char *run_id);

/* The tags of a run's snapshots, a new array of texts: for `fork RUN NEW TAG`. */
json_t *cow_snapshots(int root_fd, const char *run_id);

/* Tells a person on stderr that there was nothing to show; not with --json or -q. */
void cow_say_nothing(const struct cli *cli);

/*
 * Opens and lists the layer of the run that the first word names, or of the last run without a
 * word; the other words are paths. -ENOENT for a run that had none.
 */
int cow_open(const struct cli *cli, struct cow *cow, struct csn_error *err);
void cow_done(struct cow *cow);
