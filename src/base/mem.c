/*
 * musl copies by `rep movsq`, which takes 60 ns for eight bytes on a virtual machine, and a launch
 * makes seven thousand such copies. Here up to 64 bytes are read whole into registers, by loads
 * that overlap, and then written, so it does not matter whether the two places overlap. What is
 * larger goes by 64 bytes, from the end that is safe.
 *
 * It is compiled so that the compiler does not make these loops into calls of the functions that
 * they are (-fno-builtin, -fno-tree-loop-distribute-patterns).
 */
#include "base/mem.h"

#include <stdint.h>

typedef uint16_t two __attribute__((aligned(1), may_alias));
typedef uint32_t four __attribute__((aligned(1), may_alias));
typedef uint64_t eight __attribute__((aligned(1), may_alias));
typedef uint64_t sixteen __attribute__((vector_size(16), aligned(1), may_alias));

struct block {
	sixteen part[4];
};

#define GET(type, at) (*(const type *)(at))
#define PUT(type, at, value) (*(type *)(at) = (value))

/* The first and the last of a type cover all sizes from one to two of it. */
#define BOTH_ENDS(type)                                                                     \
	do {                                                                                \
		type first = GET(type, from), last = GET(type, from + size - sizeof(type)); \
		PUT(type, to, first);                                                       \
		PUT(type, to + size - sizeof(type), last);                                  \
	} while (0)

static inline struct block get_block(const unsigned char *at)
{
	return (struct block){ { GET(sixteen, at), GET(sixteen, at + 16), GET(sixteen, at + 32),
				 GET(sixteen, at + 48) } };
}

static inline void put_block(unsigned char *at, struct block value)
{
	PUT(sixteen, at, value.part[0]);
	PUT(sixteen, at + 16, value.part[1]);
	PUT(sixteen, at + 32, value.part[2]);
	PUT(sixteen, at + 48, value.part[3]);
}

static inline void move_small(unsigned char *to, const unsigned char *from, size_t size)
{
	if (size >= 8)
		BOTH_ENDS(eight);
	else if (size >= 4)
		BOTH_ENDS(four);
	else if (size >= 2)
		BOTH_ENDS(two);
	else if (size)
		*to = *from;
}

static inline void move_middle(unsigned char *to, const unsigned char *from, size_t size)
{
	const unsigned char *end = from + size;
	sixteen a = GET(sixteen, from), b = GET(sixteen, from + 16);
	sixteen c = GET(sixteen, end - 32), d = GET(sixteen, end - 16);

	PUT(sixteen, to, a);
	PUT(sixteen, to + 16, b);
	PUT(sixteen, to + size - 32, c);
	PUT(sixteen, to + size - 16, d);
}

/* More than a block: its other end is read before the loop could have written there. */
static void move_large(unsigned char *to, const unsigned char *from, size_t size)
{
	const size_t step = sizeof(struct block);
	struct block first = get_block(from), last = get_block(from + size - step);

	if ((uintptr_t)to - (uintptr_t)from >= size)
		for (size_t at = step; at < size - step; at += step)
			put_block(to + at, get_block(from + at));
	else
		for (size_t at = size - step; at > step; at -= step)
			put_block(to + at - step, get_block(from + at - step));
	put_block(to, first);
	put_block(to + size - step, last);
}

void *mem_move(void *into, const void *of, size_t size)
{
	unsigned char *to = into;
	const unsigned char *from = of;

	if (size <= 16)
		move_small(to, from, size);
	else if (size <= 32)
		BOTH_ENDS(sixteen);
	else if (size <= 64)
		move_middle(to, from, size);
	else
		move_large(to, from, size);
	return into;
}

void *mem_fill(void *into, int byte, size_t size)
{
	const uint64_t eight_times = (unsigned char)byte * UINT64_C(0x0101010101010101);
	const sixteen value = { eight_times, eight_times };
	unsigned char *to = into, *end = to + size;

	if (size >= 16) {
		for (size_t at = 0; at + 16 < size; at += 16)
			PUT(sixteen, to + at, value);
		PUT(sixteen, end - 16, value);
	} else if (size >= 8) {
		PUT(eight, to, eight_times);
		PUT(eight, end - 8, eight_times);
	} else if (size >= 4) {
		PUT(four, to, (uint32_t)eight_times);
		PUT(four, end - 4, (uint32_t)eight_times);
	} else {
		for (size_t at = 0; at < size; at++)
			to[at] = (unsigned char)byte;
	}
	return into;
}
