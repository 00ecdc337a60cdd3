/*
 * replace - a file's new content, whole or not at all
 *
 * The content goes to a temporary file in the same folder (".caisson-" and random digits), which is
 * renamed over the old one. Whoever reads sees the old content or the new one. The mode is kept
 * without its set-id bits, which a write would clear too, and so is the owner where we may; another
 * hard link to the old content keeps it. Nothing is synced to the disk.
 *
 * Life: replace_begin(), replace_write() as often as needed, replace_commit(); replace_done()
 * always, which removes the temporary file unless it was renamed. Folders that were made stay.
 */
#pragma once

#include <stddef.h>

#include "agent/resolve.h"
#include "os/flow.h"

struct replace {
	struct entry entry; /* what is replaced */
	int fd;             /* of the temporary file */
	char temporary[32]; /* its name; "": there is none */
	int mode;           /* that was asked for, -1: none */
	bool is_there;      /* an old file, as `old` says */
	struct stat old;
};

/* Nothing is held yet: replace_done() is fine. */
void replace_init(struct replace *replace);

/*
 * Links are followed, folders made (resolve_target()). `mode` -1: as the old file's, 0644 for a new
 * one. 0; -EISDIR; -EINVAL for a fifo, socket or device; another -errno with a sentence.
 */
int replace_begin(struct replace *replace, const struct roots *roots, const char *path, int mode,
		  struct csn_error *err);

/* 0 or -errno: -ENOSPC, -EDQUOT, -EFBIG … */
int replace_write(struct replace *replace, const void *data, size_t size);

/* The same with what a flow holds. It is empty after 0. */
int replace_pour(struct replace *replace, struct flow *flow);

/* Puts it in place. With `expected`, only if that file is still there unchanged: -ESTALE. */
int replace_commit(struct replace *replace, const struct stat *expected);

void replace_done(struct replace *replace);
