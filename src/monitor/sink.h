/*
 * sink - where a command's output goes: the caller's descriptor, and the record
 *
 * Bytes pass as they come. The caller's descriptor is never made non-blocking (its open file
 * is shared with his shell); it is written only when poll() says so, and then in pieces that
 * cannot block. A reader that stopped stops the command, through the window, and nothing else.
 * The record keeps the first and the last half of a cap and says how many bytes were cut.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct sink {
	int fd;           /* borrowed; -1: nowhere but the record */
	bool is_file;     /* a regular file: writing never waits for a reader */
	bool is_gone;     /* the reader closed it */
	struct buf queue; /* not written yet */
	uint64_t total;   /* bytes that came */
	uint64_t half;    /* what the record keeps at each end */
	struct buf head;
	struct buf tail; /* a ring of at most `half` bytes: start moves, so contents are in order */
};

/* `keep`: bytes the record may hold, 0: none. */
void sink_init(struct sink *sink, int fd, uint64_t keep);
void sink_done(struct sink *sink);

/* Takes bytes. 0 or -ENOMEM. */
int sink_add(struct sink *sink, const void *data, size_t size);

/* Writes once, after poll() said POLLOUT (or for a file at any time). Returns bytes written;
 * a negative errno, and nothing more is taken: -EPIPE when the reader is gone. */
ssize_t sink_flush(struct sink *sink);

static inline bool sink_wants_out(const struct sink *sink)
{
	return sink->fd >= 0 && !sink->is_gone && buf_size(&sink->queue) > 0;
}

/* Bytes that the record leaves out between head and tail. */
uint64_t sink_cut(const struct sink *sink);

/* Writes head, a line about the cut if there is one, and tail to `fd`. 0 or -errno. */
int sink_save(const struct sink *sink, int fd);
