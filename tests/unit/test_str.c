/* Text helpers: patterns, numbers with units, UTF-8. */
#include "base/clock.h"
#include "base/str.h"
#include "tap.h"

#include <errno.h>

static void test_patterns(void)
{
	static const struct {
		const char *pattern, *path;
		bool is_match;
	} table[] = {
		{ ".env", ".env", true },
		{ ".env", "a/b/.env", true },
		{ ".env.*", "x/.env.local", true },
		{ "*.pem", "deep/er/key.pem", true },
		{ "*.pem", "key.pemx", false },
		{ "a/**/b", "a/b", true },
		{ "a/**/b", "a/x/y/b", true },
		{ "a/**/b", "a/xb", false },
		{ "**/secrets/**", "x/secrets/y", true },
		{ "**/secrets/**", "secrets/y", true },
		{ "**/secrets/**", "mysecrets/y", false },
		{ "a/*", "a/b/c", false },
		{ "a/[!x]c", "a/bc", true },
		{ "a/[a-c]c", "a/dc", false },
		{ "a\\*b/c", "a*b/c", true },
		{ "a\\*b/c", "axb/c", false },
		{ "**a*b", "xa/ab", true },
		{ "**a*b/c", "aa/xab/c", true },
		{ "**/a*b", "a/ax/ab", true },
		{ "**a/b*c", "a/bx/a/bc", true },
		{ "**a/b*c", "a/bx/a/b/c", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (str_path_matches(table[i].pattern, table[i].path) != table[i].is_match) {
			printf("# %s against %s\n", table[i].pattern, table[i].path);
			CHECK(!"pattern");
		}
	}
	CHECK(str_path_covers("keys", "a/keys/b") && str_path_covers("a/*", "a/b/c"));
	CHECK(!str_path_covers("keys", "a/b") && !str_path_covers("*", ""));
	CHECK(str_matches("*migrate*", "rake db:migrate now/later"));
	CHECK(!str_matches("*migrate", "migrate now"));
}

/* Every word comes back from a shell as it went, and nothing that moves a cursor stands in it. */
static void test_shell_words(void)
{
	static const struct {
		const char *word, *shown;
	} table[] = {
		{ "plain/w0rd-_.+:,=@%", "plain/w0rd-_.+:,=@%" },
		{ "", "''" },
		{ "=ls", "'=ls'" },
		{ "two words", "'two words'" },
		{ "; rm -rf ~", "'; rm -rf ~'" },
		{ "$(id)`id`", "'$(id)`id`'" },
		{ "it's", "'it'\\''s'" },
		/* fish reads \' in single quotes as a quote that does not close */
		{ "a\\'; rm -rf ~ #", "'a'\\\\''\\''; rm -rf ~ #'" },
		{ "\xc3\xa9t\xc3\xa9 1", "'\xc3\xa9t\xc3\xa9 1'" },
		{ "a\033[2Jb", "$'a\\033[2Jb'" },
		{ "a\nb", "$'a\\nb'" },
		{ "\033'; id; #!", "$'\\033\\047; id; #\\041'" },
		{ "\\\177", "$'\\\\\\177'" },
		{ "a\xff", "$'a\\377'" },
		{ "a\xe2\x80\xae", "$'a\\342\\200\\256'" },
		{ "\xe2\x80", "$'\\342\\200'" },
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		size_t need = strlen(table[i].shown) + 1;

		CHECK(str_shell_word(table[i].word, text, sizeof text) == 0);
		if (!str_is(text, table[i].shown)) {
			printf("# %s, expected %s\n", text, table[i].shown);
			CHECK(!"shell word");
		}
		/* As long as it needs and no shorter: half a word is no word. */
		CHECK(str_shell_word(table[i].word, text, need) == 0);
		CHECK(str_is(text, table[i].shown));
		CHECK(str_shell_word(table[i].word, text, need - 1) == -ENAMETOOLONG);
		CHECK(str_is(text, ""));
	}
}

static void test_pattern_is_not_exponential(void)
{
	char text[4096], pattern[106] = "";
	uint64_t begin_ms;

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = 0;
	alarm(5);
	CHECK(!str_path_matches("*a*a*a*a*a*a*a*a*a*a*a*b", text));
	CHECK(!str_path_matches("**a**a**a**a**a**a**a**b", text));
	/* nor cubic, when a "*" after a "**" fails at every place where it may begin */
	memset(pattern, 'a', sizeof pattern - 1);
	memcpy(pattern, "/**a*", 5);
	memcpy(pattern + sizeof pattern - 2, "b", 2);
	text[0] = '/';
	begin_ms = clock_now_ms();
	CHECK(!str_path_matches(pattern, text));
	memcpy(text + sizeof text - 3, "/b", 2);
	CHECK(!str_path_matches(pattern, text));
	CHECK(clock_now_ms() - begin_ms < 500);
}

static void test_numbers(void)
{
	uint64_t value;

	CHECK(str_parse_u64("18446744073709551615", UINT64_MAX, &value) == 0);
	CHECK(value == UINT64_MAX);
	CHECK(str_parse_u64("18446744073709551616", UINT64_MAX, &value) == -ERANGE ||
	      value == UINT64_MAX);
	CHECK(str_parse_u64("-1", UINT64_MAX, &value) == -EINVAL);
	CHECK(str_parse_u64("", UINT64_MAX, &value) == -EINVAL);
	CHECK(str_parse_u64("257", 256, &value) == -ERANGE);
	CHECK(str_parse_duration("45s", &value) == 0 && value == 45000);
	CHECK(str_parse_duration("45", &value) == -EINVAL);
	CHECK(str_parse_duration("99999999999999999999h", &value) == -ERANGE);
	CHECK(str_parse_size("512MiB", &value) == 0 && value == 512u << 20);
	CHECK(str_parse_size("512MB", &value) == -EINVAL);
	CHECK(str_parse_size("18446744073709551615GiB", &value) == -ERANGE);
}

static void test_format(void)
{
	char text[32];

	str_format_duration(45000, text, sizeof text);
	CHECK_STR(text, "45s");
	str_format_duration(1500, text, sizeof text);
	CHECK_STR(text, "1500ms");
	str_format_size(UINT64_C(1) << 30, text, sizeof text);
	CHECK_STR(text, "1GiB");
}

static void test_utf8(void)
{
	CHECK(str_is_utf8("gr\xc3\xbc\xc3\x9f", 6));
	CHECK(!str_is_utf8("\xc0\x80", 2));
	CHECK(!str_is_utf8("\xed\xa0\x80", 3));
	CHECK(!str_is_utf8("a\0b", 3));
	CHECK(!str_is_utf8("\xf4\x90\x80\x80", 4));
	CHECK(!str_is_utf8("\xe2\x82", 2));
}

static const struct tap_test tests[] = {
	{ "patterns match as documented", test_patterns },
	{ "a word for a shell comes back as it went", test_shell_words },
	{ "no pattern is exponential", test_pattern_is_not_exponential },
	{ "numbers have a range and a unit", test_numbers },
	{ "formatting is exact", test_format },
	{ "UTF-8 is checked by the table", test_utf8 },
};

TAP_MAIN(tests)
