/*
 * copy_save - a layer once more: kept under a tag, or for a new sandbox
 *
 *   <run>/cow/snapshots/TAG/upper     a snapshot
 *   <run>/cow/.fork-PID/              what becomes <new run>/cow: upper/, committed, since
 *
 * Both lie in the run's record, which counts them towards its size and takes them along when it
 * goes. Time and space are those of what changed, not of the workspace. `since` is the time from
 * which on a change of the workspace is somebody else's: that of the sandbox that was forked.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "os/layer_copy.h"

enum { COPY_SNAPSHOTS = 32 };

/* Copies the layer in a run's `cow` folder under a tag. -EEXIST; -E2BIG beyond COPY_SNAPSHOTS. */
int copy_snapshot(int cow_fd, const char *tag, struct layer_copied *ret_copied,
		  struct csn_error *err);

struct copy_forked {
	char name[32]; /* in `cow_fd` */
	struct layer_copied copied;
};

/*
 * Copies it, or its snapshot of that tag (NULL: as it is now), to a folder beside it that another
 * run can take for its own by a rename. `started_ms` is when this run began. The caller removes it
 * with tree_remove() unless it was taken.
 */
int copy_fork(int cow_fd, const char *tag, int64_t started_ms, struct copy_forked *ret_forked,
	      struct csn_error *err);

/* When this run's changes of the workspace begin: `started_ms`, or earlier in a fork. */
int64_t copy_since(int cow_fd, int64_t started_ms);
