/*
 * stage - a root tree laid out for somebody else's runtime
 *
 * The same list of items as for a root of our own (rootfs.h), but each host tree lies apart, in a
 * mount namespace that only the runtime and its helpers are in:
 *
 *   <stage>/root       the root's names: folders, small files, links, mount points
 *   <stage>/lent/<i>   item i of the list: a tree with its flags, by which the runtime mounts it
 *   <stage>/agent      the agent and the program of its searches
 *
 * Nothing of it is on any disk, and all of it is gone with the last process in that namespace.
 */
#pragma once

#include "base/error.h"
#include "launch/rootfs.h"

/* What is laid out. All borrowed; descriptors are of detached trees. */
struct stage {
	const char *at; /* a folder of the host's that everybody may walk to; it is covered */
	int root_fd;
	int agent_fd;
	int search_fd; /* -1: none */
	bool hides_v2; /* the v2 tree of a hybrid layout is not to be seen */
};

/* The item whose tree a FREEZE, a PIN or a COVER lies in, with what is beneath it to `ret_tail`;
 * NULL: it lies in none. */
const struct rootfs_item *stage_holder(const struct rootfs *rootfs, const struct rootfs_item *item,
				       const char **ret_tail);

/*
 * Leaves the caller's mount namespace for a private one and lays everything out there. Needs
 * CAP_SYS_ADMIN. 0 or -errno with a sentence: a file that is to be read-only and is not what it
 * was a moment ago (-ELOOP, -ENOENT) ends the start.
 */
int stage_enter(const struct stage *stage, struct rootfs *rootfs, struct csn_error *err);
