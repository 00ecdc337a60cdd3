/*
 * errno names as they cross the wall: "enoent", "eacces", never a bare number
 */
#pragma once

#include "base/error.h"

/* Static text; "eio" for a number that has no name here. */
const char *errno_name(int code);

/* The number of a name, 0 if there is none. */
int errno_number(const char *name);

/*
 * The name of an error for programs: the one its sentence begins with, where that is a name of
 * ours ("TierUnavailable: ..."), else the errno's. Static text.
 */
const char *error_name(const struct csn_error *err);
