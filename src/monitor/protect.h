/*
 * protect - names in a writable workspace that a program may not write or create
 *
 * What exists is frozen (mounted read-only over itself). A name that is absent could be created
 * (a git hook that runs on the host later), so an empty folder is put in its place on the host,
 * frozen too, and removed afterwards by rmdir(): it can only ever remove an empty folder.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

enum { PROTECT_MAX = 64 };

struct protect {
	int workspace_fd;          /* owned; -1: nothing to protect */
	const char *const *frozen; /* what to mount read-only, NULL-terminated, in the arena */
	const char *const *placeholders; /* made by us, outermost first, NULL-terminated */
	const char *const *not_enforced; /* could not be made, NULL-terminated */
};

/* Makes placeholders for `plan.workspace.protect` and the policy file in force. 0 or -errno. */
int protect_open(const struct plan *plan, struct arena *arena, struct protect *ret_protect,
		 struct csn_error *err);
void protect_done(struct protect *protect);
