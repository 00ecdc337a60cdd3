/*
 * regex - lines that a regular expression matches
 *
 * PCRE2, each line for itself: no match reaches over a newline, and looking around ends at the
 * line's ends. Text is UTF-8 as far as it is; bytes that are none match nothing but are no
 * error. A pattern that is not UTF-8 is matched as bytes.
 *
 * What an expression may cost is bounded: backtracking, memory, and the machine code's stack.
 * Reaching a bound is an error with a name, never "no match".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "search/literal.h"
#include "search/refuse.h"

enum {
	REGEX_STEPS = 10000000,     /* PCRE2's own default: about a second of a line */
	REGEX_SCAN_STEPS = 1000000, /* over many lines at once; beyond it each line is asked */
	REGEX_HEAP_KIB = 64 << 10,
	REGEX_STACK = 1 << 20, /* of compiled code, bytes */
};

struct regex {
	/* PCRE2's, owned. `plain` is for text of ASCII only, where Unicode changes nothing but the
	 * time; NULL: the pattern cannot do without. */
	void *code, *plain;
	void *data, *limits, *scan_limits, *stack;
	struct literal literal;
};

/* 0, or -1 with `invalid_regex` and the byte of the pattern. */
int regex_init(struct regex *regex, const char *pattern, bool is_caseless, struct refusal *refusal);
void regex_done(struct regex *regex);

/* Whole lines, and where in them to begin (at a line's begin); then the line that was found,
 * without its newline, which the last one may lack. */
struct regex_text {
	const char *data;
	size_t size;
	size_t from;
	size_t begin, end;
};

/* The next line that matches: 1 and its place, 0: none, -1: a bound was reached in the line at
 * `begin`. */
int regex_next(struct regex *regex, struct regex_text *text);
