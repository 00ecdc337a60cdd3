/* Heap: blocks are whole, aligned and their own; misuse ends the process. */
#include "base/heap.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>

enum { BLOCKS = 400, ROUNDS = 40000 };

struct block {
	unsigned char *at;
	size_t size;
	unsigned char mark;
};

static struct heap heap;

static uint32_t next_random(void)
{
	static uint32_t state = 2463534242;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

/* Small ones mostly, all classes, some mappings. */
static size_t any_size(void)
{
	uint32_t kind = next_random() % 16, random = next_random();

	return kind < 10   ? random % 200
	       : kind < 14 ? random % 5000
	       : kind < 15 ? random % 70000
			   : random % 300000;
}

static int is_whole(const struct block *block, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (block->at[i] != block->mark)
			return 0;
	return 1;
}

static void renew(struct block *block, size_t size, unsigned char *at)
{
	CHECK(at && (uintptr_t)at % 16 == 0);
	block->at = at;
	block->size = size;
	block->mark = (unsigned char)next_random();
	memset(at, block->mark, size);
}

static void renew_zeroed(struct block *block, size_t size)
{
	unsigned char *at = heap_array(&heap, size, 1);

	CHECK(at);
	for (size_t i = 0; i < size; i++)
		CHECK(at[i] == 0);
	renew(block, size, at);
}

static void renew_resized(struct block *block, size_t size)
{
	size_t kept = block->at && block->size < size ? block->size : block->at ? size : 0;

	block->at = heap_resize(&heap, block->at, size);
	CHECK(block->at && is_whole(block, kept));
	renew(block, size, block->at);
}

static void test_at_random(void)
{
	static struct block blocks[BLOCKS];

	for (size_t round = 0; round < ROUNDS; round++) {
		struct block *block = &blocks[next_random() % BLOCKS];
		size_t size = any_size();

		if (block->at)
			CHECK(is_whole(block, block->size));
		if (next_random() % 3 == 0) {
			renew_resized(block, size);
			continue;
		}
		heap_free(&heap, block->at);
		block->at = NULL;
		if (next_random() % 2)
			renew(block, size, heap_alloc(&heap, size));
		else
			renew_zeroed(block, size);
	}
}

/* At each edge of a class a block holds all it says, and freed memory comes again. */
static void test_every_size(void)
{
	for (size_t size = 0; size <= 140000; size += size < 9000 ? 1 : 97) {
		unsigned char *before = heap_alloc(&heap, size), *after = heap_alloc(&heap, size);

		CHECK(before && after && before != after);
		memset(before, 1, size);
		memset(after, 2, size);
		CHECK(!size || (before[0] == 1 && before[size - 1] == 1));
		heap_free(&heap, before);
		if (size < 60000)
			CHECK(heap_alloc(&heap, size) == before);
		heap_free(&heap, after);
	}
}

static void test_impossible(void)
{
	static const size_t sizes[] = { SIZE_MAX,        SIZE_MAX - 15,           SIZE_MAX - 16,
					SIZE_MAX - 4096, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX,
					(size_t)1 << 62 };
	char *kept = heap_alloc(&heap, 20);

	memcpy(kept, "kept", 5);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		errno = 0;
		CHECK(!heap_alloc(&heap, sizes[i]) && errno == ENOMEM);
		errno = 0;
		CHECK(!heap_array(&heap, sizes[i], 1) && errno == ENOMEM);
		errno = 0;
		CHECK(!heap_resize(&heap, kept, sizes[i]) && errno == ENOMEM);
	}
	CHECK(!heap_array(&heap, (size_t)1 << 33, (size_t)1 << 33));
	CHECK(!heap_array(&heap, SIZE_MAX / 2, 3));
	CHECK_STR(kept, "kept");
}

static void test_null_and_errno(void)
{
	void *large = heap_alloc(&heap, 1 << 20), *small = heap_alloc(&heap, 1);

	errno = EXDEV;
	heap_free(&heap, NULL);
	heap_free(&heap, large);
	heap_free(&heap, small);
	CHECK(errno == EXDEV);
	CHECK(heap_resize(&heap, NULL, 0) && heap_resize(&heap, heap_alloc(&heap, 100), 0));
}

static void free_twice(void)
{
	void *block = heap_alloc(&heap, 40);

	heap_free(&heap, block);
	heap_free(&heap, block);
}

static void free_inside(void)
{
	heap_free(&heap, (char *)heap_alloc(&heap, 400) + 32);
}

static void write_past_the_end(void)
{
	volatile unsigned char *block = heap_alloc(&heap, 48);
	void *next = heap_alloc(&heap, 48);

	block[48] ^= 0x40; /* the head of the next */
	heap_free(&heap, next);
}

/* A list that leads to a block in use, by one who knows all but the secret. */
static void write_to_freed(void)
{
	volatile uintptr_t *block = heap_alloc(&heap, 48);
	char *target = heap_alloc(&heap, 48), *other = heap_alloc(&heap, 48);

	heap_free(&heap, other);
	heap_free(&heap, (void *)block);
	block[0] ^= (uintptr_t)(other - 16) ^ (uintptr_t)(target - 16);
	for (int i = 0; i < 2; i++)
		heap_alloc(&heap, 48);
}

static void resize_freed(void)
{
	void *block = heap_alloc(&heap, 40);

	heap_free(&heap, block);
	heap_resize(&heap, block, 4000);
}

static void test_misuse(void)
{
	static void (*const ways[])(void) = { free_twice, free_inside, write_past_the_end,
					      write_to_freed, resize_freed };

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			ways[i]();
			_exit(0);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		if (!WIFSIGNALED(status))
			printf("# misuse %zu went unseen\n", i);
		CHECK(WIFSIGNALED(status));
	}
}

static const struct tap_test tests[] = {
	{ "blocks at random", test_at_random },
	{ "every size", test_every_size },
	{ "what cannot be", test_impossible },
	{ "NULL is fine and errno stays", test_null_and_errno },
	{ "misuse ends the process", test_misuse },
};

TAP_MAIN(tests)
