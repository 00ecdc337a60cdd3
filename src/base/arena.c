/* Many small allocations, freed together, under a byte quota; see arena.h. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_BLOCK = 4096 - 64 };

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t cap;
	bool is_lent;
	alignas(max_align_t) char data[];
};

void arena_init(struct arena *arena, size_t quota_bytes)
{
	*arena = (struct arena){ .quota = quota_bytes };
}

void arena_init_in(struct arena *arena, size_t quota_bytes, void *memory, size_t size)
{
	struct arena_block *block = memory;

	*arena = (struct arena){ .blocks = block, .quota = quota_bytes };
	*block = (struct arena_block){ .cap = size - sizeof *block, .is_lent = true };
}

void arena_done(struct arena *arena)
{
	struct arena_block *block = arena->blocks, *next;

	for (; block; block = next) {
		next = block->next;
		if (!block->is_lent)
			free(block);
	}
	*arena = (struct arena){ .quota = arena->quota };
}

static struct arena_block *add_block(struct arena *arena, size_t size)
{
	size_t cap = size > ARENA_BLOCK ? size : ARENA_BLOCK;
	struct arena_block *block = malloc(sizeof *block + cap);

	if (!block)
		return NULL;
	*block = (struct arena_block){ .next = arena->blocks, .cap = cap };
	arena->blocks = block;
	return block;
}

/* As it is: who asks fills it. */
static void *take(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	struct arena_block *block = arena->blocks;
	void *at;

	if (size > arena->quota || arena->used > arena->quota - size)
		return NULL;
	if (size > PTRDIFF_MAX - ARENA_BLOCK) /* a block has a head, and sizes are rounded up */
		return NULL;
	size = size ? (size + align - 1) / align * align : align;
	if (!block || block->cap - block->used < size)
		block = add_block(arena, size);
	if (!block)
		return NULL;
	at = block->data + block->used;
	block->used += size;
	arena->used += size;
	return at;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	void *at = take(arena, size);

	return at ? memset(at, 0, size) : NULL;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(count, size, &total))
		return NULL;
	return arena_alloc(arena, total);
}

char *arena_copy(struct arena *arena, const void *data, size_t size)
{
	char *at = size < arena->quota ? take(arena, size + 1) : NULL;

	if (!at)
		return NULL;
	if (size)
		memcpy(at, data, size);
	at[size] = 0;
	return at;
}

char *arena_text(struct arena *arena, const char *text)
{
	return arena_copy(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args, again;
	char *at = NULL;
	int size;

	va_start(args, format);
	va_copy(again, args);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size >= 0)
		at = arena_alloc(arena, (size_t)size + 1);
	if (at)
		vsnprintf(at, (size_t)size + 1, format, again);
	va_end(again);
	return at;
}
