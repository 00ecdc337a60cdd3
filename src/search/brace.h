/*
 * brace - "{a,b{c,d}}" to the patterns it stands for
 *
 * Nested, in the order written, at most BRACE_MAX of them: each level multiplies, and
 * "{a,b}{a,b}{a,b}…" of 4 KiB would be 2^800. What is inside a class or after a backslash is
 * not looked at. One alternative is fine ("{a}" is "a"), an empty one too ("a{,.bak}").
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "search/refuse.h"

enum { BRACE_MAX = 1000, BRACE_DEPTH = 16 };

struct brace_list {
	const char **items; /* in the arena */
	size_t count;
};

/*
 * Expands a pattern. 0, or -1 with `invalid_pattern` and the byte at which it is wrong: a brace
 * or class that does not end, a brace that was not begun, a backslash at the end, a range
 * ("{1..3}" is none of ours and would match nothing), too many. Everything lives in the arena.
 */
int brace_expand(const char *pattern, struct arena *arena, struct brace_list *ret_list,
		 struct refusal *refusal);

/* The first byte after the class that begins at pattern[at] == '[', or 0: it does not end. A ']'
 * that comes first is a member. */
size_t brace_class_end(const char *pattern, size_t at);
