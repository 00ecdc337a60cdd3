/* Programs by name: which file a list of folders gives. */
#include "base/program.h"
#include "base/str.h"
#include "tap.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void make(const char *path, mode_t mode)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);

	CHECK(fd >= 0 && fchmod(fd, mode) == 0 && close(fd) == 0);
}

static void test_find(void)
{
	char top[] = "/tmp/csn-program-XXXXXX", list[256], path[PATH_MAX], wanted[64];

	CHECK(mkdtemp(top) && chdir(top) == 0 && mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0);
	make("a/tool", 0644); /* not executable */
	make("b/tool", 0755);
	CHECK(mkdir("a/folder", 0755) == 0 && symlink("../b/tool", "a/link") == 0);
	snprintf(list, sizeof list, "b:%s/gone::%s/a:%s/b:", top, top, top);
	snprintf(wanted, sizeof wanted, "%s/b/tool", top);
	CHECK(program_find("tool", list, path) && str_is(path, wanted));
	snprintf(wanted, sizeof wanted, "%s/a/link", top);
	CHECK(program_find("link", list, path) && str_is(path, wanted));
	CHECK(!program_find("folder", list, path) && !program_find("absent", list, path));
	CHECK(!program_find("", list, path) && !program_find("../b/tool", list, path));
	CHECK(!program_find("tool", "b", path) && !program_find("tool", NULL, path));
	CHECK(unlink("a/tool") == 0 && unlink("b/tool") == 0 && unlink("a/link") == 0);
	CHECK(rmdir("a/folder") == 0 && rmdir("a") == 0 && rmdir("b") == 0 && rmdir(top) == 0);
}

static void test_variable(void)
{
	const char *const environment[] = { "AB=1", "A=", "B=x=y", NULL };

	CHECK_STR(program_variable(environment, "A"), "");
	CHECK_STR(program_variable(environment, "AB"), "1");
	CHECK_STR(program_variable(environment, "B"), "x=y");
	CHECK(!program_variable(environment, "C") && !program_variable(NULL, "A"));
}

static const struct tap_test tests[] = {
	{ "the first program of a list of folders", test_find },
	{ "the value of a variable", test_variable },
};

TAP_MAIN(tests)
