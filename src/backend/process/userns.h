/*
 * userns - who is who inside: the id maps of a sandbox, and those of what root lends it
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* Maps id `inside` of a process's new user namespace to `uid` and `gid`. 0 or -errno. */
int userns_write_maps(pid_t pid, unsigned inside, uid_t uid, gid_t gid);

/*
 * A user namespace in which on-disk id 0 is `uid`'s: what root's mounts are mapped through.
 * `spare`, another one than 0, stays itself there: a helper of that id makes files and hands them
 * over. A descriptor, or -errno with a sentence. *ret_helper made it and is killed, but to be
 * waited for: at the end, since its death takes as long as a start's every other step.
 */
int userns_make(uid_t uid, uid_t spare, pid_t *ret_helper, struct csn_error *err);
