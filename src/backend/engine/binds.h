/*
 * binds - a root tree as the bind mounts of a container
 *
 * The list is that of the process wall (process/tree.h). What it makes itself (folders, small
 * files, links) is the image's; what it shows of the host becomes a bind mount, each one named.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "launch/rootfs.h"

struct bind {
	const char *source; /* absolute on the host */
	const char *at;     /* absolute inside */
	bool is_writable;
};

struct binds {
	struct bind *items; /* in the order in which they are mounted */
	size_t count;
};

struct binds_source {
	const struct rootfs *rootfs;
	const char *keep; /* the folder with what lies over hidden names (keep.h) */
	bool has_image;   /* which brings the system's folders */
};

/*
 * Everything the tree shows of the host. What lies on a
 * mount of its own beneath a read-only one is listed too, because an engine makes only the first
 * one read-only. 0 or -errno with a sentence: -ENOENT where a mount point would have to be made in
 * a folder of the host's, -EINVAL for a path that the engines' command lines cannot take.
 */
int binds_make(const struct binds_source *source, struct arena *arena, struct binds *ret_binds,
	       struct csn_error *err);
