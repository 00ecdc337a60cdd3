/*
 * Results of libcaisson as JSON; see answer.h. jansson refuses what is no UTF-8, and an object
 * that could not be made makes the whole value NULL.
 */
#include "serve/answer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "serve/base64.h"

static json_t *base64(const void *data, size_t size)
{
	char *text = base64_text(data, size);
	json_t *object = text ? json_pack("{s:s}", "base64", text) : NULL;

	free(text);
	return object;
}

json_t *answer_bytes(const void *data, size_t size)
{
	json_t *text = json_stringn(size ? data : "", size);

	return text ? text : base64(data, size);
}

json_t *answer_text(const char *text)
{
	return text ? answer_bytes(text, strlen(text)) : json_null();
}

json_t *answer_number(uint64_t value)
{
	if (value == CSN_NONE)
		return json_null();
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *answer_output(const csn_output *output)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "data", answer_bytes(output->data, output->size),
			 "total", answer_number(output->total), "cut_bytes",
			 answer_number(output->cut_bytes), "cut_at", answer_number(output->cut_at));
}

json_t *answer_violation(const csn_violation *violation)
{
	const struct {
		const char *name, *text;
	} texts[] = {
		{ "event", violation->event },     { "source", violation->source },
		{ "rule", violation->rule },       { "say", violation->say },
		{ "comm", violation->comm },       { "syscall", violation->syscall },
		{ "path", violation->path },       { "to", violation->to },
		{ "address", violation->address }, { "host", violation->host },
		{ "text", violation->text },
	};
	json_t *object =
		json_pack("{s:b, s:b, s:o, s:o, s:o}", "certain", violation->certain, "expected",
			  violation->expected, "count", answer_number(violation->count), "time_ms",
			  json_integer(violation->time_ms), "port", json_integer(violation->port));

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].text)
			json_object_set_new(object, texts[i].name, answer_text(texts[i].text));
	return object;
}

static json_t *violations_list(const csn_exec_result *result)
{
	json_t *list = json_array();

	for (size_t i = 0; i < result->violation_count; i++)
		json_array_append_new(list, answer_violation(&result->violations[i]));
	return list;
}

json_t *answer_exec(const csn_exec_result *result)
{
	json_t *object = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "reason",
		answer_text(result->reason_name), "clock", answer_text(result->clock), "exit_code",
		result->exit_code < 0 ? json_null() : json_integer(result->exit_code), "signal",
		result->signal ? json_integer(result->signal) : json_null(), "error",
		answer_text(result->error ? csn_code_name(result->error) : NULL), "stage",
		answer_text(result->stage), "text", answer_text(result->text), "violations",
		violations_list(result));
	json_t *usage = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "wall_us",
		answer_number(result->wall_us), "cpu_us", answer_number(result->cpu_us),
		"mem_peak_bytes", answer_number(result->mem_peak_bytes), "scope",
		answer_text(result->scope), "stdout_bytes", answer_number(result->stdout_bytes),
		"stderr_bytes", answer_number(result->stderr_bytes), "output_cut_bytes",
		answer_number(result->output_cut_bytes), "output", answer_output(&result->output),
		"errors", answer_output(&result->errors));
	int r = json_object_update(object, usage);

	if (result->detached)
		r |= json_object_set_new(object, "pid", json_integer(result->pid));
	r |= json_object_set_new(object, "detached", json_boolean(result->detached));
	json_decref(usage);
	if (r == 0)
		return object;
	json_decref(object);
	return NULL;
}

json_t *answer_edit(const csn_edit_result *result)
{
	return json_pack("{s:o, s:o}", "occurrences", answer_number(result->occurrences), "content",
			 result->content.data
				 ? answer_bytes(result->content.data, result->content.size)
				 : json_null());
}

static json_t *names(const char *const *list, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, answer_text(list[i]));
	return array;
}

json_t *answer_glob(const csn_glob_result *result)
{
	return json_pack("{s:o, s:b, s:o}", "paths", names(result->paths, result->count),
			 "truncated", result->truncated, "skipped", answer_number(result->skipped));
}

json_t *answer_grep(const csn_grep_result *result)
{
	json_t *matches = json_array();

	for (size_t i = 0; i < result->count; i++) {
		const csn_match *match = &result->matches[i];

		json_array_append_new(
			matches, json_pack("{s:o, s:o, s:o, s:b}", "path", answer_text(match->path),
					   "line_number", answer_number(match->line_number), "line",
					   answer_bytes(match->line.data, match->line.size),
					   "is_context", match->is_context));
	}
	return json_pack("{s:o, s:o, s:b, s:o}", "matches", matches, "binary",
			 names(result->binary, result->binary_count), "truncated",
			 result->truncated, "skipped", answer_number(result->skipped));
}
