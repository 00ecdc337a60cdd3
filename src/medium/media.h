/*
 * media - the table of code media: what evaluates, and what its code may name
 *
 * A row is all that the parent knows of a medium: a session, its gates and its limits are the same
 * for each.
 */
#pragma once

#include "medium/surface.h"

struct medium {
	const char *name;
	const char
		*program; /* of ours, executed from a descriptor; NULL: `argv` is the sandbox's */
	const char *const *argv; /* NULL-terminated */
	const struct surface_part *allowed, *refused;
	const char *notes; /* lines for who writes a prompt */
};

extern const struct medium media[];
extern const unsigned media_count;

/* By its name, of `size` bytes; NULL: there is none. */
const struct medium *media_find(const char *name, size_t size);
