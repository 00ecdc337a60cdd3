/* Connections from inside to endpoints of the host's; see forwards.h. */
#include "monitor/forwards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "monitor/forwards_end.h"
#include "wire/frame.h"

enum {
	RETRY_MS = 10,
	PATIENCE_MS = 10000,   /* with an endpoint whose queue is full */
	STREAM_FULL = 1 << 20, /* of what waits for the agent: more is not read from anybody */
	MINUTE_MS = 60000,
	TOLD = 60, /* connections a minute that are on record by themselves */
};

/* One of the plan's, and what went through it. */
struct forward {
	const char *text;
	struct plan_forward plan;
	uint64_t count, failed;  /* connections, of them those that reached nobody */
	uint64_t sent, received; /* bytes, as code inside sees it */
};

struct link {
	int64_t ref; /* 0: free */
	struct forward *forward;
	int fd; /* -1: to be tried again */
	bool is_connected;
	uint64_t retry_at_ms; /* the next try … */
	uint64_t give_up_ms;  /* … and the last */
	uint64_t started_us;
	uint64_t sent, received;
	struct buf out; /* for the endpoint */
	size_t room;    /* bytes that the agent may send */
	size_t window;  /* bytes that it takes */
	bool is_read;   /* the endpoint to its end, and the agent was told */
	bool is_ended;  /* nothing follows what is in `out` */
	bool is_shut;   /* and the endpoint was told */
	bool is_left;   /* who connected is gone: over when `out` is delivered */
};

struct forwards {
	struct forwards_setup setup;
	struct forward *list;
	size_t count;
	int64_t last_ref;
	uint64_t minute_ms; /* when this minute began … */
	unsigned told;      /* … and how many are on record in it */
	uint64_t untold;
	struct link links[FORWARDS_LINKS];
};

/* ---- frames and the record ------------------------------------------------------------------- */

static void say(struct forwards *forwards, const char *name, int64_t ref)
{
	struct emit emit = channel_frame(forwards->setup.agent);

	emit_tuple(&emit, 2);
	emit_atom(&emit, name);
	emit_int(&emit, ref);
	channel_send(forwards->setup.agent, &emit);
}

static void say_window(struct forwards *forwards, int64_t ref, size_t bytes)
{
	struct emit emit = channel_frame(forwards->setup.agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "forward_window");
	emit_int(&emit, ref);
	emit_int(&emit, (int64_t)bytes);
	channel_send(forwards->setup.agent, &emit);
}

static void say_close(struct forwards *forwards, int64_t ref, const char *reason)
{
	struct emit emit = channel_frame(forwards->setup.agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "forward_close");
	emit_int(&emit, ref);
	emit_atom(&emit, reason);
	channel_send(forwards->setup.agent, &emit);
}

/* Of a flood the first of each minute are told, and how many there were beside. */
static void record(struct forwards *forwards, const struct link *link, const char *reason)
{
	uint64_t now_ms = clock_now_ms();

	if (now_ms - forwards->minute_ms >= MINUTE_MS) {
		forwards->minute_ms = now_ms;
		forwards->told = 0;
	}
	if (forwards->told >= TOLD) {
		forwards->untold++;
		return;
	}
	forwards->told++;
	chain_add(forwards->setup.chain, EVENT_FORWARDED,
		  json_pack("{s:s, s:s, s:I, s:I, s:f, s:I}", "forward", link->forward->text,
			    "reason", reason, "sent_bytes", (json_int_t)link->sent,
			    "received_bytes", (json_int_t)link->received, "duration_ms",
			    (double)(clock_now_us() - link->started_us) / 1000.0, "others",
			    (json_int_t)forwards->untold));
	forwards->untold = 0;
}

static void end(struct forwards *forwards, struct link *link, const char *reason)
{
	link->forward->failed += !link->is_connected;
	record(forwards, link, reason);
	if (link->fd >= 0)
		shutdown(link->fd, SHUT_RDWR); /* a worker of ours may hold it open yet */
	fd_close(link->fd);
	buf_done(&link->out);
	*link = (struct link){ .fd = -1 };
}

/* The connection is over, and the agent has a place for another. */
static void finish(struct forwards *forwards, struct link *link, const char *reason)
{
	say_close(forwards, link->ref, reason);
	end(forwards, link, reason);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int write_link(struct forwards *forwards, struct link *link)
{
	ssize_t n;

	if (!link->is_connected || buf_size(&link->out) == 0)
		return 0;
	n = send(link->fd, buf_at(&link->out), buf_size(&link->out), MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	buf_consume(&link->out, (size_t)n);
	link->sent += (uint64_t)n;
	link->forward->sent += (uint64_t)n;
	link->room += (size_t)n;
	if (!link->is_left && !link->is_ended)
		say_window(forwards, link->ref, (size_t)n);
	return 0;
}

/* One piece, straight into the frame. */
static int read_link(struct forwards *forwards, struct link *link)
{
	size_t want = link->window < FRAME_PIECE ? link->window : FRAME_PIECE;
	struct emit emit = channel_frame(forwards->setup.agent);
	void *space;
	ssize_t n;
	int error;

	emit_tuple(&emit, 3);
	emit_atom(&emit, "forward_data");
	emit_int(&emit, link->ref);
	space = emit_space(&emit, want);
	if (!space)
		return -ENOMEM;
	n = recv(link->fd, space, want, 0);
	error = n < 0 ? errno : 0;
	if (n <= 0) {
		emit_drop(&emit);
		if (n < 0)
			return error == EAGAIN || error == EINTR ? 0 : -error;
		link->is_read = true;
		say(forwards, "forward_end", link->ref);
		return 0;
	}
	emit_space_end(&emit, (size_t)n);
	link->window -= (size_t)n;
	link->received += (uint64_t)n;
	link->forward->received += (uint64_t)n;
	return channel_send(forwards->setup.agent, &emit);
}

/* After anything happened to it; it may be free afterwards. */
static void settle(struct forwards *forwards, struct link *link, int r)
{
	bool is_delivered = link->is_connected && buf_size(&link->out) == 0;

	if (r >= 0 && is_delivered && link->is_ended && !link->is_shut) {
		link->is_shut = true;
		shutdown(link->fd, SHUT_WR); /* where it left: reading tells */
	}
	if (r < 0)
		finish(forwards, link, link->is_connected ? "reset" : "refused");
	else if ((link->is_left && is_delivered) || (link->is_shut && link->is_read))
		finish(forwards, link, "closed");
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* 0, also when it has to wait; a negative errno: nobody is reached. */
static int try(struct link *link, uint64_t now_ms)
{
	bool waits = false;
	int r = forwards_end_connect(&link->forward->plan, &link->fd, &waits);

	if (r == -EAGAIN && now_ms < link->give_up_ms) {
		link->retry_at_ms = now_ms + RETRY_MS;
		return 0;
	}
	link->is_connected = r == 0 && !waits;
	return r;
}

/* Of a connect that was under way; what is told may be of a descriptor that had this number. */
static int take_result(struct link *link)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof peer;
	int error = 0;

	if (getpeername(link->fd, (struct sockaddr *)&peer, &size) == 0) {
		link->is_connected = true;
		return 0;
	}
	size = sizeof error;
	if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return -error;
}

static bool is_reading(const struct forwards *forwards, const struct link *link)
{
	return !link->is_read && !link->is_left && link->window > 0 &&
	       buf_size(&forwards->setup.agent->out) < STREAM_FULL;
}

static short events_of(const struct forwards *forwards, const struct link *link)
{
	if (!link->is_connected)
		return POLLOUT;
	return (short)((is_reading(forwards, link) ? POLLIN : 0) |
		       (buf_size(&link->out) ? POLLOUT : 0));
}

/* Who has nothing to wait for is not looked at: the other side's end would be told for ever. */
size_t forwards_watch(const struct forwards *forwards, struct pollfd *fds)
{
	size_t count = 0;

	for (size_t i = 0; forwards && i < FORWARDS_LINKS; i++) {
		const struct link *link = &forwards->links[i];
		short events = link->ref && link->fd >= 0 ? events_of(forwards, link) : 0;

		if (events)
			fds[count++] = (struct pollfd){ link->fd, events, 0 };
	}
	return count;
}

static struct link *link_of(struct forwards *forwards, int fd)
{
	for (size_t i = 0; i < FORWARDS_LINKS; i++)
		if (forwards->links[i].ref && forwards->links[i].fd == fd)
			return &forwards->links[i];
	return NULL;
}

void forwards_ready(struct forwards *forwards, const struct pollfd *fd)
{
	struct link *link = link_of(forwards, fd->fd);
	int r = 0;

	if (!link)
		return;
	if (!link->is_connected)
		r = take_result(link);
	if (r >= 0)
		r = write_link(forwards, link);
	if (r >= 0 && link->is_connected && is_reading(forwards, link))
		r = read_link(forwards, link);
	settle(forwards, link, r);
}

uint64_t forwards_clock(struct forwards *forwards, uint64_t now_ms)
{
	uint64_t next = CLOCK_NEVER;

	for (size_t i = 0; forwards && i < FORWARDS_LINKS; i++) {
		struct link *link = &forwards->links[i];

		if (link->ref && link->fd < 0 && link->retry_at_ms <= now_ms) {
			int r = try(link, now_ms);

			settle(forwards, link, r < 0 ? r : write_link(forwards, link));
		}
		if (link->ref && link->fd < 0 && link->retry_at_ms < next)
			next = link->retry_at_ms;
	}
	return next;
}

/* ---- what the agent says --------------------------------------------------------------------- */

static int fault(struct csn_error *err, const char *what)
{
	return csn_fail(err, -EBADMSG, "forward", "the agent %s: this is not our agent", what);
}

static struct link *find(struct forwards *forwards, int64_t ref)
{
	for (size_t i = 0; i < FORWARDS_LINKS; i++)
		if (forwards->links[i].ref == ref)
			return &forwards->links[i];
	return NULL;
}

static struct link *find_free(struct forwards *forwards)
{
	for (size_t i = 0; i < FORWARDS_LINKS; i++)
		if (!forwards->links[i].ref)
			return &forwards->links[i];
	return NULL;
}

static int on_open(struct forwards *forwards, const struct term *items, struct csn_error *err)
{
	int64_t ref = items[1].integer;
	struct link *link = find_free(forwards);
	uint64_t now_ms = clock_now_ms();

	if (ref <= forwards->last_ref)
		return fault(err, "used the Ref of a forwarded connection twice");
	if ((uint64_t)items[2].integer >= forwards->count)
		return fault(err, "forwards to what nobody named");
	forwards->last_ref = ref;
	if (!link)
		return fault(err, "opened more forwarded connections than there may be");
	*link = (struct link){ .ref = ref,
			       .forward = &forwards->list[items[2].integer],
			       .fd = -1,
			       .give_up_ms = now_ms + PATIENCE_MS,
			       .started_us = clock_now_us(),
			       .room = FRAME_FORWARD_WINDOW,
			       .window = FRAME_FORWARD_WINDOW };
	buf_init(&link->out, FRAME_FORWARD_WINDOW);
	link->forward->count++;
	settle(forwards, link, try(link, now_ms));
	return 0;
}

static int on_data(struct forwards *forwards, struct link *link, const struct term *items,
		   struct csn_error *err)
{
	size_t size = items[2].bytes.size;

	if (link->is_ended || link->is_left)
		return fault(err, "sent bytes on a forwarded connection after their end");
	if (size > link->room)
		return fault(err, "overran the window of a forwarded connection");
	link->room -= size;
	if (buf_add(&link->out, items[2].bytes.data, size) < 0)
		return csn_fail(err, -ENOMEM, "forward", "out of memory");
	settle(forwards, link, write_link(forwards, link));
	return 0;
}

static int on_end(struct forwards *forwards, struct link *link, const struct term *items,
		  struct csn_error *err)
{
	(void)items;
	if (link->is_ended || link->is_left)
		return fault(err, "ended a forwarded connection twice");
	link->is_ended = true;
	settle(forwards, link, 0);
	return 0;
}

/* As much as was sent: else a flood of them would make a stream that is never full. */
static int on_window(struct forwards *forwards, struct link *link, const struct term *items,
		     struct csn_error *err)
{
	(void)forwards;
	if (link->is_left || (uint64_t)items[2].integer > FRAME_FORWARD_WINDOW - link->window)
		return fault(err, "took more of a forwarded connection than it was sent");
	link->window += (size_t)items[2].integer;
	return 0;
}

static int on_close(struct forwards *forwards, struct link *link, const struct term *items,
		    struct csn_error *err)
{
	if (link->is_left)
		return fault(err, "closed a forwarded connection twice");
	link->is_left = link->is_ended = true;
	if (term_is_atom(&items[2], "closed"))
		settle(forwards, link, 0);
	else
		finish(forwards, link, "reset");
	return 0;
}

int forwards_frame(struct forwards *forwards, int index, const struct term *items,
		   struct csn_error *err)
{
	static int (*const handlers[])(struct forwards *, struct link *, const struct term *,
				       struct csn_error *) = {
		[FRAME_FORWARD_DATA_OUT] = on_data,
		[FRAME_FORWARD_END_OUT] = on_end,
		[FRAME_FORWARD_WINDOW_OUT] = on_window,
		[FRAME_FORWARD_CLOSE_OUT] = on_close,
	};
	int64_t ref = items[1].integer;
	struct link *link;

	if (index == FRAME_FORWARD_OPEN)
		return on_open(forwards, items, err);
	if (ref == 0 || ref > forwards->last_ref)
		return fault(err, "spoke of a forwarded connection that it never opened");
	link = find(forwards, ref);
	/* It crossed our word that the connection is over. */
	return link ? handlers[index](forwards, link, items, err) : 0;
}

/* ---- from the start to the end --------------------------------------------------------------- */

void forwards_stop(struct forwards *forwards)
{
	for (size_t i = 0; forwards && i < FORWARDS_LINKS; i++) {
		struct link *link = &forwards->links[i];

		if (!link->ref)
			continue;
		write_link(forwards, link); /* what it said before its end, as far as that goes */
		end(forwards, link, "ended");
	}
}

void forwards_free(struct forwards *forwards)
{
	if (!forwards)
		return;
	forwards_stop(forwards);
	free(forwards->list);
	free(forwards);
}

static int fill(struct forwards *forwards, const char *const *texts, struct csn_error *err)
{
	int r = 0;

	for (; r >= 0 && texts[forwards->count]; forwards->count++) {
		struct forward *forward = &forwards->list[forwards->count];

		forward->text = texts[forwards->count];
		r = plan_forward_read(forward->text, &forward->plan);
		if (r >= 0)
			r = forwards_end_check(&forward->plan, err);
	}
	return r;
}

int forwards_new(const struct forwards_setup *setup, struct forwards **ret_forwards,
		 struct csn_error *err)
{
	const char *const *texts = (const char *const *)setup->plan->forwards;
	struct forwards *forwards;
	size_t count = 0;
	int r;

	*ret_forwards = NULL;
	while (texts[count])
		count++;
	if (count == 0)
		return 0;
	forwards = calloc(1, sizeof *forwards);
	if (forwards)
		forwards->list = calloc(count, sizeof *forwards->list);
	if (!forwards || !forwards->list) {
		free(forwards);
		return csn_fail(err, -ENOMEM, "forward", "out of memory");
	}
	forwards->setup = *setup;
	forwards->minute_ms = clock_now_ms();
	for (size_t i = 0; i < FORWARDS_LINKS; i++)
		forwards->links[i].fd = -1;
	r = fill(forwards, texts, err);
	if (r < 0)
		forwards_free(forwards);
	else
		*ret_forwards = forwards;
	return r;
}

json_t *forwards_json(const struct forwards *forwards)
{
	json_t *array = json_array();

	for (size_t i = 0; forwards && i < forwards->count; i++) {
		const struct forward *forward = &forwards->list[i];

		json_array_append_new(array, json_pack("{s:s, s:I, s:I, s:I, s:I}", "forward",
						       forward->text, "connections",
						       (json_int_t)forward->count, "failed",
						       (json_int_t)forward->failed, "sent_bytes",
						       (json_int_t)forward->sent, "received_bytes",
						       (json_int_t)forward->received));
	}
	return array;
}
