/*
 * streams - our ends of what a command reads and writes: pipes, or a terminal
 *
 * Output is read only while the monitor's window is open, so a slow reader stops the command and
 * nothing else. Input is taken as fast as the command reads it. Whatever happens, a byte that the
 * command's leader wrote before its end is sent before the reply.
 *
 * A descriptor with nothing to wait for is not watched at all: the kernel reports the other side's
 * end whether one asks for it or not, and a loop that is told so again and again never sleeps.
 */
#pragma once

#include "agent/agent.h"
#include "agent/ring.h"

enum streams_output {
	STREAMS_STDOUT,
	STREAMS_STDERR,
	STREAMS_TTY,
	STREAMS_REPORT,
	STREAMS_OUTPUTS
};

struct streams {
	int64_t ref;                    /* of the call, for frames */
	unsigned slot;                  /* of its exec, for events */
	int output_fd[STREAMS_OUTPUTS]; /* read ends, the terminal's master side; -1: none, or ended
					 */
	size_t owed[STREAMS_OUTPUTS];   /* bytes that must still go out before the reply */
	int64_t window;                 /* bytes of output that the monitor takes now */
	struct ring *ring;              /* takes all output instead of the monitor; or NULL */
	int stdin_fd; /* write end, -1: closed, or none (a terminal has its own) */
	uint32_t output_events[STREAMS_OUTPUTS]; /* what each is watched for, 0: not at all */
	uint32_t stdin_events;
	bool has_begun;     /* before that, input is kept */
	struct buf input;   /* not written yet */
	bool is_input_over; /* nothing follows what is in `input` */
	bool is_end_sent;   /* and the command was told */
	bool is_mid_line;   /* the last byte that a terminal took was no newline */
};

/* No descriptors yet, a full window; allocates nothing. */
void streams_init(struct streams *streams, int64_t ref, unsigned slot);
/* Closes all descriptors. */
void streams_done(struct streams *streams);

/* Begins to watch; once, when the descriptors are in place. */
void streams_begin(struct agent *agent, struct streams *streams);

/* A descriptor is ready. */
void streams_ready(struct agent *agent, struct streams *streams, enum source_kind kind);

/* Bytes for the input, or (size 0, is_end) its end. -EMSGSIZE when the window was overrun. */
int streams_input(struct agent *agent, struct streams *streams, const void *data, size_t size,
		  bool is_end);

/* The monitor takes `bytes` more output. */
void streams_window(struct agent *agent, struct streams *streams, int64_t bytes);

/* Closes all outputs: nobody waits for them. */
void streams_drop(struct agent *agent, struct streams *streams);

/* The size of the terminal; nothing without one. */
void streams_resize(struct streams *streams, unsigned rows, unsigned cols);

/* The leader is dead: what is in its pipes now is owed. */
void streams_leader_ended(struct streams *streams);

/* {data, Ref, Name, Bin}: a piece of output. */
void streams_send(struct agent *agent, int64_t ref, enum streams_output which, const void *data,
		  size_t size);

/* Has all output ended? */
bool streams_are_over(const struct streams *streams);

/* Sends what is owed, as far as the window is open. True: nothing is owed any more. */
bool streams_drain(struct agent *agent, struct streams *streams);
