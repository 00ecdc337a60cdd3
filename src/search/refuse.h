/*
 * refuse - why a call cannot be answered: a reason by name and one sentence
 *
 * Patterns come from whoever asks; a wrong one is told with the place in it where it went wrong.
 */
#pragma once

#include <stddef.h>

struct refusal {
	const char
		*reason; /* static text: "invalid_pattern", "match_limit", "enoent"; NULL: none */
	char detail[480];
};

/* Fills it, the first time only, and returns -1 so that it can end a function. */
__attribute__((format(printf, 3, 4), cold)) int refuse(struct refusal *refusal, const char *reason,
						       const char *format, ...);
