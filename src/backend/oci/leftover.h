/*
 * leftover - what a runtime leaves when it is killed, and how it goes
 *
 *   <state root>/.oci/<id>/        0700; its lock (flock) is the monitor's
 *       config.json                the bundle
 *       state/                     the runtime's own
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/removed.h"

/* Makes the folder of sandbox `id`, and .oci above it; *ret_fd holds the lock. 0 or -errno with a
 * sentence. */
int leftover_make(const char *state_root, const char *id, int *ret_fd, struct csn_error *err);

/* Its path, to `ret_path` (PATH_MAX bytes): false if it is too long. */
bool leftover_path(const char *state_root, const char *id, char *ret_path);

/* Removes the folder, and empty groups of that name. Nothing there is fine; nothing in it is
 * believed. */
void leftover_remove(const char *state_root, const char *id);

/* The same for every folder whose lock nobody holds; each is told as "bundle". */
void leftover_sweep(const char *state_root, const struct removed *removed);
