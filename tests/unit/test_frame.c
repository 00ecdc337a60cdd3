/* Frames: lengths, and every way in which a message can break its table. */
#include "base/str.h"
#include "tap.h"
#include "wire/emit.h"
#include "wire/frame.h"

#include <errno.h>

#define BYTES(text) (text), sizeof(text) - 1

static void test_peek(void)
{
	_cleanup_buf_ struct buf in;
	const uint8_t *payload = NULL;
	size_t size = 0;

	buf_init(&in, 100);
	for (int i = 0; i < 6; i++) {
		CHECK(frame_peek(&in, 10, &payload, &size, NULL) == 0);
		CHECK(buf_add_byte(&in, (uint8_t) "\0\0\0\3xyz"[i]) == 0);
	}
	CHECK(frame_peek(&in, 10, &payload, &size, NULL) == 0 && !payload);
	CHECK(buf_add_text(&in, "z\0\0") == 0);
	CHECK(frame_peek(&in, 10, &payload, &size, NULL) == 1);
	CHECK(size == 3 && memcmp(payload, "xyz", 3) == 0);
	CHECK(frame_peek(&in, 3, &payload, &size, NULL) == 1);
}

static void test_peek_refuses(void)
{
	static const struct {
		const char *bytes;
		size_t max;
		int result;
	} table[] = {
		{ "\0\0\0\0", 10, -EMSGSIZE },
		{ "\0\0\0\13", 10, -EMSGSIZE },
		{ "\377\377\377\377", FRAME_MAX, -EMSGSIZE },
		{ "\1\0\0\1", FRAME_MAX, -EMSGSIZE },
		{ "\1\0\0\0", FRAME_MAX, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_buf_ struct buf in;
		const uint8_t *payload;
		size_t size;

		buf_init(&in, 100);
		CHECK(buf_add(&in, table[i].bytes, 4) == 0);
		CHECK(frame_peek(&in, table[i].max, &payload, &size, NULL) == table[i].result);
	}
}

/* A payload is written as the body of a term, without version. */
static int decode(enum frame_side side, const char *body, size_t size, struct csn_error *err)
{
	_cleanup_arena_ struct arena arena;
	_cleanup_buf_ struct buf buf;
	struct term term;

	arena_init(&arena, 1 << 20);
	buf_init(&buf, 1 << 20);
	CHECK(buf_add(&buf, "\x83", 1) == 0 && buf_add(&buf, body, size) == 0);
	return frame_decode(&arena, (struct term_input){ buf_at(&buf), buf_size(&buf) }, side,
			    &term, err);
}

#define MONITOR(text) FROM_MONITOR, BYTES(text)
#define AGENT(text) FROM_AGENT, BYTES(text)
#define PORT(text) FROM_PORT_CLIENT, BYTES(text)

static const struct {
	enum frame_side side;
	const char *body;
	size_t size;
	int index;
} messages[] = {
	{ MONITOR("h\2w\4initt\0\0\0\2w\11workspacem\0\0\0\2/ww\7profilem\0\0\0\1x"), FRAME_INIT },
	{ MONITOR("h\4w\4calla\7w\4execj"), -1 },
	{ MONITOR("h\4w\4calla\7w\4exect\0\0\0\0"), FRAME_CALL },
	{ MONITOR("h\4d\0\4calla\7w\4exect\0\0\0\0"), FRAME_CALL },
	{ MONITOR("h\4w\4dataa\7w\5stdinm\0\0\0\1x"), FRAME_DATA_IN },
	{ MONITOR("h\4w\4dataa\7w\5stdinw\3eof"), FRAME_DATA_IN },
	{ MONITOR("h\3w\6windowa\7b\0\1\0\0"), FRAME_WINDOW_IN },
	{ MONITOR("h\3w\6signala\7a\11"), FRAME_SIGNAL },
	{ MONITOR("h\4w\6resizea\7a\30a\120"), FRAME_RESIZE },
	{ MONITOR("h\2w\6cancela\7"), FRAME_CANCEL },
	{ MONITOR("h\1w\4stop"), FRAME_STOP },
	{ AGENT("h\2w\5readyt\0\0\0\3w\7versiona\1w\5verbsl\0\0\0\1w\4execj"
		"w\10enforcesj"),
	  FRAME_READY },
	{ AGENT("h\3w\5replya\7t\0\0\0\0"), FRAME_REPLY },
	{ AGENT("h\4w\6faileda\7w\6enoentm\0\0\0\0"), FRAME_FAILED },
	{ AGENT("h\4w\4dataa\7w\6stdoutm\0\0\0\1x"), FRAME_DATA_OUT },
	{ AGENT("h\4w\4dataa\7w\3ttym\0\0\0\1x"), FRAME_DATA_OUT },
	{ AGENT("h\3w\6windowa\7a\1"), FRAME_WINDOW_OUT },
	{ AGENT("h\2w\4factt\0\0\0\0"), FRAME_FACT },
	{ AGENT("h\2w\3byet\0\0\0\0"), FRAME_BYE },
	{ PORT("h\3w\4opena\1t\0\0\0\0"), FRAME_OPEN },
	{ PORT("h\2w\5closea\2"), FRAME_CLOSE },
	{ PORT("h\1w\4stop"), FRAME_STOP },
};

static void test_messages(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		struct csn_error err = { 0 };
		int want = messages[i].index < 0 ? -EBADMSG : messages[i].index;
		int r;

		r = decode(messages[i].side, messages[i].body, messages[i].size, &err);
		printf("# row %zu: %d %s\n", i, r, err.text);
		CHECK(r == want);
	}
}

static void test_wrong_messages(void)
{
	static const struct {
		enum frame_side side;
		const char *body;
		size_t size;
		const char *why;
	} table[] = {
		{ AGENT("h\1w\4stop"), "not this side's" },
		{ MONITOR("h\3w\5replya\7t\0\0\0\0"), "not this side's" },
		{ MONITOR("h\3w\4opena\1t\0\0\0\0"), "not this side's" },
		{ MONITOR("h\2w\5closea\1"), "not this side's" },
		{ PORT("h\2w\3byet\0\0\0\0"), "not this side's" },
		{ MONITOR("h\1w\4halt"), "halt is unknown" },
		{ MONITOR("h\1w\4st\33p"), "'st\\x{1b}p' is unknown" },
		{ MONITOR("h\2w\4stopa\1"), "has 2 elements" },
		{ MONITOR("h\2w\6signala\7"), "has 2 elements" },
		{ MONITOR("w\4stop"), "tuple" },
		{ MONITOR("h\0"), "tuple" },
		{ MONITOR("h\1a\1"), "tuple" },
		{ MONITOR("i\0\0\0\1w\4stop"), "tuple" },
		{ MONITOR("h\1w\377stop"), "tuple" },
		{ MONITOR("h\1w\4stopj"), "trailing" },
		{ MONITOR("h\2w\6cancelb\377\377\377\377"), "non-negative integer" },
		{ MONITOR("h\2w\6cancelw\1a"), "non-negative integer" },
		{ MONITOR("h\2w\6canceln\10\0\377\377\377\377\377\377\377\377"), "non-negative" },
		{ MONITOR("h\3w\6signala\7a\101"), "too large: 65, at most 64" },
		{ MONITOR("h\4w\6resizea\7b\0\1\0\0a\1"), "too large" },
		{ MONITOR("h\3w\6windowa\7b\1\0\0\1"), "too large" },
		{ MONITOR("h\4w\4dataa\7w\6stdoutm\0\0\0\1x"), "no stream of this side" },
		{ AGENT("h\4w\4dataa\7w\5stdinm\0\0\0\1x"), "no stream of this side" },
		{ AGENT("h\4w\4dataa\7w\15stdout stderrm\0\0\0\1x"), "no stream of this side" },
		{ AGENT("h\4w\4dataa\7w\6stdoutw\3eof"), "not a binary" },
		{ MONITOR("h\4w\4dataa\7w\5stdinw\3end"), "not a binary or eof" },
		{ MONITOR("h\4w\4calla\7w\4exect\0\0\0\1m\0\0\0\1ka\1"), "atoms as keys" },
		{ MONITOR("h\4w\4calla\7m\0\0\0\4exect\0\0\0\0"), "not an atom" },
		{ MONITOR("h\2w\4initt\0\0\0\1w\7profilem\0\0\0\1x"), "workspace is missing" },
		{ MONITOR("h\2w\4initt\0\0\0\1w\5moneym\0\0\0\1x"), "money is an unknown key" },
		{ MONITOR("h\2w\4inita\1"), "map" },
		{ AGENT("h\2w\5readyt\0\0\0\0"), "version is missing" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct csn_error err = { 0 };

		CHECK(decode(table[i].side, table[i].body, table[i].size, &err) == -EBADMSG);
		printf("# row %zu: %s\n", i, err.text);
		CHECK(strstr(err.text, table[i].why));
	}
}

static int data_of(size_t size, struct csn_error *err)
{
	static uint8_t bytes[FRAME_PIECE + 100];
	_cleanup_arena_ struct arena arena;
	_cleanup_buf_ struct buf buf;
	struct term term;
	struct emit e;

	arena_init(&arena, 1 << 20);
	buf_init(&buf, 1 << 20);
	e = emit_begin(&buf);
	emit_tuple(&e, 4);
	emit_atom(&e, "data");
	emit_int(&e, INT64_MAX);
	emit_atom(&e, "stdout");
	emit_binary(&e, bytes, size);
	CHECK(emit_end(&e) == 0);
	return frame_decode(&arena, (struct term_input){ buf_at(&buf) + 4, buf_size(&buf) - 4 },
			    FROM_AGENT, &term, err);
}

/* The largest piece with the longest Ref fits; a byte more does not, nor a longer frame. */
static void test_sizes(void)
{
	struct csn_error err = { 0 };

	CHECK(data_of(FRAME_PIECE, &err) == FRAME_DATA_OUT);
	CHECK(data_of(FRAME_PIECE + 1, &err) == -EBADMSG && strstr(err.text, "too large"));
	CHECK(data_of(FRAME_PIECE + 100, &err) == -EBADMSG && strstr(err.text, "at most 65600"));
}

static const char *check_exec(const char *body, size_t size, struct csn_error *err)
{
	_cleanup_arena_ struct arena arena;
	struct term term, verb = { .type = TERM_ATOM, .bytes = { (const uint8_t *)"exec", 4 } };

	arena_init(&arena, 1 << 20);
	CHECK(term_decode(&arena, (struct term_input){ body, size }, &term_limits, &term, err) ==
	      0);
	return frame_check_map(frame_find_verb(&verb)->args, &term, err) == 0 ? "" : err->text;
}

static const struct {
	const char *body;
	size_t size;
	const char *why; /* empty: taken */
} execs[] = {
	{ BYTES("\x83t\0\0\0\0"), "" },
	{ BYTES("\x83t\0\0\0\3w\4argvl\0\0\0\2m\0\0\0\1am\0\0\0\0jw\3envt\0\0\0\1m\0\0\0\1A"
		"m\0\0\0\1bw\3ttyw\4true"),
	  "" },
	{ BYTES("\x83t\0\0\0\1w\6limitst\0\0\0\1w\12open_filesa\7"), "" },
	{ BYTES("\x83t\0\0\0\1w\6limitst\0\0\0\1w\6coloura\7"), "colour is an unknown" },
	{ BYTES("\x83t\0\0\0\1w\6limitst\0\0\0\1w\12open_filesb\177\0\0\0"), "too large" },
	{ BYTES("\x83t\0\0\0\1w\6limitsj"), "limits is not a map" },
	{ BYTES("\x83t\0\0\0\1w\4argvj"), "" },
	{ BYTES("\x83t\0\0\0\1w\4argvk\0\2ab"), "argv is not a list" },
	{ BYTES("\x83t\0\0\0\1w\4argvl\0\0\0\1m\0\0\0\1a"
		"a\1"),
	  "argv is not a list" },
	{ BYTES("\x83t\0\0\0\1w\4argvl\0\0\0\1m\0\0\0\3a\0bj"), "argv is not a list" },
	{ BYTES("\x83t\0\0\0\1w\3envt\0\0\0\1m\0\0\0\3A=Bm\0\0\0\1b"), "env is not a map" },
	{ BYTES("\x83t\0\0\0\1w\3envt\0\0\0\1m\0\0\0\0m\0\0\0\1b"), "env is not a map" },
	{ BYTES("\x83t\0\0\0\1w\3envt\0\0\0\1m\0\0\0\1Am\0\0\0\1\0"), "env is not a map" },
	{ BYTES("\x83t\0\0\0\1w\3envt\0\0\0\1w\1Am\0\0\0\1b"), "env is not a map" },
	{ BYTES("\x83t\0\0\0\1w\3cwdm\0\0\0\0"), "cwd is not a path" },
	{ BYTES("\x83t\0\0\0\1w\3cwdm\0\0\0\3/\0x"), "cwd is not a path" },
	{ BYTES("\x83t\0\0\0\1w\3ttya\1"), "tty is not a boolean" },
	{ BYTES("\x83t\0\0\0\1w\4rowsb\0\1\0\0"), "rows is too large" },
	{ BYTES("\x83t\0\0\0\1w\12timeout_msb\377\377\377\377"), "timeout_ms is not" },
	{ BYTES("\x83t\0\0\0\1m\0\0\0\4argvj"), "<<\"argv\">> is an unknown key" },
	{ BYTES("\x83j"), "[] is not a map" },
};

/* What is handed on at once stays where it came; what is kept is a copy. */
static void test_lasting_bytes(void)
{
	static const uint8_t data[] = "\203h\4w\4dataa\1w\6stdoutm\0\0\0\3abc";
	static const uint8_t failed[] = "\203h\4w\6faileda\1w\6enoentm\0\0\0\3abc";
	_cleanup_arena_ struct arena arena;
	struct term term;

	arena_init(&arena, 1 << 20);
	CHECK(frame_decode(&arena, (struct term_input){ data, sizeof data - 1 }, FROM_AGENT, &term,
			   NULL) == FRAME_DATA_OUT);
	CHECK(term.items[3].bytes.data == data + sizeof data - 4 && term.items[3].bytes.size == 3);
	CHECK(frame_decode(&arena, (struct term_input){ failed, sizeof failed - 1 }, FROM_AGENT,
			   &term, NULL) == FRAME_FAILED);
	CHECK(str_is((const char *)term.items[3].bytes.data, "abc"));
	CHECK(term.items[3].bytes.data != failed + sizeof failed - 4);
}

static void test_exec(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(execs); i++) {
		struct csn_error err = { 0 };
		const char *why;

		why = check_exec(execs[i].body, execs[i].size, &err);
		printf("# row %zu: %s\n", i, why);
		CHECK(*execs[i].why ? strstr(why, execs[i].why) != NULL : *why == 0);
	}
}

/* What the tables promise: types exist, names fit an atom, every message is found again. */
static void check_keys(const struct frame_key *keys)
{
	for (; keys->name; keys++) {
		CHECK(frame_type_name(keys->type) && keys->what);
		CHECK(!keys->keys || keys->type == 'm' || keys->type == 'R');
		if (keys->keys)
			check_keys(keys->keys);
	}
}

static void test_tables(void)
{
	CHECK(frame_message_count == FRAME_CLOSE + 1 && frame_verb_count == 14);
	for (size_t i = 0; i < frame_message_count; i++) {
		const struct frame_message *m = &frame_messages[i];
		CHECK(m->name && m->what && m->shape && m->max_bytes && m->max_bytes <= FRAME_MAX);
		CHECK(str_starts(m->shape + 1, m->name));
		for (const char *letter = m->args; *letter; letter++)
			CHECK(strchr("iabmd", *letter));
		if (m->keys)
			check_keys(m->keys);
	}
	for (size_t i = 0; i < frame_verb_count; i++) {
		check_keys(frame_verbs[i].args);
		check_keys(frame_verbs[i].result);
	}
	for (size_t i = 0; i < frame_client_verb_count; i++) {
		check_keys(frame_client_verbs[i].args);
		check_keys(frame_client_verbs[i].result);
	}
}

static void test_results(void)
{
	_cleanup_arena_ struct arena arena;
	struct csn_error err = { 0 };
	struct term term;

	arena_init(&arena, 1 << 20);
	CHECK(term_decode(&arena,
			  (struct term_input){
				  BYTES("\x83t\0\0\0\5w\11exit_codea\0w\6signalw\4nullw\7user_usa\1"
					"w\11system_usa\1w\15max_rss_bytesa\1") },
			  &term_limits, &term, &err) == 0);
	CHECK(frame_check_map(frame_verbs[0].result, &term, &err) == 0);
	term.count -= 2;
	CHECK(frame_check_map(frame_verbs[0].result, &term, &err) == -EBADMSG);
	CHECK(strstr(err.text, "max_rss_bytes is missing"));
}

/* Is a `data` frame seen to have begun, of which so many bytes came? */
static bool has_begun(const char *bytes, size_t size, enum frame_side side,
		      struct frame_data *ret_data)
{
	static struct arena arena;
	_cleanup_buf_ struct buf in;

	arena_done(&arena);
	arena_init(&arena, 4 << 10);
	buf_init(&in, 1 << 17);
	CHECK(buf_add(&in, bytes, size) == 0);
	return frame_data_begun(&in, side, &arena, ret_data);
}

static void test_begun(void)
{
	static const char frame[] = "\0\0\0\33\x83h\4w\4dataa\7w\6stdoutm\0\0\0\3abc";
	struct frame_data data = { 0 };

	for (size_t i = 0; i < sizeof frame; i++)
		CHECK(has_begun(frame, i, FROM_AGENT, &data) == (i >= 28));
	CHECK(data.index == FRAME_DATA_OUT && data.head == 28 && data.size == 3);
	CHECK(data.term.items[1].integer == 7 && term_is_atom(&data.term.items[2], "stdout"));
	CHECK(data.term.items[3].type == TERM_BINARY && data.term.items[3].bytes.size == 0);
	CHECK(!has_begun(BYTES(frame), FROM_MONITOR, &data)); /* its streams are others */
}

/* Whatever is not exactly so is left to who reads whole frames. */
static void test_not_begun(void)
{
	static const struct {
		const char *bytes;
		size_t size;
	} table[] = {
		{ BYTES("\0\0\0\34\x83h\4w\4dataa\7w\6stdoutm\0\0\0\3") }, /* a byte after it */
		{ BYTES("\0\0\0\32\x83h\4w\4dataa\7w\6stdoutm\0\0\0\3") }, /* one too few */
		{ BYTES("\0\0\0\30\x83h\4w\4dataa\7w\6stdoutm\0\0\0\0") }, /* empty */
		{ BYTES("\0\1\0\31\x83h\4w\4dataa\7w\6stdoutm\0\1\0\1") }, /* 65,537 */
		{ BYTES("\0\0\0\27\x83h\4w\4dataa\7w\6stdoutm\377\377\377\377") },
		{ BYTES("\0\0\0\33\x83h\4w\4dataa\7w\6stdlogm\0\0\0\3") }, /* no stream */
		{ BYTES("\0\0\0\33\x83h\4w\4doraa\7w\6stdoutm\0\0\0\3") }, /* another name */
		{ BYTES("\0\0\0\36\x83h\4w\4datab\377\377\377\377w\6stdoutm\0\0\0\3") },
		{ BYTES("\0\0\0\45\x83h\4w\4datan\11\0\1\1\1\1\1\1\1\1\1w\6stdoutm\0\0\0\3") },
		{ BYTES("\0\0\0\33\x83h\4w\4dataa\7w\377stdoutm\0\0\0\3") },
		{ BYTES("\0\0\0\33\x83h\3w\4dataa\7w\6stdoutm\0\0\0\3") },
	};
	struct frame_data data;
	char bytes[64];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		memset(bytes, 'x', sizeof bytes);
		memcpy(bytes, table[i].bytes, table[i].size);
		for (size_t size = table[i].size; size <= sizeof bytes; size++)
			CHECK(!has_begun(bytes, size, FROM_AGENT, &data));
	}
}

static const struct tap_test tests[] = {
	{ "peek", test_peek },
	{ "peek refuses", test_peek_refuses },
	{ "messages", test_messages },
	{ "wrong messages", test_wrong_messages },
	{ "sizes", test_sizes },
	{ "exec", test_exec },
	{ "tables", test_tables },
	{ "results", test_results },
	{ "lasting bytes", test_lasting_bytes },
	{ "data that has begun", test_begun },
	{ "what is no such data", test_not_begun },
};
TAP_MAIN(tests)
