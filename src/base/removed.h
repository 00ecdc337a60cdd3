/*
 * removed - who wants to know what a sweep removed
 *
 * What a crash left is removed in passing, where nobody asks, and by `caisson gc`, which says it.
 */
#pragma once

#include <stddef.h>

struct removed {
	/* A kind ("group", "scratch") and a name or path, both borrowed. */
	void (*tell)(void *data, const char *kind, const char *what);
	void *data;
};

/* NULL: nobody wants to know. */
static inline void removed_tell(const struct removed *removed, const char *kind, const char *what)
{
	if (removed)
		removed->tell(removed->data, kind, what);
}
