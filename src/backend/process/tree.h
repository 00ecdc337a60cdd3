/*
 * tree - what a program behind the process wall sees, as a list of rootfs items
 */
#pragma once

#include "backend/backend.h"
#include "base/arena.h"
#include "launch/launch.h"

/*
 * Fills `launch->rootfs` and the Landlock rules from the plan (CONTRACTS, section 4).
 * Strings come from `arena` or are borrowed from plan and how. `userns_fd` >= 0: host trees of
 * the caller's are cloned here and id-mapped through it (started by root); -1: the child clones.
 */
int tree_plan(const struct plan *plan, const struct backend_start *how, int userns_fd,
	      struct arena *arena, struct launch *launch, struct csn_error *err);
