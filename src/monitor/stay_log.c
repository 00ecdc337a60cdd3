/* The calls of a sandbox that stays, in its audit log: what ran, and how it ended. */
#include <stdio.h>
#include <string.h>

#include "monitor/stay_private.h"

static json_t *text_of(const struct stay *stay, const struct term *term)
{
	return redact_text(stay->run.redactor, term->bytes.data, term->bytes.size);
}

/* As in the account of a run: argv, or a text for the shell. */
static json_t *command_of(const struct stay *stay, const struct term *map)
{
	const struct term *argv = term_get(map, "argv"), *text = term_get(map, "command");
	json_t *list = json_array();

	for (size_t i = 0; argv && i < argv->count; i++)
		json_array_append_new(list, text_of(stay, &argv->items[i]));
	if (!argv && text) {
		json_array_append_new(list, json_string("sh"));
		json_array_append_new(list, json_string("-c"));
		json_array_append_new(list, text_of(stay, text));
	}
	return list;
}

void stay_log_started(struct stay *stay, const struct stay_call *call, const struct term *map)
{
	const struct term *cwd = term_get(map, "cwd"), *tag = term_get(map, "tag");
	json_t *tags = json_array();

	if (tag)
		json_array_append_new(tags, text_of(stay, tag));
	chain_add(&stay->run.record.chain, EVENT_EXEC_STARTED,
		  json_pack("{s:I, s:o, s:o, s:o}", "call", (json_int_t)call->ref, "command",
			    command_of(stay, map), "cwd",
			    cwd ? text_of(stay, cwd) : json_string(stay->run.plan->workspace.at),
			    "tags", tags));
}

static json_t *number_of(const struct term *map, const char *key)
{
	const struct term *term = map ? term_get(map, key) : NULL;

	return term && term->type == TERM_INT ? json_integer(term->integer) : json_null();
}

void stay_log_ended(const struct stay_exec *exec, const struct term *map)
{
	chain_add(&exec->stay->run.record.chain, EVENT_EXEC_ENDED,
		  json_pack("{s:I, s:{s:s, s:s?, s:o, s:o}, s:{s:f, s:I, s:I, s:s}}", "call",
			    (json_int_t)exec->ref, "termination", "reason",
			    ending_name(exec->ending), "clock", exec->clock, "exit_code",
			    number_of(map, "exit_code"), "signal", number_of(map, "signal"),
			    "usage", "wall_ms", (double)exec->wall_us / 1000.0, "stdout_bytes",
			    (json_int_t)exec->bytes[0], "stderr_bytes", (json_int_t)exec->bytes[1],
			    "scope", "command"));
}

void stay_log_mount(struct stay *stay, const struct plan_mount *mount, bool is_withdrawn)
{
	char text[2 * 4096 + 8];

	snprintf(text, sizeof text, "%s:%s:%s", mount->host, mount->at,
		 plan_access_name(mount->access));
	chain_add(&stay->run.record.chain, EVENT_GRANT,
		  json_pack("{s:s, s:s, s:s, s:s, s:s}", "what", "mounts", "old",
			    is_withdrawn ? text : "", "now", is_withdrawn ? "" : text, "where",
			    is_withdrawn ? "mount: it failed" : "mount", "digest",
			    stay->run.plan->policy_sha256));
}
