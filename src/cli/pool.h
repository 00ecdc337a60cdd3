/*
 * pool - between a pool and the sandboxes that wait in it
 */
#pragma once

#include "base/pool.h"
#include "cli/out.h"
#include "cli/up.h"

/* What one of them is made with. */
struct pool_child {
	struct up_wish wish; /* of the pool: what is prepared for */
	int listener;        /* the pool's socket, non-blocking */
	int life;            /* its end is the pool's */
	int notes;           /* to the pool */
};

enum pool_note_what {
	POOL_NOTE_READY = 'r',
	POOL_NOTE_TAKEN = 't',
	POOL_NOTE_MISSED = 'm', /* somebody asked for another one; err.text: what differs */
	POOL_NOTE_FAILED = 'f', /* could not be prepared: err */
	POOL_NOTE_STOP = 's',   /* somebody asked for the pool's end */
};

/* Written whole. After any but READY and STOP the writer is the pool's no more. */
struct pool_note {
	enum pool_note_what what;
	struct csn_error err;
};

/* Prepares a sandbox, waits, and is a monitor if it is taken. */
_Noreturn void pool_child_be(struct pool_child *child);
