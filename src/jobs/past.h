/*
 * past - what a job's chain says of it
 *
 * Read at each resume, from the first line to the last: the books as they stand, what it runs, and
 * what a kill may have kept from the files that are made of the chain (logs/iterations.jsonl). Who
 * holds the job has verified the chain before.
 */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"
#include "jobs/book.h"

enum { PAST_LAUNCHES = 12 };

struct past {
	struct book book;
	json_t *config;      /* of the first start or the last launch that changed it; owned */
	json_t *history;     /* the last launches, oldest first; owned */
	json_t *checkpoints; /* paths, the last 1000; owned */
	json_int_t launches;
	char status[16]; /* of the last launch: "" before the first, "running" with no end */
	bool has_job;
};

/*
 * 0, or a negative errno with a sentence: -ENOENT where there is no chain, -EBADMSG where it has no
 * job. `iterations_fd`, where it is not -1, is logs/iterations.jsonl, opened for appending: lines
 * that it lacks are added.
 */
int past_read(int dir_fd, int iterations_fd, struct past *ret_past, struct csn_error *err);
void past_done(struct past *past);
