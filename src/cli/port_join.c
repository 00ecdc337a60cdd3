/*
 * caisson port, of a sandbox that another process is the monitor of, since `caisson up` made it or
 * a pool prepared it: what its monitor and who joined it say to each other goes through here, frame
 * by frame. Frames, since {close, …} is for us, and its answer may
 * not stand in the middle of another. What one side does not read is no longer read from the other:
 * at most one frame a way is held here.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/port.h"
#include "wire/emit.h"
#include "wire/frame.h"

enum {
	ANSWER_MS = 10000,
	END_MS = 20000, /* for a monitor to end what is ours, as csn_close() waits */
	STATS_REF = 1,
	READ_SIZE = 64 << 10,
	QUOTA = 16 << 20,
};

/* ---- one way --------------------------------------------------------------------------------- */

struct way {
	int from, to; /* borrowed */
	enum frame_side side;
	struct buf in, out;
	bool is_ended; /* nothing more comes */
	bool is_deaf;  /* nobody reads any more */
};

static void way_init(struct way *way, int from, int to, enum frame_side side)
{
	*way = (struct way){ .from = from, .to = to, .side = side };
	buf_init(&way->in, FRAME_HEAD + FRAME_MAX + READ_SIZE);
	buf_init(&way->out, 2 * (FRAME_HEAD + FRAME_MAX));
}

static void way_done(struct way *way)
{
	buf_done(&way->in);
	buf_done(&way->out);
}

static int way_read(struct way *way)
{
	uint8_t *at = buf_reserve(&way->in, READ_SIZE);
	ssize_t n = at ? read(way->from, at, READ_SIZE) : 0;

	if (!at)
		return -ENOMEM;
	if (n > 0)
		buf_grew(&way->in, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		way->is_ended = true;
	return 0;
}

static void way_write(struct way *way)
{
	while (!way->is_deaf && buf_size(&way->out) > 0) {
		ssize_t n = write(way->to, buf_at(&way->out), buf_size(&way->out));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			way->is_deaf = true;
		else
			buf_consume(&way->out, (size_t)n);
	}
}

/* ---- joined ---------------------------------------------------------------------------------- */

struct join {
	struct port *port;
	int fd;           /* of its monitor, owned */
	struct way to_it; /* from who joined */
	struct way from_it;
	bool is_own;  /* from a pool: it ends with us */
	char id[256]; /* of what is our own */
	bool is_closed;
	int64_t close_ref;
	bool is_stopped; /* who joined it ended it */
};

static int take_close(struct join *join, struct term_input payload, struct csn_error *err)
{
	_cleanup_arena_ struct arena arena;
	struct term frame;
	int r;

	arena_init(&arena, QUOTA);
	r = frame_decode(&arena, payload, FROM_PORT_CLIENT, &frame, err);
	if (r < 0)
		return r;
	join->is_closed = true;
	join->close_ref = frame.items[1].integer;
	return 0;
}

/* His {close, …} is for us; all else goes on as it is, and its monitor checks it. */
static int look_at(struct join *join, struct term_input payload, struct csn_error *err)
{
	int index = frame_sniff(payload.data, payload.size, FROM_PORT_CLIENT, err);

	if (index == FRAME_CLOSE)
		return take_close(join, payload, err);
	if (index == FRAME_OPEN)
		return csn_fail(err, -EBADMSG, "wire", "a sandbox is open already");
	join->is_stopped |= index == FRAME_STOP;
	return index < 0 ? index : 0;
}

/* The answer to {close, …} stands for it: all in there is dead then. */
static bool is_bye(const struct join *join, const struct way *way, struct term_input payload)
{
	struct csn_error why;

	return join->is_closed && way->side == FROM_AGENT &&
	       frame_sniff(payload.data, payload.size, FROM_AGENT, &why) == FRAME_BYE;
}

/* Whole frames, while what was passed on before has room. */
static int pass(struct join *join, struct way *way, struct csn_error *err)
{
	bool is_his = way->side == FROM_PORT_CLIENT;
	const uint8_t *at;
	size_t size;
	int r = 0;

	while (!(is_his && join->is_closed) && buf_size(&way->out) < READ_SIZE &&
	       (r = frame_peek(&way->in, FRAME_MAX, &at, &size, err)) > 0) {
		if (is_his)
			r = look_at(join, (struct term_input){ at, size }, err);
		if (r < 0 || (is_his && join->is_closed))
			return r;
		if (is_bye(join, way, (struct term_input){ at, size }))
			way->is_ended = true;
		else
			r = buf_add(&way->out, at - FRAME_HEAD, FRAME_HEAD + size);
		if (r < 0)
			return csn_fail(err, r, "wire", "out of memory");
		buf_consume(&way->in, FRAME_HEAD + size);
	}
	return r;
}

/* Until nothing moves: a whole frame that is left here is not waited for by poll(). */
static int move_on(struct join *join, struct way *way, struct csn_error *err)
{
	size_t before;
	int r;

	do {
		before = buf_size(&way->in);
		r = pass(join, way, err);
		way_write(way);
	} while (r >= 0 && buf_size(&way->in) < before && buf_size(&way->out) < READ_SIZE);
	return r;
}

static bool wants_in(const struct join *join, const struct way *way)
{
	bool is_heard = way->side == FROM_PORT_CLIENT && join->is_closed;

	return !is_heard && !way->is_ended && buf_size(&way->out) < READ_SIZE;
}

/* One turn: whoever is ready. */
static int turn(struct join *join, int wait_ms, struct csn_error *err)
{
	struct way *ways[] = { &join->to_it, &join->from_it };
	struct pollfd fds[4];
	int r = 0;

	for (size_t i = 0; i < 2; i++) {
		fds[2 * i] =
			(struct pollfd){ wants_in(join, ways[i]) ? ways[i]->from : -1, POLLIN, 0 };
		fds[2 * i + 1] =
			(struct pollfd){ buf_size(&ways[i]->out) ? ways[i]->to : -1, POLLOUT, 0 };
	}
	if (poll(fds, 4, wait_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	for (size_t i = 0; r >= 0 && i < 2; i++) {
		if (fds[2 * i].revents)
			r = way_read(ways[i]);
		if (r >= 0)
			r = move_on(join, ways[i], err);
	}
	return r;
}

/* Until either side is done. 0, or negative with a sentence: who joined it talks nonsense. */
static int relay(struct join *join, struct csn_error *err)
{
	int r = 0;

	while (r >= 0 && !join->is_closed && !join->to_it.is_ended && !join->from_it.is_deaf &&
	       !(join->from_it.is_ended && buf_size(&join->from_it.out) == 0))
		r = turn(join, -1, err);
	return r < 0 ? r : 0;
}

/* Of what is ours, by {stop} or the end of what we say: until its monitor is gone. 0, or negative
 * with a sentence. What it says meanwhile is passed on, if anybody reads. */
static int end_own(struct join *join, struct csn_error *err)
{
	uint64_t end_ms = clock_now_ms() + END_MS, now_ms;
	struct way *from = &join->from_it;
	int r = 0;

	if (join->is_closed) {
		struct emit emit = emit_begin(&join->to_it.out);

		emit_tuple(&emit, 1);
		emit_atom(&emit, "stop");
		r = emit_end(&emit);
		way_write(&join->to_it);
	} else {
		shutdown(join->fd, SHUT_WR);
		join->to_it.is_ended = join->to_it.is_deaf = true;
		buf_clear(&join->to_it.out);
	}
	while (r >= 0 && (!from->is_ended || buf_size(&from->out) > 0) &&
	       (now_ms = clock_now_ms()) < end_ms) {
		r = turn(join, (int)(end_ms - now_ms), err);
		if (from->is_deaf)
			buf_clear(&from->out);
	}
	if (r < 0 || !from->is_ended)
		return csn_fail(err, -ETIMEDOUT, "close", "the sandbox did not end in time");
	return 0;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Who listens there could be anybody, where the folder is everybody's. */
static int check_peer(int fd, struct csn_error *err)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return csn_fail(err, -errno, "attach", "cannot ask who serves it: %m");
	if (peer.uid == geteuid() || peer.uid == 0)
		return 0;
	return csn_fail(err, -EPERM, "attach", "it is user %u's, neither yours nor root's",
			(unsigned)peer.uid);
}

static int connect_to(const char *name, int *ret_fd, struct csn_error *err)
{
	_cleanup_fd_ int place = place_open(err);
	_cleanup_fd_ int fd = place < 0 ? place : place_connect(place, name, err);
	int r = fd < 0 ? fd : check_peer(fd, err);

	if (r >= 0)
		r = fd_set_nonblock(fd, 1);
	if (r < 0)
		return err->code ? r : csn_fail(err, r, "attach", "cannot join it");
	*ret_fd = fd_take(&fd);
	return 0;
}

/* The next frame of its monitor's, decoded; its index, or negative with a sentence. */
static int hear(struct join *join, struct arena *arena, struct term *ret_frame,
		struct csn_error *err)
{
	uint64_t end_ms = clock_now_ms() + ANSWER_MS, now_ms;
	struct way *way = &join->from_it;
	const uint8_t *at;
	size_t size;
	int r;

	while ((r = frame_peek(&way->in, FRAME_MAX, &at, &size, err)) == 0) {
		struct pollfd ready = { way->from, POLLIN, 0 };

		now_ms = clock_now_ms();
		if (way->is_ended || now_ms >= end_ms)
			return csn_fail(err, way->is_ended ? -EPIPE : -ETIMEDOUT, "attach",
					"its monitor does not answer");
		if (poll(&ready, 1, (int)(end_ms - now_ms)) > 0 && way_read(way) < 0)
			return csn_fail(err, -ENOMEM, "attach", "out of memory");
	}
	if (r < 0)
		return r;
	r = frame_decode(arena, (struct term_input){ at, size }, FROM_AGENT, ret_frame, err);
	buf_consume(&way->in, FRAME_HEAD + size);
	return r;
}

static int ask_stats(struct join *join)
{
	struct emit emit = emit_begin(&join->to_it.out);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "call");
	emit_int(&emit, STATS_REF);
	emit_atom(&emit, "stats");
	emit_map(&emit, 0);
	if (emit_end(&emit) < 0)
		return -ENOMEM;
	way_write(&join->to_it);
	return 0;
}

static void put(struct emit *emit, const struct term *map, const char *key)
{
	const struct term *value = term_get(map, key);

	emit_atom(emit, key);
	if (value)
		emit_term(emit, value);
	else
		emit_binary(emit, "", 0);
}

/* What stats tells of it, by the names of `open`. */
static const char *const told[] = { "sandbox_id", "tier", "backend", "workspace", "mode" };

static void keep_id(struct join *join, const struct term *stats)
{
	const struct term *id = term_get(stats, "sandbox_id");

	if (id && id->type == TERM_BINARY && id->bytes.size < sizeof join->id)
		memcpy(join->id, id->bytes.data, id->bytes.size);
}

/* `name`: of one that has one, or NULL. */
static int answer(struct join *join, int64_t ref, const char *name, struct csn_error *err)
{
	_cleanup_arena_ struct arena arena;
	struct term ready, stats;
	struct emit emit;
	int r;

	arena_init(&arena, QUOTA);
	r = hear(join, &arena, &ready, err);
	if (r >= 0 && r != FRAME_READY)
		r = csn_fail(err, -EPIPE, "attach", "the sandbox is ending");
	if (r >= 0 && ask_stats(join) < 0)
		r = csn_fail(err, -ENOMEM, "attach", "out of memory");
	if (r >= 0)
		r = hear(join, &arena, &stats, err);
	if (r >= 0 && r != FRAME_REPLY)
		r = csn_fail(err, -EPIPE, "attach", "the sandbox does not say what it is");
	if (r < 0)
		return r;
	emit = port_reply(join->port, ref);
	emit_map(&emit, (name ? 5 : 4) + ARRAY_SIZE(told));
	emit_atom(&emit, "caisson");
	emit_text(&emit, CAISSON_VERSION);
	emit_atom(&emit, "protocol");
	emit_term(&emit, term_get(&ready.items[1], "version"));
	put(&emit, &ready.items[1], "verbs");
	put(&emit, &ready.items[1], "enforces");
	if (name) {
		emit_atom(&emit, "name");
		emit_text(&emit, name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(told); i++)
		put(&emit, &stats.items[2], told[i]);
	keep_id(join, &stats.items[2]);
	r = emit_end(&emit);
	if (r >= 0)
		r = port_flush(join->port);
	return r < 0 ? csn_fail(err, r, "attach", "nobody reads the answer") : 0;
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* What was passed on before comes first. */
static int keep_order(struct join *join)
{
	const struct buf *out = &join->from_it.out;

	return buf_add(&join->port->say, buf_at(out), buf_size(out));
}

static void say_left(struct join *join)
{
	struct emit emit;

	if (keep_order(join) < 0)
		return;
	emit = port_reply(join->port, join->close_ref);
	emit_map(&emit, join->is_own ? 2 : 1);
	emit_atom(&emit, "reason");
	emit_atom(&emit, join->is_own ? "cancelled" : "detached");
	if (join->is_own) {
		emit_atom(&emit, "sandbox_id");
		emit_text(&emit, join->id);
	}
	if (emit_end(&emit) == 0)
		port_flush(join->port);
}

static int leave(struct join *join, int r, struct csn_error *err)
{
	if (r < 0) {
		if (keep_order(join) == 0)
			port_fail(join->port, 0, "invalid", err);
		return 1;
	}
	if (join->is_own && end_own(join, err) < 0)
		return 1;
	if (join->is_closed)
		say_left(join);
	if (join->is_closed || join->to_it.is_ended || join->is_stopped)
		return 0;
	csn_fail(err, -EPIPE, "attach", "the sandbox ended, or nobody reads what it says");
	return 1;
}

/* As port_join(); the stream is taken. */
static int serve(struct join *join, int64_t ref, const char *name, struct csn_error *err)
{
	int r;

	way_init(&join->to_it, join->port->in, join->fd, FROM_PORT_CLIENT);
	way_init(&join->from_it, join->fd, join->port->out, FROM_AGENT);
	r = answer(join, ref, name, err);
	if (r >= 0)
		r = leave(join, relay(join, err), err);
	way_done(&join->to_it);
	way_done(&join->from_it);
	fd_close(join->fd);
	return r;
}

int port_join(struct port *port, int64_t ref, const char *name, struct csn_error *err)
{
	struct join join = { .port = port, .fd = -1 };
	int r;

	if (!place_is_name(name))
		return csn_fail(err, -EINVAL, "attach", "\"%.80s\" is no name of a sandbox", name);
	r = connect_to(name, &join.fd, err);
	return r < 0 ? r : serve(&join, ref, name, err);
}

int port_own(struct port *port, int64_t ref, int fd, struct csn_error *err)
{
	struct join join = { .port = port, .fd = fd, .is_own = true };

	fd_set_nonblock(fd, 1);
	return serve(&join, ref, NULL, err);
}
