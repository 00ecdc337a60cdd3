/* Calls of gates, from the agent's frame to the record; see gates.h. */
#include "monitor/gates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "monitor/gate_run.h"
#include "monitor/gate_schema.h"
#include "monitor/run_private.h"

enum { MINUTE_MS = 60000, REFUSALS = 60, SHOWN_NAME = 80 };

/* So many a minute, and so many at once: one that was not used in a minute has them all. */
struct rate {
	uint64_t most;
	uint64_t credit_ms; /* of MINUTE_MS; one costs MINUTE_MS / most */
	uint64_t at_ms;
};

struct gate {
	const struct plan_gate *plan;
	json_t *schema;
	struct rate rate;
};

struct gate_call {
	struct gate *gate;        /* NULL: free */
	int64_t ref;              /* the agent's */
	struct gates_asker asker; /* a session here; `answer` NULL: the agent */
	int64_t id;               /* on record */
	json_t *args;
	char *text; /* the same, for its program */
	struct gate_order order;
	struct work *work;
	bool is_told;       /* its worker has to end yet */
	bool is_asked;      /* of the host, who may answer until then */
	uint64_t end_at_ms; /* the same */
	uint64_t started_us;
};

struct gates {
	struct gates_setup setup;
	struct channel *host; /* NULL: nobody answers functions */
	void (*forget)(void *data);
	void *forget_data;
	struct gate *gates;
	size_t count;
	struct rate refusals;
	uint64_t untold; /* refusals that are not on record */
	int64_t last_id;
	struct gate_call calls[GATES_CALLS];
};

/* ---- how often --------------------------------------------------------------------------------
 */

static struct rate new_rate(uint64_t most)
{
	return (struct rate){ .most = most, .credit_ms = MINUTE_MS, .at_ms = clock_now_ms() };
}

static bool take(struct rate *rate)
{
	uint64_t now_ms = clock_now_ms(), price = (MINUTE_MS + rate->most - 1) / rate->most;

	rate->credit_ms += now_ms - rate->at_ms;
	rate->at_ms = now_ms;
	if (rate->credit_ms > MINUTE_MS)
		rate->credit_ms = MINUTE_MS;
	if (rate->credit_ms < price)
		return false;
	rate->credit_ms -= price;
	return true;
}

void gates_on_fork(struct gates *gates, void (*forget)(void *data), void *data)
{
	if (!gates)
		return;
	gates->forget = forget;
	gates->forget_data = data;
}

static void call_free(struct gate_call *call)
{
	work_free(call->work);
	json_decref(call->args);
	free(call->text);
	*call = (struct gate_call){ 0 };
}

/* ---- answers and the record ------------------------------------------------------------------ */

static void tell(struct gates *gates, int64_t ref, const struct term *result, bool is_error)
{
	struct emit emit = channel_frame(gates->setup.agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "gate_result");
	emit_int(&emit, ref);
	emit_map(&emit, 2);
	emit_atom(&emit, "result");
	emit_binary(&emit, result->bytes.data, result->bytes.size);
	emit_atom(&emit, "is_error");
	emit_bool(&emit, is_error);
	/* A stream that takes no more ends the sandbox elsewhere. */
	channel_send(gates->setup.agent, &emit);
}

static struct term text_term(const char *text)
{
	return (struct term){ .type = TERM_BINARY,
			      .bytes = { (const uint8_t *)text, strlen(text) } };
}

void gates_record(const struct run *run, struct chain *chain, const struct gates_note *note)
{
	const struct redactor *redactor = run->redactor;
	json_t *args = note->args ? redact_json(redactor, note->args) : json_null();
	json_t *event =
		json_pack("{s:s, s:I, s:o?, s:b, s:f}", "gate", note->name, "call_id",
			  (json_int_t)note->id, "args", args, "is_error", note->is_error,
			  "duration_ms", (double)(clock_now_us() - note->started_us) / 1000.0);

	if (event && note->is_error && note->reason)
		json_object_set_new(event, "reason",
				    redact_text(redactor, note->reason->bytes.data,
						note->reason->bytes.size < 512
							? note->reason->bytes.size
							: 512));
	chain_add(chain, EVENT_GATE_CALLED, event);
}

static void record(struct gates *gates, const struct gate_call *call, const struct term *reason,
		   bool is_error)
{
	bool is_kept = !call->gate->plan->is_ephemeral;

	gates_record(gates->setup.run, gates->setup.chain,
		     &(struct gates_note){ call->gate->plan->name, call->id,
					   is_kept ? call->args : NULL, is_error,
					   is_kept ? reason : NULL, call->started_us });
}

/* Who worked on it is let go once he has nothing more to say. */
static void finish(struct gates *gates, struct gate_call *call, const struct term *result,
		   bool is_error)
{
	record(gates, call, result, is_error);
	call->is_told = true;
	if (call->asker.answer)
		call->asker.answer(call->asker.data, call->asker.ref, result, is_error);
	else
		tell(gates, call->ref, result, is_error);
	if (!call->work)
		call_free(call);
}

static void fail(struct gates *gates, struct gate_call *call, const char *sentence)
{
	struct term text = text_term(sentence);

	finish(gates, call, &text, true);
}

/* Nothing was called. What is on record of it is the first so many of a minute. */
static void refuse(struct gates *gates, const struct term *items, const struct csn_error *why)
{
	struct term text = text_term(why->text);
	json_t *name;

	tell(gates, items[1].integer, &text, true);
	if (!take(&gates->refusals)) {
		gates->untold++;
		return;
	}
	name = redact_text(gates->setup.run->redactor, items[2].bytes.data,
			   items[2].bytes.size < SHOWN_NAME ? items[2].bytes.size : SHOWN_NAME);
	chain_add(gates->setup.chain, EVENT_GATE_CALLED,
		  json_pack("{s:o?, s:n, s:b, s:s, s:I}", "gate", name, "args", "is_error", 1,
			    "reason", why->text, "others", (json_int_t)gates->untold));
	gates->untold = 0;
}

/* ---- from the start to the end -----------------------------------------------------------------
 */

void gates_free(struct gates *gates)
{
	if (!gates)
		return;
	/* All at once, and then each is waited for. */
	for (size_t i = 0; i < GATES_CALLS; i++)
		if (gates->calls[i].work)
			work_kill(gates->calls[i].work);
	for (size_t i = 0; i < GATES_CALLS; i++) {
		struct term reason = text_term("the sandbox ended before it did");

		if (gates->calls[i].gate && !gates->calls[i].is_told)
			record(gates, &gates->calls[i], &reason, true);
		call_free(&gates->calls[i]);
	}
	for (size_t i = 0; i < gates->count; i++)
		json_decref(gates->gates[i].schema);
	free(gates->gates);
	free(gates);
}

void gates_forget(struct gates *gates)
{
	for (size_t i = 0; gates && i < GATES_CALLS; i++)
		if (gates->calls[i].work)
			fd_close(gates->calls[i].work->channel.fd);
}

static int read_schema(struct gate *gate, struct csn_error *err)
{
	struct csn_error why = { 0 };
	int r = 0;

	if (gate->plan->schema)
		r = gate_schema_read(gate->plan->schema, &gate->schema, &why);
	return r < 0 ? csn_fail(err, r, "gates", "gate %s: %s", gate->plan->name, why.text) : 0;
}

static void forget_run(void *data)
{
	const struct run *run = data;

	gates_forget(run->gates);
	fd_close(run->wall.stream);
}

int gates_new(const struct gates_setup *setup, struct gates **ret_gates, struct csn_error *err)
{
	const struct plan *plan = setup->run->plan;
	struct gates *gates;
	int r = 0;

	*ret_gates = NULL;
	if (plan->gate_count == 0)
		return 0;
	gates = calloc(1, sizeof *gates);
	if (gates)
		gates->gates = calloc(plan->gate_count, sizeof *gates->gates);
	if (!gates || !gates->gates) {
		free(gates);
		return csn_fail(err, -ENOMEM, "gates", "out of memory");
	}
	gates->setup = *setup;
	gates->refusals = new_rate(REFUSALS);
	gates_on_fork(gates, forget_run, (void *)(uintptr_t)setup->run);
	for (; r >= 0 && gates->count < plan->gate_count; gates->count++) {
		struct gate *gate = &gates->gates[gates->count];

		gate->plan = &plan->gates[gates->count];
		gate->rate = new_rate(gate->plan->rate);
		r = read_schema(gate, err);
	}
	if (r < 0)
		gates_free(gates);
	else
		*ret_gates = gates;
	return r;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct gate *find_gate(struct gates *gates, const struct term *name)
{
	for (size_t i = 0; i < gates->count; i++) {
		const char *own = gates->gates[i].plan->name;

		if (strlen(own) == name->bytes.size &&
		    memcmp(own, name->bytes.data, name->bytes.size) == 0)
			return &gates->gates[i];
	}
	return NULL;
}

static struct gate_call *find_free(struct gates *gates)
{
	for (size_t i = 0; i < GATES_CALLS; i++)
		if (!gates->calls[i].gate)
			return &gates->calls[i];
	return NULL;
}

static int unknown(const struct term *name, struct csn_error *err)
{
	char text[SHOWN_NAME], shown[2 * SHOWN_NAME];

	snprintf(text, sizeof text, "%.*s", (int)name->bytes.size, (const char *)name->bytes.data);
	str_escape(text, false, shown, sizeof shown);
	return csn_fail(err, -ENOENT, "gates", "unknown gate: %s", shown);
}

static int read_args(const struct gate *gate, const struct term *args, json_t **ret_args,
		     struct csn_error *err)
{
	json_error_t why;
	json_t *value = json_loadb((const char *)args->bytes.data, args->bytes.size,
				   JSON_REJECT_DUPLICATES, &why);
	char shown[160];
	int r;

	if (!value) {
		str_escape(why.text, false, shown, sizeof shown);
		return csn_fail(err, -EINVAL, "gates", "the arguments are no JSON: %s", shown);
	}
	r = json_is_object(value)
		    ? gate_schema_check(gate->schema, value, err)
		    : csn_fail(err, -EINVAL, "gates",
			       "the arguments are no JSON object, such as {\"name\": \"value\"}");
	if (r < 0)
		json_decref(value);
	else
		*ret_args = value;
	return r;
}

/* May it be called now? */
static int admit(struct gates *gates, struct gate *gate, struct csn_error *err)
{
	if (!find_free(gates))
		return csn_fail(err, -EAGAIN, "gates",
				"too many gate calls at once: at most %d; ask again", GATES_CALLS);
	if (!take(&gate->rate))
		return csn_fail(err, -EAGAIN, "gates",
				"the gate was called too often: %llu times a minute; ask later",
				(unsigned long long)gate->plan->rate);
	return 0;
}

static void forget(void *data)
{
	struct gates *gates = ((struct gate_order *)data)->gates;

	gates->forget(gates->forget_data);
}

static int start(struct gates *gates, struct gate_call *call, struct csn_error *err)
{
	static const struct term nothing = { .type = TERM_MAP };
	struct work_order order = { .run = gates->setup.run,
				    .ref = call->ref,
				    .work = gate_run,
				    .map = &nothing,
				    .forget = forget,
				    .data = &call->order };

	for (size_t i = 0; i < GATES_CALLS; i++)
		order.others += gates->calls[i].work != NULL;
	call->text = json_dumps(call->args, JSON_COMPACT);
	if (!call->text)
		return csn_fail(err, -ENOMEM, "gates", "out of memory");
	call->order =
		(struct gate_order){ call->gate->plan, call->text, strlen(call->text), gates };
	return work_start(&order, &call->work, err);
}

/* Our own number for it: who answers late answers nothing else. */
static bool ask_host(struct gates *gates, struct gate_call *call)
{
	struct emit emit;
	char *text;
	int r;

	if (!gates->host || !call->gate->plan->is_answered)
		return false;
	text = json_dumps(call->args, JSON_COMPACT);
	if (!text)
		return false;
	emit = channel_frame(gates->host);
	emit_tuple(&emit, 4);
	emit_atom(&emit, "gate_call");
	emit_int(&emit, call->id);
	emit_text(&emit, call->gate->plan->name);
	emit_text(&emit, text);
	free(text);
	r = channel_send(gates->host, &emit);
	call->is_asked = r >= 0;
	call->end_at_ms = clock_now_ms() + call->gate->plan->timeout_ms;
	return call->is_asked;
}

static void begin(struct gates *gates, struct gate_call *call)
{
	struct csn_error err = { 0 };

	if (!call->gate->plan->argv && ask_host(gates, call))
		return;
	if (!call->gate->plan->argv)
		fail(gates, call,
		     "nobody answers this gate: it is a function of the program that opens the "
		     "sandbox");
	else if (start(gates, call, &err) < 0)
		fail(gates, call, err.text);
}

static bool is_under_way(const struct gates *gates, int64_t ref)
{
	for (size_t i = 0; i < GATES_CALLS; i++)
		if (gates->calls[i].gate && !gates->calls[i].is_told &&
		    !gates->calls[i].asker.answer && gates->calls[i].ref == ref)
			return true;
	return false;
}

int gates_call(struct gates *gates, const struct term *items, struct csn_error *err)
{
	struct gate *gate = find_gate(gates, &items[2]);
	struct csn_error why = { 0 };
	json_t *args = NULL;
	struct gate_call *call;
	int r;

	if (is_under_way(gates, items[1].integer))
		return csn_fail(err, -EBADMSG, "gates",
				"the agent began a gate's call twice: this is not our agent");
	r = gate ? read_args(gate, &items[3], &args, &why) : unknown(&items[2], &why);

	if (r >= 0)
		r = admit(gates, gate, &why);
	if (r < 0) {
		json_decref(args);
		refuse(gates, items, &why);
		return 0;
	}
	call = find_free(gates);
	*call = (struct gate_call){ .ref = items[1].integer,
				    .id = ++gates->last_id,
				    .gate = gate,
				    .args = args,
				    .started_us = clock_now_us() };
	begin(gates, call);
	return 0;
}

/* Its arguments are held by the call from here on. */
static int admit_asker(struct gates *gates, struct gate *gate, const struct gates_asker *asker,
		       json_t *args, struct csn_error *why)
{
	int r = gate_schema_check(gate->schema, args, why);
	struct gate_call *call;

	if (r >= 0)
		r = admit(gates, gate, why);
	if (r < 0)
		return r;
	call = find_free(gates);
	*call = (struct gate_call){ .asker = *asker,
				    .id = ++gates->last_id,
				    .gate = gate,
				    .args = json_incref(args),
				    .started_us = clock_now_us() };
	call->ref = call->id;
	begin(gates, call);
	return 0;
}

void gates_ask(struct gates *gates, const struct gates_asker *asker, const char *name, json_t *args)
{
	struct term text = text_term(name), reason;
	struct gate *gate = gates ? find_gate(gates, &text) : NULL;
	struct csn_error why = { 0 };
	int r = gate ? admit_asker(gates, gate, asker, args, &why) : unknown(&text, &why);

	json_decref(args);
	if (r >= 0)
		return;
	reason = text_term(why.text);
	asker->answer(asker->data, asker->ref, &reason, true);
}

static void answer_nobody(void *data, int64_t ref, const struct term *result, bool is_error)
{
	(void)data;
	(void)ref;
	(void)result;
	(void)is_error;
}

void gates_drop(struct gates *gates, const void *data)
{
	for (size_t i = 0; gates && i < GATES_CALLS; i++)
		if (gates->calls[i].asker.data == data)
			gates->calls[i].asker.answer = answer_nobody;
}

/* ---- workers --------------------------------------------------------------------------------- */

size_t gates_watch(const struct gates *gates, struct pollfd *fds)
{
	size_t count = 0;

	for (size_t i = 0; gates && i < GATES_CALLS; i++)
		if (gates->calls[i].work)
			fds[count++] =
				(struct pollfd){ gates->calls[i].work->channel.fd, POLLIN, 0 };
	return count;
}

struct hearing {
	struct gates *gates;
	struct gate_call *call;
};

/* A worker is ours, and read what a program of the host's wrote: its one frame is bounded again. */
static int on_frame(void *data, int index, const struct term *items, struct csn_error *err)
{
	struct hearing *hearing = data;
	struct gate_call *call = hearing->call;
	const struct term *result;

	if (call->is_told)
		return csn_fail(err, -EBADMSG, "gates", "a message after the answer");
	if (index == FRAME_FAILED && items[1].integer == call->ref) {
		finish(hearing->gates, call, &items[3], true);
		return 0;
	}
	if (index != FRAME_REPLY || items[1].integer != call->ref)
		return csn_fail(err, -EBADMSG, "gates", "a message out of turn");
	result = term_get(&items[2], "result");
	if (!result || result->type != TERM_BINARY || result->bytes.size > FRAME_GATE_RESULT_BYTES)
		return csn_fail(err, -EBADMSG, "gates", "an answer that is none");
	finish(hearing->gates, call, result, term_is_atom(term_get(&items[2], "is_error"), "true"));
	return 0;
}

void gates_ready(struct gates *gates, int fd)
{
	for (size_t i = 0; gates && i < GATES_CALLS; i++) {
		struct gate_call *call = &gates->calls[i];
		struct hearing hearing = { gates, call };
		struct csn_error err;

		if (!call->work || call->work->channel.fd != fd)
			continue;
		if (channel_read(&call->work->channel, on_frame, &hearing, &err) >= 0 &&
		    !call->work->channel.is_ended)
			return;
		if (!call->is_told)
			fail(gates, call, "the process that called it died");
		call_free(call);
		return;
	}
}

/* ---- who opened the sandbox --------------------------------------------------------------------
 */

void gates_on_host(struct gates *gates, struct channel *host)
{
	if (gates)
		gates->host = host;
}

void gates_answered(struct gates *gates, const struct term *items)
{
	for (size_t i = 0; gates && i < GATES_CALLS; i++) {
		struct gate_call *call = &gates->calls[i];

		if (!call->is_asked || call->id != items[1].integer)
			continue;
		finish(gates, call, term_get(&items[2], "result"),
		       term_is_atom(term_get(&items[2], "is_error"), "true"));
		return;
	}
}

uint64_t gates_clock(struct gates *gates, uint64_t now_ms)
{
	uint64_t next = CLOCK_NEVER;

	for (size_t i = 0; gates && i < GATES_CALLS; i++) {
		struct gate_call *call = &gates->calls[i];

		if (!call->is_asked)
			continue;
		if (call->end_at_ms <= now_ms)
			fail(gates, call, "the gate took too long");
		else if (call->end_at_ms < next)
			next = call->end_at_ms;
	}
	return next;
}
