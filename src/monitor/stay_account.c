/*
 * What a client is told of an exec: facts while it runs, an account at its end. Untrusted code
 * chose most of the texts; a client gets them as data.
 */
#include "base/clock.h"
#include "base/str.h"
#include "monitor/stay_private.h"

/* ---- its account
 * --------------------------------------------------------------------------------- */

static void emit_number(struct emit *emit, const char *key, uint64_t value)
{
	emit_atom(emit, key);
	emit_int(emit, (int64_t)value);
}

/* A text of a fact that may be empty, then it is left out. */
struct fact_text_key {
	const char *name, *text;
};

/* `ref`: the call, 0 within its account. */
static void emit_fact(struct emit *emit, const struct fact *fact, int64_t ref)
{
	const struct fact_detail *detail = &fact->detail;
	const struct fact_text_key texts[] = {
		{ "comm", fact->comm },   { "syscall", detail->syscall },
		{ "path", detail->path }, { "to", detail->to },
		{ "host", detail->host }, { "address", detail->address },
		{ "text", detail->text },
	};
	uint32_t count = 9 + (ref != 0);

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		count += texts[i].text[0] != 0;
	emit_map(emit, count);
	if (ref)
		emit_number(emit, "ref", (uint64_t)ref);
	emit_atom(emit, "event");
	emit_text(emit, fact_event_name(fact->event));
	emit_atom(emit, "source");
	emit_atom(emit, fact_source_name(fact->source));
	emit_atom(emit, "rule");
	emit_text(emit, fact->rule);
	emit_atom(emit, "say");
	emit_text(emit, fact->say);
	emit_atom(emit, "certain");
	emit_bool(emit, fact->is_certain);
	emit_atom(emit, "expected");
	emit_bool(emit, fact->is_expected);
	emit_number(emit, "count", fact->count);
	emit_number(emit, "time_ms", (uint64_t)fact->time_ms);
	emit_number(emit, "port", fact->detail.port);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!texts[i].text[0])
			continue;
		emit_atom(emit, texts[i].name);
		emit_text(emit, texts[i].text);
	}
}

static void emit_violations(struct emit *emit, const struct violations *list)
{
	emit_atom(emit, "violations");
	emit_list(emit, (uint32_t)list->count);
	for (size_t i = 0; i < list->count; i++)
		emit_fact(emit, &list->facts[i], 0);
	emit_nil(emit);
}

/* Number `key` of the agent's reply, 0 if it is none. */
static uint64_t number_of(const struct term *map, const char *key)
{
	const struct term *term = term_get(map, key);

	return term && term->type == TERM_INT ? (uint64_t)term->integer : 0;
}

/* As the agent wrote them, where it did. */
static const char *const agent_keys[] = {
	"exit_code", "signal", "error", "stage", "detached", "pid"
};

static void emit_account(struct emit *emit, const struct stay_exec *exec, const struct term *map)
{
	uint32_t count = 9 + (exec->clock != NULL);
	struct csn_error sentence;

	stay_text(exec, map, &sentence);
	count += sentence.text[0] != 0;
	for (size_t i = 0; i < ARRAY_SIZE(agent_keys); i++)
		count += term_get(map, agent_keys[i]) != NULL;
	emit_map(emit, count);
	for (size_t i = 0; i < ARRAY_SIZE(agent_keys); i++) {
		const struct term *value = term_get(map, agent_keys[i]);

		if (!value)
			continue;
		emit_atom(emit, agent_keys[i]);
		emit_term(emit, value);
	}
	emit_atom(emit, "reason");
	emit_atom(emit, exec->ending == END_NONE ? "detached" : ending_name(exec->ending));
	if (exec->clock) {
		emit_atom(emit, "clock");
		emit_atom(emit, exec->clock);
	}
	if (sentence.text[0]) {
		emit_atom(emit, "text");
		emit_text(emit, sentence.text);
	}
	emit_number(emit, "wall_us", exec->wall_us);
	emit_number(emit, "cpu_us", number_of(map, "user_us") + number_of(map, "system_us"));
	emit_number(emit, "mem_peak_bytes", number_of(map, "max_rss_bytes"));
	emit_atom(emit, "scope");
	emit_atom(emit, "command");
	emit_number(emit, "stdout_bytes", exec->bytes[0]);
	emit_number(emit, "stderr_bytes", exec->bytes[1]);
	emit_number(emit, "output_cut_bytes", exec->cut_bytes);
	emit_violations(emit, &exec->violations);
}

void stay_tell_account(struct stay_call *call, const struct term *map)
{
	struct emit emit;

	if (!call->client)
		return;
	emit = channel_frame(&call->client->channel);
	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, call->client_ref);
	emit_account(&emit, call->exec, map);
	if (channel_send(&call->client->channel, &emit) < 0)
		call->client->is_gone = true;
}

void stay_tell_fact(const struct stay_exec *exec, const struct fact *fact)
{
	struct stay_client *client = exec->call ? exec->call->client : NULL;
	struct emit emit;

	if (!client)
		return;
	emit = channel_frame(&client->channel);
	emit_tuple(&emit, 2);
	emit_atom(&emit, "fact");
	emit_fact(&emit, fact, exec->call->client_ref);
	if (channel_send(&client->channel, &emit) < 0)
		client->is_gone = true;
}
