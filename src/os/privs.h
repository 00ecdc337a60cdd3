/*
 * privs - giving privilege up, and trying to get it back
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Takes on real, effective and saved ids; supplementary groups are dropped where the kernel lets
 * us. 0 or -errno. */
int privs_set_ids(uid_t uid, gid_t gid);

/* Empties the bounding set, which needs CAP_SETPCAP: before ids are given up. 0 or -errno. */
int privs_drop_bounding(void);

/* Empties every other capability set: ambient, inheritable, permitted, effective. 0 or
 * -errno.
 */
int privs_drop_caps(void);

/* Is capability `cap` (a CAP_ number) in our effective set? */
bool privs_has(int cap);

/* PR_SET_NO_NEW_PRIVS. 0 or -errno. */
int privs_no_new(void);

/*
 * Tries to become uid 0, to raise a capability, to mount and to make a namespace. 0 when
 * every attempt was refused; -EPERM and the name of the attempt that succeeded otherwise.
 */
int privs_cannot_regain(const char **ret_attempt);
