/*
 * stay_verbs - the verbs that a monitor answers itself, as a table
 *
 * Their maps are in frame_client_verbs (src/wire/messages.c). A client finds in `ready` those that
 * his sandbox has; the others are refused with the sentence that says what they want.
 */
#pragma once

#include "monitor/stay_private.h"
#include "monitor/worker.h"

struct stay_verb {
	const char *name;
	/* Why this sandbox does not have it; NULL: it has. */
	const char *(*missing)(const struct stay *stay);
	worker_fn work;
	/* What the worker tells the monitor alone, before its reply: for the record. Or NULL: none
	 * is expected. 0, or -EBADMSG with a sentence. */
	int (*note)(struct stay *stay, const struct term *map, struct csn_error *err);
	bool is_quiet; /* who only looks keeps no sandbox from its idle clock */
	/* Instead of `work`: done in the monitor's own loop. 0, or -errno with a sentence. */
	int (*start)(struct stay *stay, struct stay_call *call, const struct term *map,
		     struct csn_error *err);
	void (*cancel)(struct stay *stay, struct stay_call *call);
};

extern const struct stay_verb stay_verbs[];
extern const size_t stay_verb_count;

/* NULL: not one of ours. */
const struct stay_verb *stay_verb_find(const struct term *atom);

/* ---- stay_mount.c ---- */

/* Lends one more path: who has the verb, its worker, and what the monitor writes down. */
const char *stay_mount_missing(const struct stay *stay);
/* See above. */
int stay_mount(struct worker *worker, const struct term *map, struct csn_error *err);
/* See above. */
int stay_mount_note(struct stay *stay, const struct term *map, struct csn_error *err);

/* ---- stay_stats.c ---- */

/* What the sandbox is and uses; see worker_fn. */
int stay_stats(struct worker *worker, const struct term *map, struct csn_error *err);

/* ---- stay_changes.c ---- */

/* Why there is no copy to compare; NULL: the workspace is one. */
const char *stay_no_copy(const struct stay *stay);
/* What a copy-on-write workspace changed; see worker_fn. */
int stay_diff(struct worker *worker, const struct term *map, struct csn_error *err);
/* Writes those changes to the workspace. Notes say what, for the audit log. */
int stay_commit(struct worker *worker, const struct term *map, struct csn_error *err);
int stay_commit_note(struct stay *stay, const struct term *map, struct csn_error *err);

/* ---- stay_fork.c ---- */

/* Keeps what changed so far under a tag; see worker_fn. */
int stay_snapshot(struct worker *worker, const struct term *map, struct csn_error *err);
/* Starts another sandbox with a copy of what changed. */
int stay_fork(struct worker *worker, const struct term *map, struct csn_error *err);
