/*
 * roots - removing skeletons that nobody uses any more
 *
 * backend/process/skeleton.h says what they are and who makes them. Here they are folders of the
 * run root that may go: unused for a week, or older than the eight used last. One whose lock is
 * held stays, whatever its age: a sandbox's mounts stand on it. Who makes one holds its folder's.
 */
#pragma once

#include "base/removed.h"

/* Removes what may go, and what makers and removers that were killed left; each is told as
 * "skeleton". Never fails: what stays now goes next time. */
void roots_sweep(int root_fd, const struct removed *removed);
