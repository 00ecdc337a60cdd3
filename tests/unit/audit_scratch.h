/*
 * A scratch folder for tests that write run roots: one per process of the test program,
 * removed at its end, whatever its tests did. scratch("a/b") is a path in a folder of the
 * running test's own; the text is valid until the next call.
 */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static char scratch_top[] = "/tmp/caisson-audit-XXXXXX";
static int scratch_owner; /* the test's pid; its own children share the folder */

static inline const char *scratch(const char *tail)
{
	static char path[256];

	if (scratch_owner == 0) {
		scratch_owner = getpid();
		snprintf(path, sizeof path, "%s/%d", scratch_top, scratch_owner);
		CHECK(mkdir(path, 0700) == 0);
	}
	snprintf(path, sizeof path, "%s/%d%s%s", scratch_top, scratch_owner, *tail ? "/" : "",
		 tail);
	return path;
}

static inline int scratch_remove(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static inline int scratch_main(const struct tap_test *tests, size_t count)
{
	int status;

	if (!mkdtemp(scratch_top))
		return 1;
	status = tap_main(tests, count);
	nftw(scratch_top, scratch_remove, 32, FTW_DEPTH | FTW_PHYS);
	return status;
}

#define SCRATCH_MAIN(table)                                                  \
	int main(void)                                                       \
	{                                                                    \
		return scratch_main(table, sizeof(table) / sizeof *(table)); \
	}
