/*
 * arena - many small allocations, freed together, under a byte quota
 *
 * Parsers allocate from an arena; the quota is their memory limit. (The machine gives up to
 * twice as much: blocks of 4 KiB are not always filled.) Pointers stay valid until
 * arena_done(). Allocation fails with NULL when the quota or the machine's memory is used up;
 * the two are not told apart.
 */
#pragma once

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks; /* owned, newest first */
	size_t used;
	size_t quota;
};

#define _cleanup_arena_ __attribute__((cleanup(arena_done)))

/* Empty, allocates nothing; at most `quota_bytes` altogether. */
void arena_init(struct arena *arena, size_t quota_bytes);
/* The same with a first block of the caller's, at least 256 bytes, aligned for any type, that must
 * outlive it: what is small needs no allocation then. Use it before arena_done() only. */
void arena_init_in(struct arena *arena, size_t quota_bytes, void *memory, size_t size);
/* Frees everything; the arena may be used again. */
void arena_done(struct arena *arena);

/* Zeroed, aligned for any type. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_array(struct arena *arena, size_t count, size_t size);

/* A copy of `size` bytes plus a NUL; of a string; of a formatted string. */
char *arena_copy(struct arena *arena, const void *data, size_t size);
char *arena_text(struct arena *arena, const char *text);
__attribute__((format(printf, 2, 3))) char *arena_printf(struct arena *arena, const char *format,
							 ...);
