/*
 * The gates of a code session. Files are the agent's to open: a path is resolved inside the wall,
 * beneath the workspace, when it is opened (docs/protocol.md), so that no link of the code's leads
 * out of it, and what the policy hides is hidden here too. What the policy names under `gates` is
 * asked of gates.c, as for a command.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/gate_schema.h"
#include "monitor/stay_eval.h"

enum { MINUTE_MS = 60000 };

static bool has_root(const struct stay *stay)
{
	return stay->run.plan->workspace.host != NULL;
}

void stay_gate_env(void *data, struct emit *emit)
{
	const struct stay_eval *eval = data;
	const struct plan *plan = eval->stay->run.plan;
	uint32_t count = (uint32_t)plan->gate_count;

	for (size_t i = 0; i < builtin_count; i++)
		count += !builtins[i].needs_root || has_root(eval->stay);
	emit_map(emit, 2);
	emit_atom(emit, "sandbox");
	emit_atom(emit, "port");
	emit_atom(emit, "gates");
	emit_list(emit, count);
	for (size_t i = 0; i < builtin_count; i++)
		if (!builtins[i].needs_root || has_root(eval->stay))
			emit_text(emit, builtins[i].name);
	for (size_t i = 0; i < plan->gate_count; i++)
		emit_text(emit, plan->gates[i].name);
	emit_nil(emit);
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct term text_term(const char *text)
{
	return (struct term){ .type = TERM_BINARY,
			      .bytes = { (const uint8_t *)text, strlen(text) } };
}

/* A gate of ours; those of the policy are on record already. */
static void observe(struct stay_eval *eval, const struct term *result, bool is_error)
{
	struct run *run = &eval->stay->run;

	gates_record(run, &run->record.chain,
		     &(struct gates_note){ eval->gate, eval->gate_id, eval->args, is_error,
					   is_error ? result : NULL, eval->gate_started_us });
	json_decref(eval->args);
	eval->args = NULL;
	eval->builtin = NULL;
	session_observe(eval->session, eval->gate, result, is_error);
}

static void refuse(struct stay_eval *eval, const char *why)
{
	struct term text = text_term(why);

	observe(eval, &text, true);
}

static void answered(void *data, int64_t ref, const struct term *result, bool is_error)
{
	struct stay_eval *eval = data;

	if (ref == eval->gate_id) /* else of an eval that is over */
		session_observe(eval->session, eval->gate, result, is_error);
}

void stay_gate_drop(struct stay_eval *eval)
{
	gates_drop(eval->stay->run.gates, eval);
	if (eval->verb) {
		eval->verb->eval = NULL;
		stay_call_cancel(eval->stay, eval->verb);
	}
	eval->verb = NULL;
	eval->builtin = NULL;
	json_decref(eval->args);
	eval->args = NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The path as the agent takes it, which keeps a relative one in the workspace. */
static const char *path_of(const struct stay_eval *eval)
{
	const char *path = json_string_value(json_object_get(eval->args, "path"));
	const char *root = eval->stay->run.plan->workspace.at;

	if (!path)
		return ".";
	if (path[0] != '/')
		return path;
	if (!path_is_beneath(path, root))
		return NULL;
	path = path_tail(path, root);
	return *path ? path : ".";
}

static void emit_call(struct emit *emit, const struct stay_call *call, uint32_t pairs)
{
	emit_tuple(emit, 4);
	emit_atom(emit, "call");
	emit_int(emit, call->ref);
	emit_atom(emit, call->verb->name);
	emit_map(emit, pairs);
}

static void ask_agent(struct stay_eval *eval, const char *verb, const char *path)
{
	struct channel *agent = &eval->stay->run.channel;
	struct stay_call *call = stay_call_open(eval->stay, verb, eval);
	const char *pattern = json_string_value(json_object_get(eval->args, "pattern"));
	bool is_read = str_is(verb, "read");
	struct emit emit;

	if (!call) {
		refuse(eval, "too many calls at once; ask again");
		return;
	}
	call->end_at_ms = clock_now_ms() + STAY_VERB_MS;
	emit = channel_frame(agent);
	emit_call(&emit, call, 1 + is_read + (pattern ? 2 : 0));
	emit_atom(&emit, "path");
	emit_text(&emit, path);
	if (is_read) {
		emit_atom(&emit, "length");
		emit_int(&emit, BUILTIN_READ_BYTES);
	}
	if (pattern) {
		emit_atom(&emit, "pattern");
		emit_text(&emit, pattern);
		emit_atom(&emit, "limit");
		emit_int(&emit, BUILTIN_HITS);
	}
	if (channel_send(agent, &emit) < 0) {
		stay_call_free(call);
		refuse(eval, "the agent has much to read yet; ask again");
		return;
	}
	buf_clear(&eval->bytes);
	eval->verb = call;
}

static void ask_files(struct stay_eval *eval)
{
	static const char *const verbs[] = {
		[BUILTIN_LIST_DIR] = "list", [BUILTIN_READ_FILE] = "read", [BUILTIN_SEARCH] = "grep"
	};
	const char *path = path_of(eval);
	char why[160];

	if (path) {
		ask_agent(eval, verbs[eval->builtin->id], path);
		return;
	}
	snprintf(why, sizeof why, "the path is outside of %s, where this gate begins",
		 eval->stay->run.plan->workspace.at);
	refuse(eval, why);
}

void stay_gate_data(struct stay_eval *eval, const struct term *items, size_t size)
{
	struct channel *from = &eval->stay->run.channel;
	size_t here = items[3].bytes.size < size ? items[3].bytes.size : size;
	uint8_t *rest;

	if (buf_add(&eval->bytes, items[3].bytes.data, here) < 0 || here == size ||
	    from->flow.size != size - here)
		return;
	rest = buf_reserve(&eval->bytes, size - here);
	if (rest && flow_drain(&from->flow, rest) == 0)
		buf_grew(&eval->bytes, size - here);
}

/* [{path, line, text}], or [{name, type, size}] */
static json_t *rows_of(const struct term *list, bool is_search)
{
	json_t *rows = json_array();

	for (size_t i = 0; list && i < list->count; i++) {
		const struct term *row = &list->items[i];
		json_t *a = eval_json(term_get(row, is_search ? "path" : "name"));
		json_t *b = eval_json(term_get(row, is_search ? "line_number" : "type"));
		json_t *c = eval_json(term_get(row, is_search ? "line" : "size"));

		json_array_append_new(rows,
				      json_pack("{s:o?, s:o?, s:o?}", is_search ? "path" : "name",
						a, is_search ? "line" : "type", b,
						is_search ? "text" : "size", c));
	}
	return rows;
}

static void emit_json(struct emit *emit, const json_t *value)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_integer(value)) {
		emit_int(emit, json_integer_value(value));
	} else if (json_is_string(value)) {
		emit_binary(emit, json_string_value(value), json_string_length(value));
	} else if (json_is_array(value)) {
		if (json_array_size(value) > 0)
			emit_list(emit, (uint32_t)json_array_size(value));
		json_array_foreach(value, i, item)
			emit_json(emit, item);
		emit_nil(emit);
	} else {
		emit_map(emit, (uint32_t)json_object_size(value));
		json_object_foreach((json_t *)(uintptr_t)value, key, item) {
			emit_text(emit, key);
			emit_json(emit, item);
		}
	}
}

/* As a term, whose tree the machine sends on. */
static void observe_rows(struct stay_eval *eval, const struct term *list, bool is_search)
{
	_cleanup_arena_ struct arena arena;
	_cleanup_buf_ struct buf bytes;
	json_t *rows = rows_of(list, is_search);
	struct emit emit;
	struct term term;
	size_t size;

	arena_init(&arena, 32 << 20);
	buf_init(&bytes, 8 << 20);
	emit = emit_begin(&bytes);
	emit_json(&emit, rows);
	json_decref(rows);
	size = emit_end(&emit) < 0 ? 0 : buf_size(&bytes) - FRAME_HEAD;
	if (size == 0 ||
	    term_decode(&arena, (struct term_input){ buf_at(&bytes) + FRAME_HEAD, size },
			&term_limits, &term, NULL) < 0)
		refuse(eval, "the answer is too large: name a path further down");
	else
		observe(eval, &term, false);
}

static void observe_file(struct stay_eval *eval, const struct term *map)
{
	const struct term *bytes = term_get(map, "bytes"), *size = term_get(map, "size");
	struct term all = { .type = TERM_BINARY,
			    .bytes = { buf_at(&eval->bytes), buf_size(&eval->bytes) } };
	size_t told = size && size->type == TERM_INT ? (size_t)size->integer : 0;

	if (bytes)
		all = *bytes;
	if (all.bytes.size != told)
		refuse(eval, "the file could not be read as a whole");
	else if (told >= BUILTIN_READ_BYTES)
		refuse(eval, "the file is too large: read_file gives less than 1 MiB");
	else
		observe(eval, &all, false);
}

void stay_gate_reply(struct stay_eval *eval, const struct term *map)
{
	const struct builtin *builtin = eval->builtin;

	if (!builtin)
		return;
	if (builtin->id == BUILTIN_READ_FILE)
		observe_file(eval, map);
	else
		observe_rows(eval,
			     term_get(map, builtin->id == BUILTIN_SEARCH ? "matches" : "entries"),
			     builtin->id == BUILTIN_SEARCH);
}

/* What the agent advises to callers, who may name any path inside, is not for a gate's. */
void stay_gate_failed(struct stay_eval *eval, const struct term *detail)
{
	static const char advice[] = ": use the absolute path";
	struct term text = *detail;
	size_t size = text.bytes.size, tail = sizeof advice - 1;

	if (size > tail && memcmp(text.bytes.data + size - tail, advice, tail) == 0)
		text.bytes.size -= tail;
	if (eval->builtin)
		observe(eval, &text, true);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A loop of the code's fills no record. */
static bool may_call(struct stay_eval *eval)
{
	enum { PRICE_MS = MINUTE_MS / BUILTIN_RATE };
	uint64_t now_ms = clock_now_ms();

	eval->credit_ms += eval->credited_at_ms ? now_ms - eval->credited_at_ms : MINUTE_MS;
	eval->credited_at_ms = now_ms;
	if (eval->credit_ms > MINUTE_MS)
		eval->credit_ms = MINUTE_MS;
	if (eval->credit_ms < PRICE_MS)
		return false;
	eval->credit_ms -= PRICE_MS;
	return true;
}

static int check(const struct builtin *builtin, const json_t *args, struct csn_error *err)
{
	json_t *schema = NULL;
	int r = builtin->schema ? gate_schema_read(builtin->schema, &schema, err) : 0;

	if (r >= 0)
		r = gate_schema_check(schema, args, err);
	json_decref(schema);
	return r;
}

/* done(v) and echo(v): whatever was passed, as it is. */
static void give_back(struct stay_eval *eval, const struct term *args)
{
	static const struct term nil = { .type = TERM_ATOM,
					 .bytes = { (const uint8_t *)"nil", 3 } };

	if (args->type == TERM_LIST && args->count > 1)
		refuse(eval, "too many arguments");
	else if (args->type == TERM_LIST)
		observe(eval, args->count ? &args->items[0] : &nil, false);
	else
		observe(eval, args, false);
}

static const struct builtin *find_builtin(const struct stay_eval *eval)
{
	for (size_t i = 0; i < builtin_count; i++)
		if (str_is(builtins[i].name, eval->gate) &&
		    (!builtins[i].needs_root || has_root(eval->stay)))
			return &builtins[i];
	return NULL;
}

static void call_builtin(struct stay_eval *eval, const struct term *args)
{
	struct csn_error err = { 0 };
	int r = 0;

	if (!eval->builtin->schema) {
		eval->args = json_pack("{s:o?}", "value",
				       eval_json(args->type == TERM_LIST && args->count == 1
							 ? &args->items[0]
							 : args));
		give_back(eval, args);
		return;
	}
	r = eval_json_args(args, eval->builtin->params, &eval->args, &err);
	if (r >= 0)
		r = check(eval->builtin, eval->args, &err);
	if (r < 0)
		refuse(eval, err.text);
	else
		ask_files(eval);
}

void stay_gate_call(void *data, const struct term *name, const struct term *args)
{
	struct stay_eval *eval = data;
	struct gates_asker asker = { answered, eval, eval->gate_id + 1 };
	struct csn_error err = { 0 };
	struct term why;
	json_t *object = NULL;

	snprintf(eval->gate, sizeof eval->gate, "%.*s", (int)name->bytes.size,
		 (const char *)name->bytes.data);
	eval->gate_id++;
	eval->gate_started_us = clock_now_us();
	eval->builtin = find_builtin(eval);
	why = text_term(
		"gates were called too often: 6000 times a minute; wait, or ask for more at "
		"once");
	if (eval->builtin && !may_call(eval)) {
		session_observe(eval->session, eval->gate, &why, true);
		return;
	}
	if (eval->builtin) {
		call_builtin(eval, args);
		return;
	}
	if (eval_json_args(args, NULL, &object, &err) < 0) {
		why = text_term(err.text);
		session_observe(eval->session, eval->gate, &why, true);
		return;
	}
	gates_ask(eval->stay->run.gates, &asker, eval->gate, object);
}
