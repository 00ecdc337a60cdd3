/*
 * pending - what must be gone after a run, written down before it is made
 *
 *   <run root>/.pending/<run_id>   one note a run, locked while its monitor or its cleaner lives
 *
 * Only runs that make placeholders or a scratch folder write one. Whoever ends the run removes
 * it last; a note that nobody locks is that of a run whose monitor and cleaner were both killed,
 * and the next start, or `caisson runs gc`, removes what it names. A note is a hint where to
 * look, never a proof: what is removed has to be ours by itself (placeholder.h, scratch.h), so
 * that one which somebody forged can do no harm.
 */
#pragma once

#include "audit/audit.h"
#include "base/removed.h"
#include "monitor/protect.h"

struct pending {
	int dir_fd; /* .pending, owned; -1: no note */
	int fd;     /* the note, owned, locked */
	char id[RUN_ID_SIZE];
};

#define PENDING_NONE     \
	(struct pending) \
	{                \
		-1, -1   \
	}

/*
 * Writes what run `id` is about to make. 0 or -errno, -ENOENT: there is no such run root. A run
 * without a note goes on: the note is the second net.
 */
int pending_open(struct pending *pending, const char *run_root, const char *id,
		 const struct protect *protect, bool has_scratch);

/* The placeholders are made: adds how to tell them without their mark. */
void pending_made(const struct pending *pending, const struct protect *protect);

/* All is removed: so is the note. The descriptors stay; safe in a forked cleaner. */
void pending_remove(const struct pending *pending);

/* Closes the descriptors. */
void pending_done(struct pending *pending);

/* Removes what lost runs left, and tells the id of each as "run". How many notes were settled.
 * Costs one call when there is none. */
int pending_sweep(const char *run_root, const struct removed *removed);
