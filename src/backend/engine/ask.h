/*
 * ask - one short command of a container engine, and what it said
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

enum { ASK_OUTPUT_MAX = 256 << 10, ASK_COMPLAINT = 512 };

struct ask {
	const char *path;  /* absolute */
	char *const *argv; /* NULL-terminated */
	char *const *env;
	const struct buf *input; /* what it reads; NULL: nothing */
	int timeout_ms;          /* then it is killed */
};

/*
 * Runs it, and waits. `output` (initialized, may be NULL) gets what it wrote, up to its bound; the
 * rest is read and dropped. `ret_complaint`, if not NULL, gets the first line of its stderr, or
 * that which begins with "Error: ", "" for none; anybody's text. Returns its exit status, 128 + n
 * for a signal, or -errno; -ETIMEDOUT.
 */
int ask_run(const struct ask *ask, struct buf *output, char ret_complaint[ASK_COMPLAINT]);
