/* The caller's name for git: what its files mean, what outranks what, what is not taken over. */
#include "monitor/git_user.h"

#include "base/str.h"
#include "own_space.h"

static const struct row {
	const char *text, *name, *email;
} rows[] = {
	{ "", "", "" },
	{ "[user]\n\tname = Ada Lovelace\n\temail = ada@x.org\n", "Ada Lovelace", "ada@x.org" },
	{ "[user]\nname=\"Ada  \"\nemail = \"a@x\" # comment\n", "Ada  ", "a@x" },
	{ "[user]\nname = Ada ; comment\nemail = a#b\n", "Ada", "a" },
	{ "[user]\nname = A \\\"B\\\" C\\\\\n", "A \"B\" C\\", "" },
	{ "[USER] NAME = r\n", "r", "" },
	{ "[ user ]\n  Name=r\r\n", "r", "" },
	{ "[user]\nname = first\nname = second\n", "second", "" },
	{ "[user]\nname = kept\n[core]\nname = no\n[user]\nemail = e\n", "kept", "e" },
	{ "[user \"x\"]\nname = no\n", "", "" },
	{ "[users]\nname = no\n", "", "" },
	{ "[core]\nuser.name = no\n[remote \"user\"]\nname = no\n", "", "" },
	{ "name = no\n", "", "" },
	{ "[user]\nname\nemail\n", "", "" },
	{ "[user]\nname = \nemail = \"\"\n", "", "" },
	{ "[user]\nname = \"open\nemail = e\n", "", "e" },
	{ "[user]\nname = a\\x\nemail = e\n", "", "e" },
	{ "[user]\nname = a\\nb\nemail = \xff\n", "", "" },
	{ "# [user]\n; name = no\n[user]\n#name = no\nname = J\xc3\xbcrgen\n", "J\xc3\xbcrgen",
	  "" },
	{ "[user", "", "" },
	{ "[user]\nname = tail", "tail", "" },
	{ "[user]\nname = \"\\", "", "" },
};

static void means(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct git_user user = { 0 };

		printf("# row %zu\n", i);
		git_user_parse(rows[i].text, strlen(rows[i].text), &user);
		CHECK_STR(user.name, rows[i].name);
		CHECK_STR(user.email, rows[i].email);
	}
}

static void too_long(void)
{
	struct git_user user = { .name = "before" };
	char text[600] = "[user]\nname = ";

	memset(text + strlen(text), 'x', 400);
	strncat(text, "\nemail = e\n", 20);
	git_user_parse(text, strlen(text), &user);
	CHECK_STR(user.name, "before");
	CHECK_STR(user.email, "e");
}

static void expect(const char *const *environment, const char *workspace, const char *name,
		   const char *email)
{
	struct git_user user;

	git_user_find(environment, workspace, &user);
	CHECK_STR(user.name, name);
	CHECK_STR(user.email, email);
}

/* The system's own file is left out by a name and address in each of ours. */
static void order(void)
{
	char top[] = "/tmp/test_git_user.XXXXXX";
	const char *const home[] = { "HOME=h", NULL }, *const xdg[] = { "HOME=h",
									"XDG_CONFIG_HOME=x", NULL };
	const char *const own[] = { "HOME=h", "GIT_AUTHOR_NAME=v", "GIT_AUTHOR_EMAIL=v@v",
				    "EMAIL=z@z", NULL };
	const char *const bad[] = { "HOME=h", "GIT_AUTHOR_NAME=a\nb", NULL };

	CHECK(mkdtemp(top) && chdir(top) == 0);
	CHECK(mkdir("h", 0700) == 0 && mkdir("h/.config", 0700) == 0 &&
	      mkdir("h/.config/git", 0700) == 0 && mkdir("x", 0700) == 0 &&
	      mkdir("x/git", 0700) == 0 && mkdir("w", 0700) == 0 && mkdir("w/.git", 0700) == 0);
	put_text("h/.config/git/config", "[user]\nname = c\nemail = c@c\n");
	expect(home, NULL, "c", "c@c");
	put_text("x/git/config", "[user]\nname = x\nemail = x@x\n");
	expect(xdg, NULL, "x", "x@x");
	put_text("h/.gitconfig", "[user]\nname = g\n");
	expect(home, NULL, "g", "c@c");
	put_text("w/.git/config", "[user]\nemail = w@w\n");
	expect(home, "w", "g", "w@w");
	expect(own, "w", "v", "v@v");
	expect(bad, "w", "g", "w@w");
	CHECK(rename("h/.gitconfig", "dot") == 0 && symlink("../dot", "h/.gitconfig") == 0);
	expect(home, NULL, "g", "c@c");
	/* A link in a project could name any file of the caller's. */
	CHECK(rename("w/.git/config", "elsewhere") == 0 &&
	      symlink("../../elsewhere", "w/.git/config") == 0);
	expect(home, "w", "g", "c@c");
	CHECK(rename("w/.git", "w/git") == 0 && symlink("../x/git", "w/.git") == 0);
	expect(home, "w", "g", "c@c");
	CHECK(unlink("w/.git") == 0 && rename("w/git", "w/.git") == 0);
	CHECK(unlink("w/.git/config") == 0 && mkfifo("w/.git/config", 0600) == 0);
	expect(home, "w", "g", "c@c");
}

static const struct tap_test tests[] = {
	{ "a file means what git means by it", means },
	{ "what is too long changes nothing", too_long },
	{ "who outranks whom", order },
};

TAP_MAIN(tests)
