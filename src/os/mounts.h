/*
 * mounts - the new mount API (Linux 5.2 and later): detached trees, then one attach
 *
 * A tree is cloned or created detached, gets its flags, and only then is attached: no
 * moment exists at which it is visible with the wrong flags. Clones are always recursive;
 * in a user namespace the kernel refuses others (EINVAL), because a non-recursive clone
 * would uncover what a mount hides.
 */
#pragma once

#include <linux/mount.h>
#include <stdint.h>

/* A detached, recursive clone of what is at `path` beneath `dir_fd`; "" and an O_PATH `dir_fd` too.
 * Descriptor or -errno. */
int mounts_clone(int dir_fd, const char *path);

/* The same for an absolute path that is known to have no link in it. If it has one by now, somebody
 * who may write there swaps folders for links while we start: -ELOOP. */
int mounts_clone_plain(const char *path);

/*
 * Sets MOUNT_ATTR_* flags on a whole detached tree, and cuts it off from the mounts it was cloned
 * from. Without that a clone made in a shared tree (every systemd host's) stays its peer: what the
 * sandbox mounts on it appears on the host and stays there, and what the host mounts later appears
 * inside without the flags. 0 or -errno.
 */
int mounts_set(int tree_fd, uint64_t attributes);

/* The same for one attached mount, not what is mounted beneath it. */
int mounts_set_one(int dir_fd, const char *path, uint64_t attributes);

/* Lifts read-only from the topmost mount of a detached tree, which is nobody else's view. */
int mounts_let_write(int tree_fd);

/* Maps the ids of a detached tree through the user namespace `userns_fd` (needs privilege in the
 * file system's own). */
int mounts_idmap(int tree_fd, int userns_fd);

/* Attaches a detached tree at `path` beneath `dir_fd`. Symlinks at the end are not followed. 0 or
 * -errno. */
int mounts_attach(int tree_fd, int dir_fd, const char *path);

/* One "key=value" of a new file system; a NULL value is a flag. */
struct mounts_option {
	const char *key;
	const char *value;
};

/* A new detached file system of `type`; `options` ends with a NULL key. Descriptor or -errno. */
int mounts_new(const char *type, const struct mounts_option *options, uint64_t attributes);

/* Makes `dir_fd`'s tree the root, drops the old one. 0 or -errno. */
int mounts_pivot(int dir_fd);
