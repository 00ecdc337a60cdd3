/*
 * protect_walk - where a protected name leads
 *
 * What a program of the host's reads at `.git/hooks` may stand elsewhere: behind a link, or behind
 * a
 * `.git` that is a file (`gitdir: …`, of a worktree or a submodule) and the `commondir` in there. A
 * name is closed only if every step on the way is: the link cannot be replaced, the file cannot be
 * written, and what they lead to is frozen, or lies where the program cannot write.
 *
 * Everything that is read was perhaps written by untrusted code: one component at a time, by
 * descriptor; no link is followed by the kernel, and a chain has a bound.
 */
#pragma once

#include "plan/plan.h"

enum protect_kind {
	PROTECT_ABSENT, /* nothing, or a placeholder */
	PROTECT_LINK,
	PROTECT_FILE,
	PROTECT_FOLDER
};

/* A step that has to be frozen. */
struct protect_point {
	const char *path; /* beneath the workspace, without a link in it */
	const char *name; /* its last component */
	int parent_fd;    /* the walk's; duplicate it to keep it */
	enum protect_kind kind;
};

struct protect_walk {
	const struct plan *plan;
	int workspace_fd;
	const char *const *frozen; /* what is, or will be, NULL-terminated; may grow meanwhile */
	bool may_freeze_links;     /* can the wall mount something over a link? */
	/* Adds a point to `frozen`: 0 or -errno. NULL: what is not in there is open. */
	int (*freeze)(void *context, const struct protect_point *point);
	void *context;
};

/* 1: all on the way to `path` is frozen; 0: some of it cannot be, or is not; or -errno, the
 * caller's or -ENOMEM. */
int protect_walk(const struct protect_walk *walk, const char *path);
