/*
 * builtin - the gates that every session has, as a table
 *
 * What each takes is a schema (docs/gates.md), what is shown of it is printed from the same row.
 * The code passes its arguments in the order of `params`. What a gate does is its host's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum builtin_id { BUILTIN_DONE, BUILTIN_ECHO, BUILTIN_LIST_DIR, BUILTIN_READ_FILE, BUILTIN_SEARCH };

enum {
	BUILTIN_READ_BYTES = 1 << 20, /* of one file */
	BUILTIN_HITS = 200,           /* of one search */
	BUILTIN_RATE = 6000,          /* calls a minute of a session */
};

struct builtin {
	const char *name;
	const char *params[3]; /* names, in their order; NULL after the last */
	const char *schema;    /* NULL: any value */
	bool needs_root;       /* a workspace, beneath which its path lies */
	enum builtin_id id;
	const char *what;
};

extern const struct builtin builtins[];
extern const size_t builtin_count;
