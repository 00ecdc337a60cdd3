/*
 * Results of libcaisson as JSON, the rest; see answer.h. A list that runs out of memory makes the
 * whole value NULL: json_pack() refuses a missing part.
 */
#include "serve/answer.h"

#include <string.h>

#include "base/str.h"

json_t *answer_stats(const csn_stats_result *stats)
{
	const struct {
		const char *name;
		uint64_t number;
	} numbers[] = {
		{ "started_ms", (uint64_t)stats->started_ms },
		{ "commands", stats->commands },
		{ "idle_ms", stats->idle_ms },
		{ "idle_limit_ms", stats->idle_limit_ms },
		{ "mem_bytes", stats->mem_bytes },
		{ "mem_limit", stats->mem_limit },
		{ "processes", stats->processes },
		{ "processes_limit", stats->processes_limit },
		{ "cpu_us", stats->cpu_us },
		{ "scratch_bytes", stats->scratch_bytes },
		{ "scratch_limit", stats->scratch_limit },
	};
	json_t *object = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "sandbox_id",
				   answer_text(stats->sandbox_id), "tier", answer_text(stats->tier),
				   "backend", answer_text(stats->backend), "workspace",
				   answer_text(stats->workspace), "mode", answer_text(stats->mode),
				   "means", answer_text(stats->means));

	for (size_t i = 0; object && i < ARRAY_SIZE(numbers); i++)
		json_object_set_new(object, numbers[i].name, answer_number(numbers[i].number));
	return object;
}

/* As an exit status, or null: it has not exited by itself. */
static json_t *status(int exit_code)
{
	return exit_code < 0 ? json_null() : json_integer(exit_code);
}

static json_t *process(const csn_process *command)
{
	return json_pack(
		"{s:o, s:o, s:b, s:i, s:o, s:o, s:o, s:o, s:o}", "tag", answer_text(command->tag),
		"state", answer_text(command->state), "detached", command->detached, "pid",
		command->pid, "exit_code", status(command->exit_code), "signal",
		command->signal ? json_integer(command->signal) : json_null(), "started_ms",
		json_integer(command->started_ms), "bytes", answer_number(command->bytes),
		"cut_bytes", answer_number(command->cut_bytes));
}

json_t *answer_ps(const csn_ps_result *result)
{
	json_t *list = json_array();

	for (size_t i = 0; i < result->count; i++)
		json_array_append_new(list, process(&result->commands[i]));
	return json_pack("{s:o}", "commands", list);
}

json_t *answer_logs(const csn_logs_result *result)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:b}", "output", answer_output(&result->output),
			 "errors", answer_output(&result->errors), "bytes",
			 answer_number(result->bytes), "cut_bytes",
			 answer_number(result->cut_bytes), "running", result->running);
}

json_t *answer_wait(const csn_wait_result *result)
{
	return json_pack("{s:b, s:b, s:b, s:o, s:o, s:o}", "reached", result->reached, "timed_out",
			 result->timed_out, "running", result->running, "exit_code",
			 status(result->exit_code), "signal",
			 result->signal ? json_integer(result->signal) : json_null(), "line",
			 result->line.data ? answer_bytes(result->line.data, result->line.size)
					   : json_null());
}

json_t *answer_stat(const csn_stat_result *result)
{
	return json_pack("{s:o, s:o, s:i, s:o, s:o}", "type", answer_text(result->type), "size",
			 answer_number(result->size), "mode", (int)result->mode, "mtime_ms",
			 json_integer(result->mtime_ms), "target", answer_text(result->target));
}

json_t *answer_list(const csn_list_result *result)
{
	json_t *list = json_array();

	for (size_t i = 0; i < result->count; i++) {
		const csn_entry *entry = &result->entries[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:o}", "name", answer_text(entry->name),
						"type", answer_text(entry->type), "size",
						answer_number(entry->size)));
	}
	return json_pack("{s:o, s:b}", "entries", list, "truncated", result->truncated);
}

static json_t *changes(const csn_change *list, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(
			array,
			json_pack("{s:o, s:o, s:o, s:o, s:i, s:b, s:o, s:o}", "path",
				  answer_text(list[i].path), "change", answer_text(list[i].change),
				  "kind", answer_text(list[i].kind), "size",
				  answer_number(list[i].size), "mode", (int)list[i].mode, "guarded",
				  list[i].guarded, "reason", answer_text(list[i].reason), "other",
				  answer_text(list[i].other)));
	return array;
}

json_t *answer_diff(const csn_diff_result *result)
{
	json_t *names = json_array();

	for (size_t i = 0; result->foreign_names && result->foreign_names[i]; i++)
		json_array_append_new(names, answer_text(result->foreign_names[i]));
	return json_pack("{s:o, s:b, s:o, s:o, s:o}", "changes",
			 changes(result->changes, result->count), "truncated", result->truncated,
			 "text", answer_output(&result->text), "foreign",
			 answer_number(result->foreign), "foreign_names", names);
}

json_t *answer_commit(const csn_commit_result *result)
{
	return json_pack("{s:o, s:o, s:b}", "applied",
			 changes(result->applied, result->applied_count), "left",
			 changes(result->left, result->left_count), "truncated", result->truncated);
}

json_t *answer_copied(const csn_copied *result)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "entries", answer_number(result->entries), "bytes",
			 answer_number(result->bytes), "torn", answer_number(result->torn),
			 "torn_name", answer_text(result->torn_name));
}
