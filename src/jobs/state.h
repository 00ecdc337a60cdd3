/*
 * state - state.json of a job: what it is doing, for whoever looks
 *
 * One block of STATE_SIZE bytes, written in place in one call. Not by a temporary file and a
 * rename, as other files of ours are: inside the wall the file is mounted read-only over itself,
 * and the kernel takes such a mount away, in every mount namespace, when the file is replaced. The
 * worker could then write it. In place it stays pinned, and a full disk has room for it.
 *
 * Nothing is ever continued from it: the books are in the chain. A block that a dying disk tore is
 * written anew at the next start.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

enum { STATE_SIZE = 4096 };

/* Makes it where it is missing or no file of this size; an open descriptor, or a negative errno. */
int state_open(int dir_fd, struct csn_error *err);

/* Writes and waits for the disk. `state` is left shorter where it does not fit: the oldest entries
 * of "resume_history" go. 0 or a negative errno. */
int state_write(int fd, json_t *state);

/* Reads it as a reader does: again, where it was met in the middle of a write. */
int state_read(int dir_fd, json_t **ret_state);
