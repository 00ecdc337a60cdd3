/* Emitting: each value has one form, and a frame is there whole or not at all. */
#include "base/str.h"
#include "tap.h"
#include "wire/emit.h"
#include "wire/frame.h"

#include <errno.h>

#define BYTES(text) (text), sizeof(text) - 1

static void emit_eleven(struct emit *e)
{
	emit_tuple(e, 11);
	emit_atom(e, "ok");
	emit_int(e, 255);
	emit_int(e, -1);
	emit_int(e, INT64_MIN);
	emit_map(e, 1);
	emit_text(e, "k");
	emit_bool(e, 1);
	emit_list(e, 1);
	emit_nil(e);
	emit_nil(e);
	emit_list(e, 0);
	emit_nil(e);
	emit_float(e, 1.0);
	emit_binary(e, "a\0b", 3);
	emit_bool(e, 0);
	emit_tuple(e, 0);
}

static void test_forms(void)
{
	static const char want[] = "\0\0\0\x4c\x83h\13w\2oka\377b\377\377\377\377"
				   "n\10\1\0\0\0\0\0\0\0\200"
				   "t\0\0\0\1m\0\0\0\1kw\4truel\0\0\0\1jjjF\77\360\0\0\0\0\0\0"
				   "m\0\0\0\3a\0bw\5falseh\0";
	_cleanup_buf_ struct buf buf;
	struct emit e;

	buf_init(&buf, 1000);
	e = emit_begin(&buf);
	emit_eleven(&e);
	CHECK(emit_end(&e) == 0);
	CHECK(buf_size(&buf) == sizeof want - 1);
	CHECK(memcmp(buf_at(&buf), want, sizeof want - 1) == 0);
}

static void test_large_tuple(void)
{
	_cleanup_buf_ struct buf buf;
	struct emit e;

	buf_init(&buf, 1000);
	e = emit_begin(&buf);
	emit_tuple(&e, 256);
	CHECK(emit_end(&e) == 0);
	CHECK(memcmp(buf_at(&buf) + 4, BYTES("\x83i\0\0\1\0")) == 0);
}

/* Whatever the ceiling, what was there before stays and half a frame never does. */
static void test_ceiling(void)
{
	for (size_t max = 6; max < 90; max++) {
		_cleanup_buf_ struct buf buf;
		struct emit e;
		int r;

		buf_init(&buf, max);
		CHECK(buf_add_text(&buf, "before") == 0);
		e = emit_begin(&buf);
		emit_eleven(&e);
		r = emit_end(&e);
		CHECK(r == (max < 6 + 80 ? -E2BIG : 0));
		CHECK(buf_size(&buf) == (r ? 6 : 6 + 80));
		CHECK(memcmp(buf_at(&buf), "before", 6) == 0);
	}
}

static void test_long_atom(void)
{
	char name[257];
	_cleanup_buf_ struct buf buf;
	struct emit e;

	buf_init(&buf, 1000);
	memset(name, 'a', sizeof name);
	name[256] = 0;
	e = emit_begin(&buf);
	emit_atom(&e, name);
	CHECK(emit_end(&e) == -E2BIG && buf_size(&buf) == 0);
	name[255] = 0;
	e = emit_begin(&buf);
	emit_atom(&e, name);
	CHECK(emit_end(&e) == 0 && buf_size(&buf) == 4 + 1 + 2 + 255);
}

/* A frame that the other side would refuse is not made. */
static void test_too_long(void)
{
	static char bytes[FRAME_MAX];
	_cleanup_buf_ struct buf buf;
	struct emit e;

	buf_init(&buf, 2 * (size_t)FRAME_MAX);
	e = emit_begin(&buf);
	emit_binary(&e, bytes, FRAME_MAX - 6);
	CHECK(emit_end(&e) == 0);
	buf_clear(&buf);
	e = emit_begin(&buf);
	emit_binary(&e, bytes, FRAME_MAX - 5);
	CHECK(emit_end(&e) == -E2BIG && buf_size(&buf) == 0);
}

/* Bytes were consumed before, and the buf moves its contents while a frame grows. */
static void test_moving(void)
{
	char piece[200] = "";
	_cleanup_buf_ struct buf buf;
	struct emit e;

	buf_init(&buf, 256);
	CHECK(buf_add(&buf, piece, 150) == 0);
	buf_consume(&buf, 140);
	e = emit_begin(&buf);
	emit_binary(&e, piece, 200);
	CHECK(emit_end(&e) == 0);
	CHECK(buf_size(&buf) == 10 + 4 + 6 + 200);
	CHECK(memcmp(buf_at(&buf) + 10, BYTES("\0\0\0\xce\x83m\0\0\0\xc8")) == 0);
}

static const struct tap_test tests[] = {
	{ "forms", test_forms },       { "large tuple", test_large_tuple },
	{ "ceiling", test_ceiling },   { "long atom", test_long_atom },
	{ "too long", test_too_long }, { "moving", test_moving },
};
TAP_MAIN(tests)
