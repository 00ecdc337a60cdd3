/*
 * differ - the difference between two texts, as lines of a unified diff
 *
 * Small texts only, in memory, by our own code: the texts are hostile, and no external
 * program should parse them with the caller's rights.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum {
	DIFFER_MAX_BYTES = 256 << 10,
	DIFFER_MAX_LINES = 8192,
	DIFFER_CONTEXT = 3,
};

struct differ_text {
	const char *data; /* borrowed */
	size_t size;
};

/*
 * Appends "@@ -1,2 +1,3 @@" hunks; nothing when the texts are equal. -E2BIG when a text is
 * over the bounds above, when more than 2,000 lines differ, or at `ret_diff`'s ceiling;
 * -ENOMEM. What it appends is raw: escape it before a terminal sees it.
 */
int differ_unified(const struct differ_text *old, const struct differ_text *now,
		   struct buf *ret_diff);

/* Is it text for a diff: valid UTF-8 without NUL? */
bool differ_is_text(const void *data, size_t size);
