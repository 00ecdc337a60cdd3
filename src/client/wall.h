/*
 * wall - the host's own wall: the agent's end of the frames, served in a thread of ours
 *
 *   monitor ── frames ──► pump ──► queue ──► one call at a time ──► the host's function
 *                          ▲                                             │
 *                          └──────────── csn_answer_…() waits ◄──────────┘
 *
 * The thread reads whenever it waits: for a call, or in a function of the host's that waits for
 * room, input or news. There is no lock, since nobody else touches any of it: the other threads
 * only end its stream. What the monitor sends is checked as an agent does it, and what is kept is
 * bounded: QUEUE_CALLS frames of QUEUE_BYTES together, and a window of input each.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "client/code.h"
#include "wire/emit.h"
#include "wire/frame.h"

enum { WALL_OUT_BUSY = 1 << 20 /* queued bytes above which nothing more is begun */ };

/* A call that is under way or waits for its turn. */
struct wall_call {
	struct wall_call *next;
	int64_t ref;
	const struct frame_verb *verb;
	void *payload; /* its frame, owned: decoded again when its turn comes */
	size_t size;
	struct buf input;
	bool is_input_over;
	int64_t window;    /* bytes of output that may go */
	int signal;        /* that was sent and not told yet, 0: none */
	bool is_cancelled; /* nobody waits for the answer */
};

struct wall {
	csn_wall host; /* a copy */
	int fd;
	pid_t owner; /* a fork's child has no thread */
	pthread_t thread;
	struct buf in, out;
	struct wall_call *first; /* the one under way is the first */
	bool is_busy;            /* it is */
	size_t count, queued;
	bool is_init;
	bool is_over; /* the stream ended, or somebody broke the protocol */
};

/* Starts the thread; the other end of its stream is the caller's. 0 or -code. */
int wall_start(const csn_wall *host, struct wall **ret_wall, int *ret_fd, csn_error *err);
/* Ends its stream, waits for the function that runs, and frees it; NULL is fine. In the child of a
 * fork, where there is no thread, it only closes what is open. */
void wall_end(struct wall *wall);

/* Is this thread the one that serves it? NULL: no. */
static inline bool wall_is_serving(const struct wall *wall)
{
	return wall && pthread_equal(wall->thread, pthread_self());
}

/* ---- for its thread ------------------------------------------------------------------------- */

/* Writes and reads once, waiting at most `wait_ms` (-1: for as long as it takes) for either. */
void wall_pump(struct wall *wall, int wait_ms);

/* Starts a frame {name, ref, …}; wall_send() queues it, and writes what the stream takes. It is
 * over where there is no memory. */
struct emit wall_frame(struct wall *wall, const char *name, uint32_t arity, int64_t ref);
void wall_send(struct wall *wall, struct emit *emit);
void wall_fail(struct wall *wall, int64_t ref, const char *reason, const char *detail);

/* ---- wall_verbs.c ---------------------------------------------------------------------------- */

/* Does the host have a function for it? */
bool wall_has(const struct wall *wall, const struct frame_verb *verb);

/* Calls the host's function, and answers. `map` was checked. */
void wall_call(struct wall *wall, struct wall_call *call, const struct term *map,
	       struct arena *arena);
