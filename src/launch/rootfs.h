/*
 * rootfs - the file tree that a program inside the wall sees
 *
 * The backend writes a list of items in the monitor; rootfs_enter() carries it out in the
 * child, between clone and exec, without allocating. The list is in order: a folder stands
 * before what lies in it.
 *
 *   phase 1  every host tree is cloned and every new file system made, detached: nothing
 *            that is attached later can hide a source, wherever on the host it lies
 *   phase 2  a tmpfs becomes the new root; items are made or attached beneath it
 *   phase 3  pivot, old root gone, new root read-only
 *
 * A mount point is created only on the new root's own tmpfs. One that would have to be
 * created in a host folder is refused: no placeholder is ever left on the host.
 *
 * Making some 80 names takes longer than all mounts, and they are the same in nearly every run.
 * So the root may be a read-only view of a skeleton instead: a folder of the monitor's that
 * rootfs_fill() filled before, with all that can be made ahead. What is inside is the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

enum { ROOTFS_ITEMS = 2048 };

enum rootfs_kind {
	ROOTFS_FOLDER,  /* an empty folder, `mode` */
	ROOTFS_FILE,    /* a file with `source` as its contents */
	ROOTFS_LINK,    /* a symlink to `source` */
	ROOTFS_COPY,    /* a copy of the small host file `source` */
	ROOTFS_BIND,    /* a clone of host path `source` */
	ROOTFS_TREE,    /* the detached tree `fd`, prepared by the monitor */
	ROOTFS_SCRATCH, /* folder `source` of the scratch file system, made if it is missing */
	ROOTFS_PROC,    /* a new procfs */
	ROOTFS_PTS,     /* a new devpts */
	ROOTFS_COVER,   /* an empty, unreadable file or folder over what is there */
	ROOTFS_PIN,     /* what is there, mounted over itself: it cannot be renamed away */
	ROOTFS_FREEZE,  /* what is there, read-only */
	ROOTFS_CLOSE,   /* the mount that is there, read-only; not those upon it */
	ROOTFS_OVERLAY  /* lower: tree `fd` or host path `source`; upper and work: `layer_fd` or
			   `layer` */
};

struct rootfs_item {
	enum rootfs_kind kind;
	bool is_optional;    /* a missing source is skipped */
	bool is_system;      /* its parent is a folder of the new root's own: no need to look */
	bool is_file;        /* of one that is system or ahead: the mount point is a file */
	bool is_ahead;       /* a skeleton has it, or its mount point */
	bool is_plain;       /* there is no link in the source's path; one is refused */
	const char *at;      /* beneath the root, without a leading '/' */
	const char *source;  /* borrowed */
	const char *layer;   /* OVERLAY: host folder with upper/ and work/ */
	int fd;              /* a detached tree, -1 until made */
	int layer_fd;        /* OVERLAY: detached tree of that folder, -1: clone `layer` */
	uint64_t attributes; /* MOUNT_ATTR_* */
	mode_t mode;
};

/* The folder to take a view of. Whatever is wrong with it, a tmpfs does instead. */
struct rootfs_skeleton {
	const char *path; /* borrowed; NULL: none, or `fd` */
	dev_t dev;        /* what must be found there */
	ino_t ino;
	int fd; /* a read-only, detached clone, made by the monitor; -1: none */
};

struct rootfs {
	size_t count;
	uint64_t scratch_bytes;
	struct rootfs_skeleton skeleton;
	struct rootfs_item items[ROOTFS_ITEMS]; /* last: only `count` of them are ever touched */
};

/* Beneath this name of the root the scratch file system lies from the start. */
extern const char rootfs_scratch[];

/* An empty list; scratch of that size. */
void rootfs_init(struct rootfs *rootfs, uint64_t scratch_bytes);

/* How many files a scratch of that size may hold: one per 4 KiB, within reason, since inodes are
 * kernel memory too. */
uint64_t rootfs_inodes(uint64_t bytes);

/* Closes trees that were prepared. */
void rootfs_done(struct rootfs *rootfs);

/*
 * Adds an item and returns it for filling in, or NULL when the list is full. `at` and
 * `source` are borrowed until rootfs_enter().
 */
struct rootfs_item *rootfs_add(struct rootfs *rootfs, enum rootfs_kind kind, const char *at,
			       const char *source);

/* Is it attached, and may hide what is beneath its place? Not so the covers of single names. */
bool rootfs_is_mount(const struct rootfs_item *item);

/*
 * Makes in the empty folder `tree_fd` whatever items that are ahead need: themselves, or an empty
 * mount point. Runs in the monitor; modes do not depend on the umask. 0 or -errno with a sentence.
 */
int rootfs_fill(struct rootfs *rootfs, int tree_fd, struct csn_error *err);

/*
 * The same for a root that was entered before, while nothing runs in it yet: the items are added
 * to it. `enter` is called between the sources and the targets, to leave the host's mounts for
 * those with the root. None of them is a file, a copy or an overlay: the root is read-only.
 */
int rootfs_add_to(struct rootfs *rootfs, int (*enter)(void *data, struct csn_error *err),
		  void *data, struct csn_error *err);

/* Builds the tree and makes it the root of the calling process. 0 or -errno with a sentence. */
int rootfs_enter(struct rootfs *rootfs, struct csn_error *err);
