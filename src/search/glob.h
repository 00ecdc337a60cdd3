/*
 * glob - which paths a pattern means, one name at a time
 *
 * A pattern is parts between slashes: "**" is any number of folders (last: one or more names),
 * "*" and "?" stay within a name, "[a-z]", "[!a-z]" and "[[:digit:]]" are classes, a backslash
 * takes a special meaning away, braces are alternatives (brace.h). A leading dot is nothing
 * special. A slash at the end asks for folders. A character is UTF-8, or one byte where a name
 * is none.
 *
 * Walking down a tree, a set of positions says where in the patterns one may be; a name takes it
 * to the next set. An empty set means that nothing beneath can match. So a tree is read once,
 * however many alternatives there are, and only where it is needed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "search/refuse.h"

enum { GLOB_PARTS = 4096, GLOB_WORDS = GLOB_PARTS / 64 };

struct glob_part;

struct glob {
	const struct glob_part *parts; /* of all alternatives, one after the other */
	size_t count;
};

/* Positions, by number of part. */
struct glob_set {
	uint64_t words[GLOB_WORDS];
};

enum glob_kind {
	GLOB_PATHS,  /* relative to the folder walked: "*.c" is its own files only */
	GLOB_FILTER, /* as in .gitignore: without a slash it is about the name alone */
};

/* 0, or -1 with `invalid_pattern` and where. Everything lives in the arena. */
int glob_parse(const char *pattern, enum glob_kind kind, struct arena *arena, struct glob *ret_glob,
	       struct refusal *refusal);

/* The set at the top folder. */
void glob_start(const struct glob *glob, struct glob_set *ret_set);

struct glob_name {
	const char *text;
	size_t size;
	bool is_folder;
};

/* What a name is to a pattern. */
enum glob_verdict {
	GLOB_NONE = 0,
	GLOB_MATCHES = 1, /* the path that ends here is meant */
	GLOB_BENEATH = 2, /* something beneath may be */
};

/* The set at a folder beneath it; its path ends at `end`, with or without a slash. */
void glob_beneath(const struct glob *glob, const char *folder, const char *end,
		  struct glob_set *ret_set);

/* From a folder's set to that of a name in it (`ret_set`, unless NULL). Bits of glob_verdict. */
int glob_step(const struct glob *glob, const struct glob_set *set, const struct glob_name *name,
	      struct glob_set *ret_set);

/* A whole relative path of a file at once. */
bool glob_matches(const struct glob *glob, const char *path);
