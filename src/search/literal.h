/*
 * literal - what can be known of a regular expression by looking at it
 *
 * Most searches are for a word, or for something around one. A line without that word cannot
 * match, and finding a word is many times faster than running an expression. What is not
 * understood here is not used: then the expression runs over each line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LITERAL_MAX = 256 };

struct literal {
	char text[LITERAL_MAX]; /* every match holds these bytes, as they are */
	size_t size;            /* 0: none known */
	size_t rare;            /* index of the byte that is least common in text */
	bool is_whole;          /* the expression is this text and nothing else */
	/* It may run over many lines at once: looking around, a possessive quantifier, the ends of
	 * the subject would see other lines; what runs on over lines would take too long. */
	bool may_scan;
};

/* Of a pattern that compiles. */
void literal_read(const char *pattern, struct literal *ret_literal);

/* The first place of the text (not of size 0) in data; NULL: none. */
const char *literal_find(const struct literal *literal, const char *data, size_t size);
