/*
 * copy_commit - applies a layer to the workspace
 *
 * Everything happens beneath the workspace's descriptor, without following a link: a folder
 * that became a link meanwhile is an error, not a way out. A file appears in one step under
 * its name, so a reader sees the old or the new one. What changed in the workspace since the
 * run began, what is guarded and what cannot be applied is left out, and said.
 *
 * Ended at any moment, it leaves old or new files. The bytes of a new file have no name until
 * they are complete; one that replaces another then has ".caisson-" and the run's id in the
 * workspace's own folder for as long as a rename takes, and signals that ask for an end wait for
 * that. What a SIGKILL in between leaves, or one on a file system that has no files without
 * names, is removed by the next commit of the run.
 */
#pragma once

#include "monitor/copy.h"
#include "monitor/copy_book.h"

struct copy_commit {
	const struct copy *copy;
	struct copy_book *book;
	bool is_forced;  /* replaces what somebody else changed meanwhile */
	bool is_dry_run; /* only says what it would do */
	/* Told of each entry; `reason` NULL: it is applied. */
	void (*tell)(void *data, const struct layer_entry *entry, const char *reason);
	void *data;
};

/* Everything that is named. What goes wrong is a reason of the entry's. */
void copy_commit_all(const struct copy_commit *commit);

/* Removes what a commit that was killed left in the workspace. */
void copy_commit_sweep(const struct copy *copy);
