/* Hidden files: what matches is found wherever it lies, no link is followed, and a walk ends. */
#include "monitor/hide.h"

#include "workspace.h"

#include <sys/resource.h>

static const char *const *found;

static int find(const char **patterns)
{
	plan.workspace.hide = patterns;
	err = (struct csn_error){ 0 };
	return hide_find(&plan, &arena, &found, &err);
}
#define FIND(...) find((const char *[]){ __VA_ARGS__, NULL })

static void patterns(void)
{
	make_workspace();
	make_folder("a");
	make_folder("a/b");
	make_folder("secrets");
	make_folder("a/secrets");
	put_text(".env", "x");
	put_text("a/.env.local", "x");
	put_text("a/b/key.pem", "x");
	put_text("a/b/key.pemx", "x");
	put_text("a/secrets/one", "x");
	put_text("secrets/two", "x");
	put_text("env", "x");
	CHECK(FIND(".env", ".env.*", "*.pem") == 0);
	expect_list(found, ".env a/.env.local a/b/key.pem ");
	CHECK(FIND("secrets") == 0); /* a folder is listed once, not what is in it */
	expect_list(found, "a/secrets secrets ");
	CHECK(FIND("secrets/two") == 0);
	expect_list(found, "secrets/two ");
	CHECK(FIND("**/secrets/**") == 0);
	expect_list(found, "a/secrets/one secrets/two ");
	CHECK(FIND("nothing", "*.key") == 0);
	expect_list(found, "");
}

static void no_patterns(void)
{
	static const char *none[] = { NULL };

	make_workspace();
	put_text(".env", "x");
	CHECK(find(none) == 0);
	expect_list(found, "");
	CHECK(find(NULL) == 0);
	expect_list(found, "");
	plan.workspace.host = NULL;
	CHECK(FIND(".env") == 0);
	expect_list(found, "");
}

/* A link is found by its own name; what it leads to is not looked at. */
static void links(void)
{
	make_workspace();
	make_folder("a");
	put_text("a/.env", "x");
	CHECK(symlink("a", "to-a") == 0 && symlink("/", "to-root") == 0);
	CHECK(symlink(".", "a/round") == 0 && symlink("..", "a/up") == 0);
	CHECK(symlink("/etc/shadow", "key.pem") == 0);
	CHECK(FIND(".env", "*.pem", "shadow") == 0);
	expect_list(found, "a/.env key.pem ");
}

static void odd_names(void)
{
	make_workspace();
	make_folder("a b");
	put_text("a b/.env", "x");
	put_text("\xff\xfe.pem", "x");
	put_text("new\nline.pem", "x");
	CHECK(mkfifo("pipe.pem", 0600) == 0); /* never opened: it would not come back */
	CHECK(FIND(".env", "*.pem") == 0);
	expect_list(found, "a b/.env new\nline.pem pipe.pem \xff\xfe.pem ");
}

static void too_many_matches(void)
{
	char name[32];

	make_workspace();
	for (int i = 0; i < HIDE_MATCHES; i++) {
		snprintf(name, sizeof name, "%d.pem", i);
		put_text(name, "");
	}
	CHECK(FIND("*.pem") == 0);
	put_text("one-more.pem", "");
	CHECK(FIND("*.pem") == -E2BIG);
	CHECK(strstr(err.text, "workspace.hide") && strstr(err.text, "256"));
}

/* Deeper than the walk goes: refused, because what was not looked for would be seen. */
static void too_deep(void)
{
	int fd, next;

	make_workspace();
	fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int depth = 1; depth < HIDE_DEPTH; depth++) {
		CHECK(mkdirat(fd, "d", 0755) == 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	CHECK(FIND(".env") == 0);
	CHECK(mkdirat(fd, "d", 0755) == 0);
	CHECK(FIND(".env") == -E2BIG);
	CHECK(strstr(err.text, "nested deeper than 128") && strstr(err.text, "-w"));
}

static void long_paths(void)
{
	char name[250];
	int fd, next;

	make_workspace();
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = 0;
	fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int depth = 0; depth < 40; depth++) {
		CHECK(mkdirat(fd, name, 0755) == 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	CHECK(FIND(".env") == -E2BIG);
}

static void out_of_memory(void)
{
	make_workspace();
	put_text(".env", "x");
	for (size_t quota = 0; quota < 4096; quota += 256) {
		int r;

		arena_done(&arena);
		arena_init(&arena, quota);
		r = FIND(".env");
		CHECK(r == -ENOMEM || r == 0);
		if (r == 0)
			expect_list(found, ".env ");
	}
}

/* What was not looked into would be seen: no descriptors, or no workspace, is an error. */
static void cannot_look(void)
{
	struct rlimit limit = { .rlim_cur = 20, .rlim_max = 20 };
	char path[200] = ".", link[80];

	make_workspace();
	snprintf(link, sizeof link, "%s/link", workspace);
	CHECK(symlink(".", link) == 0);
	plan.workspace.host = link;
	CHECK(FIND(".env") < 0 && strstr(err.text, "/link"));
	plan.workspace.host = "/no/such/folder";
	CHECK(FIND(".env") == -ENOENT && strstr(err.text, "/no/such/folder"));
	plan.workspace.host = workspace;
	for (int depth = 0; depth < 40; depth++) {
		snprintf(path + strlen(path), sizeof path - strlen(path), "/d");
		make_folder(path);
	}
	CHECK(FIND(".env") == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0 && FIND(".env") == -EMFILE);
}

/* No descriptor is left open, whatever the end was. */
static void descriptors_close(void)
{
	int before, after;

	make_workspace();
	make_folder("a");
	put_text("a/.env", "x");
	before = dup(0);
	close(before);
	for (int i = 0; i < 50; i++)
		CHECK(FIND(".env") == 0);
	after = dup(0);
	CHECK(before == after);
}

AS_BOTH(patterns)
AS_BOTH(links)

static const struct tap_test tests[] = {
	BOTH_ROWS(patterns, "patterns match anywhere in the workspace"),
	{ "without patterns nothing is looked for", no_patterns },
	BOTH_ROWS(links, "links are not followed"),
	{ "names are bytes", odd_names },
	{ "too many matches are refused", too_many_matches },
	{ "too deep a tree is refused", too_deep },
	{ "paths that are too long are refused", long_paths },
	{ "out of memory is an error", out_of_memory },
	{ "what cannot be looked into is an error", cannot_look },
	{ "descriptors close", descriptors_close },
};

TAP_MAIN(tests)
