/* workspace - a folder of a test's own, and a plan for it; removed when the test is over */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "base/tree.h"
#include "base/arena.h"
#include "base/str.h"
#include "own_space.h"
#include "plan/plan.h"

static char workspace[64];
static struct plan plan;
static struct arena arena;
static struct csn_error err;

/* The test goes on in a child; its parent removes the folder, whatever happened. */
static inline void make_workspace(void)
{
	int status, tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t pid;

	snprintf(workspace, sizeof workspace, "/tmp/test_workspace.XXXXXX");
	CHECK(mkdtemp(workspace));
	pid = fork();
	if (pid > 0) {
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(tree_remove(tmp, workspace + strlen("/tmp/")) == 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(60);
	CHECK(chdir(workspace) == 0 && plan_init(&plan, TIER_AUTO) == 0);
	plan.workspace.host = workspace;
	plan.workspace.access = ACCESS_RW;
	arena_init(&arena, 8 << 20);
}

static inline void make_folder(const char *path)
{
	CHECK(mkdir(path, 0755) == 0);
}

static inline bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* The list, with blanks behind each, in any order that the file system has, sorted. */
static inline int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void expect_list(const char *const *list, const char *wanted)
{
	const char *sorted[256];
	char text[8192] = "";
	size_t count = 0;

	for (; list && list[count] && count < ARRAY_SIZE(sorted); count++)
		sorted[count] = list[count];
	qsort(sorted, count, sizeof *sorted, compare_texts);
	for (size_t i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", sorted[i]);
	CHECK_STR(text, wanted);
}
