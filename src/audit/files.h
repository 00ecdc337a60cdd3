/*
 * files - the few things the records do with files, all relative to a folder's descriptor
 *
 * No call follows a symbolic link that it was not told to, because folders beneath a run may
 * have been written by untrusted code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

/*
 * Opens the run root, which may not be a symbolic link, belongs to the caller or root and is
 * writable by nobody else; with `makes` it and its parents are made (0700) where missing.
 */
int files_open_root(const char *root, bool makes, int *ret_fd, struct csn_error *err);

/* Opens a folder in a folder, never through a link. A descriptor or a negative errno. */
int files_open_dir(int dir_fd, const char *name);

/*
 * Opens a regular file for reading: `path` relative to `dir_fd` and staying beneath it, or
 * absolute; no part of it may be a symbolic link. A descriptor or a negative errno (-EINVAL:
 * not a regular file). Never blocks on a FIFO, never opens a device.
 */
int files_open_regular(int dir_fd, const char *path);

/* Makes the temporary file of a later files_replace(), empty; a failure shows there. */
void files_prepare(int dir_fd, const char *name);

/* Writes `data` to `name` by a temporary file and a rename (0600); `syncs` waits for the disk. */
int files_replace(int dir_fd, const char *name, const char *data, size_t size, bool syncs);

/* Writes a JSON value the same way, indented for people, with a newline at its end. */
int files_replace_json(int dir_fd, const char *name, json_t *value, bool syncs);

/* Reads a JSON file of at most `max` bytes (a hostile one is refused, not believed). */
int files_read_json(int dir_fd, const char *name, size_t max, json_t **ret_value);

/* When the process started, in clock ticks since boot (field 22 of /proc/PID/stat). -ENOENT: gone;
 * -ESRCH: it has ended, and nobody waited for it yet. */
int files_process_start(int64_t pid, uint64_t *ret_ticks);

/* Fills `err` for a failed file operation, with the way out that fits the errno. Returns `code`. */
int files_fail(struct csn_error *err, int code, const char *what, const char *name);
