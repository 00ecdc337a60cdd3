/* errno names both ways: what crosses the wall as a name comes back as the same number. */
#include "base/errno_name.h"
#include "tap.h"

#include <errno.h>

enum { HIGHEST = 4095 };

static void test_both_ways(void)
{
	int named = 0;

	for (int code = 1; code <= HIGHEST; code++) {
		const char *name = errno_name(code);

		CHECK(name && name[0] == 'e' && strlen(name) < 32);
		if (strcmp(name, "eio") == 0)
			continue;
		/* EAGAIN is EWOULDBLOCK: two names for a number would still meet here. */
		if (errno_number(name) != code)
			printf("# %d is %s is %d\n", code, name, errno_number(name));
		CHECK(errno_number(name) == code);
		named++;
	}
	CHECK(named >= 38);
}

static void test_contract(void)
{
	static const struct {
		int code;
		const char *name;
	} table[] = {
		{ ENOENT, "enoent" },
		{ EISDIR, "eisdir" },
		{ EACCES, "eacces" },
		{ EINVAL, "einval" },
		{ EEXIST, "eexist" },
		{ ENOTDIR, "enotdir" },
		{ EROFS, "erofs" },
		{ ENOTEMPTY, "enotempty" },
		{ EXDEV, "exdev" },
		{ ELOOP, "eloop" },
		{ ENOSPC, "enospc" },
		{ EPERM, "eperm" },
		{ ENAMETOOLONG, "enametoolong" },
		{ ETXTBSY, "etxtbsy" },
		{ ENOEXEC, "enoexec" },
		{ EMFILE, "emfile" },
		{ EAGAIN, "eagain" },
		{ ENOMEM, "enomem" },
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		CHECK_STR(errno_name(table[i].code), table[i].name);
		CHECK(errno_number(table[i].name) == table[i].code);
	}
}

static void test_unknown(void)
{
	static const char *const names[] = { "", "e", "ENOENT", "enoent ", "enoen", "0", "2" };
	static const int codes[] = { 0, -1, -ENOENT, HIGHEST, 1 << 30 };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		CHECK(errno_number(names[i]) == 0);
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		CHECK_STR(errno_name(codes[i]), "eio");
	CHECK(errno_number("eio") == EIO);
}

static const struct tap_test tests[] = {
	{ "a name's number has that name", test_both_ways },
	{ "the names of the contract", test_contract },
	{ "what has no name", test_unknown },
};

TAP_MAIN(tests)
