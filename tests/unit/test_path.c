/* Paths as text: nothing leaves the root, and a name is no folder's because it begins alike. */
#include "base/path.h"
#include "base/str.h"
#include "tap.h"

#include <errno.h>

static void test_normalize(void)
{
	static const struct {
		const char *path;
		const char *want; /* NULL: -EINVAL */
	} table[] = {
		{ "/", "/" },
		{ "//", "/" },
		{ "/.", "/" },
		{ "/a", "/a" },
		{ "/a/", "/a" },
		{ "/a//b/../c", "/a/c" },
		{ "/a/..", "/" },
		{ "/a/../..", NULL },
		{ "/..", NULL },
		{ "/../etc", NULL },
		{ "/a/b/../../../etc", NULL },
		{ "/./../x", NULL },
		{ "/...", "/..." },
		{ "/..a/b..", "/..a/b.." },
		{ "/a/./././b/.", "/a/b" },
		{ "/a/b/c/../../d", "/a/d" },
		{ "a", NULL },
		{ "", NULL },
		{ "./a", NULL },
		{ "..", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char path[64] = "?";
		int r = path_normalize(table[i].path, path, sizeof path);

		if (r != (table[i].want ? 0 : -EINVAL))
			printf("# %s: %d\n", table[i].path, r);
		CHECK(r == (table[i].want ? 0 : -EINVAL));
		if (table[i].want)
			CHECK_STR(path, table[i].want);
	}
}

static void test_room(void)
{
	static const char path[] = "/abc/../defg/h";
	char small[16];

	for (size_t size = 0; size <= sizeof small; size++) {
		memset(small, '#', sizeof small);
		int r = path_normalize(path, small, size);

		CHECK(r == (size >= sizeof "/defg/h" ? 0 : -ENAMETOOLONG));
		for (size_t i = size; i < sizeof small; i++)
			CHECK(small[i] == '#');
	}
	CHECK(path_normalize("/", small, 1) == -ENAMETOOLONG);
	CHECK(path_normalize("/", small, 2) == 0);
}

static void test_join(void)
{
	static const struct {
		const char *base, *path, *want;
	} table[] = {
		{ "/a", "b", "/a/b" }, { "/a/", "b/", "/a/b" }, { "/a", "/b", "/b" },
		{ "/a", "..", "/" },   { "/a", "../..", NULL }, { "/a", "", "/a" },
		{ "/", "b", "/b" },    { "/", "..", NULL },     { "/a", "/../b", NULL },
		{ "a", "b", NULL },
	};
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		int r = path_join(table[i].base, table[i].path, path, sizeof path);

		printf("# %s + %s: %d\n", table[i].base, table[i].path, r);
		CHECK(r == (table[i].want ? 0 : -EINVAL));
		if (table[i].want)
			CHECK_STR(path, table[i].want);
	}
}

static void test_join_too_long(void)
{
	static char base[9000], path[16384];

	memset(base, 'a', sizeof base - 1);
	base[0] = '/';
	CHECK(path_join(base, "b", path, sizeof path) == -ENAMETOOLONG);
	base[8190] = 0;
	CHECK(path_join(base, "", path, sizeof path) == 0);
	CHECK(path_join(base, "b", path, sizeof path) == -ENAMETOOLONG);
	CHECK(path_join(base, "/b", path, sizeof path) == 0);
}

static void test_beneath(void)
{
	static const struct {
		const char *path, *folder;
		bool is_beneath;
		const char *tail;
	} table[] = {
		{ "/a/b", "/a", true, "b" },     { "/a", "/a", true, "" },
		{ "/ab", "/a", false, NULL },    { "/", "/a", false, NULL },
		{ "/a/b/c", "/a", true, "b/c" }, { "/a", "/a/b", false, NULL },
		{ "b/c", "a", false, NULL },     { "a/c", "a", true, "c" },
		{ "ab", "a", false, NULL },      { "a", "a", true, "" },
		{ "/a/b", "/", true, "a/b" },    { "/", "/", true, "" },
		{ "/A", "/a", false, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		printf("# %s in %s\n", table[i].path, table[i].folder);
		CHECK(path_is_beneath(table[i].path, table[i].folder) == table[i].is_beneath);
		if (table[i].tail)
			CHECK_STR(path_tail(table[i].path, table[i].folder), table[i].tail);
	}
}

static const struct tap_test tests[] = {
	{ "empty, . and .. parts go, .. beyond the root is an error", test_normalize },
	{ "nothing is written past the end", test_room },
	{ "join: relative to the base, absolute as it is", test_join },
	{ "join: what does not fit is an error", test_join_too_long },
	{ "beneath is by component", test_beneath },
};

TAP_MAIN(tests)
