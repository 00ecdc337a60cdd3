/*
 * surface - what code of a medium may name, as a table
 *
 * One table a medium, read from both sides of the wall: the evaluator builds the code's world from
 * it, so that what is not in it is not there, and the parent prints it for who writes a prompt.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Names of one library, separated by blanks. */
struct surface_part {
	const char *table; /* NULL: globals; a NULL `names` ends a list */
	const char *names;
};

/* What Lua code has. */
extern const struct surface_part surface_lua[];

/* What it is told that it may not have, where Lua itself has it: "*" is all of a library. Another
 * name is nil, as in Lua. */
extern const struct surface_part surface_lua_refused[];

/* The bounds of one eval, and of a session (memory). */
enum {
	SURFACE_SOURCE = 64 << 10,  /* bytes of source */
	SURFACE_OUTPUT = 256 << 10, /* bytes of what it prints; the rest is counted and dropped */
	SURFACE_STEPS = 400000000,  /* of Lua's virtual machine */
	SURFACE_MEMORY = 64 << 20,  /* bytes of Lua's heap */
	SURFACE_TEXT = 16 << 20,    /* bytes that string.rep makes */
	SURFACE_PATTERN = 1024,     /* bytes of a pattern */
	SURFACE_RANGE = 10000000,   /* elements that one call of table.move, concat walks */
};

/* Is it a name of such a list? */
bool surface_names(const char *names, const char *name);
