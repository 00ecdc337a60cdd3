/* Buf: the ceiling holds whatever is added or consumed, and the bytes stay in order. */
#include "base/buf.h"
#include "tap.h"

#include <errno.h>

static void test_ceiling(void)
{
	static const size_t ceilings[] = { 1, 10, 255, 256, 257, 1000, 70000 };
	static const char bytes[70001];

	for (size_t i = 0; i < sizeof ceilings / sizeof *ceilings; i++) {
		_cleanup_buf_ struct buf buf;
		size_t max = ceilings[i];

		buf_init(&buf, max);
		CHECK(buf_add(&buf, bytes, max + 1) == -E2BIG && buf_size(&buf) == 0);
		CHECK(buf_add(&buf, bytes, max) == 0 && buf_room(&buf) == 0);
		CHECK(buf_add_byte(&buf, 'x') == -E2BIG);
		CHECK(!buf_reserve(&buf, 1));
		CHECK(buf_add(&buf, NULL, 0) == 0);
		CHECK(buf_size(&buf) == max && buf.cap <= max);
	}
}

static void test_huge(void)
{
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, 1000);
	CHECK(buf_add_text(&buf, "abc") == 0);
	CHECK(!buf_reserve(&buf, SIZE_MAX) && !buf_reserve(&buf, SIZE_MAX - 2));
	CHECK(buf_add(&buf, "x", SIZE_MAX) == -E2BIG);
	CHECK_STR(buf_text(&buf), "abc");
}

/* A queue that is filled and drained unevenly, for longer than its ceiling. */
static void test_queue(void)
{
	_cleanup_buf_ struct buf buf;
	uint8_t next_in = 0, next_out = 0;
	unsigned seed = 1;

	buf_init(&buf, 1000);
	for (int round = 0; round < 20000; round++) {
		size_t in = (seed = seed * 1103515245 + 12345) >> 16 & 127, out;

		for (; in > 0 && buf_room(&buf) > 0; in--)
			CHECK(buf_add_byte(&buf, next_in++) == 0);
		out = seed >> 24 & 127;
		if (out > buf_size(&buf))
			out = buf_size(&buf);
		for (size_t i = 0; i < out; i++)
			CHECK(buf_at(&buf)[i] == next_out++);
		buf_consume(&buf, out);
		CHECK(buf.start <= buf.end && buf.end <= buf.cap && buf_size(&buf) <= buf.max);
	}
	CHECK(buf.cap <= 1000);
}

/* The room that was consumed in front is used again: no growth past the ceiling. */
static void test_full_then_consumed(void)
{
	_cleanup_buf_ struct buf buf;
	char bytes[600];

	memset(bytes, 'a', sizeof bytes);
	buf_init(&buf, 600);
	CHECK(buf_add(&buf, bytes, 600) == 0);
	buf_consume(&buf, 599);
	CHECK(buf_room(&buf) == 599);
	memset(bytes, 'b', sizeof bytes);
	CHECK(buf_add(&buf, bytes, 600) == -E2BIG);
	CHECK(buf_add(&buf, bytes, 599) == 0 && buf.cap <= 600);
	CHECK(buf_at(&buf)[0] == 'a' && buf_at(&buf)[599] == 'b');
	buf_clear(&buf);
	CHECK(buf_size(&buf) == 0 && buf_room(&buf) == 600);
}

static void test_reserve(void)
{
	_cleanup_buf_ struct buf buf;
	uint8_t *at;

	buf_init(&buf, 5000);
	at = buf_reserve(&buf, 4000);
	CHECK(at);
	memset(at, 'x', 4000);
	buf_grew(&buf, 3);
	CHECK_STR(buf_text(&buf), "xxx");
	CHECK(buf_reserve(&buf, 4997) && !buf_reserve(&buf, 4998));
}

/* More than was read is a mistake of ours and ends the process: it never becomes a size. */
static void test_consume_too_much(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct buf buf;

		buf_init(&buf, 10);
		buf_add_text(&buf, "abc");
		if (!freopen("/dev/null", "w", stderr))
			_exit(9);
		buf_consume(&buf, 4);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

static void test_print(void)
{
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, 100);
	CHECK(buf_printf(&buf, "%s=%d", "a", 7) == 0 && buf_printf(&buf, ";") == 0);
	CHECK_STR(buf_text(&buf), "a=7;");
	CHECK(buf_printf(&buf, "%200d", 1) == -E2BIG);
	CHECK_STR(buf_text(&buf), "a=7;");
	buf_truncate(&buf, 3);
	CHECK_STR(buf_text(&buf), "a=7");
	CHECK(buf_add_text(&buf, ";") == 0);
	CHECK_STR(buf_text(&buf), "a=7;");
}

static const struct tap_test tests[] = {
	{ "nothing passes the ceiling", test_ceiling },
	{ "huge sizes are refused", test_huge },
	{ "a queue keeps its order", test_queue },
	{ "consumed room is used again", test_full_then_consumed },
	{ "reserved bytes count when they are written", test_reserve },
	{ "consuming more than there is ends the process", test_consume_too_much },
	{ "formatting appends or leaves alone", test_print },
};

TAP_MAIN(tests)
