/*
 * flow - bytes from one descriptor to another through a pipe, without a copy (splice(2))
 *
 * What lies in the pipe are references to pages: of a file's cache, of a socket's queue. They are
 * copied once, by whoever reads them at last. Until then they show what is written to that file
 * meanwhile, as a read() at that moment would.
 *
 * A flow is no queue: what is filled is poured, drained or dropped before the next fill, so what it
 * holds is bounded by one fill and nothing is left in it that another could take for its own.
 *
 * Life: flow_init(), fill and empty as often as needed, flow_done(). The pipe is made by the first
 * fill; a flow that was not used has none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct flow {
	int in, out; /* of the pipe, -1: none yet */
	size_t size; /* bytes that are in it */
};

void flow_init(struct flow *flow);
/* Drops what is in it. It is as after flow_init(). */
void flow_done(struct flow *flow);

/*
 * Takes at most `size` bytes of `fd` into an empty flow: of a file from *at, which moves on, or,
 * with NULL, of a socket or pipe, for which it never waits. How many; 0: its end; -EAGAIN: nothing
 * now; -EINVAL: not of such a file, which can only be read; another -errno: no pipe is to be had.
 */
ssize_t flow_fill(struct flow *flow, int fd, int64_t *at, size_t size);

/* Gives it to a socket, pipe or file, as much as that takes now. 0, also where something is left,
 * or a negative errno of that descriptor's. */
int flow_pour(struct flow *flow, int fd);

/* Copies what is in it: all `flow->size` bytes. 0 or a negative errno. */
int flow_drain(struct flow *flow, void *ret_data);
