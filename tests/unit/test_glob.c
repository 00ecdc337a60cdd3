/* Patterns: what they expand to, what they match, what is refused and where. */
#include "search/glob.h"

#include "search/brace.h"
#include "search/literal.h"
#include "tap.h"

static struct refusal refusal;

static bool parses(const char *pattern, enum glob_kind kind, struct arena *arena, struct glob *glob)
{
	refusal = (struct refusal){ 0 };
	arena_init(arena, 32 << 20);
	return glob_parse(pattern, kind, arena, glob, &refusal) == 0;
}

static bool matches(const char *pattern, const char *path)
{
	_cleanup_arena_ struct arena arena;
	struct glob glob;

	CHECK(parses(pattern, GLOB_PATHS, &arena, &glob));
	return glob_matches(&glob, path);
}

static bool filters(const char *pattern, const char *path)
{
	_cleanup_arena_ struct arena arena;
	struct glob glob;

	CHECK(parses(pattern, GLOB_FILTER, &arena, &glob));
	return glob_matches(&glob, path);
}

static const char *refused(const char *pattern)
{
	_cleanup_arena_ struct arena arena;
	struct glob glob;

	CHECK(!parses(pattern, GLOB_PATHS, &arena, &glob));
	CHECK_STR(refusal.reason, "invalid_pattern");
	return refusal.detail;
}

/* "a b c": the expansion, joined by blanks. */
static void check_expansion(const char *pattern, const char *expected)
{
	_cleanup_arena_ struct arena arena;
	struct brace_list list;
	char joined[4096] = "";

	refusal = (struct refusal){ 0 };
	arena_init(&arena, 1 << 20);
	CHECK(brace_expand(pattern, &arena, &list, &refusal) == 0);
	for (size_t i = 0; i < list.count; i++)
		snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s",
			 i ? " " : "", list.items[i]);
	CHECK_STR(joined, expected);
}

static void test_braces(void)
{
	check_expansion("a", "a");
	check_expansion("{a,b}", "a b");
	check_expansion("x{a,b}y{c,d}z", "xaycz xaydz xbycz xbydz");
	check_expansion("{a,b{c,d{e,f}}}", "a bc bde bdf");
	check_expansion("{a}", "a");
	check_expansion("a{,b}", "a ab");
	check_expansion("a{b,}", "ab a");
	check_expansion("{[,}],x}", "[,}] x");
	check_expansion("\\{a,b\\}", "\\{a,b\\}");
	check_expansion("{a\\,b,c}", "a\\,b c");
	check_expansion("{a,b/c}/{d}", "a/d b/c/d");
	check_expansion("{{a,b},{c,d}}", "a b c d");
}

static void test_brace_bounds(void)
{
	char pattern[4096] = "";

	for (int i = 0; i < 9; i++)
		strncat(pattern, "{a,b}", 6);
	check_expansion("{a,b}", "a b");
	CHECK(strstr(refused(strncat(pattern, "{a,b}", 6)), "more than 1000"));
	memset(pattern, 0, sizeof pattern);
	memset(pattern, '{', 17);
	CHECK(strstr(refused(pattern), "byte 16"));
}

struct row {
	const char *pattern, *path;
	bool matches;
};

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (matches(rows[i].pattern, rows[i].path) != rows[i].matches)
			printf("# %s and %s\n", rows[i].pattern, rows[i].path);
		CHECK(matches(rows[i].pattern, rows[i].path) == rows[i].matches);
	}
}

static void test_stars(void)
{
	static const struct row rows[] = {
		{ "*", "a", true },
		{ "*", ".a", true },
		{ "*", "a/b", false },
		{ "*.c", "x.c", true },
		{ "*.c", ".c", true },
		{ "*.c", "x.h", false },
		{ "a*b*c", "aXbYc", true },
		{ "a*b*c", "abc", true },
		{ "a*b*c", "acb", false },
		{ "a*ab", "aab", true },
		{ "a*ab", "ab", false },
		{ "**", "a", true },
		{ "**", "a/b/c", true },
		{ "**/c", "c", true },
		{ "**/c", "a/b/c", true },
		{ "**/c", "a/cc", false },
		{ "a/**", "a/b", true },
		{ "a/**", "a/b/c", true },
		{ "a/**", "a", false },
		{ "a/**/z", "a/z", true },
		{ "a/**/z", "a/b/c/z", true },
		{ "a/**/z", "az", false },
		{ "**/a/**/b", "x/a/y/b", true },
		{ "**/a/**/b", "a/b", true },
		{ "a**b", "axb", true },
		{ "a**b", "a/b", false },
	};

	check_rows(rows, sizeof rows / sizeof *rows);
}

/* A star for every character does not make it slow. */
static void test_many_stars(void)
{
	char pattern[512] = "", name[256];

	for (int i = 0; i < 100; i++)
		strncat(pattern, "*a", 3);
	strncat(pattern, "*b", 3);
	memset(name, 'a', 255);
	name[255] = 0;
	CHECK(!matches(pattern, name));
	name[254] = 'b';
	CHECK(matches(pattern, name));
}

static void test_characters(void)
{
	static const struct row rows[] = {
		{ "?", "a", true },
		{ "?", "\xc3\xa9", true },
		{ "?", "ab", false },
		{ "?", "\xff", true },
		{ "\xff", "\xff", true },
		{ "\xff", "\xfe", false },
		{ "??", "\xc3(", true },
		{ "?", "\xc3(", false },
		{ "[a-c]", "b", true },
		{ "[a-c]", "d", false },
		{ "[!a-c]", "d", true },
		{ "[]a]", "]", true },
		{ "[!]]", "a", true },
		{ "[!]]", "]", false },
		{ "[a-]", "-", true },
		{ "[-a]", "-", true },
		{ "[\\]x]", "]", true },
		{ "[[:digit:]_]", "7", true },
		{ "[[:digit:]_]", "_", true },
		{ "[[:alpha:]]", "7", false },
		{ "[![:alpha:]]", "7", true },
		{ "[\xc3\xa0-\xc3\xbc]", "\xc3\xa9", true },
		{ "[a-z]", "\xc3\xa9", false },
		{ "\\*", "*", true },
		{ "\\*", "a", false },
		{ "a\\\\", "a\\", true },
	};

	check_rows(rows, sizeof rows / sizeof *rows);
}

static void test_filters(void)
{
	CHECK(filters("*.c", "a.c") && filters("*.c", "x/y/a.c") && !filters("*.c", "a.c/b"));
	CHECK(filters("/*.c", "a.c") && !filters("/*.c", "x/a.c"));
	CHECK(filters("x/*.c", "x/a.c") && !filters("x/*.c", "y/x/a.c"));
	CHECK(filters("{*.c,d/*.h}", "x/a.c") && filters("{*.c,d/*.h}", "d/a.h"));
	CHECK(!filters("{*.c,d/*.h}", "x/d/a.h") && filters("**", "a/b"));
	CHECK(filters("{.,*.c}", "a.c") && !filters("{.,*.c}", "a.h"));
}

static void test_refused(void)
{
	CHECK_STR(refused("a[b"), "byte 1: this class has no end");
	CHECK_STR(refused("a{b"), "byte 1: this brace has no end");
	CHECK_STR(refused("ab}"), "byte 2: this brace was not begun; \\} means itself");
	CHECK_STR(refused("ab\\"), "byte 2: nothing follows the backslash");
	CHECK_STR(refused("x/[z-a]"), "byte 3: this range ends before it begins");
	CHECK_STR(refused("[[:no:]]"), "byte 1: no class has this name");
	CHECK_STR(refused("{x,y[z-a]}"),
		  "byte 2: this range ends before it begins (in \"y[z-a]\")");
	CHECK(strstr(refused("{1..9}"), "byte 0: ranges"));
	CHECK(strstr(refused("a/../b"), "byte 2: "));
	CHECK(strstr(refused(""), "byte 0: "));
}

/* A set is empty exactly where nothing can match any more. */
static void test_sets(void)
{
	_cleanup_arena_ struct arena arena;
	struct glob_set top, below;
	struct glob glob;
	const struct glob_name src = { "src", 3, true }, lib = { "lib", 3, true };
	const struct glob_name file = { "x.c", 3, false };

	CHECK(parses("{src/*.c,x.c}", GLOB_PATHS, &arena, &glob));
	glob_start(&glob, &top);
	CHECK(glob_step(&glob, &top, &src, &below) == GLOB_BENEATH);
	CHECK(glob_step(&glob, &below, &file, NULL) == GLOB_MATCHES);
	CHECK(glob_step(&glob, &below, &src, NULL) == GLOB_NONE);
	CHECK(glob_step(&glob, &top, &lib, &below) == GLOB_NONE);
	CHECK(glob_step(&glob, &top, &file, NULL) == GLOB_MATCHES);
}

static void check_literal(const char *pattern, const char *text, bool is_whole, bool may_scan)
{
	struct literal literal;
	char found[LITERAL_MAX + 1] = "";

	literal_read(pattern, &literal);
	memcpy(found, literal.text, literal.size);
	CHECK_STR(found, text);
	CHECK(literal.is_whole == is_whole && literal.may_scan == may_scan);
}

/* What is taken for necessary must be: each mistake here is a line that is not found. */
static void test_literals(void)
{
	check_literal("foo", "foo", true, true);
	check_literal("foo\\.c", "foo.c", false, true);
	check_literal("ab*cde", "cde", false, true);
	check_literal("abc?d", "ab", false, true);
	check_literal("abc+d", "abc", false, true);
	check_literal("abc{0,3}", "ab", false, true);
	check_literal("abc{", "ab", false, true);
	check_literal("x\xc3\xa9*yy", "yy", false, true);
	check_literal("xy\xc3\xa9*z", "xy", false, true);
	check_literal("foo|bar", "", false, true);
	check_literal("(foo|barbar)x", "x", false, true);
	check_literal("(?:foo)bars", "bars", false, true);
	check_literal("(?i)foo", "", false, false);
	check_literal("foo(?=bar)", "", false, false);
	check_literal("(*UTF)foo", "", false, false);
	check_literal("[abc]def", "def", false, true);
	check_literal("[]x]def", "def", false, true);
	check_literal("[^x]def", "def", false, false);
	check_literal("[[:alpha:]x]def", "def", false, false);
	check_literal("[\\]x]def", "def", false, true);
	check_literal("\\bfoo\\b", "foo", false, true);
	check_literal("\\Qa*b\\E", "", false, false);
	check_literal("\\x41bc", "", false, false);
	check_literal("a*+bc", "bc", false, false);
	check_literal("(a)\\1foo", "", false, false);
	check_literal("^foo$", "foo", false, true);
	check_literal("fo.ba.", "fo", false, true);
	check_literal("foo\\n", "foo", false, false);
}

static const struct tap_test tests[] = {
	{ "braces become alternatives", test_braces },
	{ "and are bounded", test_brace_bounds },
	{ "stars and folders", test_stars },
	{ "many stars are not slow", test_many_stars },
	{ "characters, bytes and classes", test_characters },
	{ "filters without a slash are about names", test_filters },
	{ "what is wrong has its place", test_refused },
	{ "a walk knows where nothing can match", test_sets },
	{ "the text that every match holds", test_literals },
};

TAP_MAIN(tests)
