/*
 * heap - a memory allocator for a program of one thread
 *
 * The command has one of these where it is built with musl (cli/musl.c), whose own allocator is
 * slow for it. A block stays until heap_free(); memory of small blocks is given out again and
 * returns to the kernel only with the process. A block that is freed twice, or whose neighbour
 * was written past its end, ends the process: it must not go on.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { HEAP_CLASSES = 48 };

/* All zero is an empty one. */
struct heap {
	uintptr_t secret;
	unsigned char *next, *end;     /* what is left of the newest region */
	uintptr_t freed[HEAP_CLASSES]; /* lists, hidden by the secret; 0 ends one */
};

/* At least `size` bytes (a place of its own even for 0), aligned to 16. NULL: errno is ENOMEM. */
void *heap_alloc(struct heap *heap, size_t size);
/* The same, zeroed; ENOMEM too if the product is no size. */
void *heap_array(struct heap *heap, size_t count, size_t size);
/*
 * The block with as much of what it held as fits, perhaps elsewhere; `block` is then gone. With
 * NULL (ENOMEM) it stays. A NULL `block` is heap_alloc(); a size of 0 frees nothing.
 */
void *heap_resize(struct heap *heap, void *block, size_t size);
/* NULL is fine; errno stays. */
void heap_free(struct heap *heap, void *block);
