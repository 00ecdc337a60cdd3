/*
 * call - one call: from its frame to its reply, in the thread that made it
 *
 * Life: call_begin(); call_frame(), the arguments, call_send(); call_finish(), which runs the
 * callbacks until there is a reply; call_end(). Between begin and end it is on the link's list, and
 * the thread that reads fills it: output and violations queue up, bounded by the window and by
 * NOTICES, until call_finish() takes them.
 */
#pragma once

#include "client/link.h"
#include "wire/frame.h"

enum {
	CALL_NOTICES = 64,
	CALL_CANCEL_MS = 30000, /* within which a cancel is answered */
	CALL_MORE_MS = 10000,   /* after a clock of the other side's, for it to end and account */
};

/* A violation that waits for its callback. */
struct notice {
	struct notice *next;
	struct arena arena;
	struct term map;
};

/* Takes a piece of output in the call's thread, lock not held; not 0 cancels. */
typedef int (*call_sink_fn)(void *data, enum csn_stream stream, const void *bytes, size_t size);

struct call {
	/* Set by its maker after call_begin(), before call_send(). */
	call_sink_fn sink; /* NULL: no output may come */
	void *sink_data;
	csn_input_fn input; /* NULL: there is none */
	void *input_data;
	int input_fd;       /* is asked when this can be read; -1: at any time */
	csn_ready_fn ready; /* NULL: there is none */
	void *ready_data;
	int ready_fd;
	csn_violation_fn on_violation;
	void *violation_data;
	uint64_t more_ms; /* after its time, before it is cancelled from here */

	struct csn_sandbox *link;
	struct call *next;
	const char *verb;
	const struct frame_key *keys;       /* of its reply */
	const struct frame_key *other_keys; /* of an agent's, where a monitor says more; or NULL */
	int64_t ref;
	pthread_cond_t wake;
	bool is_waiting; /* on `wake` */
	bool wants_room; /* to queue its frame */
	bool is_sent;
	uint64_t deadline_ms; /* CLOCK_NEVER: none */
	bool is_late;         /* its time was over */
	bool is_cancelled;    /* a cancel was sent, or the call will not be */
	bool is_mute;         /* a callback refused: none is called again */
	bool is_input_over;
	bool is_input_due;    /* `input` is to be asked */
	bool is_ready_due;    /* `ready` is to be told */
	unsigned reading;     /* bits of enum call_watch: its own thread is about to empty these */
	unsigned watched;     /* bits of enum call_watch: what the thread that reads sleeps on */
	struct buf output;    /* 1 byte of stream, 4 of size, the bytes; and so on */
	struct buf taken;     /* the same, while the sink has it; its own thread's */
	char *piece;          /* of input, FRAME_PIECE bytes; NULL: none yet */
	int64_t window;       /* bytes that may still come */
	int64_t used;         /* taken since the last grant */
	int64_t input_window; /* bytes that may still go */
	struct notice *notices; /* oldest first */
	unsigned notice_count;
	bool is_over;
	csn_error error;    /* code 0: there is a reply */
	struct arena arena; /* of the reply */
	struct term reply;
	int old_cancel_state;
};

/*
 * Puts a call on the list; NULL options are all zero. 0; -CSN_LOST, -CSN_INVALID (its number is in
 * use, or another process opened the handle), -CSN_NOT_SUPPORTED, -CSN_CANCELLED. After a failure
 * there is nothing to end.
 */
int call_begin(struct call *call, struct csn_sandbox *link, const char *verb,
	       const csn_call *options, csn_error *err);

/* The time of a call, in ms; 0: none. */
uint32_t call_timeout(const struct call *call, const csn_call *options);

/* Waits for room in the queue, then takes the lock until call_send(). `pairs` pairs follow. */
struct emit call_frame(struct call *call, uint32_t pairs);
int call_send(struct call *call, struct emit *emit, csn_error *err);

/* Callbacks until its end. 0: `reply` is what its keys say; else its error. */
int call_finish(struct call *call, csn_error *err);

/* Frees all but what result_new() took. */
void call_end(struct call *call);

/* A pair of a call's map: nothing where there is no value. Their number is counted the same way. */
void call_put_text(struct emit *emit, const char *key, const char *text);
void call_put_int(struct emit *emit, const char *key, uint64_t value);
void call_put_true(struct emit *emit, const char *key, bool is_true);

/* ---- for the thread that reads, lock held --------------------------------------------------- */

/* The running call of a number, or NULL. */
struct call *call_find(struct csn_sandbox *link, int64_t ref);

/* A frame about a call, by its index in frame_messages. 0; 1: `arena` was taken; or -EBADMSG: it is
 * out of turn. */
int call_take(struct csn_sandbox *link, int index, const struct term *items, struct arena *arena);

/* Sends a cancel, once. */
void call_cancel(struct call *call);

/* Wakes its thread if it waits. */
void call_wake(struct call *call);

/* What a call has descriptors for, and which of them are to be slept on now. */
enum call_watch { CALL_WATCH_INPUT = 1, CALL_WATCH_READY = 2 };
unsigned call_wants(const struct call *call);

/* These can be read. */
void call_is_due(struct call *call, unsigned watch);
