/*
 * What the owner is told who speaks through `caisson port`: the answers to his {open, …} and
 * {close, …}. All else is said to him as to any client. He may read a pipe that is full, or not
 * read at all; he is waited for at the very end only, and not for long.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include <jansson.h>

#include "base/clock.h"
#include "monitor/stay_private.h"

enum { LINGER_MS = 2000 };

static void put_text(struct emit *emit, const char *key, const char *text)
{
	emit_atom(emit, key);
	emit_text(emit, text ? text : "");
}

static struct emit begin_reply(struct stay_client *client, int64_t ref)
{
	struct emit emit = channel_frame(&client->channel);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, ref);
	return emit;
}

/* ---- opened ---------------------------------------------------------------------------------- */

static void put_names(struct emit *emit, const char *key, const json_t *names)
{
	size_t count = json_array_size(names);

	emit_atom(emit, key);
	emit_list(emit, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		emit_text(emit, json_string_value(json_array_get(names, i)));
	emit_nil(emit);
}

/* "KEY: why" of each setting that nothing carries out. */
static void put_warnings(struct emit *emit, const json_t *gaps)
{
	size_t count = json_array_size(gaps);

	emit_atom(emit, "warnings");
	emit_list(emit, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		const char *key = "", *why = "";
		char text[256];

		json_unpack(json_array_get(gaps, i), "{s:s, s:s}", "key", &key, "why", &why);
		snprintf(text, sizeof text, "%s: %s", key, why);
		emit_text(emit, text);
	}
	emit_nil(emit);
}

void stay_port_open(struct stay *stay)
{
	const struct stay_port *port = stay->setup->port;
	struct run *run = &stay->run;
	const struct plan *plan = run->plan;
	struct stay_client *client = stay_client_add(stay, stay->setup->owner_fd);
	struct emit emit = begin_reply(client, port->open_ref);
	json_t *gaps = run_no_effect(run), *names = run_not_protected(run);

	stay_client_own(stay, client);
	client->channel.out_fd = port->out_fd;
	client->channel.side = FROM_PORT_CLIENT;
	emit_map(&emit, 13);
	put_text(&emit, "caisson", CAISSON_VERSION);
	emit_atom(&emit, "protocol");
	emit_int(&emit, STAY_PROTOCOL);
	stay_emit_abilities(&emit, stay);
	put_text(&emit, "sandbox_id", run->sandbox_id);
	put_text(&emit, "tier", plan_tier_name(plan->tier));
	put_text(&emit, "backend", run->backend->name);
	put_text(&emit, "workspace", plan->workspace.host);
	put_text(&emit, "mode", plan_access_name(plan->workspace.access));
	put_text(&emit, "at", plan->workspace.host ? plan->workspace.at : "");
	put_text(&emit, "network", plan_network_name(plan->network));
	put_warnings(&emit, gaps);
	put_names(&emit, "protect_not_enforced", names);
	json_decref(gaps);
	json_decref(names);
	if (channel_send(&client->channel, &emit) < 0)
		client->is_gone = true;
}

/* ---- lost ------------------------------------------------------------------------------------ */

void stay_port_lose(struct stay *stay, const struct csn_error *err)
{
	if (!stay->run.error.code)
		stay->run.error = *err;
	stay->run.ending = END_LOST;
	stay->is_over = true;
}

/* ---- closed ---------------------------------------------------------------------------------- */

static void put_json(struct emit *emit, const json_t *value, unsigned depth);

static void put_object(struct emit *emit, const json_t *object, unsigned depth)
{
	const char *key;
	json_t *value;

	emit_map(emit, (uint32_t)json_object_size(object));
	json_object_foreach((json_t *)(uintptr_t)object, key, value) {
		emit_atom(emit, key);
		put_json(emit, value, depth);
	}
}

static void put_array(struct emit *emit, const json_t *array, unsigned depth)
{
	size_t count = json_array_size(array);

	emit_list(emit, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		put_json(emit, json_array_get(array, i), depth);
	emit_nil(emit);
}

/* A result is ours, and a few levels deep. */
static void put_json(struct emit *emit, const json_t *value, unsigned depth)
{
	if (json_is_object(value) && depth > 0)
		put_object(emit, value, depth - 1);
	else if (json_is_array(value) && depth > 0)
		put_array(emit, value, depth - 1);
	else if (json_is_string(value))
		emit_binary(emit, json_string_value(value), json_string_length(value));
	else if (json_is_integer(value))
		emit_int(emit, json_integer_value(value));
	else if (json_is_real(value))
		emit_float(emit, json_real_value(value));
	else if (json_is_boolean(value))
		emit_bool(emit, json_is_true(value));
	else
		emit_atom(emit, "null");
}

/* 0, or why it could not be queued: without the result it is small. */
static int tell_result(const struct stay *stay, struct stay_client *client,
		       const struct run_outcome *outcome, const json_t *result)
{
	enum { DEPTH = 8 };
	struct emit emit = begin_reply(client, stay->close_ref);

	emit_map(&emit, result ? 4 : 3);
	emit_atom(&emit, "reason");
	emit_atom(&emit, ending_name(stay->run.ending));
	put_text(&emit, "sandbox_id", outcome->run_id);
	emit_atom(&emit, "recorded");
	emit_bool(&emit, outcome->is_recorded);
	if (result) {
		emit_atom(&emit, "result");
		put_json(&emit, result, DEPTH);
	}
	if (buf_size(emit.buf) - emit.frame > frame_messages[FRAME_REPLY].max_bytes) {
		emit_drop(&emit);
		return -E2BIG;
	}
	return channel_send(&client->channel, &emit);
}

void stay_port_closed(const struct stay *stay, struct stay_client *client,
		      const struct run_outcome *outcome)
{
	if (tell_result(stay, client, outcome, outcome->result) < 0)
		tell_result(stay, client, outcome, NULL);
}

void stay_port_linger(struct stay_client *client)
{
	uint64_t end_ms = clock_now_ms() + LINGER_MS, now_ms;

	while (channel_wants_out(&client->channel) && (now_ms = clock_now_ms()) < end_ms) {
		struct pollfd room = { client->channel.out_fd, POLLOUT, 0 };

		if (poll(&room, 1, (int)(end_ms - now_ms)) > 0)
			channel_flush(&client->channel);
	}
}
