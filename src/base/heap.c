/*
 * A block has a class by its size, four to each power of two. A freed one goes on the list of
 * its class and is given out again by that class alone; new ones are cut from a region of a
 * megabyte. What is larger than 64 KiB is a mapping of its own and goes back to the kernel.
 *
 * Before a block lies a head of 16 bytes: its size and a seal, made from a secret, the head's
 * place, the size and whether the block is free. A wrong seal is a write past an end, a second free
 * or a pointer from elsewhere. The lists' pointers are hidden by the same secret and lead to a head
 * that must be sealed as free, so that a write to freed memory cannot choose what is given out.
 */
#include "base/heap.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

enum {
	UNIT = 16,
	EACH = 128,          /* up to here every multiple of 16 is a class */
	LARGEST = 64 * 1024, /* with its head; above, a mapping of its own */
	REGION = 1024 * 1024,
	PAGE = 4096, /* mmap() rounds up where pages are larger */
};

struct head {
	size_t size; /* of all, this head included */
	uint64_t seal;
};

_Static_assert(sizeof(struct head) == UNIT, "a block behind it is aligned");

enum state { IN_USE = 0x11, FREED = 0x2e };

static uint64_t seal(const struct heap *heap, const struct head *head, enum state state)
{
	uint64_t mixed =
		((uintptr_t)head ^ heap->secret) + head->size * UINT64_C(0x9e3779b97f4a7c15);

	return (mixed ^ mixed >> 29) + state;
}

/* Which list; `size` is a multiple of 16 and at most LARGEST. */
static unsigned class_of(size_t size)
{
	unsigned power;

	if (size <= EACH)
		return (unsigned)(size / UNIT);
	power = 63 - (unsigned)__builtin_clzll(size - 1);
	return (unsigned)(((size - 1) >> (power - 2)) & 3) + (power - 7) * 4 + EACH / UNIT + 1;
}

/* The largest size of the class of `size`. */
static size_t whole_class(size_t size)
{
	size_t step = size <= EACH ? UNIT : (size_t)1 << (61 - __builtin_clzll(size - 1));

	return (size + step - 1) & ~(step - 1);
}

static void *map(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* The kernel's sixteen random bytes; C libraries seal the stack with the first eight. */
static void start(struct heap *heap)
{
	const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);

	if (!random)
		__builtin_trap();
	memcpy(&heap->secret, random + 8, sizeof heap->secret);
	heap->secret |= 1;
}

/* What is left of the region before is lost: less than one block. */
static struct head *cut(struct heap *heap, size_t size)
{
	struct head *head;

	if ((size_t)(heap->end - heap->next) < size) {
		unsigned char *region = map(REGION);

		if (!region)
			return NULL;
		heap->next = region;
		heap->end = region + REGION;
	}
	head = (struct head *)heap->next;
	heap->next += size;
	return head;
}

static struct head *take_freed(struct heap *heap, size_t size)
{
	uintptr_t *first = &heap->freed[class_of(size)];
	struct head *head = (struct head *)(*first ^ heap->secret);

	if (!*first)
		return NULL;
	if (head->size != size || head->seal != seal(heap, head, FREED))
		__builtin_trap();
	*first = *(uintptr_t *)(head + 1);
	return head;
}

/* 0 if there is no such size. */
static size_t with_head(size_t wanted)
{
	size_t size = (wanted + sizeof(struct head) + UNIT - 1) & ~(size_t)(UNIT - 1);

	if (wanted > PTRDIFF_MAX - 2 * PAGE)
		return 0;
	if (size < 2 * UNIT)
		return 2 * UNIT; /* room for a list's pointer */
	return size > LARGEST ? (size + PAGE - 1) & ~(size_t)(PAGE - 1) : whole_class(size);
}

static void *give(struct heap *heap, struct head *head, size_t size)
{
	if (!head) {
		errno = ENOMEM;
		return NULL;
	}
	head->size = size;
	head->seal = seal(heap, head, IN_USE);
	return head + 1;
}

/* *ret_dirty: it may hold what was there before. */
static void *get(struct heap *heap, size_t wanted, bool *ret_dirty)
{
	size_t size = with_head(wanted);
	struct head *head = NULL;

	if (!heap->secret)
		start(heap);
	if (size > LARGEST)
		head = map(size);
	else if (size)
		head = take_freed(heap, size);
	*ret_dirty = head && size <= LARGEST;
	if (!head && size && size <= LARGEST)
		head = cut(heap, size);
	return give(heap, head, size);
}

static struct head *head_of(const struct heap *heap, void *block)
{
	struct head *head = (struct head *)block - 1;

	if ((uintptr_t)block % UNIT || head->seal != seal(heap, head, IN_USE))
		__builtin_trap();
	return head;
}

void *heap_alloc(struct heap *heap, size_t size)
{
	bool is_dirty;

	return get(heap, size, &is_dirty);
}

void *heap_array(struct heap *heap, size_t count, size_t size)
{
	bool is_dirty;
	size_t all;
	void *block;

	if (__builtin_mul_overflow(count, size, &all))
		all = SIZE_MAX;
	block = get(heap, all, &is_dirty);
	return block && is_dirty ? memset(block, 0, all) : block;
}

void heap_free(struct heap *heap, void *block)
{
	int code = errno;
	struct head *head;
	uintptr_t *first;

	if (!block)
		return;
	head = head_of(heap, block);
	if (head->size > LARGEST) {
		munmap(head, head->size);
		errno = code;
		return;
	}
	first = &heap->freed[class_of(head->size)];
	head->seal = seal(heap, head, FREED);
	*(uintptr_t *)block = *first;
	*first = (uintptr_t)head ^ heap->secret;
}

/* Both are mappings: the kernel moves pages, not bytes. */
static void *remap(struct heap *heap, struct head *head, size_t size)
{
	void *moved = mremap(head, head->size, size, MREMAP_MAYMOVE);

	return give(heap, moved == MAP_FAILED ? NULL : moved, size);
}

void *heap_resize(struct heap *heap, void *block, size_t size)
{
	size_t room, all = with_head(size);
	struct head *head;
	void *other;

	if (!block)
		return heap_alloc(heap, size);
	head = head_of(heap, block);
	if (head->size == all)
		return block;
	if (head->size > LARGEST && all > LARGEST)
		return remap(heap, head, all);
	other = heap_alloc(heap, size);
	if (!other)
		return NULL;
	room = head->size - sizeof *head;
	memcpy(other, block, size < room ? size : room);
	heap_free(heap, block);
	return other;
}
