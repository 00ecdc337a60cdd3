/* Between a client's `eval`, the machine of a session, and the exec of its evaluator. */
#include "monitor/stay_eval.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "base/str.h"
#include "monitor/agent_file.h"

enum { VALUE_BYTES = 3 << 20, IMAGE_PAIRS = 4 };

static struct term text_term(const char *text)
{
	return (struct term){ .type = TERM_BINARY,
			      .bytes = { (const uint8_t *)text, strlen(text) } };
}

static struct term atom_term(const char *name)
{
	struct term term = text_term(name);

	term.type = TERM_ATOM;
	return term;
}

/* ---- the evaluator --------------------------------------------------------------------------- */

/* argv, stdin, image: an exec as a client would ask for it, and one key more. */
static int queue_exec(struct stay_eval *eval, const struct term *image, struct csn_error *err)
{
	const struct term truth = atom_term("true");
	struct term words[8], items[6];
	struct term argv = { .type = TERM_LIST, .items = words };
	struct term map = { .type = TERM_MAP, .items = items, .count = 4 };
	struct stay_call *call = stay_call_open(eval->stay, "exec", eval);
	int r;

	if (!call)
		return csn_fail(err, -EAGAIN, "eval", "too many calls at once; ask again");
	for (; eval->medium->argv[argv.count] && argv.count < ARRAY_SIZE(words); argv.count++)
		words[argv.count] = text_term(eval->medium->argv[argv.count]);
	items[0] = atom_term("argv");
	items[1] = argv;
	items[2] = atom_term("stdin");
	items[3] = truth;
	if (image) {
		items[4] = atom_term("image");
		items[5] = *image;
		map.count += 2;
	}
	r = stay_exec_start(eval->stay, call, &map, err);
	if (r < 0) {
		stay_call_free(call);
		return err->code ? r : csn_fail(err, r, "eval", "cannot start the evaluator");
	}
	eval->process = call;
	return 0;
}

static int start(void *data, struct csn_error *err)
{
	struct stay_eval *eval = data;
	_cleanup_fd_ int fd = -1;
	struct term image = { .type = TERM_BINARY };
	struct stat st;
	void *place;
	int r;

	if (!eval->medium->program)
		return queue_exec(eval, NULL, err);
	r = agent_file_open(eval->medium->program, &fd, err);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || st.st_size <= 0)
		return csn_fail(err, -EIO, "eval", "%s is empty", eval->medium->program);
	place = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (place == MAP_FAILED)
		return csn_fail(err, -errno, "eval", "cannot read %s", eval->medium->program);
	image.bytes.data = place;
	image.bytes.size = (size_t)st.st_size;
	r = queue_exec(eval, &image, err);
	munmap(place, (size_t)st.st_size);
	return r;
}

/* Its call is the agent's to answer yet; nothing of it is the session's. */
static void stop(void *data)
{
	struct stay_eval *eval = data;
	struct stay_call *call = eval->process;

	stay_gate_drop(eval);
	eval->process = NULL;
	if (!call)
		return;
	call->eval = NULL;
	stay_exec_end(eval->stay, call, END_CANCELLED, false);
}

static void pump(struct stay_eval *eval)
{
	struct buf *out = session_out(eval->session);
	struct channel *agent = &eval->stay->run.channel;

	while (eval->process && buf_size(out) > 0 && eval->process->input_window > 0) {
		size_t window = (size_t)eval->process->input_window, size = buf_size(out);
		struct emit emit = channel_frame(agent);

		size = size < window ? size : window;
		size = size < FRAME_PIECE ? size : FRAME_PIECE;
		emit_tuple(&emit, 4);
		emit_atom(&emit, "data");
		emit_int(&emit, eval->process->ref);
		emit_atom(&emit, "stdin");
		emit_binary(&emit, buf_at(out), size);
		if (channel_send(agent, &emit) < 0)
			return;
		eval->process->input_window -= (int64_t)size;
		buf_consume(out, size);
	}
}

/* Of what it writes on standard error nobody hears: it is a program of ours that complains. */
void stay_eval_data(struct stay_call *call, const struct term *items, size_t size)
{
	struct stay_eval *eval = call->eval;
	struct channel *from = &eval->stay->run.channel;
	uint8_t *piece;

	if (call == eval->verb) {
		stay_gate_data(eval, items, size);
		return;
	}
	if (!term_is_atom(&items[2], "stdout"))
		return;
	session_input(eval->session, items[3].bytes.data, items[3].bytes.size, clock_now_ms());
	size -= items[3].bytes.size;
	if (size == 0 || from->flow.size < size)
		return;
	piece = malloc(size);
	if (piece && flow_drain(&from->flow, piece) == 0)
		session_input(eval->session, piece, size, clock_now_ms());
	free(piece);
}

static const char *why_ended(const struct stay_exec *exec)
{
	if (exec && exec->ending == END_MEMORY)
		return "the evaluator ended: the sandbox ran out of memory (limits.memory)";
	if (exec && exec->ending == END_START_FAILED)
		return "the evaluator could not be started behind this wall";
	return "the evaluator ended by itself";
}

void stay_eval_reply(struct stay_call *call, const struct term *map)
{
	struct stay_eval *eval = call->eval;

	call->eval = NULL;
	if (call == eval->verb) {
		eval->verb = NULL;
		stay_gate_reply(eval, map);
		return;
	}
	eval->process = NULL;
	stay_gate_drop(eval);
	session_exited(eval->session, why_ended(call->exec));
}

void stay_eval_failed(struct stay_call *call, const struct term *detail)
{
	struct stay_eval *eval = call->eval;

	call->eval = NULL;
	if (call == eval->verb) {
		eval->verb = NULL;
		stay_gate_failed(eval, detail);
		return;
	}
	eval->process = NULL;
	stay_gate_drop(eval);
	session_exited(eval->session, why_ended(call->exec));
}

/* ---- the client ------------------------------------------------------------------------------ */

static void emit_value(struct emit *emit, const struct term *value)
{
	char *text = value ? eval_json_text(value, VALUE_BYTES) : NULL;

	if (!value)
		return;
	emit_atom(emit, "value");
	emit_text(emit, text ? text : "\"value (too large to be told)\"");
	free(text);
}

static void answer(void *data, const struct session_answer *what)
{
	struct stay_eval *eval = data;
	struct stay_call *call = eval->call;
	struct stay_client *client = call ? call->client : NULL;
	struct emit emit;

	eval->call = NULL;
	if (eval->started_us)
		eval->stay->spent_us += clock_now_us() - eval->started_us;
	eval->started_us = 0;
	if (client) {
		emit = channel_frame(&client->channel);
		emit_tuple(&emit, 3);
		emit_atom(&emit, "reply");
		emit_int(&emit, call->client_ref);
		emit_map(&emit, 3);
		emit_value(&emit, what->value);
		if (!what->value) {
			emit_atom(&emit, "reason");
			emit_binary(&emit, what->reason.bytes.data, what->reason.bytes.size);
		}
		emit_atom(&emit, "output");
		emit_binary(&emit, what->output.bytes.data, what->output.bytes.size);
		emit_atom(&emit, "done");
		emit_bool(&emit, what->is_done);
		if (channel_send(&client->channel, &emit) < 0)
			client->is_gone = true;
		client->heard_ms = eval->stay->heard_ms = clock_now_ms();
	}
	if (call)
		stay_call_free(call);
	if (what->is_done)
		stop(eval); /* nothing more is asked of it */
}

/* ---- sessions -------------------------------------------------------------------------------- */

static struct stay_eval *eval_new(struct stay *stay, const struct medium *medium, const char *name)
{
	struct stay_eval *eval = calloc(1, sizeof *eval);
	const struct session_host host = {
		start, stop, stay_gate_call, answer, stay_gate_env, eval
	};

	if (!eval)
		return NULL;
	eval->stay = stay;
	eval->medium = medium;
	snprintf(eval->name, sizeof eval->name, "%s", name);
	buf_init(&eval->bytes, BUILTIN_READ_BYTES);
	eval->session = session_new(&host);
	if (eval->session)
		return eval;
	free(eval);
	return NULL;
}

static int find(struct stay *stay, const struct medium *medium, const char *name,
		struct stay_eval **ret_eval, struct csn_error *err)
{
	struct stay_eval **free_place = NULL;

	for (size_t i = 0; i < STAY_EVALS; i++) {
		struct stay_eval *eval = stay->evals[i];

		if (!eval && !free_place)
			free_place = &stay->evals[i];
		if (eval && eval->medium == medium && str_is(eval->name, name)) {
			*ret_eval = eval;
			return 0;
		}
	}
	if (!free_place)
		return csn_fail(err, -EAGAIN, "eval",
				"a sandbox has at most %d sessions: start another", STAY_EVALS);
	*free_place = eval_new(stay, medium, name);
	*ret_eval = *free_place;
	return *free_place ? 0 : csn_fail(err, -ENOMEM, "eval", "out of memory");
}

const char *stay_eval_missing(const struct stay *stay)
{
	return run_is_declared(&stay->run) ? "behind this wall, a program of somebody's own, "
					     "there are no code sessions"
					   : NULL;
}

int stay_eval_start(struct stay *stay, struct stay_call *call, const struct term *map,
		    struct csn_error *err)
{
	const struct term *name = term_get(map, "session"), *code = term_get(map, "code");
	const struct term *medium = term_get(map, "medium");
	const struct term *timeout = term_get(map, "timeout_ms");
	const struct medium *row = media_find((const char *)medium->bytes.data, medium->bytes.size);
	struct session_order order = { .ref = call->ref,
				       .code = code->bytes.data,
				       .size = code->bytes.size,
				       .timeout_ms = timeout && timeout->integer
							     ? (uint64_t)timeout->integer
							     : SESSION_TIMEOUT_MS };
	char text[STAY_EVAL_NAME] = "main";
	struct stay_eval *eval;
	uint64_t left_ms;
	int r;

	if (!row)
		return csn_fail(err, -EINVAL, "eval", "there is no such medium; there is: lua");
	if (name)
		snprintf(text, sizeof text, "%.*s", (int)name->bytes.size,
			 (const char *)name->bytes.data);
	r = stay_exec_left(stay, &left_ms, err);
	if (r >= 0)
		r = find(stay, row, text, &eval, err);
	if (r < 0)
		return r;
	if (left_ms < order.timeout_ms)
		order.timeout_ms = left_ms;
	r = session_eval(eval->session, &order, clock_now_ms(), err);
	if (r < 0)
		return r;
	eval->started_us = clock_now_us();
	call->eval_of = eval;
	call->end_at_ms = CLOCK_NEVER; /* the session has the clocks */
	eval->call = call;
	pump(eval);
	return 0;
}

void stay_eval_cancel(struct stay *stay, struct stay_call *call)
{
	struct stay_eval *eval = call->eval_of;

	(void)stay;
	if (eval && eval->call == call)
		session_cancel(eval->session, "the eval was cancelled");
}

uint64_t stay_eval_clock(struct stay *stay, uint64_t now_ms)
{
	uint64_t next = CLOCK_NEVER;

	for (size_t i = 0; i < STAY_EVALS; i++) {
		struct stay_eval *eval = stay->evals[i];
		uint64_t at = eval ? session_clock(eval->session, now_ms) : CLOCK_NEVER;

		if (eval)
			pump(eval);
		next = at < next ? at : next;
	}
	return next;
}

void stay_eval_done(struct stay *stay)
{
	for (size_t i = 0; i < STAY_EVALS; i++) {
		struct stay_eval *eval = stay->evals[i];

		if (!eval)
			continue;
		gates_drop(stay->run.gates, eval);
		session_free(eval->session);
		json_decref(eval->args);
		buf_done(&eval->bytes);
		free(eval);
		stay->evals[i] = NULL;
	}
}
