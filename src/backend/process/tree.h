/*
 * tree - what a program behind the process wall sees, as a list of rootfs items
 */
#pragma once

#include "backend/backend.h"
#include "base/arena.h"
#include "launch/launch.h"

/* What a tree is made from. All borrowed. */
struct tree {
	const struct plan *plan;
	const struct backend_start *how;
	struct arena *arena; /* for texts */
	int userns_fd;       /* started by root: host trees of the caller's are cloned here and
			      * id-mapped through it; -1: the child clones them */
};

/*
 * Fills `launch->rootfs` and the Landlock rules (docs/platforms.md: what a program sees). Texts
 * live in the arena or are borrowed from plan and how. 0 or -errno with a sentence.
 */
int tree_plan(const struct tree *tree, struct launch *launch, struct csn_error *err);

/* The same for a root that was prepared without (`how->waits`): items for what is lent alone, and
 * all rules, since none was taken on yet. */
int tree_plan_lent(const struct tree *tree, struct launch *launch, struct csn_error *err);

/* Is a mount point at `at` found or made in scratch, in the workspace, in one of the first `before`
 * mounts? Else the root has to have it from the start. */
bool tree_has_place(const struct plan *plan, const char *at, size_t before);
