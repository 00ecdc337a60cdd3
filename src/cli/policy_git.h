/*
 * policy_git - which commit a policy file belongs to, without running git
 *
 * git reads a repository's configuration, which can name programs to run (core.fsmonitor and
 * others): in a folder where untrusted code may write, asking git is running that code outside
 * every wall. So the few files that hold the answer are read here, bounded, and whatever is
 * unusual means "unknown".
 */
#pragma once

#include "base/buf.h"

enum { GIT_HEX = 41 }; /* 40 digits and a NUL */

struct policy_git {
	char commit[GIT_HEX]; /* of HEAD; "" without a repository, before its first commit, unknown
			       */
	bool is_untracked;    /* the index has no such file; it counts as modified */
	int is_modified;      /* 1 or 0: do the bytes differ from those in the index? -1: unknown */
};

/*
 * Looks from the folder of `path` upwards for a repository that the caller or root owns. A file
 * that the index does not have counts as modified. Never fails.
 */
void policy_git_look(const char *path, const struct buf *bytes, struct policy_git *ret_git);
