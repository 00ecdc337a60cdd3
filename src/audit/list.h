/* list - what state a run is in; shared by listing, removing and reopening */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"

/* In front of the id of a folder that is no run yet: record_open_ahead(). */
#define RECORD_AHEAD ".ahead-"

enum run_status { RUN_RUNNING, RUN_FINISHED, RUN_LOST };

/*
 * The state of a run by its folder. Running: somebody holds the folder's lock, or state.json names
 * a living process (same pid, same start). Finished: it has a result.json. Lost: neither.
 */
enum run_status list_status(int dir_fd);

/* Of a running one: is the process that state.json names gone, and only what it started is left? */
bool list_is_ending(int dir_fd);

#define LIST_ENDING                                                                             \
	"%s: its monitor is gone and its processes are just ending, or it is being committed; " \
	"try again in a moment"

/* The sentence of a run that somebody holds; -EBUSY. */
int list_fail_busy(int dir_fd, const char *run_id, struct csn_error *err);

/* The ids of a run root, newest first; the caller frees *ret_ids. 0, -ENOMEM or the errno of
 * reading. */
int list_ids(int root_fd, char (**ret_ids)[RUN_ID_SIZE], size_t *ret_count);

/* Fills what is known of one run; without `has_size` its size is 0, which is much quicker. -ENOENT
 * when it is gone. */
int list_info(int root_fd, const char *run_id, bool has_size, struct run_info *ret_info);
