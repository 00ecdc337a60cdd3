/*
 * link - the stream to one monitor, shared by the calls that are running
 *
 *   threads in calls ──► out ──► socket            all under `lock`; whoever waits and finds
 *        ▲ wake                    │               nobody reading reads for all, without the lock
 *        └── each call's queue ◄── in              while it sleeps
 *
 * There is no thread of ours, but for gates. The one that reads puts what came into the calls'
 * queues, gives up reading as soon as there is something for its own call, and wakes another that
 * waits. So a callback that takes long stops its own call only: what comes for it is bounded by its
 * window.
 *
 * All that arrives is hostile. A frame that is too long, malformed, out of turn or beyond a window
 * breaks the link for good: every call then ends with CSN_LOST and the reason.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "client/code.h"
#include "wire/emit.h"
#include "wire/term.h"

enum {
	LINK_CANCELLED = 64, /* cancelled numbers that are remembered before their calls begin */
	LINK_BUSY = 8 << 20, /* queued bytes above which no call begins */
	LINK_WATCHERS =
		64, /* calls at once that have descriptors of their own; a monitor's bound */
};

struct call;
struct csn_sandbox;
struct wall;

/* Who answers `gate_call`, as the link knows him; only of csn_open(). */
struct link_gates {
	pthread_cond_t wake; /* of his thread: nobody reads, there is a call, or it is over */
	int (*take)(struct csn_sandbox *link, const struct term *items); /* lock held; 0, -errno */
	void (*end)(struct csn_sandbox *link); /* waits for his thread, and frees him */
};

/* What csn_sandbox is. */
struct csn_sandbox {
	pthread_mutex_t lock;
	int fd;      /* -1: closed */
	int wake_fd; /* an eventfd: there is something to write */
	struct buf in, out;
	bool is_pumping; /* a thread reads for all */
	bool is_deaf;    /* the other side reads no more; it may have said something before */
	bool is_ready;
	bool is_lost;
	csn_error lost;     /* why */
	struct arena arena; /* of `ready` */
	struct term ready;  /* its map */
	struct call *calls; /* running ones, on their threads' stacks */
	uint64_t last_id;   /* given out */
	uint64_t cancelled[LINK_CANCELLED];
	unsigned cancelled_at;
	uint32_t timeout_ms;                 /* of calls that have none */
	pid_t owner;                         /* a fork's child must not use it */
	bool is_ours;                        /* opened here: closing it ends it */
	pid_t monitor;                       /* ours to end, or 0 */
	int monitor_fd;                      /* a pidfd, or -1 */
	int said_fd;                         /* what it writes on stderr, or -1 */
	struct link_gates *gates;            /* functions of the host's, or NULL */
	struct wall *wall;                   /* the host's own, or NULL */
	void (*end_wall)(struct wall *wall); /* wall_end(), which the command does not have */
};

/* 0 or -code. The descriptor is taken, even on failure. */
int link_init(struct csn_sandbox *link, int fd, csn_error *err);
void link_done(struct csn_sandbox *link);

/* What follows is called with the lock held. */

/* Starts a frame: {name, ref, …}, or {name} for a negative ref; link_send() queues it and writes
 * what the socket takes. -E2BIG (longer than a call may be) or -ENOMEM: nothing was queued. */
struct emit link_frame(struct csn_sandbox *link, const char *name, uint32_t arity, int64_t ref);
int link_send(struct csn_sandbox *link, struct emit *emit);

/* The same of a frame whose last part is a binary of at most FRAME_PIECE bytes, not emitted yet:
 * they go to the socket without a copy, as far as that takes them now. -ENOMEM leaves it out of
 * step: it is to be lost. */
int link_send_binary(struct csn_sandbox *link, struct emit *emit, const void *data, size_t size);

/* {name, ref, value …} with small numbers. It breaks the link where it cannot be queued. */
void link_send_numbers(struct csn_sandbox *link, const char *name, const int64_t *numbers,
		       uint32_t count);

/*
 * Reads once, for at most `wait_ms` (-1: for as long as it takes), and hands out what came. Only
 * while nobody else does. Afterwards someone else may. It sleeps on the descriptors of all calls.
 */
void link_pump(struct csn_sandbox *link, int wait_ms);

/* The thread that sleeps while it reads for all looks again. */
void link_poke(struct csn_sandbox *link);

/* Breaks it, with the first reason that was given. */
__attribute__((format(printf, 2, 3))) void link_lose(struct csn_sandbox *link, const char *format,
						     ...);

/* Wakes a waiting thread to read for all, when nobody does. */
void link_hand_over(struct csn_sandbox *link);
