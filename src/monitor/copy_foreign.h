/*
 * copy_foreign - what in a workspace its copy cannot change
 *
 * An overlay copies a file before it is changed, with its owner; one whose owner or group has no
 * number inside cannot be copied, and whoever tries is told EOVERFLOW, "Value too large". Such
 * entries are the caller's to know: they are counted and the first named, by a walk with a bound.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

enum { COPY_FOREIGN_NAMES = 10, COPY_FOREIGN_WALK = 20000 };

struct copy_foreign {
	unsigned count;
	unsigned named;
	char *names[COPY_FOREIGN_NAMES]; /* owned; raw, relative to the workspace */
	bool is_partial;                 /* the bound was reached */
};

/* Of the workspace behind a descriptor, for commands that this process starts: its own user and
 * group have a number inside. What cannot be read is left out. */
void copy_find_foreign(int lower_fd, struct copy_foreign *ret_foreign);
void copy_foreign_done(struct copy_foreign *foreign);
