/*
 * cow - the copy-on-write layer of a finished run, opened for diff and commit
 *
 * <run>/cow/upper is what untrusted code left behind; the workspace is the caller's. Both are
 * held as descriptors, and every name in the layer is used beneath one of them only.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/runs.h"
#include "os/layer.h"

struct cow {
	struct run run;
	char workspace[PATH_MAX];
	char **paths; /* what a person named, relative to the workspace; borrowed */
	int path_count;
	int upper_fd;       /* owned */
	int lower_fd;       /* owned: the workspace */
	int64_t started_ms; /* wall clock; 0 if unknown */
	struct layer layer;
};

#define COW_NONE ((struct cow){ .run = RUN_NONE, .upper_fd = -1, .lower_fd = -1 })
#define _cleanup_cow_ __attribute__((cleanup(cow_done)))

/* Does a run of the root keep a layer? */
bool cow_is_kept(int root_fd, const char *run_id);

/* Tells a person on stderr that there was nothing to show; not with --json or -q. */
void cow_say_nothing(const struct cli *cli);

/*
 * Opens and lists the layer of the run that the first word names, or of the last run without a
 * word; the other words are paths. -ENOENT for a run that had none.
 */
int cow_open(const struct cli *cli, struct cow *cow, struct csn_error *err);
void cow_done(struct cow *cow);

/*
 * Is the entry among the paths a person named? Without any, all are. An added folder above a
 * named path counts: it has to be made first.
 */
bool cow_is_named(const struct cow *cow, const struct layer_entry *entry);

/* Why the entry is left out of a commit; NULL: no reason, or it was named itself. */
const char *cow_objection(const struct cow *cow, const struct layer_entry *entry);

/* The same, whatever was named. */
const char *cow_guard(const struct cow *cow, const struct layer_entry *entry);

/* Is it a policy file, by its name or because it is the one in force? Those are never written. */
bool cow_is_policy(const struct cow *cow, const char *path);

/* Does a link in the layer point out of the workspace? */
bool cow_link_leaves(const char *path, const char *target);

/* The path as text that is safe to print: escaped, a folder with '/'; owned by the caller, NULL
 * when out of memory. */
char *cow_path_text(const struct layer_entry *entry);

/* "added" "modified" "deleted"; "file" "folder" "link" "other". */
const char *cow_change_name(const struct layer_entry *entry);
const char *cow_kind_name(const struct layer_entry *entry);
