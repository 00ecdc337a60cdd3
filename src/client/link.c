/*
 * The stream to a monitor; see link.h. Reading and writing never block: the only sleep is in
 * poll(), without the lock. A socket that takes nothing more keeps frames in `out`, which is
 * bounded by what calls may send: one frame each, and their windows.
 */
#include "client/link.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "client/call.h"
#include "wire/frame.h"

enum {
	PROTOCOL_VERSION = 1,
	READ_SIZE = 128 << 10,
	OUT_MAX = 64 << 20,
	FRAME_QUOTA = 64 << 20,
	OWN_SLOTS = 2, /* of a poll(): the stream, the eventfd */
};

/* What a thread that reads for all sleeps on. A call may be gone when it wakes: they are kept by
 * their numbers. */
struct sleep {
	struct pollfd fds[OWN_SLOTS + 2 * LINK_WATCHERS];
	int64_t refs[2 * LINK_WATCHERS];
	unsigned watches[2 * LINK_WATCHERS];
	nfds_t count;
};

int link_init(struct csn_sandbox *link, int fd, csn_error *err)
{
	*link = (struct csn_sandbox){ .fd = fd, .monitor_fd = -1, .said_fd = -1 };
	link->owner = getpid();
	pthread_mutex_init(&link->lock, NULL);
	buf_init(&link->in, frame_messages[FRAME_REPLY].max_bytes + READ_SIZE);
	buf_init(&link->out, OUT_MAX);
	arena_init(&link->arena, FRAME_QUOTA);
	link->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (link->wake_fd < 0)
		return code_fail(err, code_of_errno(errno), "open", "cannot make an eventfd: %m");
	fd_set_cloexec(fd, 1);
	fd_widen(fd, FRAME_STREAM);
	return 0;
}

void link_done(struct csn_sandbox *link)
{
	link->fd = fd_close(link->fd);
	fd_cleanup(&link->wake_fd);
	fd_cleanup(&link->monitor_fd);
	fd_cleanup(&link->said_fd);
	buf_done(&link->in);
	buf_done(&link->out);
	arena_done(&link->arena);
	if (getpid() == link->owner) /* else a thread that is not here may hold it */
		pthread_mutex_destroy(&link->lock);
}

static void wake_gates(struct csn_sandbox *link)
{
	if (link->gates)
		pthread_cond_signal(&link->gates->wake);
}

void link_lose(struct csn_sandbox *link, const char *format, ...)
{
	char text[sizeof link->lost.text];
	va_list args;

	if (link->is_lost)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (!link->lost.code)
		code_fail(&link->lost, CSN_LOST, "wire", "%s", text);
	link->is_lost = true;
	shutdown(link->fd, SHUT_RDWR); /* a monitor without a caller ends its sandbox */
	for (struct call *call = link->calls; call; call = call->next)
		call_wake(call);
	wake_gates(link);
	link_poke(link);
}

void link_poke(struct csn_sandbox *link)
{
	const uint64_t one = 1;

	if (link->is_pumping && write(link->wake_fd, &one, sizeof one) < 0)
		return; /* it is full: the thread is awake already */
}

void link_hand_over(struct csn_sandbox *link)
{
	if (link->is_pumping)
		return;
	for (struct call *call = link->calls; call; call = call->next) {
		if (call->is_waiting) {
			call_wake(call);
			return;
		}
	}
	wake_gates(link);
}

/* What was said on stderr, as one line, to a text of at least 2 bytes; "" if nothing. */
static void said_text(const struct csn_sandbox *link, char *ret_text, size_t size)
{
	char said[1024];
	ssize_t n = link->said_fd < 0 ? 0 : pread(link->said_fd, said, sizeof said, 0);
	size_t length = n < 0 ? 0 : strnlen(said, (size_t)n);

	while (length > 0 && said[length - 1] == '\n')
		length--;
	for (size_t i = 0; i < length; i++)
		if (said[i] == '\n')
			said[i] = ' ';
	code_text(ret_text, size, said, length);
}

/* ---- out ------------------------------------------------------------------------------------ */

static void flush(struct csn_sandbox *link)
{
	bool was_busy = buf_size(&link->out) > LINK_BUSY;

	while (buf_size(&link->out) > 0 && !link->is_deaf) {
		ssize_t n = send(link->fd, buf_at(&link->out), buf_size(&link->out),
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			link->is_deaf = true; /* its last words are still to be read */
			buf_clear(&link->out);
			break;
		}
		buf_consume(&link->out, (size_t)n);
	}
	if (!was_busy || buf_size(&link->out) > LINK_BUSY)
		return;
	for (struct call *call = link->calls; call; call = call->next)
		if (call->wants_room)
			call_wake(call);
}

struct emit link_frame(struct csn_sandbox *link, const char *name, uint32_t arity, int64_t ref)
{
	struct emit emit = emit_begin(&link->out);

	emit_tuple(&emit, arity);
	emit_atom(&emit, name);
	if (ref >= 0)
		emit_int(&emit, ref);
	return emit;
}

int link_send(struct csn_sandbox *link, struct emit *emit)
{
	size_t size = buf_size(&link->out) - emit->frame;

	/* What the other side would refuse would end the sandbox for every call. */
	if (emit->error == 0 && size > frame_messages[FRAME_CALL].max_bytes)
		emit->error = -E2BIG;
	if (emit_end(emit) < 0)
		return emit->error;
	flush(link);
	if (buf_size(&link->out) > 0)
		link_poke(link);
	return 0;
}

/* Of what is queued and then `data`: how many bytes of `data` the socket took. */
static size_t send_both(struct csn_sandbox *link, const void *data, size_t size)
{
	size_t queued = buf_size(&link->out);
	struct iovec parts[] = { { buf_at(&link->out), queued },
				 { (void *)(uintptr_t)data, size } };
	const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n = sendmsg(link->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0) /* not now, or never: flush() finds out */
		return 0;
	buf_consume(&link->out, (size_t)n < queued ? (size_t)n : queued);
	return (size_t)n > queued ? (size_t)n - queued : 0;
}

int link_send_binary(struct csn_sandbox *link, struct emit *emit, const void *data, size_t size)
{
	size_t sent = 0;
	int r;

	emit_binary_head(emit, size);
	r = emit_end_before(emit, size);
	if (r < 0)
		return r;
	if (buf_size(&link->out) < FRAME_PIECE && !link->is_deaf)
		sent = send_both(link, data, size);
	r = buf_add(&link->out, (const char *)data + sent, size - sent);
	if (r < 0)
		return r;
	flush(link);
	if (buf_size(&link->out) > 0)
		link_poke(link);
	return 0;
}

void link_send_numbers(struct csn_sandbox *link, const char *name, const int64_t *numbers,
		       uint32_t count)
{
	struct emit emit = link_frame(link, name, count + 1, numbers[0]);

	for (uint32_t i = 1; i < count; i++)
		emit_int(&emit, numbers[i]);
	if (link_send(link, &emit) < 0)
		link_lose(link, "there is no memory for what the sandbox has to be told");
}

/* ---- in ------------------------------------------------------------------------------------- */

static int on_ready(struct csn_sandbox *link, const struct term *items, struct arena *arena,
		    struct csn_error *why)
{
	const struct term *version = term_get(&items[1], "version");

	if (link->is_ready)
		return csn_fail(why, -EBADMSG, "wire", "ready was said twice");
	if (version->integer != PROTOCOL_VERSION)
		return csn_fail(why, -EBADMSG, "wire",
				"it speaks version %lld of the protocol, this library version %d: "
				"install the two together",
				(long long)version->integer, PROTOCOL_VERSION);
	link->arena = *arena;
	link->ready = items[1];
	link->is_ready = true;
	return 1;
}

/* The call that a violation is told to; by its number, else the first that wants to know. */
static struct call *find_listener(struct csn_sandbox *link, const struct term *map)
{
	const struct term *ref = term_get(map, "ref");
	struct call *call = link->calls;

	if (ref) {
		call = call_find(link, ref->integer);
		return call && call->is_sent ? call : NULL;
	}
	while (call && !(call->is_sent && call->on_violation))
		call = call->next;
	return call;
}

static int on_fact(struct csn_sandbox *link, const struct term *items, struct arena *arena,
		   struct csn_error *why)
{
	const struct term *event = term_get(&items[1], "event");
	bool is_agents = event && term_is_atom(event, "ended"); /* without a monitor: no news */
	int r = frame_check_map(is_agents ? frame_ended : frame_violation, &items[1], why);
	struct call *call = r < 0 || is_agents ? NULL : find_listener(link, &items[1]);
	struct notice **last, *notice;

	/* The account of the command has them all; here a flood is cut. */
	if (!call || !call->on_violation || call->notice_count >= CALL_NOTICES)
		return r;
	notice = calloc(1, sizeof *notice);
	if (!notice)
		return 0;
	notice->arena = *arena;
	notice->map = items[1];
	for (last = &call->notices; *last; last = &(*last)->next)
		;
	*last = notice;
	call->notice_count++;
	call_wake(call);
	return 1;
}

static void copy_text(const struct term *map, const char *key, char *ret_text, size_t size)
{
	const struct term *value = term_get(map, key);

	if (value && (value->type == TERM_BINARY || value->type == TERM_ATOM))
		code_text(ret_text, size, value->bytes.data, value->bytes.size);
}

static int on_bye(struct csn_sandbox *link, const struct term *items)
{
	char code[32] = "lost", stage[sizeof link->lost.stage] = "monitor";
	char text[sizeof link->lost.text] = "the sandbox has ended";

	copy_text(&items[1], "code", code, sizeof code);
	copy_text(&items[1], "stage", stage, sizeof stage);
	copy_text(&items[1], "reason", text, sizeof text);
	copy_text(&items[1], "text", text, sizeof text);
	/* What refused a start is told as it is; a sandbox that stood is lost. */
	code_fail(&link->lost, link->is_ready ? CSN_LOST : code_of_name(code), stage, "%s", text);
	link_lose(link, "%s", text);
	return 0;
}

static int dispatch(struct csn_sandbox *link, int index, const struct term *items,
		    struct arena *arena, struct csn_error *why)
{
	int r = -EBADMSG;

	if (index == FRAME_READY)
		return on_ready(link, items, arena, why);
	if (index == FRAME_BYE)
		return on_bye(link, items);
	if (link->is_ready && index == FRAME_FACT)
		return on_fact(link, items, arena, why);
	if (index == FRAME_GATE_CALL)
		r = link->is_ready && link->gates ? link->gates->take(link, items) : -EBADMSG;
	else if (link->is_ready)
		r = call_take(link, index, items, arena);
	if (r < 0)
		csn_fail(why, r, "wire", "%s came %s", frame_messages[index].name,
			 r == -ENOMEM ? "when there was no memory" : "out of turn");
	return r;
}

static int handle(struct csn_sandbox *link, const uint8_t *payload, size_t size,
		  struct csn_error *why)
{
	struct arena arena;
	struct term frame;
	int r;

	arena_init(&arena, FRAME_QUOTA);
	r = frame_decode(&arena, (struct term_input){ payload, size }, FROM_AGENT, &frame, why);
	if (r >= 0)
		r = dispatch(link, r, frame.items, &arena, why);
	if (r <= 0) /* else somebody keeps it */
		arena_done(&arena);
	return r;
}

static void handle_frames(struct csn_sandbox *link)
{
	struct csn_error why = { 0 };
	const uint8_t *payload;
	size_t size, max = frame_messages[FRAME_REPLY].max_bytes;
	int r = 0;

	while (!link->is_lost && (r = frame_peek(&link->in, max, &payload, &size, &why)) > 0) {
		r = handle(link, payload, size, &why);
		if (r < 0)
			break;
		buf_consume(&link->in, FRAME_HEAD + size);
	}
	if (r < 0)
		link_lose(link, "the sandbox broke the protocol: %s", why.text);
}

/* What it said on stderr is about its start; it was nobody's then. */
static void at_end(struct csn_sandbox *link)
{
	char said[400];

	said_text(link, said, sizeof said);
	if (!link->is_ready && said[0])
		link_lose(link, "the monitor did not start: %s", said);
	else if (!link->is_ready)
		link_lose(link, "the monitor ended before its wall stood, without a word");
	else
		link_lose(link, "the monitor of this sandbox ended without a word; it was killed, "
				"or its machine is out of memory");
}

static void read_some(struct csn_sandbox *link)
{
	uint8_t *at = buf_reserve(&link->in, READ_SIZE);
	ssize_t n;

	if (!at) {
		link_lose(link, "there is no memory for what the sandbox says");
		return;
	}
	n = recv(link->fd, at, READ_SIZE, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		at_end(link);
		return;
	}
	buf_grew(&link->in, (size_t)n);
	handle_frames(link);
}

static void watch(struct sleep *sleep, const struct call *call, enum call_watch what, int fd)
{
	nfds_t i = sleep->count - OWN_SLOTS;

	if (!(call->watched & what) || i >= 2 * LINK_WATCHERS)
		return;
	sleep->refs[i] = call->ref;
	sleep->watches[i] = what;
	sleep->fds[sleep->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void go_to_sleep(struct csn_sandbox *link, struct sleep *sleep)
{
	short out = buf_size(&link->out) > 0 ? POLLOUT : 0;

	sleep->fds[0] = (struct pollfd){ link->fd, (short)(POLLIN | out), 0 };
	sleep->fds[1] = (struct pollfd){ link->wake_fd, POLLIN, 0 };
	sleep->count = OWN_SLOTS;
	for (struct call *call = link->calls; call; call = call->next) {
		call->watched = call_wants(call);
		watch(sleep, call, CALL_WATCH_INPUT, call->input_fd);
		watch(sleep, call, CALL_WATCH_READY, call->ready_fd);
	}
	link->is_pumping = true;
}

static void wake_up(struct csn_sandbox *link, const struct sleep *sleep)
{
	link->is_pumping = false;
	for (nfds_t i = OWN_SLOTS; i < sleep->count; i++) {
		struct call *call = call_find(link, sleep->refs[i - OWN_SLOTS]);

		if (call && sleep->fds[i].revents)
			call_is_due(call, sleep->watches[i - OWN_SLOTS]);
	}
	for (struct call *call = link->calls; call; call = call->next)
		call->watched = 0;
}

void link_pump(struct csn_sandbox *link, int wait_ms)
{
	struct sleep sleep;
	uint64_t count;
	int n;

	assert(!link->is_pumping);
	if (link->is_lost)
		return;
	go_to_sleep(link, &sleep);
	pthread_mutex_unlock(&link->lock);
	n = poll(sleep.fds, sleep.count, wait_ms);
	pthread_mutex_lock(&link->lock);
	if (n <= 0) /* nothing of it is to be believed then */
		sleep.count = OWN_SLOTS;
	wake_up(link, &sleep);
	if (n <= 0 || link->is_lost)
		return;
	if (sleep.fds[1].revents && read(link->wake_fd, &count, sizeof count) < 0)
		return; /* another thread took it */
	flush(link);
	if (sleep.fds[0].revents & (POLLIN | POLLHUP | POLLERR))
		read_some(link);
}
