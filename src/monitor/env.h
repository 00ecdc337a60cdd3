/*
 * env - the environment of a program inside, and nothing inherited beyond it
 */
#pragma once

#include "base/arena.h"
#include "plan/plan.h"

/* What the plan does not know: where the program's tools are. */
struct env_facts {
	const char *const *caller; /* the caller's environment, for names that are passed */
	const char *const
		*paths; /* folders before the standard PATH, NULL-terminated; may be NULL */
	const char *const *tools; /* "NAME=VALUE" of version managers; may be NULL */
	const char *const *told;  /* "NAME=VALUE" of a long run's owner, last; may be NULL */
	const char *git_name;     /* with git_identity; NULL: unknown */
	const char *git_email;
	const char *scratch;  /* host folder where the wall has no view of its own, else NULL */
	const char *gates_at; /* folder of the gates inside (gates.h), NULL: none */
	bool is_local;        /* no wall: HOME, USER and PATH are the caller's */
	bool has_tty;
};

/*
 * "NAME=VALUE" texts, NULL-terminated, in the arena (CONTRACTS, section 4). What the plan sets
 * comes last and wins. `ret_passed`: the names that were passed from the caller, for the audit
 * log. NULL when out of memory.
 */
char **env_make(const struct plan *plan, const struct env_facts *facts, struct arena *arena,
		const char *const **ret_passed);

/* The caller's entry of that name: of several the first, which is the one that is passed on. NULL:
 * none. Points into `caller`, which may be NULL. */
const char *env_find(const char *const *caller, const char *name);
