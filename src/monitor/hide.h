/*
 * hide - which files of a workspace a plan hides or freezes
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

enum { HIDE_ENTRIES = 500000, HIDE_MATCHES = 256, HIDE_DEPTH = 128 };

/*
 * Walks the workspace (never through a symlink) and lists what matches a pattern of `hide`,
 * relative to the workspace, NULL-terminated with room for two more, in the arena. A matching
 * folder is listed and not entered. The walk is bounded: -E2BIG with a sentence when the workspace
 * is larger, because a secret that was not looked for would be a silent hole.
 */
int hide_find(const struct plan *plan, struct arena *arena, const char *const **ret_paths,
	      struct csn_error *err);
