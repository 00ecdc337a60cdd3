/* Server-sent events; see http_stream.h. The HTTP library asks for bytes in the connection's
 * thread, which may wait there. */
#include "serve/http_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	ROOM = 256 << 10,
	EVENT_MAX = 1 << 20, /* of one event: a piece of output as JSON, a line of a record */
	BLOCK = 32 << 10,
	BEAT_S = 10,
};

struct stream {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct stream_job job;
	struct buf out;
	bool is_over;
	bool is_gone;
	bool is_hurried;
};

/* ---- the producer's side --------------------------------------------------------------------- */

static void *run(void *data)
{
	struct stream *stream = data;

	stream->job.produce(stream, stream->job.data);
	pthread_mutex_lock(&stream->lock);
	stream->is_over = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

static int add_event(struct buf *out, const char *event, uint64_t id, const char *data)
{
	int r = id ? buf_printf(out, "id: %llu\n", (unsigned long long)id) : 0;

	if (r == 0)
		r = buf_printf(out, "event: %s\ndata: ", event);
	if (r == 0)
		r = buf_add_text(out, data);
	return r < 0 ? r : buf_add_text(out, "\n\n");
}

int stream_put(struct stream *stream, const char *event, uint64_t id, const char *data)
{
	int r = -EPIPE;

	pthread_mutex_lock(&stream->lock);
	while (!stream->is_gone && !stream->is_hurried && buf_size(&stream->out) > ROOM)
		pthread_cond_wait(&stream->changed, &stream->lock);
	if (!stream->is_gone) {
		size_t before = buf_size(&stream->out);

		r = add_event(&stream->out, event, id, data);
		if (r < 0)
			buf_truncate(&stream->out, before);
	}
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return r < 0 ? -EPIPE : 0;
}

int stream_put_json(struct stream *stream, const char *event, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
	int r = text ? stream_put(stream, event, 0, text) : -EPIPE;

	json_decref(value);
	free(text);
	return r;
}

void stream_hurry(struct stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->is_hurried = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
}

static struct timespec after(uint64_t wait_ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(wait_ms / 1000);
	until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	return until;
}

int stream_wait(struct stream *stream, uint64_t wait_ms)
{
	struct timespec until = after(wait_ms);
	bool is_gone;
	int r = 0;

	pthread_mutex_lock(&stream->lock);
	while (!stream->is_gone && r == 0)
		r = pthread_cond_timedwait(&stream->changed, &stream->lock, &until);
	is_gone = stream->is_gone;
	pthread_mutex_unlock(&stream->lock);
	return is_gone ? -EPIPE : 0;
}

/* ---- the connection's side ------------------------------------------------------------------- */

/* The watch calls it, and whoever ends the request: it may come twice. */
static void leave(void *data)
{
	struct stream *stream = data;

	pthread_mutex_lock(&stream->lock);
	stream->is_gone = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	if (stream->job.cancel)
		stream->job.cancel(stream->job.data);
}

static ssize_t read_some(void *data, uint64_t position, char *ret_bytes, size_t size)
{
	struct stream *stream = data;
	struct timespec until = after(BEAT_S * 1000);
	ssize_t n;
	int r = 0;

	(void)position;
	pthread_mutex_lock(&stream->lock);
	while (r == 0 && buf_size(&stream->out) == 0 && !stream->is_over && !stream->is_gone)
		r = pthread_cond_timedwait(&stream->changed, &stream->lock, &until);
	if (r == ETIMEDOUT && buf_size(&stream->out) == 0)
		buf_add_text(&stream->out, ":\n\n");
	n = (ssize_t)(buf_size(&stream->out) < size ? buf_size(&stream->out) : size);
	if (stream->is_gone)
		n = MHD_CONTENT_READER_END_WITH_ERROR;
	else if (n == 0)
		n = MHD_CONTENT_READER_END_OF_STREAM;
	else
		memcpy(ret_bytes, buf_at(&stream->out), (size_t)n);
	if (n > 0)
		buf_consume(&stream->out, (size_t)n);
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return n;
}

static struct stream *make(const struct stream_job *job)
{
	struct stream *stream = calloc(1, sizeof *stream);
	pthread_condattr_t attributes;

	if (!stream)
		return NULL;
	stream->job = *job;
	buf_init(&stream->out, ROOM + EVENT_MAX);
	pthread_mutex_init(&stream->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&stream->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return stream;
}

static void free_stream(struct stream *stream)
{
	pthread_cond_destroy(&stream->changed);
	pthread_mutex_destroy(&stream->lock);
	buf_done(&stream->out);
	free(stream);
}

int stream_reply(struct request *request, const struct stream_job *job)
{
	struct stream *stream = make(job);
	struct MHD_Response *response;

	if (!stream || pthread_create(&stream->thread, NULL, run, stream) != 0) {
		if (stream)
			free_stream(stream);
		reply_problem(request, 503, "eagain", "there is no thread for a stream");
		return -EAGAIN;
	}
	request->stream = stream;
	watch_hold(&request->server->watch, request->peer, leave, stream);
	response =
		MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_some, stream, NULL);
	if (response)
		MHD_add_response_header(response, "Content-Type", "text/event-stream");
	reply_response(request, 200, response);
	return 0;
}

void stream_end(struct stream *stream, struct request *request)
{
	if (!stream)
		return;
	watch_release(&request->server->watch, request->peer);
	leave(stream);
	pthread_join(stream->thread, NULL);
	free_stream(stream);
}
