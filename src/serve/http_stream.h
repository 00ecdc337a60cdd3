/*
 * http_stream - an answer that goes on: server-sent events
 *
 *   producer's thread ── events ──► 256 KiB ──► the connection's thread ──► client
 *
 * A client that reads slowly holds up its own producer and fills no memory. When it leaves, the
 * producer is told at its next event, and by what it gave to stream_new(): a call is cancelled.
 * Silence is broken every ten seconds by a comment, so that both sides notice a dead line.
 */
#pragma once

#include "serve/http.h"

struct stream;

/* Makes the events, in a thread of its own; what it was given lives until stream_end(). */
typedef void (*stream_fn)(struct stream *stream, void *data);

struct stream_job {
	stream_fn produce;
	void (*cancel)(void *data); /* from another thread: stop soon; NULL: it looks by itself */
	void *data;
};

/* Answers with a stream that belongs to the request. -errno: it was answered with a problem. */
int stream_reply(struct request *request, const struct stream_job *job);

/* The request is over: waits for the producer. NULL is fine. */
void stream_end(struct stream *stream, struct request *request);

/* ---- for the producer ------------------------------------------------------------------------ */

/* One event; `id` 0: none. `data` is one line. 0, or -EPIPE: nobody reads any more. */
int stream_put(struct stream *stream, const char *event, uint64_t id, const char *data);
/* The same with a JSON value, which is taken. */
int stream_put_json(struct stream *stream, const char *event, json_t *value);
/* Waits for no reader any more: what has no room in the stream is lost, and the job is told so. */
void stream_hurry(struct stream *stream);
/* Waits so long, or until nobody reads any more: -EPIPE. */
int stream_wait(struct stream *stream, uint64_t wait_ms);
