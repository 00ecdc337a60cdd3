/*
 * keep - the folder where the engines' walls keep what many starts share
 *
 *   <place>/engines/NAME.json        an answer, for ten minutes
 *   <place>/engines/hidden-file      what lies over a hidden file: empty, nobody's to read
 *   <place>/engines/hidden-folder    and over a folder
 *   <place>/engines/seccomp.json     the syscall profile; seccomp-net.json: with a network
 *   <place>/engines/hosts …          what lies over the files of /etc that an engine makes
 *   <place>/engines/ID.lock          held by the monitor of that sandbox while it lives
 *
 * <place> is that of base/place.h: the caller's, 0700. All of it may be removed at any time.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* What was kept under `name` not longer ago than ten minutes, a new object; NULL: nothing. */
json_t *keep_read(const char *name);

/* Keeps it; what goes wrong is no matter. */
void keep_write(const char *name, const json_t *object);

/* Forgets it. */
void keep_forget(const char *name);

/* Writes `text` to the file `name` there, unless it is its contents. 0 or -errno. */
int keep_text(const char *name, const char *text);

/* Takes the lock of sandbox `id`, and removes those that nobody holds. Descriptor, or -errno. */
int keep_lock(const char *id);

/* Does the monitor of sandbox `id` live? */
bool keep_is_alive(const char *id);

/* The folder's path, everything in it made. 0 or -errno with a sentence. */
int keep_prepare(char *ret_path, size_t size, struct csn_error *err);

/* The folder's path; without it no engine ran anything for us: -ENOENT. 0 or -errno. */
int keep_find(char *ret_path, size_t size);
