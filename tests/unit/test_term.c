/* Terms: what Erlang wrote is read and written back; what is malformed is refused by name. */
#include "base/str.h"
#include "tap.h"
#include "term_vectors.h"
#include "wire/emit.h"
#include "wire/term.h"

#include <errno.h>

enum { QUOTA = 32 << 20 };

#define BYTES(text) (text), sizeof(text) - 1
#define NODE "w\003a@b"

static void test_vectors(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(term_vectors); i++) {
		const struct term_vector *v = &term_vectors[i];
		_cleanup_arena_ struct arena arena;
		_cleanup_buf_ struct buf buf;
		struct csn_error err = { 0 };
		struct term term, again;
		char text[256];

		arena_init(&arena, QUOTA);
		buf_init(&buf, QUOTA);
		printf("# %s\n", v->name);
		CHECK(term_decode(&arena, (struct term_input){ v->bytes, v->size }, &term_limits,
				  &term, &err) == 0);
		CHECK(term_encode(&buf, &term) == 0);
		CHECK(!v->is_exact ||
		      (buf_size(&buf) == v->size && memcmp(buf_at(&buf), v->bytes, v->size) == 0));
		CHECK(term_decode(&arena, (struct term_input){ buf_at(&buf), buf_size(&buf) },
				  &term_limits, &again, &err) == 0);
		CHECK(term_equal(&term, &again));
		term_print(&term, text, sizeof text);
		if (v->print)
			CHECK_STR(text, v->print);
	}
}

/* Every beginning of every vector is cut short somewhere, and must say so. */
static void test_cut(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(term_vectors); i++) {
		for (size_t size = 0; size < term_vectors[i].size; size++) {
			_cleanup_arena_ struct arena arena;
			struct term term;
			uint8_t *exact = malloc(size ? size : 1);

			arena_init(&arena, QUOTA);
			memcpy(exact, term_vectors[i].bytes, size);
			CHECK(term_decode(&arena, (struct term_input){ exact, size }, &term_limits,
					  &term, NULL) == -EBADMSG);
			free(exact);
		}
	}
}

static const struct {
	const char *bytes;
	size_t size;
	const char *why;
} malformed[] = {
	{ BYTES(""), "cut short" },
	{ BYTES("\x82"
		"a\1"),
	  "version" },
	{ BYTES("\x83"), "cut short" },
	{ BYTES("\x83"
		"\0"),
	  "unknown" },
	{ BYTES("\x83\xff"), "unknown" },
	{ BYTES("\x83"
		"a\1a"),
	  "trailing bytes" },
	{ BYTES("\x83"
		"P\0\0\0\1x"),
	  "compressed" },
	{ BYTES("\x83h\1P\0\0\0\1x"), "compressed" },
	{ BYTES("\x83"
		"D\0"),
	  "distribution header" },
	{ BYTES("\x83"
		"E\0"),
	  "distribution header" },
	{ BYTES("\x83R\0"), "atom cache" },
	{ BYTES("\x83p\0\0\0\4"), "function" },
	{ BYTES("\x83u\0\0\0\0"), "function" },
	{ BYTES("\x83qw\1aw\1ba\1"), "function" },
	{ BYTES("\x83y12345678a\1"), "local" },
	{ BYTES("\x83n\1\2\5"), "sign" },
	{ BYTES("\x83n\377\0\5"), "cut short" },
	{ BYTES("\x83o\377\377\377\377\0\5"), "cut short" },
	{ BYTES("\x83"
		"F\x7f\xf0\0\0\0\0\0\0"),
	  "finite" },
	{ BYTES("\x83"
		"F\x7f\xf8\0\0\0\0\0\0"),
	  "finite" },
	{ BYTES("\x83"
		"cnan\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	  "float" },
	{ BYTES("\x83"
		"c0x1p3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	  "float" },
	{ BYTES("\x83"
		"c 1.5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	  "float" },
	{ BYTES("\x83"
		"c1.5x\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	  "float" },
	{ BYTES("\x83"
		"c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	  "float" },
	{ BYTES("\x83"
		"c1e999\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	  "finite" },
	{ BYTES("\x83w\1\xff"), "UTF-8" },
	{ BYTES("\x83w\2\xc0\x80"), "UTF-8" },
	{ BYTES("\x83w\3\xed\xa0\x80"), "UTF-8" },
	{ BYTES("\x83w\3a\0b"), "UTF-8" },
	{ BYTES("\x83s\3a\0b"), "zero byte" },
	{ BYTES("\x83w\5abc"), "cut short" },
	{ BYTES("\x83M\0\0\0\1\0a"), "bit string" },
	{ BYTES("\x83M\0\0\0\1\11a"), "bit string" },
	{ BYTES("\x83M\0\0\0\0\1"), "bit string" },
	{ BYTES("\x83m\377\377\377\377abc"), "cut short" },
	{ BYTES("\x83l\377\377\377\377aaaaaaaaaa"), "more elements than there are bytes" },
	{ BYTES("\x83i\377\377\377\377aaaaaaaaaa"), "more elements than there are bytes" },
	{ BYTES("\x83t\377\377\377\377aaaaaaaaaa"), "more elements than there are bytes" },
	{ BYTES("\x83t\200\0\0\0a"), "more elements than there are bytes" },
	{ BYTES("\x83k\377\377abc"), "more elements than there are bytes" },
	{ BYTES("\x83h\3a\1a\2"), "cut short" },
	{ BYTES("\x83l\0\0\0\1a\1l\0\0\0\1a\2j"), "tail" },
	{ BYTES("\x83l\0\0\0\1a\1k\0\1a"), "tail" },
	{ BYTES("\x83l\0\0\0\0a\1"), "tail" },
	{ BYTES("\x83l\0\0\0\1a\1l\0\0\0\1a\2a\3"), "tail" },
	{ BYTES("\x83t\0\0\0\2a\1a\2a\1a\3"), "same key" },
	{ BYTES("\x83t\0\0\0\2a\1a\2b\0\0\0\1a\3"), "same key" },
	{ BYTES("\x83t\0\0\0\2w\1aa\2d\0\1aa\3"), "same key" },
	{ BYTES("\x83t\0\0\0\2n\1\0\1a\2o\0\0\0\1\0\1a\3"), "same key" },
	{ BYTES("\x83t\0\0\0\2k\0\1aa\2l\0\0\0\1aajj"), "same key" },
	/* #{#{1 => 1, 2 => 2} => 1, #{2 => 2, 1 => 1} => 2}: order is no difference */
	{ BYTES("\x83t\0\0\0\2t\0\0\0\2a\1a\1a\2a\2a\1t\0\0\0\2a\2a\2a\1a\1a\2"), "same key" },
	/* four maps as keys, the first again as the last */
	{ BYTES("\x83t\0\0\0\4t\0\0\0\1a\1a\1jt\0\0\0\1a\2a\2jt\0\0\0\1a\3a\3jt\0\0\0\1a\1a\1j"),
	  "same key" },
	{ BYTES("\x83ga\1\0\0\0\1\0\0\0\2\3"), "node name" },
	{ BYTES("\x83gg" NODE "\0\0\0\1\0\0\0\2\3"), "node name" },
	{ BYTES("\x83g" NODE "\0\0\0\1\0\0\0\2"), "cut short" },
	{ BYTES("\x83r\0\0" NODE "\1"), "reference" },
	{ BYTES("\x83Z\0\6" NODE "\0\0\0\1aaaabbbbccccddddeeeeffff"), "reference" },
	{ BYTES("\x83Z\377\377" NODE "\0\0\0\1"), "reference" },
};

static void test_malformed(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		_cleanup_arena_ struct arena arena;
		struct csn_error err = { 0 };
		struct term term;

		arena_init(&arena, QUOTA);
		printf("# row %zu: %s\n", i, malformed[i].why);
		CHECK(term_decode(&arena,
				  (struct term_input){ malformed[i].bytes, malformed[i].size },
				  &term_limits, &term, &err) == -EBADMSG);
		printf("# %s\n", err.text);
		CHECK(strstr(err.text, malformed[i].why));
	}
}

/* A claim costs nothing: the arena stays empty. */
static void test_claims_allocate_nothing(void)
{
	static const char *const claims[] = { "\x83l\377\377\377\377aaaaaaaaaa",
					      "\x83i\377\377\377\377aaaaaaaaaa",
					      "\x83t\377\377\377\377aaaaaaaaaa",
					      "\x83m\377\377\377\377aaaaaaaaaa" };

	for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
		_cleanup_arena_ struct arena arena;
		struct term term;

		arena_init(&arena, SIZE_MAX);
		CHECK(term_decode(&arena, (struct term_input){ claims[i], 16 }, &term_limits, &term,
				  NULL) == -EBADMSG);
		CHECK(arena.used == 0);
	}
}

/* A term of `depth` nested tuples around nil. */
static int decode_nested(unsigned depth, const struct term_limits *limits, struct csn_error *err)
{
	_cleanup_arena_ struct arena arena;
	_cleanup_buf_ struct buf buf;
	struct term term;

	arena_init(&arena, QUOTA);
	buf_init(&buf, QUOTA);
	CHECK(buf_add(&buf, "\x83", 1) == 0);
	for (unsigned i = 0; i < depth; i++)
		CHECK(buf_add(&buf, "h\1", 2) == 0);
	CHECK(buf_add(&buf, "j", 1) == 0);
	return term_decode(&arena, (struct term_input){ buf_at(&buf), buf_size(&buf) }, limits,
			   &term, err);
}

static void test_depth(void)
{
	struct csn_error err = { 0 };

	CHECK(decode_nested(64, &term_limits, &err) == 0);
	CHECK(decode_nested(65, &term_limits, &err) == -EBADMSG);
	CHECK(strstr(err.text, "depth"));
	CHECK(decode_nested(1000000, &term_limits, &err) == -EBADMSG);
}

static void test_count_and_size(void)
{
	static const char five[] = "\x83h\4a\1a\2a\3a\4";
	struct term_limits limits = { .size = 100, .depth = 1, .count = 5 };
	_cleanup_arena_ struct arena arena;
	struct csn_error err = { 0 };
	struct term term;

	arena_init(&arena, QUOTA);
	CHECK(term_decode(&arena, (struct term_input){ BYTES(five) }, &limits, &term, &err) == 0);
	limits.count = 4;
	CHECK(term_decode(&arena, (struct term_input){ BYTES(five) }, &limits, &term, &err) ==
	      -EBADMSG);
	CHECK(strstr(err.text, "count"));
	limits = (struct term_limits){ .size = sizeof five - 2, .depth = 1, .count = 5 };
	CHECK(term_decode(&arena, (struct term_input){ BYTES(five) }, &limits, &term, &err) ==
	      -EBADMSG);
	CHECK(strstr(err.text, "size"));
	/* all levels together, not each of them */
	limits = (struct term_limits){ .size = 100, .depth = 2, .count = 7 };
	CHECK(term_decode(&arena, (struct term_input){ BYTES("\x83h\2h\2jjh\2jj") }, &limits, &term,
			  &err) == 0);
	limits.count = 6;
	CHECK(term_decode(&arena, (struct term_input){ BYTES("\x83h\2h\2jjh\2jj") }, &limits, &term,
			  &err) == -EBADMSG);
	CHECK(strstr(err.text, "count"));
	limits = (struct term_limits){ .size = 100, .depth = 1, .count = 3 };
	CHECK(term_decode(&arena, (struct term_input){ BYTES("\x83k\0\3abc") }, &limits, &term,
			  &err) == -EBADMSG);
	CHECK(strstr(err.text, "count"));
}

/* Every quota below what is needed is -ENOMEM, and the result is left alone. */
static void test_quota(void)
{
	static const char map[] = "\x83t\0\0\0\2m\0\0\0\3abck\0\2xyw\1ah\2a\1n\1\0\1";
	struct term term = { .type = TERM_OPAQUE };
	size_t quota = 0;
	int r = -ENOMEM;

	for (; quota < 4096 && r == -ENOMEM; quota += 8) {
		_cleanup_arena_ struct arena arena;

		arena_init(&arena, quota);
		r = term_decode(&arena, (struct term_input){ BYTES(map) }, &term_limits, &term,
				NULL);
		CHECK(r == 0 || term.type == TERM_OPAQUE);
	}
	CHECK(r == 0 && quota > 100);
}

/* 100,000 different keys, and the same with the last one twice: neither takes long. */
static void test_many_keys(void)
{
	enum { KEYS = 100000 };

	alarm(10);
	for (uint32_t twice = 0; twice < 2; twice++) {
		_cleanup_arena_ struct arena arena;
		_cleanup_buf_ struct buf buf;
		struct term term;
		struct emit emit;

		arena_init(&arena, QUOTA);
		buf_init(&buf, QUOTA);
		emit = emit_begin(&buf);
		emit_map(&emit, KEYS + twice);
		for (uint32_t i = 0; i < KEYS + twice; i++) {
			emit_int(&emit, i % KEYS * 7919);
			emit_nil(&emit);
		}
		CHECK(emit_end(&emit) == 0);
		CHECK(term_decode(&arena,
				  (struct term_input){ buf_at(&buf) + 4, buf_size(&buf) - 4 },
				  &term_limits, &term, NULL) == (twice ? -EBADMSG : 0));
	}
}

static struct term decode(struct arena *arena, const char *bytes, size_t size)
{
	struct term term;

	CHECK(term_decode(arena, (struct term_input){ bytes, size }, &term_limits, &term, NULL) ==
	      0);
	return term;
}

static void test_questions(void)
{
	_cleanup_arena_ struct arena arena;
	struct term a, b, built;
	struct term pairs[4];

	arena_init(&arena, QUOTA);
	a = decode(&arena, BYTES("\x83t\0\0\0\2w\1aa\1w\1ba\2"));
	b = decode(&arena, BYTES("\x83t\0\0\0\2w\1ba\2w\1aa\1"));
	CHECK(term_equal(&a, &b));
	CHECK(term_get(&a, "b") && term_get(&a, "b")->integer == 2);
	CHECK(!term_get(&a, "c") && !term_get(&a.items[0], "a"));
	CHECK(term_is_atom(&a.items[0], "a") && !term_is_atom(&a.items[0], "ab"));
	memcpy(pairs, a.items, sizeof pairs);
	built = (struct term){ .type = TERM_MAP, .items = pairs, .count = 4 };
	CHECK(term_equal(&built, &b) && term_equal(&b, &built));
	pairs[3].integer = 3;
	CHECK(!term_equal(&built, &b) && !term_equal(&b, &built));
	a = decode(&arena, BYTES("\x83"
				 "a\1"));
	b = decode(&arena, BYTES("\x83"
				 "F\x3f\xf0\0\0\0\0\0\0"));
	CHECK(!term_equal(&a, &b));
	a = decode(&arena, BYTES("\x83M\0\0\0\1\3\x80")); /* <<4:3>> */
	b = decode(&arena, BYTES("\x83M\0\0\0\1\4\x80")); /* <<8:4>> */
	CHECK(!term_equal(&a, &b));
	b = decode(&arena, BYTES("\x83M\0\0\0\1\3\x9f")); /* unused bits are no value */
	CHECK(term_equal(&a, &b));
}

/* 255 characters, however many bytes they take. */
static void test_long_atoms(void)
{
	_cleanup_arena_ struct arena arena;
	struct csn_error err = { 0 };
	struct term term;
	char atom[4 + 256] = "\x83v\1";

	arena_init(&arena, QUOTA);
	memset(atom + 4, 'a', 256);
	CHECK(term_decode(&arena, (struct term_input){ atom, sizeof atom }, &term_limits, &term,
			  &err) == -EBADMSG);
	CHECK(strstr(err.text, "too long"));
	memcpy(atom + 4, "\xc3\xa9", 2); /* a character less */
	CHECK(term_decode(&arena, (struct term_input){ atom, sizeof atom }, &term_limits, &term,
			  &err) == 0);
	memset(atom + 4, 'a', 256);
	atom[1] = 'd';
	CHECK(term_decode(&arena, (struct term_input){ atom, sizeof atom }, &term_limits, &term,
			  &err) == -EBADMSG);
}

/* What is too deep to be decoded again is not encoded, and nothing is left behind. */
static void test_encode_bounds(void)
{
	struct term nest[66] = { 0 };
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, 300);
	nest[65] = (struct term){ .type = TERM_LIST };
	for (int i = 65; i > 0; i--)
		nest[i - 1] = (struct term){ .type = TERM_TUPLE, .items = &nest[i], .count = 1 };
	CHECK(buf_add_text(&buf, "before") == 0);
	CHECK(term_encode(&buf, &nest[0]) == -E2BIG && buf_size(&buf) == 6);
	CHECK(term_encode(&buf, &nest[1]) == 0);
	CHECK(buf_size(&buf) == 6 + 1 + 2 * 64 + 1);
	CHECK(term_encode(&buf, &nest[1]) == 0);
	CHECK(term_encode(&buf, &nest[1]) == -E2BIG && buf_size(&buf) == 6 + 2 * 130);
}

/* A log line: cut, and without a byte that a terminal would obey. */
static void test_print(void)
{
	_cleanup_arena_ struct arena arena;
	struct term term;
	char text[12];

	arena_init(&arena, QUOTA);
	term = decode(&arena, BYTES("\x83m\0\0\0\3\n\"\\"));
	term_print(&term, text, 1);
	CHECK_STR(text, "");
	term_print(&term, text, sizeof text);
	CHECK_STR(text, "<<\"\\x{a}...");
	term = decode(&arena, BYTES("\x83w\2\xc2\x9b"));
	term_print(&term, text, sizeof text);
	CHECK_STR(text, "'\\x{9b}'");
}

static const struct tap_test tests[] = {
	{ "vectors", test_vectors },
	{ "cut", test_cut },
	{ "malformed", test_malformed },
	{ "claims allocate nothing", test_claims_allocate_nothing },
	{ "depth", test_depth },
	{ "count and size", test_count_and_size },
	{ "quota", test_quota },
	{ "many keys", test_many_keys },
	{ "questions", test_questions },
	{ "long atoms", test_long_atoms },
	{ "encode bounds", test_encode_bounds },
	{ "print", test_print },
};
TAP_MAIN(tests)
