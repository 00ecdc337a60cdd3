/*
 * What is asked for, as a person reads it
 *
 * The texts come from whoever asks: a command may hold escapes that redraw the screen, a path may
 * look like another one. Everything goes through out_tell(), words of a command through
 * str_shell_word(), and nothing is cut: a person says yes to what he saw.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/approve.h"
#include "cli/out.h"

enum { COMMAND_SHOWN = 61, LABEL = 13, TEXT_MAX = 4 << 20, MINUTE_MS = 60 * 1000 };

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void tell(const char *label, const char *text)
{
	char start[LABEL + 1];

	snprintf(start, sizeof start, "%-*s", LABEL - 2, label);
	out_tell(stdout,
		 &(struct out_told){ .label = start, .text = text, .indent = 2, .hang = LABEL });
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static unsigned digit(char c)
{
	return c >= 'a' ? (unsigned)(c - 'a' + 10) & 15 : (unsigned)(c - '0') & 15;
}

/* What is no UTF-8 stands as {"hex": …}. The caller frees it; NULL: none, or out of memory. */
static char *bytes_of(const json_t *value)
{
	const char *hex = json_string_value(json_object_get(value, "hex"));
	size_t size = hex ? strlen(hex) / 2 : 0;
	char *bytes;

	if (json_is_string(value))
		return strdup(json_string_value(value));
	bytes = hex ? malloc(size + 1) : NULL;
	if (!bytes)
		return NULL;
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	bytes[size] = 0;
	return bytes;
}

/* As a shell takes it back, so that a name cannot look like more than one field. */
static void add_word(struct buf *buf, const char *text)
{
	size_t size = 8 * strlen(text) + 16;
	char *word = malloc(size);

	if (word && str_shell_word(text, word, size) == 0)
		buf_add_text(buf, word);
	free(word);
}

static void add_bytes(struct buf *buf, const json_t *value, bool quotes)
{
	char *bytes = bytes_of(value);

	if (bytes && quotes)
		add_word(buf, bytes);
	else if (bytes)
		buf_add_text(buf, bytes);
	free(bytes);
}

static void add_list(struct buf *buf, const json_t *list, const char *between, bool quotes)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		buf_add_text(buf, i ? between : "");
		add_bytes(buf, item, quotes);
	}
}

static void tell_bytes(const char *label, const json_t *value)
{
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, TEXT_MAX);
	add_bytes(&buf, value, true);
	tell(label, buf_text(&buf) ? buf_text(&buf) : "");
}

static void tell_list(const char *label, const json_t *list, bool quotes)
{
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, TEXT_MAX);
	if (!json_array_size(list))
		return;
	add_list(&buf, list, quotes ? " " : ", ", quotes);
	tell(label, buf_text(&buf) ? buf_text(&buf) : "");
}

/* ---- the command ----------------------------------------------------------------------------- */

/* A text of several lines, as it was written. */
static void print_script(const json_t *text)
{
	char *bytes = bytes_of(text), *line = bytes;

	puts("  command    this text, for the shell inside:");
	while (line && *line) {
		size_t n = strcspn(line, "\n");
		char end = line[n];

		line[n] = 0;
		fputs("    | ", stdout);
		out_text(stdout, line);
		putchar('\n');
		line += n + (end != 0);
	}
	free(bytes);
}

static void print_command(const json_t *terms)
{
	const json_t *command = json_object_get(terms, "command");

	if (json_is_array(command))
		tell_list("command", command, true);
	else if (json_is_object(command))
		print_script(json_object_get(command, "text"));
	else
		tell("command",
		     "ANY, as many as are asked for: a sandbox that stays, until it ends");
	tell_bytes("started in", json_object_get(terms, "cwd"));
}

/* ---- what is lent ---------------------------------------------------------------------------- */

static void print_lent(const char *label, const json_t *lent)
{
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, TEXT_MAX);
	add_bytes(&buf, json_object_get(lent, "host"), true);
	buf_add_text(&buf, " at ");
	add_bytes(&buf, json_object_get(lent, "at"), true);
	buf_printf(&buf, ", %s", text_of(lent, "mode"));
	if (json_array_size(json_object_get(lent, "hide"))) {
		buf_add_text(&buf, "; hidden: ");
		add_list(&buf, json_object_get(lent, "hide"), ", ", true);
	}
	if (json_array_size(json_object_get(lent, "protect"))) {
		buf_add_text(&buf, "; protected: ");
		add_list(&buf, json_object_get(lent, "protect"), ", ", true);
	}
	tell(label, buf_text(&buf) ? buf_text(&buf) : "");
}

static void print_mounts(const json_t *terms)
{
	json_t *mount;
	size_t i;

	if (json_is_object(json_object_get(terms, "workspace")))
		print_lent("workspace", json_object_get(terms, "workspace"));
	json_array_foreach(json_object_get(terms, "mounts"), i, mount)
		print_lent("mount", mount);
	tell_list("may add", json_object_get(terms, "mount_roots"), true);
	tell_list("tools", json_object_get(terms, "toolchains"), true);
}

static void print_limits(const json_t *terms)
{
	static const struct {
		const char *key, *name;
		enum { IN_MS, IN_BYTES, IN_MILLI, IN_ONES } unit;
	} rows[] = {
		{ "command_ms", "command", IN_MS },
		{ "budget_ms", "budget", IN_MS },
		{ "idle_ms", "idle", IN_MS },
		{ "cpu_milli", "cpus", IN_MILLI },
		{ "mem_bytes", "memory", IN_BYTES },
		{ "processes", "processes", IN_ONES },
		{ "output_bytes", "output", IN_BYTES },
		{ "scratch_bytes", "scratch", IN_BYTES },
		{ "open_files", "open files", IN_ONES },
	};
	const json_t *limits = json_object_get(terms, "limits");
	char line[512] = "", text[32];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && n < sizeof line; i++) {
		const json_t *value = json_object_get(limits, rows[i].key);
		uint64_t number = (uint64_t)json_integer_value(value);

		if (rows[i].unit == IN_MS && json_is_integer(value) && !number)
			continue; /* a clock that is off */
		if (!json_is_integer(value))
			snprintf(text, sizeof text, "none");
		else if (rows[i].unit == IN_MS)
			str_format_duration(number, text, sizeof text);
		else if (rows[i].unit == IN_BYTES)
			str_format_size(number, text, sizeof text);
		else if (rows[i].unit == IN_MILLI)
			snprintf(text, sizeof text, "%g", (double)number / 1000.0);
		else
			snprintf(text, sizeof text, "%" PRIu64, number);
		n += (size_t)snprintf(line + n, sizeof line - n, "%s%s %s", n ? ", " : "",
				      rows[i].name, text);
	}
	tell("limits", line);
}

/* ---- what comes in --------------------------------------------------------------------------- */

static json_t *names_of(const json_t *object)
{
	json_t *names = json_array();
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
		json_array_append_new(names, json_string(name));
	return names;
}

static void print_variables(const json_t *terms)
{
	json_t *names = names_of(json_object_get(terms, "env"));

	tell_list("variables", names, false);
	json_decref(names);
	if (json_is_true(json_object_get(terms, "env_any")))
		tell("", "and any that a call sets (overrides.per_request)");
}

static void print_input(const json_t *terms)
{
	const json_t *input = json_object_get(terms, "stdin");
	const char *kind = text_of(input, "kind");
	char line[160];

	if (str_is(kind, "none"))
		return;
	if (str_is(kind, "file"))
		snprintf(line, sizeof line, "a file of %" JSON_INTEGER_FORMAT " bytes, sha256 %s",
			 json_integer_value(json_object_get(input, "size")),
			 text_of(input, "sha256"));
	else
		snprintf(line, sizeof line,
			 "a terminal, pipe or socket: what comes from there is NOT known now");
	tell("input", line);
}

static void print_files(const char *label, const json_t *files)
{
	const char *path;
	json_t *file;

	json_object_foreach((json_t *)files, path, file) {
		_cleanup_buf_ struct buf buf;
		const char *why = text_of(file, "unbound");

		buf_init(&buf, TEXT_MAX);
		add_word(&buf, path);
		if (*why)
			buf_printf(&buf, ": its contents are NOT bound (%s)", why);
		else
			buf_printf(&buf, ": %" JSON_INTEGER_FORMAT " bytes, sha256 %s",
				   json_integer_value(json_object_get(file, "size")),
				   text_of(file, "sha256"));
		tell(label, buf_text(&buf) ? buf_text(&buf) : "");
	}
}

/* What the code may ask the host for, and what runs there then. */
static void print_gates(const json_t *terms)
{
	const char *name;
	json_t *gate;

	json_object_foreach(json_object_get(terms, "gates"), name, gate) {
		const json_t *command = json_object_get(gate, "command");
		_cleanup_buf_ struct buf buf;

		buf_init(&buf, TEXT_MAX);
		buf_printf(&buf, "%s: ", name);
		if (json_is_array(command))
			add_list(&buf, command, " ", true);
		else
			buf_add_text(&buf, "a function of the program that starts it");
		tell("gate", buf_text(&buf) ? buf_text(&buf) : "");
		print_files("its file", json_object_get(gate, "files"));
	}
}

/* ---- all ------------------------------------------------------------------------------------- */

static void format_left(const struct approval *approval, char *ret_text, size_t size)
{
	uint64_t step = approval->left_ms > 120 * MINUTE_MS ? 60 * MINUTE_MS
			: approval->left_ms > 2 * MINUTE_MS ? MINUTE_MS
							    : 1000;

	str_format_duration(approval->left_ms / step * step, ret_text, size);
}

void approve_print_line(const struct approval *approval)
{
	const json_t *command = json_object_get(approval->terms, "command");
	const char *time = text_of(approval->asked, "time");
	char left[32], begins[COMMAND_SHOWN], when[32];
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, TEXT_MAX);
	if (json_is_array(command))
		add_list(&buf, command, " ", true);
	else if (json_is_object(command))
		add_bytes(&buf, json_object_get(command, "text"), false);
	else
		buf_add_text(&buf, "ANY (a sandbox that stays)");
	str_escape(buf_text(&buf) ? buf_text(&buf) : "", false, begins, sizeof begins);
	str_escape(time, false, when, sizeof when);
	format_left(approval, left, sizeof left);
	printf("%s  %-8s  %-24s  %-7s  ", approval->id, approval_state_name(approval->state), when,
	       left);
	out_text(stdout, begins);
	puts(buf_text(&buf) && strlen(begins) < strlen(buf_text(&buf)) &&
			     strlen(begins) + STR_ESCAPED_MAX >= sizeof begins
		     ? "…"
		     : "");
}

static void print_head(const struct approval *approval)
{
	char left[32];

	format_left(approval, left, sizeof left);
	printf("%s %s, asked for by uid %" JSON_INTEGER_FORMAT ", process %" JSON_INTEGER_FORMAT
	       ", ",
	       approval_state_name(approval->state), approval->id,
	       json_integer_value(json_object_get(approval->asked, "uid")),
	       json_integer_value(json_object_get(approval->asked, "pid")));
	out_text(stdout, text_of(approval->asked, "time"));
	printf("; expires in %s\n", left);
}

void approve_print(const struct approval *approval)
{
	const json_t *terms = approval->terms;
	char wall[160];

	print_head(approval);
	print_command(terms);
	print_mounts(terms);
	snprintf(wall, sizeof wall, "%s, tier %s", text_of(terms, "backend"),
		 text_of(terms, "tier"));
	tell("wall", wall);
	tell_list("its program", json_object_get(terms, "wall_program"), true);
	if (!json_is_null(json_object_get(terms, "image")))
		tell_bytes("image", json_object_get(terms, "image"));
	tell("network", text_of(terms, "network"));
	tell_list("reaches", json_object_get(terms, "allow"), false);
	tell_list("forwards", json_object_get(terms, "forwards"), true);
	print_limits(terms);
	print_variables(terms);
	print_input(terms);
	print_files("file", json_object_get(terms, "files"));
	print_gates(terms);
	tell_list("tags", json_object_get(terms, "tags"), true);
	if (json_is_null(json_object_get(terms, "policy")))
		tell("policy", "built-in defaults");
	else
		tell_bytes("policy", json_object_get(terms, "policy"));
	tell("digest", approval->digest);
	tell("not bound", "other files of the workspace, what the command loads later, programs of "
			  "the system");
}

json_t *approve_json(const struct approval *approval)
{
	json_t *terms = json_copy(approval->terms), *object;

	json_object_set_new(terms, "env", names_of(json_object_get(approval->terms, "env")));
	object = json_pack("{s:s, s:s, s:s, s:I, s:O, s:O?, s:o}", "id", approval->id, "state",
			   approval_state_name(approval->state), "digest", approval->digest,
			   "expires_in_ms", (json_int_t)approval->left_ms, "asked", approval->asked,
			   "answered", approval->answered, "terms", terms);
	return object;
}
