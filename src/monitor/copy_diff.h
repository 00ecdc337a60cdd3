/*
 * copy_diff - what a layer changed, as text
 *
 * A line for each name that begins with its letter (A M D R), and for small texts the changed
 * lines as patch(1) reads them; each of those begins with another character. Names are always
 * escaped, contents never.
 *
 *   M a.c (mode 755, was 644)            R new.c (was old.c)
 *   --- a/a.c                            diff --git a/old.c b/new.c
 *   +++ b/a.c                            similarity index 100%
 *   @@ -1,2 +1,2 @@                      rename from old.c
 *   …                                    rename to new.c
 */
#pragma once

#include "base/buf.h"
#include "monitor/copy.h"

struct copy_diff {
	const struct copy *copy;
	bool names_only; /* the lines with letters alone */
	bool is_silent;  /* no text at all */
	/* A part of the text; a negative errno ends the diff. */
	int (*write)(void *data, const void *bytes, size_t size);
	/* Each entry that is named, before its text; `other`: where a renamed one comes from or
	 * goes to, or NULL. NULL: nobody asks. A negative errno ends the diff. */
	int (*entry)(void *data, const struct layer_entry *entry, const struct layer_entry *other);
	void *data;
};

/* All entries that are named. Their number, or a negative errno. */
int copy_diff_all(const struct copy_diff *diff);
