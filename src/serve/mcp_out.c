/*
 * See mcp_out.h. The client's end may be shared with others (a terminal, a log), so it is never
 * made non-blocking: a pipe is opened once more for that, a socket has a flag for each call, and
 * what is neither takes PIPE_BUF bytes at a time when poll() says that it would not block.
 */
#include "serve/mcp_out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

int mcp_out_init(struct mcp_out *out, int fd)
{
	struct stat st = { 0 };
	char path[64];

	*out = (struct mcp_out){ .fd = fd, .own_fd = -1 };
	pthread_mutex_init(&out->lock, NULL);
	pthread_cond_init(&out->room, NULL);
	buf_init(&out->queue, MCP_OUT_MAX);
	out->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (out->wake_fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	out->is_socket = S_ISSOCK(st.st_mode);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (S_ISFIFO(st.st_mode))
		out->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return 0;
}

void mcp_out_done(struct mcp_out *out)
{
	fd_close(out->own_fd);
	fd_close(out->wake_fd);
	buf_done(&out->queue);
	pthread_cond_destroy(&out->room);
	pthread_mutex_destroy(&out->lock);
}

/* How many bytes it took, 0: none now, or a negative errno. */
static ssize_t write_some(const struct mcp_out *out, const void *data, size_t size)
{
	struct pollfd ready = { .fd = out->fd, .events = POLLOUT };
	ssize_t n;

	if (out->is_socket)
		n = send(out->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (out->own_fd >= 0)
		n = write(out->own_fd, data, size);
	else if (poll(&ready, 1, 0) == 1)
		n = write(out->fd, data, size < PIPE_BUF ? size : PIPE_BUF);
	else
		return 0;
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static void leave(struct mcp_out *out)
{
	out->is_gone = true;
	buf_clear(&out->queue);
	pthread_cond_broadcast(&out->room);
}

/* Under the lock. */
static void flush(struct mcp_out *out)
{
	while (!out->is_gone && buf_size(&out->queue) > 0) {
		ssize_t n = write_some(out, buf_at(&out->queue), buf_size(&out->queue));

		if (n < 0)
			leave(out);
		if (n <= 0)
			return;
		buf_consume(&out->queue, (size_t)n);
		pthread_cond_broadcast(&out->room);
	}
}

static void wake(const struct mcp_out *out)
{
	const uint64_t one = 1;

	if (write(out->wake_fd, &one, sizeof one) < 0)
		return; /* it is awake already */
}

/* Under the lock; waits until the queue has room for all of it, so that no line is ever torn. */
static void queue(struct mcp_out *out, const char *text, size_t size)
{
	while (!out->is_gone && buf_size(&out->queue) > 0 && buf_room(&out->queue) < size)
		pthread_cond_wait(&out->room, &out->lock);
	if (out->is_gone || size == 0)
		return;
	if (buf_add(&out->queue, text, size) < 0)
		leave(out); /* half of a line is written, and there is no memory for the rest */
	wake(out);
}

static void send_line(struct mcp_out *out, const char *text, size_t size)
{
	pthread_mutex_lock(&out->lock);
	while (!out->is_gone && size > 0 && buf_size(&out->queue) == 0) {
		ssize_t n = write_some(out, text, size);

		if (n < 0)
			leave(out);
		if (n <= 0)
			break;
		text += n;
		size -= (size_t)n;
	}
	queue(out, text, size);
	pthread_mutex_unlock(&out->lock);
}

void mcp_out_send(struct mcp_out *out, json_t *message)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	size_t size = text ? strlen(text) : 0;

	json_decref(message);
	if (text && size < MCP_OUT_MAX) {
		text[size] = '\n'; /* in the NUL's place: a line is sent by its length */
		send_line(out, text, size + 1);
	}
	free(text);
}

void mcp_out_flush(struct mcp_out *out)
{
	uint64_t ignored;

	if (read(out->wake_fd, &ignored, sizeof ignored) < 0 && errno != EAGAIN)
		return;
	pthread_mutex_lock(&out->lock);
	flush(out);
	pthread_mutex_unlock(&out->lock);
}

static bool holds_more_than(struct mcp_out *out, size_t size)
{
	bool is_more;

	pthread_mutex_lock(&out->lock);
	is_more = buf_size(&out->queue) > size;
	pthread_mutex_unlock(&out->lock);
	return is_more;
}

bool mcp_out_is_waiting(struct mcp_out *out)
{
	return holds_more_than(out, 0);
}

bool mcp_out_is_busy(struct mcp_out *out)
{
	return holds_more_than(out, MCP_OUT_BUSY);
}

void mcp_out_leave(struct mcp_out *out)
{
	pthread_mutex_lock(&out->lock);
	leave(out);
	pthread_mutex_unlock(&out->lock);
}

bool mcp_out_is_gone(struct mcp_out *out)
{
	bool is_gone;

	pthread_mutex_lock(&out->lock);
	is_gone = out->is_gone;
	pthread_mutex_unlock(&out->lock);
	return is_gone;
}
