/* Arena: the quota is the memory limit, and no size gets around it. */
#include "base/arena.h"
#include "tap.h"

#include <stdalign.h>
#include <stdint.h>

static void test_quota(void)
{
	_cleanup_arena_ struct arena arena;
	size_t got = 0;

	arena_init(&arena, 10000);
	while (arena_alloc(&arena, 100))
		got++;
	/* 100 bytes take 112: alignment counts, so the quota is never exceeded by more than one. */
	CHECK(got >= 85 && got <= 100);
	CHECK(arena.used <= 10000 + 16);
	CHECK(!arena_alloc(&arena, 10000));
	arena_done(&arena);
	CHECK(arena.used == 0 && arena_alloc(&arena, 10000));
	CHECK(!arena_alloc(&arena, 1));
}

static void test_sizes_around_the_quota(void)
{
	static const size_t quotas[] = { 0, 1, 15, 16, 17, 4096, 100000 };

	for (size_t i = 0; i < sizeof quotas / sizeof *quotas; i++) {
		_cleanup_arena_ struct arena arena;

		arena_init(&arena, quotas[i]);
		CHECK(!arena_alloc(&arena, quotas[i] + 1));
		CHECK(!arena_copy(&arena, "", quotas[i]));
		CHECK(arena_alloc(&arena, quotas[i]) || quotas[i] == 0);
	}
}

static void test_overflow(void)
{
	_cleanup_arena_ struct arena arena;

	arena_init(&arena, SIZE_MAX / 2);
	CHECK(!arena_array(&arena, SIZE_MAX / 2, 3));
	CHECK(!arena_array(&arena, (size_t)1 << 33, (size_t)1 << 33));
	CHECK(!arena_array(&arena, 1, SIZE_MAX));
	CHECK(!arena_alloc(&arena, SIZE_MAX));
	CHECK(!arena_alloc(&arena, SIZE_MAX - 8));
	CHECK(!arena_copy(&arena, "x", SIZE_MAX));
	CHECK(arena.used == 0);
	arena_init(&arena, SIZE_MAX); /* no quota: rounding up must not make it small */
	CHECK(!arena_alloc(&arena, SIZE_MAX - 8) && !arena_alloc(&arena, SIZE_MAX));
	CHECK(!arena_alloc(&arena, SIZE_MAX - 15) && !arena_alloc(&arena, SIZE_MAX - 40));
}

static void test_zeroed_and_aligned(void)
{
	_cleanup_arena_ struct arena arena;

	arena_init(&arena, 1 << 20);
	for (size_t size = 0; size < 5000; size += 7) {
		unsigned char *at = arena_alloc(&arena, size);

		if (!at)
			break;
		CHECK((uintptr_t)at % 16 == 0);
		for (size_t i = 0; i < size; i++)
			CHECK(at[i] == 0);
		memset(at, 0xaa, size);
	}
	CHECK(arena.used > 500000);
}

/* Nothing that was handed out moves or is handed out again when blocks are added. */
static void test_pointers_stay(void)
{
	_cleanup_arena_ struct arena arena;
	char *texts[2000];

	arena_init(&arena, 1 << 20);
	for (int i = 0; i < 2000; i++) {
		texts[i] = arena_printf(&arena, "text %d of %s", i, i % 100 ? "few" : "many");
		CHECK(texts[i]);
		if (i % 50 == 0)
			CHECK(arena_alloc(&arena, 6000));
	}
	for (int i = 0; i < 2000; i++) {
		char want[32];

		snprintf(want, sizeof want, "text %d of %s", i, i % 100 ? "few" : "many");
		CHECK_STR(texts[i], want);
	}
}

static void test_copies(void)
{
	_cleanup_arena_ struct arena arena;
	char *copy;

	arena_init(&arena, 100);
	copy = arena_copy(&arena, "a\0b", 3);
	CHECK(copy && memcmp(copy, "a\0b", 4) == 0);
	CHECK_STR(arena_text(&arena, ""), "");
	CHECK(!arena_printf(&arena, "%200d", 1));
	CHECK_STR(arena_printf(&arena, "%d", 1), "1");
}

/* What fits lies in the caller's memory; what does not is allocated, and freed (ASan sees both). */
static void test_first_block_lent(void)
{
	alignas(max_align_t) char memory[512];
	_cleanup_arena_ struct arena arena;
	char *first, *second;

	memset(memory, 0xff, sizeof memory);
	arena_init_in(&arena, 10000, memory, sizeof memory);
	first = arena_text(&arena, "near");
	second = arena_alloc(&arena, 5000);
	CHECK(first > memory && first + 4 < memory + sizeof memory);
	CHECK(second && (second < memory || second >= memory + sizeof memory) && second[4999] == 0);
	CHECK_STR(first, "near");
	CHECK(!arena_alloc(&arena, 6000));
	arena_done(&arena);
	CHECK(arena_alloc(&arena, 100));
}

static const struct tap_test tests[] = {
	{ "the quota holds", test_quota },
	{ "one byte more than the quota is refused", test_sizes_around_the_quota },
	{ "sizes that overflow are refused", test_overflow },
	{ "memory is zeroed and aligned", test_zeroed_and_aligned },
	{ "pointers stay valid", test_pointers_stay },
	{ "copies end in NUL", test_copies },
	{ "a first block of the caller's is used and not freed", test_first_block_lent },
};

TAP_MAIN(tests)
