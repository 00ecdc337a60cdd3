/*
 * tap - unit tests, one process each
 *
 * A test is a function in a table; it runs in a fork of its own, so namespaces, ids and
 * filters die with it and a crash is one `not ok`. A failed check ends the test. A skip
 * names the missing thing first: "landlock: the kernel has none".
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct tap_test {
	const char *name;
	void (*run)(void);
};

#define TAP_SKIP_STATUS 77
#define CHECK(claim)                                                         \
	do {                                                                 \
		if (!(claim)) {                                              \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #claim); \
			fflush(stdout);                                      \
			_exit(1);                                            \
		}                                                            \
	} while (0)
#define CHECK_STR(a, b)                                                                        \
	do {                                                                                   \
		const char *a_ = (a), *b_ = (b);                                               \
		if (strcmp(a_, b_) != 0) {                                                     \
			printf("# %s:%d: \"%s\" is not \"%s\"\n", __FILE__, __LINE__, a_, b_); \
			fflush(stdout);                                                        \
			_exit(1);                                                              \
		}                                                                              \
	} while (0)
#define SKIP(...) \
	(printf("# SKIP " __VA_ARGS__), printf("\n"), fflush(stdout), _exit(TAP_SKIP_STATUS))

static inline int tap_main(const struct tap_test *tests, size_t count)
{
	int failed = 0, status;

	printf("1..%zu\n", count);
	for (size_t i = 0; i < count; i++) {
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			tests[i].run();
			fflush(stdout);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		int skipped = WIFEXITED(status) && WEXITSTATUS(status) == TAP_SKIP_STATUS;
		int good = skipped || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
		printf("%sok %zu - %s%s\n", good ? "" : "not ", i + 1, tests[i].name,
		       skipped ? " # SKIP (reason above)" : "");
		failed += !good;
	}
	return failed != 0;
}

#define TAP_MAIN(table)                                                  \
	int main(void)                                                   \
	{                                                                \
		return tap_main(table, sizeof(table) / sizeof *(table)); \
	}
