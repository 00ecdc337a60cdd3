/*
 * One call; see call.h. The thread that reads only queues; callbacks run here, in the caller's
 * thread, without the lock. Data that a callback has taken is granted to the other side again in
 * quarters of the window, so a command that prints is not asked to wait for each piece.
 */
#include "client/call.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/result.h"
#include "client/wall.h"

enum {
	HEAD = 5,                     /* of a piece in the queue: stream, size */
	GRANT = FRAME_WINDOW / 4,     /* bytes taken after which they may be sent again */
	QUEUE_MAX = 7 * FRAME_WINDOW, /* a piece of one byte weighs six */
};

static const char *const streams[] = {
	[CSN_STDOUT] = "stdout", [CSN_STDERR] = "stderr", [CSN_TTY] = "tty"
};

/* ---- for the thread that reads -------------------------------------------------------------- */

struct call *call_find(struct csn_sandbox *link, int64_t ref)
{
	struct call *call = link->calls;

	while (call && call->ref != ref)
		call = call->next;
	return call;
}

void call_wake(struct call *call)
{
	pthread_cond_signal(&call->wake);
}

static int take_data(struct call *call, const struct term *items)
{
	const struct term *bytes = &items[3];
	uint32_t size = (uint32_t)bytes->bytes.size;
	uint8_t stream = CSN_STDOUT, *at;

	if (!call->sink || size == 0 || size > call->window)
		return -EBADMSG;
	while (!term_is_atom(&items[2], streams[stream]))
		stream++; /* the table of messages knows no others */
	at = buf_reserve(&call->output, HEAD + size);
	if (!at)
		return -ENOMEM;
	at[0] = stream;
	memcpy(at + 1, &size, sizeof size);
	memcpy(at + HEAD, bytes->bytes.data, size);
	buf_grew(&call->output, HEAD + size);
	call->window -= size;
	return 0;
}

static void take_failure(struct call *call, const struct term *items)
{
	char reason[64];

	code_text(reason, sizeof reason, items[2].bytes.data, items[2].bytes.size);
	call->error.code = (int)code_of_name(reason);
	if (call->error.code == CSN_LOST) /* only the end of the stream says that of a sandbox */
		call->error.code = CSN_COMMAND_LOST;
	snprintf(call->error.stage, sizeof call->error.stage, "%s", call->verb);
	code_text(call->error.text, sizeof call->error.text, items[3].bytes.data,
		  items[3].bytes.size);
}

static void take_window(struct call *call, int64_t bytes)
{
	call->input_window += bytes;
	if (call->input_window > FRAME_WINDOW)
		call->input_window = FRAME_WINDOW;
}

int call_take(struct csn_sandbox *link, int index, const struct term *items, struct arena *arena)
{
	struct call *call = call_find(link, items[1].integer);
	int r = 0;

	if (!call || !call->is_sent || call->is_over)
		return index == FRAME_WINDOW_OUT ? 0 : -EBADMSG; /* a grant may cross the end */
	if (index == FRAME_DATA_OUT) {
		r = take_data(call, items);
	} else if (index == FRAME_WINDOW_OUT) {
		take_window(call, items[2].integer);
	} else {
		call->is_over = true;
		if (index == FRAME_FAILED) {
			take_failure(call, items);
		} else {
			call->arena = *arena;
			call->reply = items[2];
			r = 1;
		}
	}
	call_wake(call);
	return r;
}

/* ---- begin ---------------------------------------------------------------------------------- */

static const struct frame_verb *find_verb(const struct frame_verb *verbs, size_t count,
					  const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_is(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static void find_keys(struct call *call)
{
	const struct frame_verb *agent = find_verb(frame_verbs, frame_verb_count, call->verb);
	const struct frame_verb *monitor =
		find_verb(frame_client_verbs, frame_client_verb_count, call->verb);

	call->keys = monitor ? monitor->result : agent->result;
	call->other_keys = monitor && agent ? agent->result : NULL;
}

static bool was_cancelled(const struct csn_sandbox *link, uint64_t id)
{
	for (int i = 0; i < LINK_CANCELLED; i++)
		if (link->cancelled[i] == id)
			return true;
	return false;
}

/* Why a sandbox may not have a verb, and the way out; what the monitor would say. */
static const struct {
	const char *verb, *why;
} absent[] = {
	{ "diff", "it works on no copy of the workspace, which --cow or \"PATH:cow\" makes" },
	{ "commit", "it works on no copy of the workspace, which --cow or \"PATH:cow\" makes" },
	{ "snapshot", "it works on no copy of the workspace, which --cow or \"PATH:cow\" makes" },
	{ "fork", "it works on no copy of the workspace, which --cow or \"PATH:cow\" makes" },
	{ "mount", "its wall shows the host's own tree and mounts nothing: choose the process wall "
		   "(--backend process), or lend the folder at the start under its own path" },
};

static int not_there(const char *verb, csn_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		if (str_is(absent[i].verb, verb))
			return code_fail(err, CSN_NOT_SUPPORTED, verb,
					 "this sandbox does not have %s: %s", verb, absent[i].why);
	return code_fail(err, CSN_NOT_SUPPORTED, verb, "this sandbox does not have %s", verb);
}

static int join(struct call *call, uint64_t id, csn_error *err)
{
	struct csn_sandbox *link = call->link;

	if (link->is_lost)
		return code_fail(err, CSN_LOST, link->lost.stage, "%s", link->lost.text);
	if (!csn_has_verb(link, call->verb))
		return not_there(call->verb, err);
	if (id > link->last_id || (id > 0 && call_find(link, (int64_t)id)))
		return code_fail(err, CSN_INVALID, call->verb,
				 "the call's id is in use, or not from csn_call_id()");
	if (id > 0 && was_cancelled(link, id))
		return code_fail(err, CSN_CANCELLED, call->verb,
				 "the call was cancelled before it began");
	call->ref = (int64_t)(id > 0 ? id : ++link->last_id);
	call->next = link->calls;
	link->calls = call;
	return 0;
}

uint32_t call_timeout(const struct call *call, const csn_call *options)
{
	return options && options->timeout_ms ? options->timeout_ms : call->link->timeout_ms;
}

int call_begin(struct call *call, struct csn_sandbox *link, const char *verb,
	       const csn_call *options, csn_error *err)
{
	uint32_t timeout_ms;
	pthread_condattr_t attributes;
	int r;

	*call = (struct call){ .link = link, .verb = verb, .input_fd = -1, .is_input_due = true };
	if (getpid() != link->owner)
		return code_fail(err, CSN_INVALID, verb,
				 "this sandbox was opened by another process: open one here");
	if (wall_is_serving(link->wall))
		return code_fail(err, CSN_INVALID, verb,
				 "this function is the wall: it would wait for itself");
	timeout_ms = call_timeout(call, options);
	call->deadline_ms = timeout_ms ? clock_now_ms() + timeout_ms : CLOCK_NEVER;
	call->window = call->input_window = FRAME_WINDOW;
	buf_init(&call->output, QUEUE_MAX);
	buf_init(&call->taken, QUEUE_MAX);
	find_keys(call);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&call->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->old_cancel_state);
	pthread_mutex_lock(&link->lock);
	r = join(call, options ? options->id : 0, err);
	pthread_mutex_unlock(&link->lock);
	if (r < 0) {
		pthread_cond_destroy(&call->wake);
		pthread_setcancelstate(call->old_cancel_state, NULL);
	}
	return r;
}

static void free_notices(struct call *call)
{
	struct notice *notice, *next;

	for (notice = call->notices; notice; notice = next) {
		next = notice->next;
		arena_done(&notice->arena);
		free(notice);
	}
}

void call_end(struct call *call)
{
	struct csn_sandbox *link = call->link;
	struct call **at = &link->calls;

	pthread_mutex_lock(&link->lock);
	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	link_hand_over(link);
	pthread_mutex_unlock(&link->lock);
	free_notices(call);
	buf_done(&call->output);
	buf_done(&call->taken);
	free(call->piece);
	arena_done(&call->arena);
	pthread_cond_destroy(&call->wake);
	pthread_setcancelstate(call->old_cancel_state, NULL);
}

/* ---- waiting -------------------------------------------------------------------------------- */

void call_cancel(struct call *call)
{
	if (call->is_over || call->is_cancelled)
		return;
	call->is_cancelled = true;
	call->deadline_ms = clock_now_ms() + CALL_CANCEL_MS;
	if (call->is_sent)
		link_send_numbers(call->link, "cancel", &call->ref, 1);
	call_wake(call);
	link_poke(call->link); /* it may be the one that reads, with the old deadline */
}

static void expire(struct call *call)
{
	if (call->is_cancelled) {
		link_lose(call->link,
			  "the sandbox did not answer within %d s that a call was cancelled",
			  CALL_CANCEL_MS / 1000);
		return;
	}
	call->is_late = true;
	call_cancel(call);
}

static bool has_room(const struct call *call)
{
	return call->input && !call->is_input_over && !call->is_cancelled && !call->is_over &&
	       !call->link->is_lost && call->input_window > 0;
}

static bool may_feed(const struct call *call)
{
	return call->is_input_due && has_room(call);
}

static bool may_tell(const struct call *call)
{
	return call->is_ready_due && !call->is_mute && !call->is_over && !call->link->is_lost;
}

unsigned call_wants(const struct call *call)
{
	unsigned wants = 0;

	if (!call->is_sent || call->is_over)
		return 0;
	if (call->input_fd >= 0 && !call->is_input_due && has_room(call))
		wants |= CALL_WATCH_INPUT;
	if (call->ready && !call->is_ready_due && !call->is_mute)
		wants |= CALL_WATCH_READY;
	return wants & ~call->reading; /* it may say "readable" of what is being read */
}

void call_is_due(struct call *call, unsigned watch)
{
	call->is_input_due |= (watch & CALL_WATCH_INPUT) != 0;
	call->is_ready_due |= (watch & CALL_WATCH_READY) != 0;
	call_wake(call);
}

static bool has_news(const struct call *call)
{
	bool is_ended = call->is_over || call->link->is_lost;

	if (!call->is_sent)
		return is_ended || call->is_cancelled || buf_size(&call->link->out) <= LINK_BUSY;
	return is_ended || buf_size(&call->output) > 0 || call->notices || may_feed(call) ||
	       may_tell(call);
}

static void sleep_until(struct call *call)
{
	uint64_t ms = call->deadline_ms;
	struct timespec end = { .tv_sec = (time_t)(ms / 1000),
				.tv_nsec = (long)(ms % 1000) * 1000000 };

	if (call_wants(call) & ~call->watched) /* it fell asleep before this call wanted that */
		link_poke(call->link);
	call->is_waiting = true;
	if (ms == CLOCK_NEVER)
		pthread_cond_wait(&call->wake, &call->link->lock);
	else
		pthread_cond_timedwait(&call->wake, &call->link->lock, &end);
	call->is_waiting = false;
}

/* Until there is news; the time is over only after a last look. */
static void wait_for_news(struct call *call)
{
	while (!has_news(call)) {
		uint64_t now_ms = clock_now_ms(), left_ms = 0;
		bool is_late = now_ms >= call->deadline_ms;
		int wait_ms = -1;

		if (!is_late)
			left_ms = call->deadline_ms - now_ms;
		if (call->deadline_ms != CLOCK_NEVER)
			wait_ms = left_ms < INT_MAX ? (int)left_ms : INT_MAX;
		if (!call->link->is_pumping)
			link_pump(call->link, wait_ms);
		else if (!is_late)
			sleep_until(call);
		if (is_late && !has_news(call))
			expire(call);
	}
	link_hand_over(call->link);
}

/* ---- sending -------------------------------------------------------------------------------- */

struct emit call_frame(struct call *call, uint32_t pairs)
{
	struct emit emit;

	pthread_mutex_lock(&call->link->lock);
	call->wants_room = true;
	wait_for_news(call);
	call->wants_room = false;
	emit = link_frame(call->link, "call", 4, call->ref);
	emit_atom(&emit, call->verb);
	emit_map(&emit, pairs);
	return emit;
}

static bool has_descriptors(const struct call *call)
{
	return call->input_fd >= 0 || call->ready;
}

/* Has this call descriptors, and as many others that were sent? */
static bool is_one_too_many(const struct call *call)
{
	unsigned count = 0;

	for (const struct call *at = call->link->calls; at; at = at->next)
		count += at->is_sent && has_descriptors(at);
	return has_descriptors(call) && count >= LINK_WATCHERS;
}

int call_send(struct call *call, struct emit *emit, csn_error *err)
{
	struct csn_sandbox *link = call->link;
	int r = 0;

	if (link->is_lost && emit->error == 0)
		emit->error = -EPIPE;
	else if (call->is_cancelled && emit->error == 0)
		emit->error = -ECANCELED;
	else if (is_one_too_many(call) && emit->error == 0)
		emit->error = -EAGAIN;
	r = link_send(link, emit);
	call->is_sent = r == 0;
	if (call->deadline_ms != CLOCK_NEVER)
		call->deadline_ms += call->more_ms;
	if (r == -EPIPE)
		r = code_fail(err, CSN_LOST, link->lost.stage, "%s", link->lost.text);
	else if (r == -ECANCELED)
		r = code_fail(err, call->is_late ? CSN_ETIMEDOUT : CSN_CANCELLED, call->verb,
			      "the call was cancelled before it began");
	else if (r == -E2BIG)
		r = code_fail(err, CSN_E2BIG, call->verb, "a call is at most %u bytes",
			      frame_messages[FRAME_CALL].max_bytes);
	else if (r == -EAGAIN)
		r = code_fail(err, CSN_EAGAIN, call->verb,
			      "too many calls at once that have descriptors: at most %d",
			      LINK_WATCHERS);
	else if (r < 0)
		r = code_fail(err, CSN_ENOMEM, call->verb, "there is no memory for the call");
	pthread_mutex_unlock(&link->lock);
	return r;
}

void call_put_text(struct emit *emit, const char *key, const char *text)
{
	if (!text)
		return;
	emit_atom(emit, key);
	emit_text(emit, text);
}

void call_put_int(struct emit *emit, const char *key, uint64_t value)
{
	if (!value)
		return;
	emit_atom(emit, key);
	emit_int(emit, value < INT64_MAX ? (int64_t)value : INT64_MAX);
}

void call_put_true(struct emit *emit, const char *key, bool is_true)
{
	if (!is_true)
		return;
	emit_atom(emit, key);
	emit_bool(emit, true);
}

/* ---- callbacks ------------------------------------------------------------------------------ */

static void refuse(struct call *call)
{
	call->is_mute = true;
	call_cancel(call);
}

/* Gives the pieces to the sink. Not 0: it wants no more. */
static int sink_pieces(const struct call *call, const struct buf *pieces, size_t *ret_bytes)
{
	const uint8_t *at = buf_at(pieces), *end = at + buf_size(pieces);
	size_t total = 0;
	uint32_t size;
	int r = 0;

	for (; at < end; at += HEAD + size) {
		memcpy(&size, at + 1, sizeof size);
		if (r == 0 && !call->is_mute)
			r = call->sink(call->sink_data, (enum csn_stream)at[0], at + HEAD, size);
		total += size;
	}
	*ret_bytes = total;
	return r;
}

static void grant(struct call *call, size_t bytes)
{
	const int64_t numbers[] = { call->ref, call->used += (int64_t)bytes };

	if (call->used < GRANT || call->is_over || call->link->is_lost)
		return;
	call->window += call->used;
	call->used = 0;
	link_send_numbers(call->link, "window", numbers, 2);
}

static void take_output(struct call *call)
{
	struct buf pieces = call->output;
	size_t bytes;
	int r;

	call->output = call->taken;
	call->taken = pieces;
	pthread_mutex_unlock(&call->link->lock);
	r = sink_pieces(call, &pieces, &bytes);
	buf_clear(&call->taken);
	pthread_mutex_lock(&call->link->lock);
	if (r != 0)
		refuse(call);
	grant(call, bytes);
}

static void take_notice(struct call *call)
{
	struct notice *notice = call->notices;
	csn_violation violation;
	int r = 0;

	call->notices = notice->next;
	call->notice_count--;
	pthread_mutex_unlock(&call->link->lock);
	result_violation(&notice->map, &violation);
	if (!call->is_mute)
		r = call->on_violation(call->violation_data, &violation);
	arena_done(&notice->arena);
	free(notice);
	pthread_mutex_lock(&call->link->lock);
	if (r != 0)
		refuse(call);
}

static void send_input(struct call *call, const void *data, size_t size)
{
	struct emit emit = link_frame(call->link, "data", 4, call->ref);

	emit_atom(&emit, "stdin");
	if (size == 0)
		emit_atom(&emit, "eof");
	if ((size > 0 ? link_send_binary(call->link, &emit, data, size)
		      : link_send(call->link, &emit)) < 0)
		link_lose(call->link, "there is no memory for a command's input");
}

static void feed(struct call *call)
{
	size_t want = call->input_window < FRAME_PIECE ? (size_t)call->input_window : FRAME_PIECE;
	ptrdiff_t n;

	if (!call->piece)
		call->piece = malloc(FRAME_PIECE);
	if (!call->piece) {
		link_lose(call->link, "there is no memory for a command's input");
		return;
	}
	call->is_input_due = false; /* before it is asked: csn_input_ready() may come meanwhile */
	call->reading = CALL_WATCH_INPUT;
	pthread_mutex_unlock(&call->link->lock);
	n = call->input(call->input_data, call->piece, want);
	pthread_mutex_lock(&call->link->lock);
	call->reading = 0;
	if (n == CSN_INPUT_LATER)
		return;
	call->is_input_due |= call->input_fd < 0;
	call->is_input_over = n <= 0;
	if (n < 0 || (size_t)n > want) {
		refuse(call);
	} else if (!call->is_over && !call->link->is_lost) {
		call->input_window -= n;
		send_input(call, call->piece, (size_t)n);
	}
}

static void tell_ready(struct call *call)
{
	int r;

	call->is_ready_due = false;
	call->reading = CALL_WATCH_READY;
	pthread_mutex_unlock(&call->link->lock);
	r = call->ready(call->ready_data);
	pthread_mutex_lock(&call->link->lock);
	call->reading = 0;
	if (r != 0)
		refuse(call);
}

/* ---- end ------------------------------------------------------------------------------------ */

static int check_reply(struct call *call, csn_error *err)
{
	struct csn_error why = { 0 };
	int r = frame_check_map(call->keys, &call->reply, &why);

	if (r < 0 && call->other_keys)
		r = frame_check_map(call->other_keys, &call->reply, NULL);
	if (r == 0)
		return 0;
	link_lose(call->link, "the sandbox broke the protocol: %s: %s", call->verb, why.text);
	return code_fail(err, CSN_LOST, "wire", "%s", call->link->lost.text);
}

static int conclude(struct call *call, csn_error *err)
{
	const csn_error *error = &call->error;

	if (!call->is_over)
		return code_fail(err, CSN_LOST, call->link->lost.stage, "%s",
				 call->link->lost.text);
	if (!error->code)
		return check_reply(call, err);
	if (call->is_late && error->code == CSN_CANCELLED)
		return code_fail(err, CSN_ETIMEDOUT, call->verb,
				 "the call took longer than its time");
	return code_fail(err, (enum csn_code)error->code, error->stage, "%s", error->text);
}

static bool is_done(const struct call *call)
{
	return (call->is_over || call->link->is_lost) && buf_size(&call->output) == 0 &&
	       !call->notices;
}

int call_finish(struct call *call, csn_error *err)
{
	struct csn_sandbox *link = call->link;
	int r;

	pthread_mutex_lock(&link->lock);
	/* Each in its turn: neither endless output nor endless input keeps the others waiting. */
	while (!is_done(call)) {
		wait_for_news(call);
		if (may_tell(call))
			tell_ready(call);
		if (buf_size(&call->output) > 0)
			take_output(call);
		if (call->notices)
			take_notice(call);
		if (may_feed(call))
			feed(call);
	}
	r = conclude(call, err);
	pthread_mutex_unlock(&link->lock);
	return r;
}
