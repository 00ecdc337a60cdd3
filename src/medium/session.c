/* The machine of session.h: a table of frames, and what each does in the state it may come in. */
#include "medium/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "wire/frame.h"

enum state {
	IDLE = 1,       /* no evaluator */
	STARTING = 2,   /* {init, …} was sent */
	WAITING = 4,    /* it has nothing to do */
	EVALUATING = 8, /* {eval, …} was sent */
	AT_GATE = 16,   /* it waits for an answer of ours */
};

enum {
	SMALL_BYTES = 64 << 10,
	ARENA_BYTES = 32 << 20,
	OUT_BYTES = SESSION_BINDING_BYTES + SESSION_CODE_BYTES + SMALL_BYTES,
	REF_BYTES = 256,
};

struct session {
	struct session_host host;
	enum state state;
	bool is_over; /* `done` took its value */
	bool has_eval;
	int64_t ref;
	unsigned news; /* frames of this eval that asked for nothing */
	uint64_t timeout_ms, start_by_ms, end_by_ms; /* the last two: UINT64_MAX: not now */
	uint64_t now_ms;                             /* of what is handled */
	struct buf code;                             /* of the eval */
	struct buf binding;  /* one term, without its version byte; empty: none yet */
	struct buf gate_ref; /* the same, of the call that waits */
	struct buf in, out;
};

static const struct term nothing = { .type = TERM_BINARY };

static struct term text_term(const char *text)
{
	return (struct term){ .type = TERM_BINARY,
			      .bytes = { (const uint8_t *)text, strlen(text) } };
}

/* ---- the end of an eval, or of an evaluator -------------------------------------------------- */

static void answer(struct session *session, struct session_answer *what)
{
	what->ref = session->ref;
	session->has_eval = false;
	session->start_by_ms = session->end_by_ms = UINT64_MAX;
	buf_clear(&session->code);
	session->host.answer(session->host.data, what);
}

/* Nothing of what it said last counts. */
static void forget_evaluator(struct session *session)
{
	session->state = IDLE;
	buf_clear(&session->in);
	buf_clear(&session->out);
	buf_clear(&session->gate_ref);
}

static void fail(struct session *session, const char *reason)
{
	struct session_answer what = { .reason = text_term(reason), .output = nothing };

	if (session->has_eval)
		answer(session, &what);
}

static void end(struct session *session, const char *reason)
{
	if (session->state != IDLE)
		session->host.stop(session->host.data);
	forget_evaluator(session);
	fail(session, reason);
}

void session_cancel(struct session *session, const char *reason)
{
	if (session->has_eval)
		end(session, reason);
}

void session_exited(struct session *session, const char *reason)
{
	if (session->state == IDLE)
		return;
	forget_evaluator(session);
	fail(session, reason);
}

static int fault(struct csn_error *err, const char *what)
{
	return csn_fail(err, -EBADMSG, "medium", "the evaluator broke the protocol: %s", what);
}

/* ---- to the evaluator ------------------------------------------------------------------------ */

static int send_init(struct session *session)
{
	struct emit emit = emit_begin(&session->out);

	emit_tuple(&emit, 2);
	emit_atom(&emit, "init");
	if (buf_size(&session->binding) > 0)
		emit_raw(&emit, buf_at(&session->binding), buf_size(&session->binding));
	else
		emit_map(&emit, 0);
	return emit_end(&emit);
}

static int send_eval(struct session *session)
{
	struct emit emit = emit_begin(&session->out);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "eval");
	emit_int(&emit, session->ref);
	emit_binary(&emit, buf_at(&session->code), buf_size(&session->code));
	session->host.emit_env(session->host.data, &emit);
	return emit_end(&emit);
}

/* The total begins when the code does: the start has a clock of its own. */
static int begin_eval(struct session *session)
{
	session->state = EVALUATING;
	session->start_by_ms = UINT64_MAX;
	session->end_by_ms = session->now_ms + session->timeout_ms;
	return send_eval(session);
}

static int start(struct session *session, struct csn_error *err)
{
	uint64_t own = session->timeout_ms;
	int r = session->host.start(session->host.data, err);

	if (r < 0)
		return r;
	session->state = STARTING;
	session->start_by_ms = session->now_ms + (own > SESSION_START_MS ? own : SESSION_START_MS);
	return send_init(session);
}

int session_eval(struct session *session, const struct session_order *order, uint64_t now_ms,
		 struct csn_error *err)
{
	int r;

	if (session->is_over)
		return csn_fail(err, -ESTALE, "eval",
				"this session is over: its code called done; use another name");
	if (session->has_eval)
		return csn_fail(err, -EBUSY, "eval",
				"an eval of this session runs: they go one at a time");
	if (order->size > SESSION_CODE_BYTES)
		return csn_fail(err, -E2BIG, "eval", "the code is too long: at most %d bytes",
				SESSION_CODE_BYTES);
	if (order->size > 0 && buf_add(&session->code, order->code, order->size) < 0)
		return csn_fail(err, -ENOMEM, "eval", "out of memory");
	session->now_ms = now_ms;
	session->ref = order->ref;
	session->has_eval = true;
	session->news = 0;
	session->timeout_ms = order->timeout_ms ? order->timeout_ms : SESSION_TIMEOUT_MS;
	r = session->state == IDLE ? start(session, err) : begin_eval(session);
	if (r >= 0)
		return 0;
	if (session->state != IDLE)
		session->host.stop(session->host.data);
	forget_evaluator(session);
	session->has_eval = false;
	buf_clear(&session->code);
	return err->code ? r : csn_fail(err, r, "eval", "out of memory");
}

/* ---- from the evaluator ---------------------------------------------------------------------- */

/* A term as it will be sent again; a failure leaves it empty. */
static int keep(struct buf *buf, const struct term *term)
{
	struct emit emit = { .buf = buf };

	buf_clear(buf);
	emit_term(&emit, term);
	if (emit.error)
		buf_clear(buf);
	return emit.error;
}

static int on_ready(struct session *session, const struct term *items, struct csn_error *err)
{
	(void)items;
	return begin_eval(session) < 0 ? csn_fail(err, -ENOMEM, "medium", "out of memory") : 0;
}

/* What it says is a value, mostly a text. */
static int on_init_error(struct session *session, const struct term *items, struct csn_error *err)
{
	char text[160], shown[160];

	(void)session;
	if (items[1].type == TERM_BINARY)
		snprintf(text, sizeof text, "%.*s",
			 (int)(items[1].bytes.size < 150 ? items[1].bytes.size : 150),
			 (const char *)items[1].bytes.data);
	else
		term_print(&items[1], text, sizeof text);
	str_escape(text, false, shown, sizeof shown);
	return csn_fail(err, -EIO, "medium", "the evaluator could not begin: %s", shown);
}

static int on_gate_call(struct session *session, const struct term *items, struct csn_error *err)
{
	if (items[2].type != TERM_BINARY && items[2].type != TERM_ATOM)
		return fault(err, "a gate's name is no text");
	if (keep(&session->gate_ref, &items[1]) < 0)
		return fault(err, "the Ref of a gate's call is too long");
	session->state = AT_GATE;
	session->host.gate(session->host.data, &items[2], &items[3]);
	return 0;
}

static void emit_observation(struct emit *emit, const struct term *gate, const struct term *result,
			     bool is_error)
{
	emit_map(emit, 3);
	emit_atom(emit, "gate");
	emit_term(emit, gate);
	emit_atom(emit, "result");
	emit_term(emit, result);
	emit_atom(emit, "is_error");
	emit_bool(emit, is_error);
}

static int on_compile(struct session *session, const struct term *items, struct csn_error *err)
{
	const struct term gate = text_term("compile_and_load");
	const struct term why = text_term("unknown gate: compile_and_load");
	struct emit emit = emit_begin(&session->out);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "compile_denied");
	emit_term(&emit, &items[1]);
	emit_observation(&emit, &gate, &why, true);
	return emit_end(&emit) < 0 ? fault(err, "too many requests at once") : 0;
}

static int on_api(struct session *session, const struct term *items, struct csn_error *err)
{
	struct emit emit = emit_begin(&session->out);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "api_result");
	emit_term(&emit, &items[1]);
	emit_tuple(&emit, 2);
	emit_atom(&emit, "error");
	emit_text(&emit, "this session has no children");
	return emit_end(&emit) < 0 ? fault(err, "too many requests at once") : 0;
}

/* Whoever floods is stopped here, not by the clock alone: each costs this side a decode. */
static int on_news(struct session *session, const struct term *items, struct csn_error *err)
{
	(void)items;
	return ++session->news > SESSION_NEWS ? fault(err, "too much that asks for nothing") : 0;
}

static bool is_own_ref(const struct session *session, const struct term *ref)
{
	return ref->type == TERM_INT && ref->integer == session->ref;
}

/* Of both answers: {_, Ref, Binding, …, Output}. A binding that is none is no binding. */
static int check_answer(struct session *session, const struct term *items,
			const struct term *output, struct csn_error *err)
{
	if (!is_own_ref(session, &items[1]))
		return fault(err, "an answer to another Ref");
	if (output->type != TERM_BINARY || output->bytes.size > SESSION_OUTPUT_BYTES)
		return fault(err, "an output that is none, or too long");
	if (items[2].type != TERM_MAP && !(items[2].type == TERM_LIST))
		return fault(err, "a binding that is none");
	if (keep(&session->binding, &items[2]) < 0)
		return fault(err, "a binding that is too large");
	return 0;
}

static int on_result(struct session *session, const struct term *items, struct csn_error *err)
{
	bool is_done = term_is_atom(&items[4], "true");
	struct session_answer what = {
		.is_done = is_done, .value = &items[3], .reason = nothing, .output = items[5]
	};

	if (!is_done && !term_is_atom(&items[4], "false"))
		return fault(err, "an answer that is neither over nor not");
	if (check_answer(session, items, &items[5], err) < 0)
		return -EBADMSG;
	session->state = WAITING;
	session->is_over = is_done;
	answer(session, &what);
	return 0;
}

static int on_error(struct session *session, const struct term *items, struct csn_error *err)
{
	struct session_answer what = { .reason = items[3], .output = items[4] };
	char text[512];

	if (check_answer(session, items, &items[4], err) < 0)
		return -EBADMSG;
	if (what.reason.type != TERM_BINARY) {
		term_print(&items[3], text, sizeof text);
		what.reason = text_term(text);
	}
	session->state = WAITING;
	answer(session, &what);
	return 0;
}

static const struct child_frame {
	const char *name;
	unsigned arity; /* with its name; 0: the atom alone */
	unsigned states;
	size_t max_bytes;
	int (*handle)(struct session *session, const struct term *items, struct csn_error *err);
} child_frames[] = {
	{ "ready", 0, STARTING, SMALL_BYTES, on_ready },
	{ "ready", 2, STARTING, SMALL_BYTES, on_ready },
	{ "init_error", 2, STARTING, SMALL_BYTES, on_init_error },
	{ "gate_call", 4, EVALUATING, SESSION_GATE_BYTES + SMALL_BYTES, on_gate_call },
	{ "compile_request", 3, EVALUATING, SESSION_GATE_BYTES + SMALL_BYTES, on_compile },
	{ "api_call", 4, EVALUATING, SESSION_GATE_BYTES + SMALL_BYTES, on_api },
	{ "gate_observation", 2, STARTING | EVALUATING, SMALL_BYTES, on_news },
	{ "telemetry", 4, STARTING | EVALUATING, SMALL_BYTES, on_news },
	{ "eval_result", 6, EVALUATING, FRAME_MAX, on_result },
	{ "eval_error", 5, EVALUATING, FRAME_MAX, on_error },
};

/* The atom at `at` of a payload: its name. False: there is none. */
static bool atom_at(const uint8_t *payload, size_t size, size_t at, struct term *ret_name)
{
	bool is_small = size > at && (payload[at] == 115 || payload[at] == 119);
	size_t head = is_small ? 2 : 3, length;

	if (size < at + head || (!is_small && payload[at] != 100 && payload[at] != 118))
		return false;
	length = is_small ? payload[at + 1] : (size_t)payload[at + 1] << 8 | payload[at + 2];
	if (size - at - head < length)
		return false;
	*ret_name = (struct term){ .type = TERM_ATOM, .bytes = { payload + at + head, length } };
	return true;
}

/* Which frame it is, before anything is decoded. */
static const struct child_frame *sniff(const struct session *session, const uint8_t *payload,
				       size_t size, struct csn_error *err)
{
	bool is_tuple = size > 3 && payload[1] == 104;
	unsigned arity = is_tuple ? payload[2] : 0;
	struct term name;

	if (size < 3 || payload[0] != 131 || !atom_at(payload, size, is_tuple ? 3 : 1, &name)) {
		fault(err, "a frame that is none");
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(child_frames); i++) {
		const struct child_frame *frame = &child_frames[i];

		if (frame->arity != arity || !term_is_atom(&name, frame->name))
			continue;
		if (frame->states & session->state && size <= frame->max_bytes)
			return frame;
		fault(err,
		      size > frame->max_bytes ? "a frame that is too long" : "a frame out of turn");
		return NULL;
	}
	fault(err, "a frame of an unknown kind");
	return NULL;
}

static int handle(struct session *session, const uint8_t *payload, size_t size,
		  struct csn_error *err)
{
	const struct child_frame *frame = sniff(session, payload, size, err);
	_cleanup_arena_ struct arena arena;
	struct csn_error why = { 0 };
	struct term term;

	arena_init(&arena, ARENA_BYTES);
	if (!frame)
		return -EBADMSG;
	if (term_decode(&arena, (struct term_input){ payload, size, true }, &term_limits, &term,
			&why) < 0)
		return fault(err, why.text);
	if (frame->arity && (term.type != TERM_TUPLE || term.count != frame->arity))
		return fault(err, "a frame that is none");
	return frame->handle(session, frame->arity ? term.items : NULL, err);
}

/* An answer may have come meanwhile, and another eval begun: what follows is of the same stream. */
void session_input(struct session *session, const void *bytes, size_t size, uint64_t now_ms)
{
	struct csn_error err = { 0 };
	const uint8_t *payload;
	size_t length;
	int r;

	session->now_ms = now_ms;
	if (session->state == IDLE)
		return;
	r = buf_add(&session->in, bytes, size);
	if (r < 0)
		fault(&err, "more than was asked for");
	while (r >= 0) {
		r = frame_peek(&session->in, FRAME_MAX, &payload, &length, &err);
		if (r == 0)
			return;
		if (r > 0)
			r = handle(session, payload, length, &err);
		if (session->state == IDLE) /* stopped by its host meanwhile */
			return;
		if (r >= 0)
			buf_consume(&session->in, FRAME_HEAD + length);
	}
	end(session, err.text);
}

/* ---- gates, clocks, life --------------------------------------------------------------------- */

void session_observe(struct session *session, const char *gate, const struct term *result,
		     bool is_error)
{
	struct term name = text_term(gate);
	struct emit emit;

	if (session->state != AT_GATE)
		return; /* its evaluator is gone */
	emit = emit_begin(&session->out);
	emit_tuple(&emit, 3);
	emit_atom(&emit, "gate_result");
	emit_raw(&emit, buf_at(&session->gate_ref), buf_size(&session->gate_ref));
	emit_observation(&emit, &name, result, is_error);
	session->state = EVALUATING;
	if (emit_end(&emit) < 0)
		end(session, "a gate's result did not fit into a frame");
}

uint64_t session_clock(struct session *session, uint64_t now_ms)
{
	if (session->end_by_ms <= now_ms)
		end(session, SESSION_TIMED_OUT);
	else if (session->start_by_ms <= now_ms)
		end(session, "the evaluator was not ready in time");
	else
		return session->end_by_ms < session->start_by_ms ? session->end_by_ms
								 : session->start_by_ms;
	return UINT64_MAX;
}

struct buf *session_out(struct session *session)
{
	return &session->out;
}

bool session_is_busy(const struct session *session)
{
	return session->has_eval;
}

bool session_is_up(const struct session *session)
{
	return session->state != IDLE;
}

struct session *session_new(const struct session_host *host)
{
	struct session *session = calloc(1, sizeof *session);

	if (!session)
		return NULL;
	session->host = *host;
	session->state = IDLE;
	session->start_by_ms = session->end_by_ms = UINT64_MAX;
	buf_init(&session->code, SESSION_CODE_BYTES);
	buf_init(&session->binding, SESSION_BINDING_BYTES);
	buf_init(&session->gate_ref, REF_BYTES);
	buf_init(&session->in, FRAME_MAX + FRAME_HEAD + SMALL_BYTES);
	buf_init(&session->out, OUT_BYTES);
	return session;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	buf_done(&session->code);
	buf_done(&session->binding);
	buf_done(&session->gate_ref);
	buf_done(&session->in);
	buf_done(&session->out);
	free(session);
}
