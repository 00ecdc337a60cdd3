/* Sentences: one line and fit to print, whatever name stands in them. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "tap.h"

static void test_names(void)
{
	struct csn_error err = { 0 };

	csn_fail(&err, -ENOENT, "commit", "%s is no file",
		 "a\ncaisson: \033[2J\r\t\xc3\xa9\xff\xe2\x80\xae");
	CHECK_STR(err.text, "a\\ncaisson: \\x1b[2J\\x0d\\x09\xc3\xa9\\xff\\u{202e} is no file");
	csn_fail(&err, -ENOENT, "commit", "%s", err.text); /* what is passed on stays as it was */
	CHECK_STR(err.text, "a\\ncaisson: \\x1b[2J\\x0d\\x09\xc3\xa9\\xff\\u{202e} is no file");
	errno = ENOENT;
	csn_fail(&err, -ENOENT, "commit", "%m");
	CHECK_STR(err.text, strerror(ENOENT));
}

static void test_lines(void)
{
	struct csn_error err = { 0 };

	csn_fail_lines(&err, -EPERM, "policy", "write:\nversion: 1\n%s", "tier: \033");
	CHECK_STR(err.text, "write:\nversion: 1\ntier: \\x1b");
}

static void test_cut(void)
{
	char text[2 * sizeof((struct csn_error *)0)->text], small[8], emoji[128];
	struct csn_error err = { 0 };
	size_t n;

	memset(text, '\n', sizeof text - 1);
	text[sizeof text - 1] = 0;
	csn_fail(&err, -EIO, "x", "%s", text);
	n = strlen(err.text);
	CHECK(n < sizeof err.text && n >= sizeof err.text - 3 && n % 2 == 0);
	str_escape("abcde\n\n", false, small, sizeof small);
	CHECK_STR(small, "abcde\\n");
	str_escape("abcdef\n", false, small, sizeof small);
	CHECK_STR(small, "abcdef");
	/* The selector of an emoji's picture, behind one only. */
	str_escape("\u2764\uFE0F a\uFE0F 1\uFE0F \u2764\uFE0E \u2764\uFE0F\uFE0F", false, emoji,
		   sizeof emoji);
	CHECK_STR(emoji, "\u2764\uFE0F a\\u{fe0f} 1\\u{fe0f} \u2764\\u{fe0e} "
			 "\u2764\uFE0F\\u{fe0f}");
	str_escape("", false, small, 1);
	CHECK_STR(small, "");
}

static const struct tap_test tests[] = {
	{ "a name from inside cannot leave its line", test_names },
	{ "lines for a policy file stay lines", test_lines },
	{ "a long one is cut between two characters", test_cut },
};

TAP_MAIN(tests)
