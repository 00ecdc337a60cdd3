/*
 * look - `stats` of many sandboxes at once, for who lists them
 *
 * Each is asked over a stream of its own and nobody is waited for in turn: all the answers are
 * collected by one poll loop. A monitor that is stopped costs the patience once, however many there
 * are. Not part of the library's interface.
 */
#pragma once

#include <sys/types.h>

#include "base/place.h"
#include "caisson.h"

enum look_state {
	LOOK_SILENT,   /* no answer in time, or one that is none */
	LOOK_GONE,     /* nobody listens, or its stream ended */
	LOOK_REFUSED,  /* it lives, and would not say */
	LOOK_ANSWERED, /* `stats` */
};

struct look {
	char name[PLACE_NAME_MAX + 1]; /* the caller's */
	bool is_skipped;               /* the caller's: it is not to be asked */
	enum look_state state;
	pid_t pid;               /* of its monitor; 0: unknown */
	csn_stats_result *stats; /* owned: csn_free(); NULL unless it answered */
};

/* Asks all, until each has answered or nobody has for `patience_ms`. 0, or -ENOMEM. */
int look_all(int place_fd, struct look *looks, size_t count, uint64_t patience_ms);
