/*
 * copy_rename - which added files are deleted ones under another name
 *
 * An overlay renames a file by copying it and deleting the old name, and a folder not at all: mv
 * copies it. What was meant is inferred from equal bytes, for a reader of a diff only: a commit
 * applies what is there.
 */
#pragma once

#include "monitor/copy.h"

enum { COPY_NOT_RENAMED = -1 };

/*
 * For each entry of the layer the index of its other one (of an added file the deleted one, and
 * the other way), COPY_NOT_RENAMED for the rest; owned by the caller. Bounded: in a large layer
 * some are not found. 0 or -ENOMEM.
 */
int copy_find_renames(const struct copy *copy, int **ret_others);
