/*
 * conformance: makes the calls of one story of sdk/conformance through libcaisson
 *
 *   conformance FILE     what tests/sdk/test_conformance.py prepared: {"open": …, "rows": […]}
 *
 * Prints one JSON object a row: what it answered, or {"error": …}. Texts and bytes are hexadecimal
 * both ways, so nothing is lost in a text of JSON; numbers and booleans are themselves. What is
 * expected is compared where it was prepared, with the same code as for the Python package.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <caisson.h>

/* ---- texts ---------------------------------------------------------------------------------- */

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* The bytes of hexadecimal digits, with a NUL behind them; kept until the program ends. */
static char *bytes_of(const json_t *text, size_t *ret_size)
{
	const char *hex = json_string_value(text);
	size_t size = hex ? strlen(hex) / 2 : 0;
	char *bytes = malloc(size + 1);

	if (!bytes || !hex) {
		free(bytes);
		return NULL;
	}
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	bytes[size] = 0;
	if (ret_size)
		*ret_size = size;
	return bytes;
}

static const char *text(const json_t *args, const char *key)
{
	return bytes_of(json_object_get(args, key), NULL);
}

static uint64_t number(const json_t *args, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(args, key));
}

static bool flag(const json_t *args, const char *key)
{
	return json_is_true(json_object_get(args, key));
}

/* A list of texts with a NULL behind them, or NULL. */
static const char *const *texts(const json_t *args, const char *key)
{
	const json_t *list = json_object_get(args, key);
	size_t count = json_array_size(list);
	const char **words = list ? calloc(count + 1, sizeof *words) : NULL;

	for (size_t i = 0; words && i < count; i++)
		words[i] = bytes_of(json_array_get(list, i), NULL);
	return words;
}

static json_t *hex(const void *data, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = data;
	char *out;
	json_t *value;

	if (!data)
		return json_null();
	out = malloc(2 * size + 1);
	if (!out)
		abort();
	for (size_t i = 0; i < size; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	value = json_stringn(out, 2 * size);
	free(out);
	return value;
}

static json_t *hex_text(const char *value)
{
	return hex(value, value ? strlen(value) : 0);
}

static json_t *number_or_null(int value, int null)
{
	return value == null ? json_null() : json_integer(value);
}

static csn_call call_of(const json_t *args)
{
	return (csn_call){ .timeout_ms = (uint32_t)number(args, "timeout_ms") };
}

/* Takes a result, and gives what it says or the error. */
static json_t *failed(const csn_error *err)
{
	return json_pack("{s:{s:o,s:o,s:o,s:b}}", "error", "code",
			 hex_text(csn_code_name(err->code)), "stage", hex_text(err->stage), "says",
			 hex_text(err->text), "refused", csn_is_refusal(err));
}

static json_t *nothing(int r, const csn_error *err)
{
	return r < 0 ? failed(err) : json_object();
}

/* ---- commands ------------------------------------------------------------------------------- */

/* What is done when the output has contained a text, and the output itself. */
struct meddler {
	csn_sandbox *sandbox;
	uint64_t id;
	const char *after;
	int signal; /* 0: it is cancelled */
	char seen[65536];
	size_t size;
	bool is_done;
};

static int on_output(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct meddler *meddler = data;
	size_t room = sizeof meddler->seen - 1 - meddler->size;

	(void)stream;
	size = size < room ? size : room;
	memcpy(meddler->seen + meddler->size, bytes, size);
	meddler->size += size;
	if (meddler->is_done || !strstr(meddler->seen, meddler->after))
		return 0;
	meddler->is_done = true;
	if (meddler->signal)
		return csn_signal(meddler->sandbox, meddler->id, meddler->signal, NULL);
	return csn_cancel(meddler->sandbox, meddler->id, NULL);
}

/* An object of variables as NAME=VALUE: the names are plain, only values are hexadecimal. */
static const char *const *variables(const json_t *args)
{
	json_t *env = json_object_get(args, "env"), *value;
	const char **words = env ? calloc(json_object_size(env) + 1, sizeof *words) : NULL;
	const char *name;
	size_t i = 0;

	json_object_foreach(env, name, value) {
		size_t size;
		char *content = bytes_of(value, &size);
		char *word = content ? malloc(strlen(name) + size + 2) : NULL;

		if (!word)
			abort();
		snprintf(word, strlen(name) + size + 2, "%s=%s", name, content);
		words[i++] = word;
	}
	return words;
}

static json_t *events_of(const csn_exec_result *result)
{
	json_t *events = json_array();

	for (size_t i = 0; i < result->violation_count; i++)
		if (!result->violations[i].expected)
			json_array_append_new(events, hex_text(result->violations[i].event));
	return events;
}

static json_t *exec_answer(const csn_exec_result *result)
{
	bool has_ended = !result->detached;

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:b,s:o}", "reason",
			 hex_text(result->reason_name), "clock", hex_text(result->clock), "error",
			 hex_text(result->error ? csn_code_name(result->error) : NULL), "exit_code",
			 number_or_null(has_ended ? result->exit_code : -1, -1), "signal",
			 number_or_null(result->signal, 0), "stdout",
			 hex(result->output.data, result->output.size), "stderr",
			 hex(result->errors.data, result->errors.size), "stdout_cut",
			 (json_int_t)result->output.cut_bytes, "stderr_cut",
			 (json_int_t)result->errors.cut_bytes, "stdout_bytes",
			 (json_int_t)result->stdout_bytes, "stderr_bytes",
			 (json_int_t)result->stderr_bytes, "output_cut_bytes",
			 (json_int_t)result->output_cut_bytes, "detached", result->detached,
			 "events", events_of(result));
}

static json_t *do_exec(csn_sandbox *sandbox, const json_t *args, const json_t *meanwhile)
{
	static struct meddler meddler;
	csn_exec_request request = {
		.call = call_of(args),
		.argv = texts(args, "argv"),
		.command = text(args, "command"),
		.cwd = text(args, "cwd"),
		.env = variables(args),
		.keep_bytes = number(args, "keep_bytes"),
		.has_tty = flag(args, "tty"),
		.rows = (uint16_t)number(args, "rows"),
		.columns = (uint16_t)number(args, "cols"),
		.detach = flag(args, "detach"),
		.tag = text(args, "tag"),
	};
	csn_exec_result *result;
	csn_error err;
	json_t *answer;

	request.input = bytes_of(json_object_get(args, "stdin"), &request.input_size);
	if (meanwhile) {
		request.call.id = csn_call_id(sandbox);
		meddler = (struct meddler){ .sandbox = sandbox,
					    .id = request.call.id,
					    .after = text(meanwhile, "after"),
					    .signal = (int)number(meanwhile, "signal") };
		request.on_output = on_output;
		request.data = &meddler;
	}
	if (csn_exec(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = exec_answer(result);
	csn_free(result);
	return answer;
}

static json_t *do_ps(csn_sandbox *sandbox, const json_t *args)
{
	csn_ps_result *result;
	csn_error err;
	json_t *commands = json_array();

	(void)args;
	if (csn_ps(sandbox, NULL, &result, &err) < 0)
		return failed(&err);
	for (size_t i = 0; i < result->count; i++) {
		const csn_process *at = &result->commands[i];

		json_array_append_new(
			commands,
			json_pack("{s:o,s:o,s:b,s:o,s:o,s:I}", "tag", hex_text(at->tag), "state",
				  hex_text(at->state), "detached", at->detached, "exit_code",
				  number_or_null(at->exit_code, -1), "signal",
				  number_or_null(at->signal, 0), "bytes", (json_int_t)at->bytes));
	}
	csn_free(result);
	return json_pack("{s:o}", "commands", commands);
}

static json_t *do_logs(csn_sandbox *sandbox, const json_t *args)
{
	csn_logs_request request = { .tag = text(args, "tag"), .follow = flag(args, "follow") };
	csn_logs_result *result;
	csn_error err;
	json_t *answer;

	if (csn_logs(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:o,s:o,s:I,s:I,s:b}", "stdout",
			   hex(result->output.data, result->output.size), "stderr",
			   hex(result->errors.data, result->errors.size), "bytes",
			   (json_int_t)result->bytes, "cut_bytes", (json_int_t)result->cut_bytes,
			   "running", result->running);
	csn_free(result);
	return answer;
}

static json_t *do_wait(csn_sandbox *sandbox, const json_t *args)
{
	csn_wait_request request = { .call = call_of(args),
				     .tag = text(args, "tag"),
				     .port = (uint16_t)number(args, "port"),
				     .line = text(args, "line"),
				     .text = text(args, "text"),
				     .forget = flag(args, "forget") };
	csn_wait_result *result;
	csn_error err;
	json_t *answer;

	if (csn_wait(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:b,s:b,s:b,s:o,s:o,s:o}", "reached", result->reached, "timed_out",
			   result->timed_out, "running", result->running, "exit_code",
			   number_or_null(result->exit_code, -1), "signal",
			   number_or_null(result->signal, 0), "line",
			   hex(result->line.data, result->line.size));
	csn_free(result);
	return answer;
}

static json_t *do_kill(csn_sandbox *sandbox, const json_t *args)
{
	csn_kill_request request = { .tag = text(args, "tag"),
				     .signal = (int)number(args, "signal") };
	csn_error err;

	return nothing(csn_kill(sandbox, &request, &err), &err);
}

/* ---- files ---------------------------------------------------------------------------------- */

static json_t *do_read(csn_sandbox *sandbox, const json_t *args)
{
	csn_read_request request = { .path = text(args, "path"),
				     .offset = number(args, "offset"),
				     .length = number(args, "length") };
	csn_bytes *result;
	csn_error err;
	json_t *answer;

	if (csn_read(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:o}", "bytes", hex(result->data, result->size));
	csn_free(result);
	return answer;
}

static json_t *do_write(csn_sandbox *sandbox, const json_t *args)
{
	csn_write_request request = { .path = text(args, "path"),
				      .mode = (uint16_t)number(args, "mode") };
	csn_error err;

	request.bytes = bytes_of(json_object_get(args, "bytes"), &request.size);
	return nothing(csn_write(sandbox, &request, &err), &err);
}

static json_t *do_edit(csn_sandbox *sandbox, const json_t *args)
{
	csn_edit_request request = { .path = text(args, "path") };
	csn_edit_result *result;
	csn_error err;
	json_t *answer;

	request.old_text = bytes_of(json_object_get(args, "old"), &request.old_size);
	request.new_text = bytes_of(json_object_get(args, "new"), &request.new_size);
	if (csn_edit(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:I,s:o}", "occurrences", (json_int_t)result->occurrences, "content",
			   hex(result->content.data, result->content.size));
	csn_free(result);
	return answer;
}

static json_t *do_stat(csn_sandbox *sandbox, const json_t *args)
{
	csn_path_request request = { .path = text(args, "path") };
	csn_stat_result *result;
	csn_error err;
	json_t *answer;

	if (csn_stat(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:o,s:I,s:i,s:o}", "type", hex_text(result->type), "size",
			   (json_int_t)result->size, "mode", result->mode, "target",
			   hex_text(result->target));
	csn_free(result);
	return answer;
}

static json_t *do_list(csn_sandbox *sandbox, const json_t *args)
{
	csn_path_request request = { .path = text(args, "path") };
	csn_list_result *result;
	csn_error err;
	json_t *entries = json_array(), *answer;

	if (csn_list(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	for (size_t i = 0; i < result->count; i++)
		json_array_append_new(entries, json_pack("{s:o,s:o,s:I}", "name",
							 hex_text(result->entries[i].name), "type",
							 hex_text(result->entries[i].type), "size",
							 (json_int_t)result->entries[i].size));
	answer = json_pack("{s:o,s:b}", "entries", entries, "truncated", result->truncated);
	csn_free(result);
	return answer;
}

static json_t *do_remove(csn_sandbox *sandbox, const json_t *args)
{
	csn_path_request request = { .path = text(args, "path"),
				     .recursive = flag(args, "recursive") };
	csn_error err;

	return nothing(csn_remove(sandbox, &request, &err), &err);
}

static json_t *do_move(csn_sandbox *sandbox, const json_t *args)
{
	csn_move_request request = { .path = text(args, "path"), .to = text(args, "to") };
	csn_error err;

	return nothing(csn_move(sandbox, &request, &err), &err);
}

/* ---- search --------------------------------------------------------------------------------- */

static json_t *list_of(const char *const *items, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, hex_text(items[i]));
	return list;
}

static json_t *do_glob(csn_sandbox *sandbox, const json_t *args)
{
	csn_glob_request request = { .call = call_of(args),
				     .pattern = text(args, "pattern"),
				     .cwd = text(args, "cwd"),
				     .limit = (uint32_t)number(args, "limit") };
	csn_glob_result *result;
	csn_error err;
	json_t *answer;

	if (csn_glob(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:o,s:b,s:I}", "paths", list_of(result->paths, result->count),
			   "truncated", result->truncated, "skipped", (json_int_t)result->skipped);
	csn_free(result);
	return answer;
}

static json_t *matches_of(const csn_grep_result *result)
{
	json_t *matches = json_array();

	for (size_t i = 0; i < result->count; i++) {
		const csn_match *at = &result->matches[i];

		json_array_append_new(matches,
				      json_pack("{s:o,s:I,s:o,s:b}", "path", hex_text(at->path),
						"line_number", (json_int_t)at->line_number, "line",
						hex(at->line.data, at->line.size), "is_context",
						at->is_context));
	}
	return matches;
}

static json_t *do_grep(csn_sandbox *sandbox, const json_t *args)
{
	csn_grep_request request = { .call = call_of(args),
				     .pattern = text(args, "pattern"),
				     .path = text(args, "path"),
				     .glob = text(args, "glob"),
				     .ignore_case = flag(args, "ignore_case"),
				     .limit = (uint32_t)number(args, "limit"),
				     .context = (uint32_t)number(args, "context") };
	csn_grep_result *result;
	csn_error err;
	json_t *answer;

	if (csn_grep(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:o,s:o,s:b,s:I}", "matches", matches_of(result), "binary",
			   list_of(result->binary, result->binary_count), "truncated",
			   result->truncated, "skipped", (json_int_t)result->skipped);
	csn_free(result);
	return answer;
}

/* ---- the workspace -------------------------------------------------------------------------- */

static json_t *do_mount(csn_sandbox *sandbox, const json_t *args)
{
	csn_mount_request request = { .host = text(args, "host"),
				      .at = text(args, "at"),
				      .writable = flag(args, "writable") };
	csn_error err;

	return nothing(csn_mount(sandbox, &request, &err), &err);
}

static json_t *changes_of(const csn_change *changes, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		const csn_change *at = &changes[i];

		json_array_append_new(
			list, json_pack("{s:o,s:o,s:o,s:o,s:b,s:o}", "path", hex_text(at->path),
					"change", hex_text(at->change), "kind", hex_text(at->kind),
					"other", hex_text(at->other), "guarded", at->guarded,
					"reason", hex_text(at->reason)));
	}
	return list;
}

static csn_changes_request changes_request(const json_t *args)
{
	return (csn_changes_request){ .paths = texts(args, "paths"),
				      .names_only = flag(args, "names_only"),
				      .force = flag(args, "force"),
				      .dry_run = flag(args, "dry_run") };
}

static json_t *do_diff(csn_sandbox *sandbox, const json_t *args)
{
	csn_changes_request request = changes_request(args);
	csn_diff_result *result;
	csn_error err;
	json_t *answer;

	if (csn_diff(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:o,s:o,s:b}", "changes", changes_of(result->changes, result->count),
			   "text", hex(result->text.data, result->text.size), "truncated",
			   result->truncated);
	csn_free(result);
	return answer;
}

static json_t *do_commit(csn_sandbox *sandbox, const json_t *args)
{
	csn_changes_request request = changes_request(args);
	csn_commit_result *result;
	csn_error err;
	json_t *answer;

	if (csn_commit(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:o,s:o}", "applied",
			   changes_of(result->applied, result->applied_count), "left",
			   changes_of(result->left, result->left_count));
	csn_free(result);
	return answer;
}

static json_t *do_snapshot(csn_sandbox *sandbox, const json_t *args)
{
	csn_snapshot_request request = { .tag = text(args, "tag") };
	csn_copied *result;
	csn_error err;
	json_t *answer;

	if (csn_snapshot(sandbox, &request, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:I,s:I}", "entries", (json_int_t)result->entries, "torn",
			   (json_int_t)result->torn);
	csn_free(result);
	return answer;
}

static json_t *do_stats(csn_sandbox *sandbox, const json_t *args)
{
	csn_stats_result *result;
	csn_error err;
	json_t *answer;

	(void)args;
	if (csn_stats(sandbox, NULL, &result, &err) < 0)
		return failed(&err);
	answer = json_pack("{s:o,s:o}", "tier", hex_text(result->tier), "mode",
			   hex_text(result->mode));
	csn_free(result);
	return answer;
}

static json_t *do_verbs(csn_sandbox *sandbox, const json_t *args)
{
	const char *const *names = texts(args, "names");
	json_t *has = json_array();

	for (size_t i = 0; names && names[i]; i++)
		json_array_append_new(has, json_boolean(csn_has_verb(sandbox, names[i])));
	return json_pack("{s:o}", "has", has);
}

/* ---- stories -------------------------------------------------------------------------------- */

static csn_sandbox *open_with(const json_t *options, csn_error *err)
{
	csn_options all = {
		.program = getenv("CAISSON"),
		.policy = text(options, "policy"),
		.tier = text(options, "tier"),
		.backend = text(options, "backend"),
		.workspace = text(options, "workspace"),
		.at = text(options, "at"),
		.network = text(options, "network"),
		.allow = texts(options, "allow"),
		.mounts = texts(options, "mounts"),
		.limits = texts(options, "limits"),
		.env = texts(options, "env"),
		.tags = texts(options, "tags"),
		.run_dir = text(options, "run_dir"),
		.pool = text(options, "pool"),
		.no_record = flag(options, "no_record"),
	};

	return csn_open(&all, err);
}

static json_t *do_open(csn_sandbox *sandbox, const json_t *args)
{
	csn_error err;
	csn_sandbox *other = open_with(args, &err);

	(void)sandbox;
	if (!other)
		return failed(&err);
	csn_close(other);
	return json_object();
}

static const struct {
	const char *name;
	json_t *(*make)(csn_sandbox *sandbox, const json_t *args);
} calls[] = {
	{ "ps", do_ps },         { "logs", do_logs },         { "wait", do_wait },
	{ "kill", do_kill },     { "read", do_read },         { "write", do_write },
	{ "edit", do_edit },     { "stat", do_stat },         { "list", do_list },
	{ "remove", do_remove }, { "move", do_move },         { "glob", do_glob },
	{ "grep", do_grep },     { "mount", do_mount },       { "diff", do_diff },
	{ "commit", do_commit }, { "snapshot", do_snapshot }, { "stats", do_stats },
	{ "verbs", do_verbs },   { "open", do_open },
};

static json_t *answer(csn_sandbox *sandbox, const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "call"));
	const json_t *args = json_object_get(row, "args");

	if (strcmp(name, "exec") == 0)
		return do_exec(sandbox, args, json_object_get(row, "meanwhile"));
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].make(sandbox, args);
	return NULL;
}

int main(int argc, char **argv)
{
	json_t *story = json_load_file(argc > 1 ? argv[1] : "/dev/stdin", 0, NULL);
	const json_t *rows = json_object_get(story, "rows");
	csn_error err;
	csn_sandbox *sandbox = open_with(json_object_get(story, "open"), &err);

	if (!sandbox) {
		fprintf(stderr, "conformance: %s: %s\n", err.stage, err.text);
		return 1;
	}
	for (size_t i = 0; i < json_array_size(rows); i++) {
		json_t *said = answer(sandbox, json_array_get(rows, i));

		if (!said) {
			fprintf(stderr, "conformance: row %zu: no such call\n", i);
			return 1;
		}
		json_dumpf(said, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(said);
	}
	csn_close(sandbox);
	json_decref(story);
	return 0;
}
