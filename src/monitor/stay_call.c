/*
 * Calls under way. A client's Ref becomes one of ours towards the agent, so that two clients may
 * use the same; everything else of a file verb's frames goes through as it came, checked against
 * the verb's table in both directions. No line here knows which wall it is.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/errno_name.h"
#include "base/str.h"
#include "monitor/stay_eval.h"
#include "monitor/stay_verbs.h"
#include "monitor/told.h"

/* ---- the table ------------------------------------------------------------------------------- */

struct stay_call *stay_call_find(struct stay *stay, int64_t ref)
{
	for (size_t i = 0; ref && i < stay->calls_end; i++)
		if (stay->calls[i].ref == ref)
			return &stay->calls[i];
	return NULL;
}

static struct stay_call *find_of(struct stay *stay, const struct stay_client *client,
				 int64_t client_ref)
{
	for (size_t i = 0; i < stay->calls_end; i++) {
		struct stay_call *call = &stay->calls[i];

		if (call->ref && call->client == client && call->client_ref == client_ref)
			return call;
	}
	return NULL;
}

static struct stay_call *find_free(struct stay *stay)
{
	for (size_t i = 0; i < stay->calls_end; i++)
		if (!stay->calls[i].ref)
			return &stay->calls[i];
	return stay->calls_end < STAY_CALLS ? &stay->calls[stay->calls_end++] : NULL;
}

struct stay_call *stay_call_open(struct stay *stay, const char *verb, struct stay_eval *eval)
{
	struct term name = { .type = TERM_ATOM, .bytes = { (const uint8_t *)verb, strlen(verb) } };
	struct stay_call *call = find_free(stay);

	if (!call || buf_size(&stay->run.channel.out) > STAY_CALLS_QUEUED)
		return NULL;
	*call = (struct stay_call){ .ref = ++stay->last_ref,
				    .verb = frame_find_verb(&name),
				    .eval = eval,
				    .end_at_ms = CLOCK_NEVER,
				    .window = RUN_WINDOW,
				    .input_window = RUN_WINDOW };
	return call;
}

bool stay_call_is_quiet(const struct stay_call *call)
{
	return call->own && call->own->is_quiet;
}

void stay_call_forget(struct stay_call *call)
{
	if (call->client)
		call->client->calls--;
	call->client = NULL;
	call->end_at_ms = CLOCK_NEVER;
}

void stay_call_free(struct stay_call *call)
{
	stay_call_forget(call);
	stay_exec_free(call->exec);
	work_free(call->work);
	*call = (struct stay_call){ 0 };
}

/* Nothing more is said of it. Who works on it is let go once he has nothing more to say. */
static void finish(struct stay_call *call)
{
	if (!call->work) {
		stay_call_free(call);
		return;
	}
	stay_call_forget(call);
	call->is_answered = true;
}

/* ---- to the agent, or to a worker ------------------------------------------------------------ */

static struct channel *channel_of(struct stay *stay, const struct stay_call *call)
{
	return call->work ? &call->work->channel : &stay->run.channel;
}

/* {name, Ref} or {name, Ref, value} */
static void send_number(struct stay *stay, const struct stay_call *call, const char *name,
			int64_t value)
{
	struct channel *channel = channel_of(stay, call);
	struct emit emit = channel_frame(channel);

	emit_tuple(&emit, value < 0 ? 2 : 3);
	emit_atom(&emit, name);
	emit_int(&emit, call->ref);
	if (value >= 0)
		emit_int(&emit, value);
	channel_send(channel, &emit);
}

void stay_call_cancel(struct stay *stay, struct stay_call *call)
{
	if (call->own && call->own->cancel) {
		call->own->cancel(stay, call);
		return;
	}
	call->is_cancelled = true;
	if (call->work)
		work_kill(call->work);
	else
		send_number(stay, call, "cancel", -1);
}

void stay_call_signal(struct stay *stay, const struct stay_call *call, int signal)
{
	send_number(stay, call, "signal", signal);
}

static int forward_call(struct stay *stay, const struct stay_call *call, const struct term *items)
{
	struct emit emit = channel_frame(&stay->run.channel);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "call");
	emit_int(&emit, call->ref);
	emit_term(&emit, &items[2]);
	emit_term(&emit, &items[3]);
	return channel_send(&stay->run.channel, &emit);
}

/* ---- from a client --------------------------------------------------------------------------- */

/* Does this sandbox have the verb? Else why not. */
static bool has_verb(const struct stay *stay, const struct frame_verb *verb,
		     const struct stay_verb *own, struct csn_error *err)
{
	const char *why = own ? own->missing(stay) : NULL;

	if (own ? !why : verb && stay->verbs >> (verb - frame_verbs) & 1)
		return true;
	csn_fail(err, -EOPNOTSUPP, "call", "%s",
		 why ? why : "this sandbox does not have that verb");
	return false;
}

/* Why a call cannot be taken, NULL: it can. */
static const char *refusal(struct stay *stay, const struct stay_client *client,
			   const struct term *items, struct csn_error *err)
{
	const struct frame_verb *verb = frame_find_client_verb(&items[2]);

	if (!has_verb(stay, frame_find_verb(&items[2]), stay_verb_find(&items[2]), err))
		return "not_supported";
	if (find_of(stay, client, items[1].integer)) {
		csn_fail(err, -EINVAL, "call", "this Ref is in use");
		return "invalid";
	}
	if (client->calls >= STAY_CLIENT_CALLS || !find_free(stay)) {
		csn_fail(err, -EAGAIN, "call",
			 "too many calls at once: at most %d, %d of one client; ask again",
			 STAY_CALLS, STAY_CLIENT_CALLS);
		return "eagain";
	}
	if (buf_size(&stay->run.channel.out) > STAY_CALLS_QUEUED) {
		csn_fail(err, -EAGAIN, "call", "the agent has much to read yet; ask again");
		return "eagain";
	}
	return frame_check_map(verb->args, &items[3], err) < 0 ? "invalid" : NULL;
}

/* What waits for as long as it is asked to. */
static bool is_patient(const struct frame_verb *verb)
{
	return str_is(verb->name, "wait") || str_is(verb->name, "logs");
}

/* Later than the agent's own clock, where it keeps one. */
static uint64_t deadline_of(const struct frame_verb *verb, const struct stay_verb *own,
			    const struct term *map)
{
	enum { LATER_MS = 2000 };
	const struct term *wanted = term_get(map, "timeout_ms");
	uint64_t ms = own ? STAY_WORK_MS : STAY_VERB_MS;

	if (wanted && wanted->integer > 0)
		ms = (uint64_t)wanted->integer;

	return is_patient(verb) ? CLOCK_NEVER : clock_now_ms() + ms + LATER_MS;
}

int stay_call_new(struct stay *stay, struct stay_client *client, const struct term *items)
{
	const struct stay_verb *own = stay_verb_find(&items[2]);
	const struct frame_verb *verb =
		own ? frame_find_client_verb(&items[2]) : frame_find_verb(&items[2]);
	struct csn_error err = { 0 };
	const char *reason = refusal(stay, client, items, &err);
	struct stay_call *call;
	int r;

	if (reason) {
		stay_refuse(client, items[1].integer, reason, err.text);
		return 0;
	}
	call = find_free(stay);
	*call = (struct stay_call){ .ref = ++stay->last_ref,
				    .client_ref = items[1].integer,
				    .client = client,
				    .verb = verb,
				    .own = own,
				    .end_at_ms = deadline_of(verb, own, &items[3]),
				    .window = RUN_WINDOW,
				    .input_window = RUN_WINDOW };
	client->calls++;
	if (own && own->start)
		r = own->start(stay, call, &items[3], &err);
	else if (own)
		r = stay_work_start(stay, call, &items[3], &err);
	else if (str_is(verb->name, "exec"))
		r = stay_exec_start(stay, call, &items[3], &err);
	else
		r = forward_call(stay, call, items);
	if (r >= 0)
		return 0;
	stay_refuse(client, call->client_ref, err.code ? error_name(&err) : errno_name(-r),
		    err.code ? err.text
			     : "the call does not fit into what the agent has yet to read");
	stay_call_free(call);
	return 0;
}

/* Bytes went through. A file of any size may take its time, as long as it moves; and who sits at a
 * terminal is there while something is shown to him. */
static void heard(struct stay *stay, struct stay_call *call)
{
	uint64_t now_ms = clock_now_ms();

	if (call->exec && call->exec->has_tty)
		stay->heard_ms = now_ms;
	else if (!call->exec && !call->is_cancelled && call->end_at_ms != CLOCK_NEVER &&
		 call->end_at_ms < now_ms + STAY_VERB_MS)
		call->end_at_ms = now_ms + STAY_VERB_MS;
}

/* Input goes through as far as the agent opened its window; who sends more is not to be trusted
 * with our memory. */
static int pass_data(struct stay *stay, struct stay_call *call, const struct term *items)
{
	struct channel *from = &call->client->channel;
	bool is_end = items[3].type != TERM_BINARY;
	size_t size = is_end ? 0 : channel_bytes(from, &items[3]);
	struct emit emit;

	from->expects_bulk = !call->exec && size == FRAME_PIECE;

	call->input_window -= (int64_t)size;
	if (call->input_window < 0)
		return -EBADMSG;
	heard(stay, call);
	if (call->own) /* none of them takes input */
		return 0;
	emit = channel_frame(&stay->run.channel);
	emit_tuple(&emit, 4);
	emit_atom(&emit, "data");
	emit_int(&emit, call->ref);
	emit_atom(&emit, "stdin");
	if (!is_end)
		return channel_pass(&stay->run.channel, &emit, from, &items[3], size);
	emit_term(&emit, &items[3]);
	return channel_send(&stay->run.channel, &emit);
}

static void open_window(struct stay *stay, struct stay_call *call, int64_t bytes)
{
	int64_t room = RUN_WINDOW - call->window;

	bytes = bytes < room ? bytes : room;
	if (bytes <= 0)
		return;
	call->window += bytes;
	send_number(stay, call, "window", bytes);
}

static int pass_window(struct stay *stay, struct stay_call *call, const struct term *items)
{
	open_window(stay, call, items[2].integer);
	return 0;
}

static int pass_signal(struct stay *stay, struct stay_call *call, const struct term *items)
{
	if (call->exec)
		stay_call_signal(stay, call, (int)items[2].integer);
	return 0;
}

static int pass_resize(struct stay *stay, struct stay_call *call, const struct term *items)
{
	struct emit emit;

	if (!call->exec)
		return 0;
	emit = channel_frame(&stay->run.channel);
	emit_tuple(&emit, 4);
	emit_atom(&emit, "resize");
	emit_int(&emit, call->ref);
	emit_int(&emit, items[2].integer);
	emit_int(&emit, items[3].integer);
	return channel_send(&stay->run.channel, &emit);
}

static int pass_cancel(struct stay *stay, struct stay_call *call, const struct term *items)
{
	(void)items;
	if (call->exec)
		stay_exec_end(stay, call, END_CANCELLED, false);
	else
		stay_call_cancel(stay, call);
	return 0;
}

typedef int (*client_handler)(struct stay *stay, struct stay_call *call, const struct term *items);

static const client_handler passes[] = {
	[FRAME_DATA_IN] = pass_data,  [FRAME_WINDOW_IN] = pass_window, [FRAME_SIGNAL] = pass_signal,
	[FRAME_RESIZE] = pass_resize, [FRAME_CANCEL] = pass_cancel,
};

int stay_call_pass(struct stay *stay, struct stay_client *client, int index,
		   const struct term *items)
{
	struct stay_call *call;

	if (index < 0 || (size_t)index >= ARRAY_SIZE(passes) || !passes[index])
		return -EBADMSG;
	if (buf_size(&stay->run.channel.out) > STAY_QUEUED)
		return -ENOBUFS;
	call = find_of(stay, client, items[1].integer);
	return call ? passes[index](stay, call, items) : 0; /* it crossed the call's reply */
}

/* ---- from the agent -------------------------------------------------------------------------- */

static int out_of_turn(struct csn_error *err, const char *what)
{
	return csn_fail(err, -EBADMSG, "wire", "the agent sent %s out of turn", what);
}

static int on_ready(struct stay *stay, const struct term *items, struct csn_error *err)
{
	const struct term *verbs = term_get(&items[1], "verbs");

	int r = run_check_ready(&stay->run, &items[1], err);

	if (r < 0)
		return r;
	if (stay->is_up)
		return out_of_turn(err, "ready");
	for (size_t i = 0; verbs && i < verbs->count; i++) {
		const struct frame_verb *verb = frame_find_verb(&verbs->items[i]);

		if (verb)
			stay->verbs |= UINT64_C(1) << (verb - frame_verbs);
	}
	stay_up(stay);
	return 0;
}

static void forward_reply(struct stay_call *call, const struct term *map)
{
	struct emit emit = channel_frame(&call->client->channel);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, call->client_ref);
	emit_term(&emit, map);
	if (channel_send(&call->client->channel, &emit) < 0)
		call->client->is_gone = true;
}

/* He waited for this; his silence begins now. */
static void end_silence(struct stay *stay, const struct stay_call *call)
{
	if (call->client)
		call->client->heard_ms = clock_now_ms();
	if (call->client && !stay_call_is_quiet(call))
		stay->heard_ms = clock_now_ms();
}

static int on_reply(struct stay *stay, const struct term *items, struct csn_error *err)
{
	struct stay_call *call = stay_call_find(stay, items[1].integer);
	int r = 0;

	if (!call)
		return out_of_turn(err, "a reply");
	end_silence(stay, call);
	if (frame_check_map(call->verb->result, &items[2], err) < 0)
		return -EBADMSG;
	if (call->exec) /* which it may detach */
		r = stay_exec_reply(stay, call, &items[2], err);
	else if (call->client)
		forward_reply(call, &items[2]);
	if (call->eval)
		stay_eval_reply(call, &items[2]);
	finish(call);
	return r;
}

static int on_failed(struct stay *stay, const struct term *items, struct csn_error *err)
{
	struct stay_call *call = stay_call_find(stay, items[1].integer);
	struct emit emit;

	if (!call)
		return out_of_turn(err, "a failure");
	end_silence(stay, call);
	if (call->exec)
		stay_exec_over(call->exec,
			       term_is_atom(&items[2], "lost") ? END_LOST : END_START_FAILED);
	if (call->eval)
		stay_eval_failed(call, &items[3]);
	if (call->client) {
		emit = channel_frame(&call->client->channel);
		emit_tuple(&emit, 4);
		emit_atom(&emit, "failed");
		emit_int(&emit, call->client_ref);
		emit_term(&emit, &items[2]);
		emit_term(&emit, &items[3]);
		if (channel_send(&call->client->channel, &emit) < 0)
			call->client->is_gone = true;
	}
	finish(call);
	return 0;
}

static int on_data(struct stay *stay, const struct term *items, struct csn_error *err)
{
	struct stay_call *call = stay_call_find(stay, items[1].integer);
	struct channel *from = &stay->run.channel;
	size_t size = channel_bytes(from, &items[3]);
	struct emit emit;

	if (!call)
		return out_of_turn(err, "data");
	from->expects_bulk = !call->exec && !call->eval && size == FRAME_PIECE;
	call->window -= (int64_t)size;
	if (call->window < 0)
		return csn_fail(err, -EBADMSG, "wire", "the agent overran its window");
	if (call->eval) {
		open_window(stay, call, (int64_t)size);
		stay_eval_data(call, items, size);
		return 0;
	}
	if (call->exec)
		size = stay_exec_take(stay, call, term_is_atom(&items[2], "stderr"), size);
	if (size == 0)
		return 0;
	heard(stay, call);
	if (!call->client) { /* nobody reads; what comes is not to stop the command's end */
		open_window(stay, call, (int64_t)size);
		return 0;
	}
	emit = channel_frame(&call->client->channel);
	emit_tuple(&emit, 4);
	emit_atom(&emit, "data");
	emit_int(&emit, call->client_ref);
	emit_term(&emit, &items[2]);
	if (channel_pass(&call->client->channel, &emit, from, &items[3], size) < 0)
		call->client->is_gone = true;
	return 0;
}

static int on_window(struct stay *stay, const struct term *items, struct csn_error *err)
{
	struct stay_call *call = stay_call_find(stay, items[1].integer);
	struct emit emit;

	if (!call)
		return out_of_turn(err, "a window");
	call->input_window += items[2].integer;
	if (!call->client)
		return 0;
	emit = channel_frame(&call->client->channel);
	emit_tuple(&emit, 3);
	emit_atom(&emit, "window");
	emit_int(&emit, call->client_ref);
	emit_int(&emit, items[2].integer);
	if (channel_send(&call->client->channel, &emit) < 0)
		call->client->is_gone = true;
	return 0;
}

/* A wall of somebody's own told what its policy's author believes it. */
static int on_told(struct stay *stay, const struct term *map)
{
	const struct term *ref = term_get(map, "ref");
	struct stay_call *call =
		ref && ref->type == TERM_INT ? stay_call_find(stay, ref->integer) : NULL;

	told_fact(&stay->run, map,
		  call && call->exec ? &call->exec->violations : &stay->run.violations);
	return 0;
}

/* An agent's only fact: what else it saw is not ours to believe. */
static int on_fact(struct stay *stay, const struct term *items, struct csn_error *err)
{
	const struct term *event = term_get(&items[1], "event");

	if (event && event->type == TERM_BINARY)
		return on_told(stay, &items[1]);
	return stay_detached_ended(stay, &items[1], err);
}

static int on_ignored(struct stay *stay, const struct term *items, struct csn_error *err)
{
	(void)stay;
	(void)items;
	(void)err;
	return 0;
}

static int on_gate_call(struct stay *stay, const struct term *items, struct csn_error *err)
{
	if (!stay->run.gates)
		return out_of_turn(err, "a gate's call");
	return gates_call(stay->run.gates, items, err);
}

typedef int (*agent_handler)(struct stay *stay, const struct term *items, struct csn_error *err);

static const agent_handler handlers[] = {
	[FRAME_READY] = on_ready,   [FRAME_REPLY] = on_reply,         [FRAME_FAILED] = on_failed,
	[FRAME_DATA_OUT] = on_data, [FRAME_WINDOW_OUT] = on_window,   [FRAME_FACT] = on_fact,
	[FRAME_BYE] = on_ignored,   [FRAME_GATE_CALL] = on_gate_call,
};

int stay_handle_frame(void *data, int index, const struct term *items, struct csn_error *err)
{
	struct stay *stay = data;

	bool is_forward = stay->run.forwards && forwards_are_meant(index);

	if (!is_forward && (index < 0 || (size_t)index >= ARRAY_SIZE(handlers) || !handlers[index]))
		return out_of_turn(err, "a message of ours");
	if (!stay->is_up && index != FRAME_READY)
		return out_of_turn(err, "a message before it was ready");
	if (is_forward)
		return forwards_frame(stay->run.forwards, index, items, err);
	return handlers[index](stay, items, err);
}
