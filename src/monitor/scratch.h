/*
 * scratch - /tmp/caisson-ID, a folder of the host's for a wall that mounts none of its own
 *
 * The monitor holds a lock on it while it lives. One that can be locked, that has our kind of
 * name and our owner, is what a run left that was killed together with its cleaner. The program
 * behind the wall owns the folder: nothing in it is believed, and no link in it is followed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/removed.h"

enum { SCRATCH_PATH = 64 };

/* Where the scratch folder of run `id` lies. */
void scratch_name(char ret_path[SCRATCH_PATH], const char *id);

/*
 * Makes it, with `home` in it, for `owner`. On success *ret_fd is the lock, owned by the caller.
 * -EEXIST: something of somebody else's has this name.
 */
int scratch_make(const char *path, uid_t owner, int *ret_fd, struct csn_error *err);

/* Removes the folder of a run that is over, if it is ours; tries for a second while dying processes
 * fill it. False: it is still there. */
bool scratch_remove(const char *path);

/* Removes the folder `id` in /tmp if it is ours and nobody lives in it. True when it is gone. */
bool scratch_sweep_one(const char *id);

/* The same for every one that lies in /tmp (looks at the first 4096 names), told by its path as
 * "scratch". How many went. */
int scratch_sweep(const struct removed *removed);
