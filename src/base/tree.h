/*
 * tree - removing and measuring folders that untrusted code may have filled
 *
 * Neither follows a link nor enters another mount (a bind mount that was left behind leads to
 * the caller's own files), however deep the tree, whatever the modes in it.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/*
 * Removes `name` and everything in it. Folders without permissions get them first. 0, or the
 * first negative errno; -EXDEV is a mount inside.
 */
int tree_remove(int dir_fd, const char *name);

/* Bytes on disk of a folder; stops counting at 64 levels and at 200,000 entries. */
uint64_t tree_size(int dir_fd, const char *name);
