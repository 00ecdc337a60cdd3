/*
 * handover - another program of ours, in the place of this one
 *
 * What needs threads is a program of its own. It is told by words what was decided here, and where
 * this program lies, which makes its sandboxes.
 */
#pragma once

#include <limits.h>

#include "base/error.h"

struct words;

struct handover {
	const char *name;            /* of the other program */
	char program[PATH_MAX + 64]; /* its path */
	char self[PATH_MAX];         /* ours */
};

/* Finds both. 0, or -ENOENT with a sentence; `when` is NULL, or a clause on when it is built. */
int handover_find(const char *name, const char *when, struct handover *ret_handover,
		  struct csn_error *err);

/* `words` begin with its name. Returns only where it could not be executed: -errno with a sentence.
 */
int handover_to(const struct handover *handover, struct words *words, struct csn_error *err);
