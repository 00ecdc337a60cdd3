/*
 * toolchain - the folder a program needs to run, where it is not a system folder
 */
#pragma once

#include "base/arena.h"
#include "plan/plan.h"

struct toolchain_request {
	const struct plan *plan;
	const char *const *argv;       /* NULL-terminated; NULL with `text` */
	const char *text;              /* for the shell: each word that is a program's name */
	const char *const *caller_env; /* for PATH and HOME */
	const char *cwd;               /* the caller's, absolute: relative programs start there */
};

/* NULL-terminated lists, in the arena; NULL: none. */
struct toolchain {
	const char *const *prefixes; /* parts of them, shown read-only at their own path */
	const char *const *paths;    /* folders for the front of PATH */
	const char *const *env;      /* "NAME=VALUE" that version managers need */
};

/*
 * Finds what argv[0], its "#!" line, a virtual environment's link and a version manager's shim
 * point to (through the caller's PATH), as far as it lies outside the system folders and the
 * workspace; for a text the same for its words. A home directory itself, and what is not inside a
 * bin folder, is never taken. 0 or -ENOMEM.
 */
int toolchain_find(const struct toolchain_request *request, struct arena *arena,
		   struct toolchain *ret_toolchain);
