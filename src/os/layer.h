/*
 * layer - what a copy-on-write workspace holds: overlayfs' upper folder, read as a list
 *
 * The kernel's format (Documentation/filesystems/overlayfs.rst, with `userxattr`): a deleted
 * name is a character device 0/0, a folder that hides the one below it carries
 * user.overlay.opaque=y, everything else is itself. Untrusted code chose every name, content
 * and link in there: names are raw bytes, nothing is followed, everything is opened beneath
 * a descriptor.
 *
 * It may be read while the sandbox lives: each entry is then what was there when it was met.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"

enum layer_change { LAYER_ADDED, LAYER_MODIFIED, LAYER_DELETED };

struct layer_entry {
	const char *path; /* relative to the workspace, raw bytes, in the layer's arena */
	enum layer_change change;
	struct stat now;    /* in the upper folder; zero for a deletion */
	struct stat old;    /* in the workspace; zero for an addition */
	bool is_unreadable; /* a folder whose mode keeps us out: what is in it is unknown */
};

/*
 * In the order in which it can be applied: what goes away before what takes its name, a
 * folder before what is in it, what is in a deleted folder before the folder.
 */
struct layer {
	struct arena arena;
	struct layer_entry *entries; /* owned */
	size_t count;
	size_t room;
};

enum {
	LAYER_MAX_ENTRIES = 1 << 20,
	LAYER_MAX_DEPTH = 100, /* two descriptors each are open at once */
};

/*
 * Compares the upper folder with the workspace below it. A file that was opened for writing
 * and not changed is no entry. -E2BIG beyond the bounds above, -EPROTO for a layer that was
 * made with other mount options (redirects, metacopy).
 */
int layer_read(int upper_fd, int lower_fd, struct layer *ret_layer, struct csn_error *err);
void layer_done(struct layer *layer);

/*
 * Opens `path` beneath `dir_fd` without following any link: O_RDONLY|O_NONBLOCK plus `flags`.
 * A descriptor or a negative errno; -EXDEV and -ELOOP for paths that try to leave.
 */
int layer_open(int dir_fd, const char *path, int flags);

/* Opens the folder that holds `path`, and points *ret_name at its last part. */
int layer_open_parent(int dir_fd, const char *path, const char **ret_name);
