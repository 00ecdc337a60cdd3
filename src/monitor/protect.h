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

/* An empty folder that we made, by its parent's descriptor: a path could lead elsewhere later. */
struct placeholder {
	int parent_fd; /* owned */
	char name[256];
};

struct protect {
	int workspace_fd;          /* owned; -1: nothing to protect */
	const char *const *frozen; /* what to mount read-only, NULL-terminated, in the arena */
	struct placeholder placeholders[PROTECT_MAX];
	size_t placeholder_count;
	const char *const *not_enforced; /* could not be made, NULL-terminated */
};

/* Makes placeholders for `plan.workspace.protect` and the policy file in force. 0 or -errno. */
int protect_open(const struct plan *plan, struct arena *arena, struct protect *ret_protect,
		 struct csn_error *err);
/* Removes the placeholders. Safe in a forked cleaner. */
void protect_clean(const struct protect *protect);

/* Closes descriptors. */
void protect_done(struct protect *protect);
