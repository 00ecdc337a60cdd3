/* Numbers of the canonical form: the shortest text that reads back the same, and nothing else
 * changed. */
#include "audit/dump.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static void check(const char *given, const char *expected)
{
	json_t *value = json_loads(given, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL), *back;
	char *text = NULL;
	size_t size = 0;

	CHECK(value && dump_short(value, &text, &size) == 0);
	CHECK_STR(text, expected);
	CHECK(strlen(text) == size);
	back = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	CHECK(json_equal(value, back));
	json_decref(back);
	json_decref(value);
	free(text);
}

static void numbers(void)
{
	static const char *const pairs[][2] = {
		{ "0.1", "0.1" },
		{ "0.0042", "0.0042" },
		{ "0.30420000000000003", "0.3042" },
		{ "0.30000000000000004", "0.30000000000000004" },
		{ "[0.1,-0.1,1.5]", "[0.1,-0.1,1.5]" },
		{ "1e-7", "1e-7" },
		{ "1.1e-300", "1.1e-300" },
		{ "1e300", "1e300" },
		{ "1e22", "1e22" },
		{ "2.0", "2.0" },
		{ "123456789012345678", "123456789012345678" },
		{ "5e-324", "4.94065645841247e-324" },
		{ "9007199254740993.0", "9007199254740992.0" },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		check(pairs[i][0], pairs[i][1]);
}

static void texts_stay(void)
{
	check("{\"0.10000000000000001\":\"0.10000000000000001\"}",
	      "{\"0.10000000000000001\":\"0.10000000000000001\"}");
	check("[\"a\\\\\",0.1,\"\\\"0.30000000000000004\\\"\",\"\\u0000\"]",
	      "[\"a\\\\\",0.1,\"\\\"0.30000000000000004\\\"\",\"\\u0000\"]");
	check("{\"b\":true,\"a\":[null,{},[],\"\",-0.0]}",
	      "{\"a\":[null,{},[],\"\",-0.0],\"b\":true}");
}

/* Random doubles come back bit for bit. */
static void all_come_back(void)
{
	unsigned long long state = 88172645463325252ull;

	for (int i = 0; i < 20000; i++) {
		double number, back;
		json_t *value;
		size_t size;
		char *text;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memcpy(&number, &state, sizeof number);
		value = json_real(number); /* NULL for what is no number */
		if (!value)
			continue;
		CHECK(dump_short(value, &text, &size) == 0);
		back = strtod(text, NULL);
		CHECK(memcmp(&back, &number, sizeof back) == 0);
		free(text);
		json_decref(value);
	}
}

static const struct tap_test tests[] = {
	{ "numbers", numbers },
	{ "texts stay", texts_stay },
	{ "all come back", all_come_back },
};

TAP_MAIN(tests)
