/*
 * worker - a verb that the monitor answers itself, at work in a process of its own
 *
 *   monitor ── fork ──▶ worker: one call, then it is gone
 *     ▲   frames, as an agent speaks them   │
 *     └──── {data, …} {fact, …} {reply, …} ─┘
 *
 * To compare a tree or to lend a path takes time, and walks where untrusted code chose the names.
 * The monitor never blocks, so it does neither: it forks a worker for the call, which has all that
 * the monitor knew at that moment and can change none of it. What a worker says is checked as an
 * agent's frames are. It dies with the monitor, and is killed when its call is cancelled or late:
 * at every instant that must leave the host as it was or as asked.
 */
#pragma once

#include <sys/resource.h>

#include "monitor/run_private.h"

struct worker {
	const struct run *run; /* as of the call */
	const void *data;      /* of its order */
	int64_t ref;
	struct channel channel; /* blocking */
	int64_t window;         /* bytes of data that may still be sent */
	const char *reason;     /* of a failure, where no errno name says it; NULL */
	struct rlimit memory;   /* RLIMIT_DATA as the monitor has it, for what outlives the call */
};

/*
 * What workers may take: untrusted code chose how many names there are to compare. The first has
 * WORKER_MEMORY, each that begins while others are at work half as much as the one before, none
 * less than WORKER_LEAST: all together less than twice the one and as many of the other.
 */
enum { WORKER_MEMORY = 512 << 20, WORKER_LEAST = 32 << 20 };

/* One verb's work. 0 after worker_reply() was ended by worker_send(); a negative errno with a
 * sentence becomes {failed, …}, its name the reason unless worker->reason gives one. */
typedef int (*worker_fn)(struct worker *worker, const struct term *map, struct csn_error *err);

/* {data, Ref, stdout, …}, in pieces, as the client's window allows. -EPIPE: nobody listens. */
int worker_data(struct worker *worker, const void *data, size_t size);

/* Begins {reply, Ref, Map} or, for the monitor alone, {fact, Map}; `pairs` follow, then
 * worker_send(): 0 or a negative errno. A fact is what the verb's table entry notes. */
struct emit worker_reply(struct worker *worker, uint32_t pairs);
struct emit worker_note(struct worker *worker, uint32_t pairs);
int worker_send(struct worker *worker, struct emit *emit);

/* ---- the monitor's end ---------------------------------------------------------------------- */

/* A worker under way, as its monitor knows it. */
struct work {
	pid_t pid;
	struct channel channel; /* its descriptor is ours */
};

/* What a worker does besides its verb: closes what must end when the monitor does. */
struct work_order {
	const struct run *run;
	int64_t ref;
	unsigned others; /* workers under way */
	worker_fn work;
	const struct term *map;
	void (*forget)(void *data);
	void *data;
};

/* 0 and a new one, or -errno with a sentence. */
int work_start(const struct work_order *order, struct work **ret_work, struct csn_error *err);
/* Kills it if it lives, and waits for it. */
void work_free(struct work *work);
void work_kill(struct work *work);
