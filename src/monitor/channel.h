/*
 * channel - frames to and from one agent, or client, over a non-blocking stream
 *
 * Everything that arrives is hostile: an oversized, malformed or misplaced frame breaks the
 * channel for good, with a reason; the sandbox is then `lost`. Memory is bounded: at most one
 * frame is collected, and it is decoded into an arena of fixed quota that dies with it.
 *
 * Bytes of `data` that go on to another channel need not be copied here. A handler that wants no
 * more of such a frame than its head says so (`expects_bulk`); of the next ones it may then be
 * given the head with no or a few bytes, while the rest waits in `flow` for channel_pass(). Only
 * whole frames are handed out all the same: one whose bytes do not come holds up nobody but who
 * sends it.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "os/flow.h"
#include "wire/emit.h"
#include "wire/frame.h"
#include "wire/term.h"

struct channel {
	int fd;     /* borrowed from the wall */
	int out_fd; /* where frames to the other side go, borrowed; -1: to `fd` */
	enum frame_side
		side; /* of who talks to us; FROM_AGENT unless changed after channel_init() */
	struct buf in;
	struct buf out;
	struct flow flow;  /* while a frame is handled: its bytes that are not in the term */
	bool expects_bulk; /* what comes is likely `data` that a handler passes on unseen */
	bool is_broken;
	bool is_ended;   /* end of stream */
	bool is_unheard; /* the other side reads no more; it may have said something before */
};

/* Called for each good frame; `items` are the tuple's. A negative return breaks the channel. */
typedef int (*channel_fn)(void *data, int index, const struct term *items, struct csn_error *err);

/* `fd` is borrowed: non-blocking, -1 until there is one. */
void channel_init(struct channel *channel, int fd);
/* Frees buffers; the descriptor stays. */
void channel_done(struct channel *channel);

/* Starts and queues a frame; channel_send() returns 0 or -E2BIG/-ENOMEM. */
struct emit channel_frame(struct channel *channel);
int channel_send(struct channel *channel, struct emit *emit);

/*
 * The same, of a frame whose last part is a binary, not emitted yet: the first `size` bytes of the
 * `data` frame that `from` is handling, wherever they are; `bytes` is that frame's binary.
 * channel_bytes() says how many there are. They go to the stream without a copy, as far as that
 * takes them now; a failure leaves the stream out of step, and the channel is broken.
 */
int channel_pass(struct channel *channel, struct emit *emit, struct channel *from,
		 const struct term *bytes, size_t size);
size_t channel_bytes(const struct channel *from, const struct term *bytes);

/* Reads once and handles whole frames. 0, or a negative errno with a sentence: broken. */
int channel_read(struct channel *channel, channel_fn handle, void *data, struct csn_error *err);

/* Writes what the stream takes. 0 or a negative errno. */
int channel_flush(struct channel *channel);

/* Is there something to write? */
bool channel_wants_out(const struct channel *channel);
