/*
 * folder - what lies in a job's folder
 *
 * The worker writes there, so nothing is followed, opened or believed: names, sizes and times of
 * regular files, as they are now. The walk is bounded in depth and in entries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FOLDER_DEPTH = 16,
	FOLDER_ENTRIES = 20000, /* looked at, folders too */
	FOLDER_PATH = 512,
	FOLDER_KEPT = 200, /* those that were changed last */
};

struct folder_file {
	char path[FOLDER_PATH]; /* relative; any bytes */
	uint64_t size;
	int64_t changed_ms; /* wall clock; the worker may set it to anything */
};

struct folder {
	struct folder_file files[FOLDER_KEPT]; /* the last changed first */
	size_t kept;
	uint64_t count, bytes;  /* of regular files */
	uint64_t others, links; /* devices, sockets, fifos; symbolic links */
	uint64_t entries;
	bool is_cut; /* there is more than was looked at */
};

/*
 * Looks at all beneath `dir_fd` but the files of the account (logs/, state.json, result.json,
 * manifest.json). 0 or a negative errno; a folder that cannot be read is skipped, and the rest is
 * `is_cut`. The caller frees *ret_folder with free().
 */
int folder_read(int dir_fd, struct folder **ret_folder);
