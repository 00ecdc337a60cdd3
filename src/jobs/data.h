/*
 * data - may this path be a job's data set?
 *
 * What is lent is the real path behind all links, so what is refused is judged there. The policy
 * room refuses what is never lent to anybody (/, home directories, the run root, sockets of
 * services); here is what a job refuses beyond that.
 */
#pragma once

#include "base/error.h"

/*
 * Writes the real path of `path` to `ret_real` (PATH_MAX bytes). -EPERM with a
 * sentence: a repository's root, another user's home directory, a run's or job's folder or one that
 * holds some, a socket or device, or a folder in which a socket lies (of its first 100,000
 * entries).
 */
int data_check(const char *path, char *ret_real, struct csn_error *err);
