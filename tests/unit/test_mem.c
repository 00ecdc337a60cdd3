/* mem: the same as a loop over bytes, for every small size, place and overlap. */
#include "base/mem.h"
#include "tap.h"

#include <stdint.h>

enum { AREA = 1200, EDGE = 16, SMALL = 300 };

static unsigned char area[AREA], expected[AREA];

static void fill_areas(unsigned seed)
{
	for (size_t i = 0; i < AREA; i++)
		area[i] = expected[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

/* By hand and through a copy: not by the functions under test nor by the library's. */
static void move_bytes(volatile unsigned char *to, const volatile unsigned char *from, size_t size)
{
	static volatile unsigned char copy[AREA];

	for (size_t i = 0; i < size; i++)
		copy[i] = from[i];
	for (size_t i = 0; i < size; i++)
		to[i] = copy[i];
}

static int areas_differ(void)
{
	for (size_t i = 0; i < AREA; i++)
		if (area[i] != expected[i])
			return 1;
	return 0;
}

static void check_move(size_t to, size_t from, size_t size)
{
	fill_areas((unsigned)(to + size));
	move_bytes(expected + to, expected + from, size);
	CHECK(mem_move(area + to, area + from, size) == area + to);
	if (areas_differ()) {
		printf("# %zu bytes from %zu to %zu\n", size, from, to);
		CHECK(!"moved as expected");
	}
}

static void test_apart(void)
{
	for (size_t size = 0; size <= SMALL; size++)
		for (size_t at = 0; at < EDGE; at++) {
			check_move(EDGE + at, 600 + (at * 5) % EDGE, size);
			check_move(600 + at, EDGE + (at * 3) % EDGE, size);
		}
}

static void test_overlapping(void)
{
	for (size_t size = 0; size <= SMALL; size++)
		for (size_t shift = 0; shift <= size + 1; shift += 1 + shift / 70) {
			check_move(EDGE, EDGE + shift, size);
			check_move(EDGE + shift, EDGE, size);
		}
}

static void test_larger(void)
{
	static const size_t sizes[] = { 511, 512, 513, 575, 576, 577, 640, 1000 };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t shift = 0; shift < 180; shift++) {
			check_move(3, 3 + shift, sizes[i]);
			check_move(3 + shift, 3, sizes[i]);
		}
}

static void test_fill(void)
{
	static const int bytes[] = { 0, 1, 0x80, 0xff, 0x1ab, -1 };

	for (size_t size = 0; size <= SMALL; size++)
		for (size_t at = 0; at < 2 * EDGE; at++) {
			int byte = bytes[(size + at) % (sizeof bytes / sizeof *bytes)];

			fill_areas((unsigned)size);
			for (size_t i = 0; i < size; i++)
				((volatile unsigned char *)expected)[at + i] = (unsigned char)byte;
			CHECK(mem_fill(area + at, byte, size) == area + at);
			CHECK(!areas_differ());
		}
}

static const struct tap_test tests[] = {
	{ "two places apart", test_apart },
	{ "two places that overlap", test_overlapping },
	{ "more than some blocks", test_larger },
	{ "filling", test_fill },
};

TAP_MAIN(tests)
