/*
 * mcp_out - messages to the client: a line each, whole, from any thread
 *
 * Whoever has a message writes it himself as far as the client takes it; what is left waits in a
 * queue with a ceiling, which the first thread writes. A client that does not read makes those
 * who have more for it wait, and fills no memory. When it is gone, everything is dropped.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include <jansson.h>

#include "base/buf.h"

enum {
	MCP_OUT_MAX = 32 << 20, /* queued bytes */
	MCP_OUT_BUSY = 1 << 20, /* above this the first thread takes no more requests */
};

struct mcp_out {
	pthread_mutex_t lock;
	pthread_cond_t room;
	int fd;      /* the client's; borrowed */
	int own_fd;  /* the same pipe opened again, which may be non-blocking; -1: none */
	int wake_fd; /* an eventfd: the first thread has something to write */
	bool is_socket;
	bool is_gone; /* nobody reads any more */
	struct buf queue;
};

/* 0 or a negative errno. */
int mcp_out_init(struct mcp_out *out, int fd);
void mcp_out_done(struct mcp_out *out);

/*
 * Sends a message, which is taken. May wait for the client, unless there is little in the queue
 * (mcp_out_is_busy()). One that there is no memory for is dropped.
 */
void mcp_out_send(struct mcp_out *out, json_t *message);

/* For the first thread: writes what the client takes now; is there more? is there much? */
void mcp_out_flush(struct mcp_out *out);
bool mcp_out_is_waiting(struct mcp_out *out);
bool mcp_out_is_busy(struct mcp_out *out);

/* Nobody reads: drops what is queued, lets go who waits. */
void mcp_out_leave(struct mcp_out *out);
bool mcp_out_is_gone(struct mcp_out *out);
