/*
 * split - a piece of Lua source as its top-level statements
 *
 * An eval goes statement by statement, so that what a finished one has set survives a failure in a
 * later one. Lua compiles chunks only, so the source is cut where a statement ends; each part is
 * then a chunk of its own.
 *
 * Two operands side by side are never one expression in Lua: there a statement ends. What is not
 * certain is not cut. A part that holds two statements is still right, only coarser; a cut inside
 * of one would not be. Nothing here decides whether the source is Lua: the compiler does, for each
 * part.
 *
 * What is local at the top level is a variable of the session: `local` is blanked out in place, so
 * that lines and columns stay. Source with a label or a goto at the top level is one part.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct split_part {
	size_t at;      /* first byte */
	size_t size;    /* bytes, without the `;` behind it */
	size_t line;    /* of its first byte, from 1 */
	bool has_value; /* false: `local x`, whose variables become nil */
};

struct split {
	struct split_part *parts; /* owned */
	size_t count;
	size_t room;
	const char *error; /* static text; NULL: none */
	size_t error_line;
};

/*
 * Cuts `source`, which is changed in place as said above. 0; -ENOMEM; -EINVAL with `error` set for
 * what a session cannot have (`local x <close>`). What was cut is freed by split_done(), after a
 * failure too.
 */
int split_source(char *source, size_t size, struct split *ret_split);
void split_done(struct split *split);
