/*
 * shim - a program that starts another one of its name, which a version manager chose
 *
 * Two kinds. A rustup proxy asks its manager's folder each time, so that folder's name and the
 * choice go along as variables. A shim of asdf, mise or volta reads files that stay outside the
 * sandbox; what it would start is found here, and stands in front of it on PATH.
 */
#pragma once

#include "base/arena.h"

enum { SHIM_PARTS = 4, SHIM_ENV = 12 };

struct shim {
	const char *parts[SHIM_PARTS]; /* absolute, of the manager's folder; NULL: no more */
	const char *env[SHIM_ENV];     /* "NAME=VALUE"; NULL: no more */
	const char *program;           /* what it starts, absolute; NULL: it finds that itself */
};

/* Who asks: folder and variables of the caller's. */
struct shim_request {
	const char *const *env; /* NULL-terminated */
	const char *home;       /* absolute, NULL: none */
	const char *cwd;        /* absolute */
	struct arena *arena;    /* for what is returned */
};

/*
 * Is `program` (absolute; `real` is what its links lead to) a shim? Its needs go to `ret_shim`, all
 * NULL for any other program. 0 or -ENOMEM.
 */
int shim_look(const struct shim_request *request, const char *program, const char *real,
	      struct shim *ret_shim);
