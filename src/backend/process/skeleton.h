/*
 * skeleton - the names of the root tree, made once and kept in the run root
 *
 *   <run root>/.roots/<name>/tree   what rootfs_fill() makes: the root, as a view of it
 *   <run root>/.roots/<name>/lock   the key: all that the tree was made from, byte by byte; its
 *                                   lock is shared by the monitors whose sandboxes use the tree
 *   <run root>/.roots/.new-…        one being made; renamed when it is whole
 *
 * The name is a hash of the key; the key itself is compared. Nothing inside can change a tree:
 * its view is read-only, and a run that is lent the run root, or a part of it, gets none.
 * The kernel takes a mount away when its mount point is removed, so one in use must stay: whoever
 * removes it (audit/roots.h) holds the lock alone.
 *
 * A key names the boot: what a power failure spoilt is never used.
 */
#pragma once

#include "backend/process/tree.h"

/*
 * Finds the skeleton for `launch->rootfs`, or makes it, and notes it there; marks the items that
 * it has. Whatever stands in the way, the rootfs stays without one and gets a tmpfs. Texts live
 * in the arena. Returns the descriptor that holds the lock, to be kept while the sandbox lives;
 * -1: there is no skeleton.
 */
int skeleton_use(const struct tree *tree, struct rootfs *rootfs);

/* Marks the items that can be made ahead in an empty folder by rootfs_fill(). */
void skeleton_mark(struct rootfs *rootfs);

/* Is nothing of the run root lent? */
bool skeleton_is_apart(const struct tree *tree);
