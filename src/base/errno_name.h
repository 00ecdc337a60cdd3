/*
 * errno names as they cross the wall: "enoent", "eacces", never a bare number
 */
#pragma once

/* Static text; "eio" for a number that has no name here. */
const char *errno_name(int code);

/* The number of a name, 0 if there is none. */
int errno_number(const char *name);
