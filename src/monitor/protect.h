/*
 * protect - names in a writable workspace that a program may not write or create
 *
 * What exists is frozen (mounted read-only over itself), and so is what it leads to: the target of
 * a link, the folder that a `.git` file names (protect_walk.h). A name that is absent could be
 * created (a git hook that runs on the host later), so a placeholder stands there while the run
 * lasts, frozen too. Looking comes first and changes nothing; what is to be made is known then to
 * whoever has to remove it, before it is made.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "monitor/placeholder.h"
#include "plan/plan.h"

enum { PROTECT_MAX = 64 };

/* Which file a name was. */
struct protect_file {
	dev_t dev;
	ino_t ino; /* 0: none, or not what was to be frozen */
};

struct protect {
	int workspace_fd;          /* owned; -1: nothing to protect */
	const char **frozen;       /* what to mount read-only, NULL-terminated, in the arena */
	const char **not_enforced; /* could not be, NULL-terminated */
	struct protect_file
		files[PROTECT_MAX]; /* what each frozen name was when the wall was built */
	struct placeholder placeholders[PROTECT_MAX]; /* meant or made */
	size_t frozen_at[PROTECT_MAX];                /* of each: its place in `frozen` */
	size_t placeholder_count;
	bool is_made, may_freeze_links;
	struct placeholder_note *notes; /* one each, shared with what is forked later; NULL: none */
};

/* Finds what to freeze and what to make, for `plan.workspace.protect` and the policy file in
 * force. `may_freeze_links`: the wall mounts what it freezes over a link itself. 0 or -errno. */
int protect_look(const struct plan *plan, bool may_freeze_links, struct arena *arena,
		 struct protect *ret_protect, struct csn_error *err);

/* Makes the placeholders, and settles which names are not enforced. 0 or -errno. */
int protect_make(struct protect *protect, const struct plan *plan, struct arena *arena,
		 struct csn_error *err);

/*
 * Whoever replaces a frozen file from outside (an editor that saves by rename, git with its
 * configuration) takes the mount away with it, in every mount namespace: the kernel's rule. From
 * then on the name was open to the program. Lists those names as not enforced; at the end.
 */
void protect_recheck(struct protect *protect);

/* Removes the placeholders, also in a forked cleaner; waits so long for locks. False:
 * one stays, and whoever looks later needs to know of it. */
bool protect_clean(struct protect *protect, uint64_t wait_ms);

/* Closes descriptors and gives the notes' memory back. */
void protect_done(struct protect *protect);
