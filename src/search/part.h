/*
 * part - what lies between two slashes of a pattern, compiled, and names matched against it
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "search/refuse.h"

struct glob_range {
	uint32_t first, last; /* code points; PART_BYTE + b for a byte that is no UTF-8 */
};

enum { PART_BYTE = 0x110000 };

struct glob_token {
	enum { TOKEN_CHAR, TOKEN_ANY, TOKEN_STAR, TOKEN_CLASS } kind;
	uint32_t code; /* CHAR */
	bool is_negated;
	const struct glob_range *ranges; /* CLASS */
	size_t range_count;
};

struct glob_part {
	bool is_anywhere; /* "**" */
	bool is_last;     /* of its alternative */
	bool wants_folder;
	const struct glob_token *tokens;
	size_t token_count;
	const char *head, *tail; /* literal bytes that a name must begin and end with */
	size_t head_size, tail_size;
	bool is_simple; /* "head", or "head*tail": nothing else needs to be looked at */
	bool has_star;
};

/* text[begin..end), which has no slash outside of classes. */
struct part_text {
	const char *text;
	size_t begin, end;
};

/* Compiles it. 0, or -1 with the byte of `text` that is wrong. */
int part_compile(const struct part_text *source, struct arena *arena, struct glob_part *ret_part,
		 struct refusal *refusal);

/* Never worse than name times pattern. */
bool part_matches(const struct glob_part *part, const char *name, size_t size);
