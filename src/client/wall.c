/*
 * The thread behind a wall of the host's own: its stream and the queue of calls; see wall.h. A
 * frame that is malformed or beyond its window ends the stream, and the monitor then ends the
 * sandbox.
 */
#include "client/wall.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum {
	PROTOCOL_VERSION = 1,
	READ_SIZE = 128 << 10,
	OUT_MAX = 24 << 20,
	QUEUE_CALLS = 64,
	QUEUE_BYTES = 16 << 20,
	FRAME_QUOTA = 64 << 20,
};

/* ---- out ------------------------------------------------------------------------------------ */

static void flush(struct wall *wall)
{
	while (buf_size(&wall->out) > 0 && !wall->is_over) {
		ssize_t n = send(wall->fd, buf_at(&wall->out), buf_size(&wall->out),
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			wall->is_over = true;
		else
			buf_consume(&wall->out, (size_t)n);
	}
}

struct emit wall_frame(struct wall *wall, const char *name, uint32_t arity, int64_t ref)
{
	struct emit emit = emit_begin(&wall->out);

	emit_tuple(&emit, arity);
	emit_atom(&emit, name);
	if (ref >= 0)
		emit_int(&emit, ref);
	return emit;
}

void wall_send(struct wall *wall, struct emit *emit)
{
	if (emit_end(emit) < 0)
		wall->is_over = true;
	flush(wall);
}

void wall_fail(struct wall *wall, int64_t ref, const char *reason, const char *detail)
{
	struct emit emit = wall_frame(wall, "failed", 4, ref);

	emit_atom(&emit, reason);
	emit_text(&emit, detail);
	wall_send(wall, &emit);
}

/* ---- the queue ------------------------------------------------------------------------------ */

static struct wall_call *find(const struct wall *wall, int64_t ref)
{
	struct wall_call *call = wall->first;

	while (call && call->ref != ref)
		call = call->next;
	return call;
}

static void drop(struct wall *wall, struct wall_call *call)
{
	struct wall_call **at = &wall->first;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	wall->count--;
	wall->queued -= call->size;
	buf_done(&call->input);
	free(call->payload);
	free(call);
}

static int queue(struct wall *wall, const struct term *items, struct term_input payload)
{
	struct wall_call *call = calloc(1, sizeof *call), **last = &wall->first;
	void *copy = malloc(payload.size);

	if (!call || !copy) {
		free(call);
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, payload.data, payload.size);
	*call = (struct wall_call){ .ref = items[1].integer,
				    .verb = frame_find_verb(&items[2]),
				    .payload = copy,
				    .size = payload.size,
				    .window = FRAME_WINDOW };
	buf_init(&call->input, FRAME_WINDOW);
	while (*last)
		last = &(*last)->next;
	*last = call;
	wall->count++;
	wall->queued += call->size;
	return 0;
}

static bool is_full(const struct wall *wall, size_t size)
{
	return wall->count >= QUEUE_CALLS || wall->queued + size > QUEUE_BYTES;
}

/* ---- in ------------------------------------------------------------------------------------- */

/* One frame, decoded, and as it came. */
struct arrival {
	const struct term *items;
	struct term_input payload;
};

static int on_init(struct wall *wall, const struct arrival *frame)
{
	struct emit emit = wall_frame(wall, "ready", 2, -1);
	uint32_t count = 0;

	(void)frame;
	if (wall->is_init)
		emit.error = -EBADMSG;
	wall->is_init = true;
	for (size_t i = 0; i < frame_verb_count; i++)
		count += wall_has(wall, &frame_verbs[i]);
	emit_map(&emit, 3);
	emit_atom(&emit, "version");
	emit_int(&emit, PROTOCOL_VERSION);
	emit_atom(&emit, "verbs");
	emit_list(&emit, count);
	for (size_t i = 0; i < frame_verb_count; i++)
		if (wall_has(wall, &frame_verbs[i]))
			emit_atom(&emit, frame_verbs[i].name);
	emit_nil(&emit);
	emit_atom(&emit, "enforces");
	emit_nil(&emit);
	wall_send(wall, &emit);
	return 0;
}

static int on_call(struct wall *wall, const struct arrival *frame)
{
	const struct term *items = frame->items;
	const struct frame_verb *verb = frame_find_verb(&items[2]);
	struct csn_error err = { 0 };

	if (!wall->is_init)
		return -EBADMSG;
	if (!verb || !wall_has(wall, verb))
		wall_fail(wall, items[1].integer, "not_supported",
			  "this wall does not have that verb");
	else if (find(wall, items[1].integer))
		wall_fail(wall, items[1].integer, "invalid", "this Ref is in use");
	else if (frame_check_map(verb->args, &items[3], &err) < 0)
		wall_fail(wall, items[1].integer, "invalid", err.text);
	else if (is_full(wall, frame->payload.size))
		wall_fail(wall, items[1].integer, "eagain", "too many calls wait for this wall");
	else
		return queue(wall, items, frame->payload);
	return 0;
}

static int on_data(struct wall *wall, const struct arrival *frame)
{
	struct wall_call *call = find(wall, frame->items[1].integer);
	const struct term *data = &frame->items[3];

	if (!call || call->is_input_over)
		return 0;
	if (data->type == TERM_ATOM)
		call->is_input_over = true;
	else if (data->bytes.size > 0) /* beyond the window: it does not fit */
		return buf_add(&call->input, data->bytes.data, data->bytes.size);
	return 0;
}

static int on_window(struct wall *wall, const struct arrival *frame)
{
	struct wall_call *call = find(wall, frame->items[1].integer);

	if (call)
		call->window += frame->items[2].integer;
	if (call && call->window > FRAME_WINDOW)
		call->window = FRAME_WINDOW;
	return 0;
}

static int on_signal(struct wall *wall, const struct arrival *frame)
{
	struct wall_call *call = find(wall, frame->items[1].integer);

	if (call)
		call->signal = (int)frame->items[2].integer;
	return 0;
}

/* One that waits for its turn is answered at once. */
static int on_cancel(struct wall *wall, const struct arrival *frame)
{
	struct wall_call *call = find(wall, frame->items[1].integer);

	if (!call)
		return 0;
	call->is_cancelled = true;
	if (wall->is_busy && call == wall->first)
		return 0;
	wall_fail(wall, call->ref, "cancelled", "the call was cancelled before it began");
	drop(wall, call);
	return 0;
}

static int on_resize(struct wall *wall, const struct arrival *frame)
{
	(void)wall;
	(void)frame;
	return 0;
}

static int on_stop(struct wall *wall, const struct arrival *frame)
{
	struct emit emit = wall_frame(wall, "bye", 2, -1);

	(void)frame;
	emit_map(&emit, 0);
	wall_send(wall, &emit);
	return -EPIPE;
}

static int (*const handlers[])(struct wall *wall, const struct arrival *frame) = {
	[FRAME_INIT] = on_init,     [FRAME_CALL] = on_call,        [FRAME_DATA_IN] = on_data,
	[FRAME_SIGNAL] = on_signal, [FRAME_WINDOW_IN] = on_window, [FRAME_CANCEL] = on_cancel,
	[FRAME_RESIZE] = on_resize, [FRAME_STOP] = on_stop,
};

static int handle(struct wall *wall, struct term_input payload)
{
	_cleanup_arena_ struct arena arena;
	struct term frame;
	int r;

	arena_init(&arena, FRAME_QUOTA);
	r = frame_decode(&arena, payload, FROM_MONITOR, &frame, NULL);
	if (r < 0)
		return r;
	if ((size_t)r >= ARRAY_SIZE(handlers))
		return -EBADMSG;
	return handlers[r](wall, &(struct arrival){ frame.items, payload });
}

static void read_some(struct wall *wall)
{
	uint8_t *at = buf_reserve(&wall->in, READ_SIZE);
	ssize_t n = at ? recv(wall->fd, at, READ_SIZE, MSG_DONTWAIT) : 0;
	const uint8_t *payload;
	size_t size;
	int r = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		wall->is_over = true;
		return;
	}
	buf_grew(&wall->in, (size_t)n);
	while (!wall->is_over && (r = frame_peek(&wall->in, frame_messages[FRAME_CALL].max_bytes,
						 &payload, &size, NULL)) > 0) {
		r = handle(wall, (struct term_input){ payload, size, false });
		if (r < 0)
			break;
		buf_consume(&wall->in, FRAME_HEAD + size);
	}
	wall->is_over |= r < 0;
}

void wall_pump(struct wall *wall, int wait_ms)
{
	struct pollfd fd = { wall->fd, POLLIN, 0 };

	if (wall->is_over)
		return;
	if (buf_size(&wall->out) > 0)
		fd.events |= POLLOUT;
	if (poll(&fd, 1, wait_ms) <= 0)
		return;
	if (fd.revents & POLLOUT)
		flush(wall);
	if (fd.revents & (POLLIN | POLLHUP | POLLERR))
		read_some(wall);
}

/* ---- its life ------------------------------------------------------------------------------- */

static void serve_first(struct wall *wall)
{
	struct wall_call *call = wall->first;
	_cleanup_arena_ struct arena arena;
	struct term frame;

	arena_init(&arena, FRAME_QUOTA);
	wall->is_busy = true;
	if (frame_decode(&arena, (struct term_input){ call->payload, call->size, false },
			 FROM_MONITOR, &frame, NULL) < 0)
		wall_fail(wall, call->ref, "enomem", "out of memory");
	else
		wall_call(wall, call, &frame.items[3], &arena);
	wall->is_busy = false;
	drop(wall, call);
}

static void *serve(void *data)
{
	struct wall *wall = data;

	while (!wall->is_over) {
		if (wall->first && buf_size(&wall->out) < WALL_OUT_BUSY)
			serve_first(wall);
		/* Between two calls it looks; else it sleeps. */
		wall_pump(wall, wall->first && buf_size(&wall->out) < WALL_OUT_BUSY ? 0 : -1);
	}
	shutdown(wall->fd, SHUT_RDWR); /* the monitor ends its sandbox */
	return NULL;
}

static void free_wall(struct wall *wall)
{
	while (wall->first)
		drop(wall, wall->first);
	buf_done(&wall->in);
	buf_done(&wall->out);
	fd_close(wall->fd);
	free(wall);
}

/* No handler of the host's runs in it. 0 or an errno. */
static int start_thread(struct wall *wall)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&wall->thread, NULL, serve, wall);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int wall_start(const csn_wall *host, struct wall **ret_wall, int *ret_fd, csn_error *err)
{
	struct wall *wall = calloc(1, sizeof *wall);
	int pair[2], r;

	if (!wall)
		return code_fail(err, CSN_ENOMEM, "wall", "there is no memory for a wall");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(wall);
		return code_fail(err, code_of_errno(errno), "wall", "cannot make a socket: %m");
	}
	wall->host = *host;
	wall->fd = pair[0];
	wall->owner = getpid();
	buf_init(&wall->in, frame_messages[FRAME_CALL].max_bytes + FRAME_HEAD + READ_SIZE);
	buf_init(&wall->out, OUT_MAX);
	r = start_thread(wall);
	if (r != 0) {
		free_wall(wall);
		fd_close(pair[1]);
		return code_fail(err, code_of_errno(r), "wall", "cannot start a thread: %s",
				 strerror(r));
	}
	*ret_wall = wall;
	*ret_fd = pair[1];
	return 0;
}

void wall_end(struct wall *wall)
{
	if (!wall)
		return;
	if (getpid() != wall->owner) { /* what else it has was the thread's, and may be half done */
		fd_close(wall->fd);
		return;
	}
	shutdown(wall->fd, SHUT_RDWR);
	pthread_join(wall->thread, NULL);
	free_wall(wall);
}
