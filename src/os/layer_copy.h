/*
 * layer_copy - an overlay's upper folder once more, for another sandbox
 *
 * Everything as the kernel needs it: whiteouts, the overlay's own attributes, modes, owners and
 * times, holes; extents are shared where the file system can. Other hard links become files of
 * their own. The source may be changing: each file is that of one moment, but not all of the same
 * one; what did not rest is copied as it was met, and named.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct layer_copied {
	uint64_t entries;
	uint64_t bytes;  /* of files, as long as they are */
	uint64_t torn;   /* files that changed all the time */
	char first[256]; /* of them, as far as it fits; raw */
};

/* From an open folder into an open empty one. -E2BIG beyond the bounds of os/layer.h; -EACCES where
 * a mode keeps us out. What was copied stays on failure. */
int layer_copy(int from_fd, int to_fd, struct layer_copied *ret_copied, struct csn_error *err);
