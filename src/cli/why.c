/*
 * caisson why: what a run was denied, which rule decided, what would permit it
 *
 * Reads facts, never the program's output. The policy lines are printed from a table of
 * events; a path or a name in them goes through JSON quoting, which YAML reads too, so that a
 * hostile name cannot add lines to what a person pastes into a policy.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/dump.h"
#include "audit/list.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/out.h"
#include "cli/runs.h"

enum { HINT_MAX = 8192, LINE_MAX_BYTES = 64 << 10, SHORT_ID = 6 };

/* `"text"` as JSON writes it, without letters outside ASCII. */
static int add_quoted(struct buf *buf, const char *text)
{
	json_t *value = json_string(text);
	char *quoted = NULL;
	size_t size;
	int r = value ? dump_json(value, JSON_ENSURE_ASCII, &quoted, &size) : -ENOMEM;

	if (r == 0)
		r = buf_add(buf, quoted, size);
	free(quoted);
	json_decref(value);
	return r;
}

static int hint_network(const json_t *result, const json_t *violation, struct buf *hint)
{
	const json_t *detail = json_object_get(violation, "detail");
	const char *address = run_text(detail, "address");
	bool is_any = str_is(address, "::") || str_is(address, "0.0.0.0");

	(void)result;
	if (str_starts(address, "127.") || str_is(address, "::1") || is_any)
		return buf_add_text(hint, "network: {mode: loopback}");
	/* backend_choose() refuses mode allow: a line that leads to a refusal helps nobody. */
	return 0;
}

/* Folders that no policy should make writable from the host. */
static bool is_system(const char *path)
{
	static const char *const folders[] = { "/usr",  "/etc", "/bin", "/sbin", "/lib", "/lib64",
					       "/proc", "/sys", "/dev", "/boot", "/run" };

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (path_is_beneath(path, folders[i]))
			return true;
	return str_is(path, "/");
}

static int hint_mount(const char *host, const char *at, const char *mode, struct buf *hint)
{
	if (buf_add_text(hint, "mounts: [{host: ") < 0 || add_quoted(hint, host) < 0 ||
	    buf_add_text(hint, ", at: ") < 0 || add_quoted(hint, at) < 0)
		return -ENOMEM;
	return buf_printf(hint, ", mode: %s}]", mode);
}

/* The mount that a path inside lies in, the innermost one; NULL: none. */
static const json_t *find_mount(const json_t *result, const char *path)
{
	const json_t *mount, *found = NULL;
	size_t i;

	json_array_foreach(json_object_get(result, "mounts"), i, mount) {
		const char *at = run_text(mount, "at");

		if (at[0] == '/' && path_is_beneath(path, at) &&
		    (!found || strlen(at) > strlen(run_text(found, "at"))))
			found = mount;
	}
	return found;
}

#define HINT_START "workspace: {"

static bool is_covered(const char *key, const char *item, const char *tail)
{
	if (str_is(key, "hide"))
		return str_path_covers(item, tail);
	return *tail && (path_is_beneath(tail, item) || path_is_beneath(item, tail));
}

static bool has_cover(const json_t *result, const char *key, const char *tail)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(result, key), i, item)
		if (json_string_length(item) && is_covered(key, json_string_value(item), tail))
			return true;
	return false;
}

/* "KEY: [...]", a list of the workspace without what speaks of `tail`. */
static int add_list(const json_t *result, const char *key, const char *tail, struct buf *hint)
{
	bool is_first = buf_size(hint) == strlen(HINT_START);
	int r = buf_printf(hint, "%s%s: [", is_first ? "" : ", ", key);
	const char *comma = "";
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(result, key), i, item) {
		const char *text = json_string_value(item);

		if (r < 0 || !text || !*text || is_covered(key, text, tail))
			continue;
		r = buf_add_text(hint, comma);
		r = r < 0 ? r : add_quoted(hint, text);
		comma = ", ";
	}
	return r < 0 ? r : buf_add_text(hint, "]");
}

static const char in_copy_only[] =
	"   # in the copy only: workspace.protect keeps it out of the project";

/*
 * What has to change for a path of a workspace whose mode is `mode`: the mode, and each list that
 * matches, since a mode alone does not lend what a list keeps. A copy is another matter: there
 * protected names can be written, and runs commit leaves them out. Nothing if nothing matches.
 */
static int hint_workspace(const json_t *result, const char *tail, const char *mode,
			  struct buf *hint)
{
	bool is_ro = str_is(mode, "ro"), is_protected = has_cover(result, "protect", tail);
	int r = buf_add_text(hint, HINT_START);

	if (r == 0 && is_ro)
		r = buf_add_text(hint, "mode: cow");
	if (r == 0 && has_cover(result, "hide", tail))
		r = add_list(result, "hide", tail, hint);
	if (r == 0 && is_protected && str_is(mode, "rw"))
		r = add_list(result, "protect", tail, hint);
	if (r < 0 || buf_size(hint) == strlen(HINT_START)) {
		buf_clear(hint);
		return r;
	}
	return buf_printf(hint, "}%s", !is_ro ? "" : is_protected ? in_copy_only : "   # or rw");
}

/* What is hidden is so in every mode. */
static int hint_hidden(const json_t *result, const char *tail, struct buf *hint)
{
	int r;

	if (!has_cover(result, "hide", tail))
		return 0;
	r = buf_add_text(hint, HINT_START);
	r = r < 0 ? r : add_list(result, "hide", tail, hint);
	return r < 0 ? r : buf_add_text(hint, "}");
}

/* Is this the path that the rule of the record speaks of? */
static bool fits_rule(const json_t *result, const char *rule, const char *path)
{
	const json_t *mount = find_mount(result, path);
	bool is_workspace = json_is_true(json_object_get(mount, "workspace"));
	const char *tail = is_workspace ? path_tail(path, run_text(mount, "at")) : "";

	if (str_is(rule, "workspace.hide") || str_is(rule, "workspace.protect"))
		return is_workspace && has_cover(result, rule + strlen("workspace."), tail);
	if (str_starts(rule, "workspace."))
		return is_workspace;
	if (str_starts(rule, "mounts:"))
		return mount && !is_workspace;
	return !mount && !path_is_beneath(path, "/tmp");
}

const char *run_blamed_path(const json_t *result, const json_t *violation)
{
	const json_t *detail = json_object_get(violation, "detail");
	const char *path = run_text(detail, "path"), *to = run_text(detail, "to");
	const char *rule = run_text(violation, "rule");

	return *to && !fits_rule(result, rule, path) && fits_rule(result, rule, to) ? to : path;
}

static int hint_write(const json_t *result, const json_t *violation, struct buf *hint)
{
	const char *path = run_blamed_path(result, violation);
	const json_t *mount = find_mount(result, path);
	const char *at = run_text(mount, "at");
	const char *mode = run_text(mount, "mode");

	if (path[0] != '/')
		return 0;
	if (!mount)
		return is_system(path) ? 0 : hint_mount(path, path, "rw", hint);
	if (!json_is_true(json_object_get(mount, "workspace")))
		return str_is(mode, "ro") ? hint_mount(run_text(mount, "host"), at, "rw", hint) : 0;
	return hint_workspace(result, path_tail(path, at), mode, hint);
}

static int hint_read(const json_t *result, const json_t *violation, struct buf *hint)
{
	const char *path = run_text(json_object_get(violation, "detail"), "path");
	const json_t *mount = find_mount(result, path);

	if (path[0] != '/')
		return 0;
	if (!mount)
		return hint_mount(path, path, "ro", hint);
	if (!json_is_true(json_object_get(mount, "workspace")))
		return 0;
	return hint_hidden(result, path_tail(path, run_text(mount, "at")), hint);
}

/* A limit: its key in a policy, in a result, and how its value is written. */
struct limit {
	const char *key;
	const char *in_result;
	enum { UNIT_TIME, UNIT_SIZE, UNIT_NONE } unit;
};

/* Twice the limit that was in force. */
static int hint_limit(const json_t *result, const struct limit *limit, struct buf *hint)
{
	const json_t *value = json_object_get(json_object_get(result, "limits"), limit->in_result);
	bool is_scratch = str_is(limit->key, "scratch");
	char text[32] = "…";
	uint64_t number = (uint64_t)json_integer_value(value) * 2;

	if (!json_is_integer(value) || json_integer_value(value) <= 0)
		return 0;
	if (limit->unit == UNIT_TIME)
		str_format_duration(number, text, sizeof text);
	else if (limit->unit == UNIT_SIZE)
		str_format_size(number, text, sizeof text);
	else
		snprintf(text, sizeof text, "%llu", (unsigned long long)number);
	return buf_printf(hint, is_scratch ? "%s: {size: %s}" : "limits: {%s: %s}", limit->key,
			  text);
}

static int hint_timeout(const json_t *result, const json_t *violation, struct buf *hint)
{
	static const struct limit clocks[] = {
		{ "command", "command_ms", UNIT_TIME },
		{ "budget", "budget_ms", UNIT_TIME },
		{ "startup", "startup_ms", UNIT_TIME },
		{ "idle", "idle_ms", UNIT_TIME },
	};
	const char *clock = run_text(json_object_get(result, "termination"), "clock");

	(void)violation;
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (str_is(clock, clocks[i].key))
			return hint_limit(result, &clocks[i], hint);
	return 0;
}

static int hint_processes(const json_t *result, const json_t *violation, struct buf *hint)
{
	(void)violation;
	return hint_limit(result, &(struct limit){ "processes", "processes", UNIT_NONE }, hint);
}

static int hint_memory(const json_t *result, const json_t *violation, struct buf *hint)
{
	(void)violation;
	return hint_limit(result, &(struct limit){ "memory", "mem_bytes", UNIT_SIZE }, hint);
}

static int hint_output(const json_t *result, const json_t *violation, struct buf *hint)
{
	(void)violation;
	return hint_limit(result, &(struct limit){ "output", "output_bytes", UNIT_SIZE }, hint);
}

static int hint_scratch(const json_t *result, const json_t *violation, struct buf *hint)
{
	(void)violation;
	return hint_limit(result, &(struct limit){ "scratch", "scratch_bytes", UNIT_SIZE }, hint);
}

/* What would permit an event. No line for an event: nothing in a policy does. */
static const struct {
	const char *event;
	int (*hint)(const json_t *result, const json_t *violation, struct buf *hint);
} hints[] = {
	{ "NetworkAccessViolation", hint_network },  { "FilesystemWriteViolation", hint_write },
	{ "FilesystemReadViolation", hint_read },    { "TimeoutViolation", hint_timeout },
	{ "ProcessLimitViolation", hint_processes }, { "MemoryLimitViolation", hint_memory },
	{ "OutputLimitViolation", hint_output },     { "ScratchLimitViolation", hint_scratch },
};

static void find_hint(const json_t *result, const json_t *violation, struct buf *ret_hint)
{
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (str_is(hints[i].event, run_text(violation, "event")) &&
		    hints[i].hint(result, violation, ret_hint) < 0)
			buf_clear(ret_hint);
}

/* "path=/etc/passwd syscall=openat": texts and numbers of the detail. Keys too come from a file. */
static void print_detail(const json_t *detail)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)detail, key, value) {
		if (!json_is_integer(value) && !json_is_string(value))
			continue;
		putchar(' ');
		out_text(stdout, key);
		putchar('=');
		if (json_is_integer(value))
			printf("%lld", (long long)json_integer_value(value));
		else
			out_text(stdout, json_string_value(value));
	}
}

/* The program and the rule. A limit of the whole run has no program, a row of an older record no
 * rule. */
static void print_source(const char *comm, const char *rule)
{
	if (!*comm && !*rule)
		return;
	fputs("  by      ", stdout);
	out_text(stdout, comm);
	fputs(*comm && *rule ? ", rule " : *rule ? "rule " : "", stdout);
	out_text(stdout, rule);
	putchar('\n');
}

/* What is said where no line of a policy helps. */
static const char *no_hint(const json_t *violation)
{
	const char *address = run_text(json_object_get(violation, "detail"), "address");

	if (str_is(run_text(violation, "event"), "NetworkAccessViolation") &&
	    !str_starts(address, "unix:"))
		return "nothing in this build permits it (planned: network allow)";
	return "nothing in a policy permits it";
}

static void print_violation(const struct cli *cli, const json_t *result, const json_t *violation)
{
	json_int_t count = json_integer_value(json_object_get(violation, "count"));
	const json_t *detail = json_object_get(violation, "detail");
	_cleanup_buf_ struct buf hint;

	buf_init(&hint, HINT_MAX);
	fputs(out_color(cli, stdout, OUT_YELLOW), stdout);
	out_text(stdout, run_text(violation, "event"));
	fputs(out_plain(cli, stdout), stdout);
	print_detail(detail);
	if (count > 1)
		printf(" (%lld times)", (long long)count);
	puts(cli->options.verbose && json_is_false(json_object_get(violation, "certain"))
		     ? " (not certain)"
		     : "");
	print_source(run_text(violation, "comm"), run_text(violation, "rule"));
	out_tell(stdout, &(struct out_told){
				 .label = "say     ",
				 .text = run_text(violation, "say"),
				 .indent = 2,
				 .hang = 2 + (int)strlen("say     "),
				 .whole = { run_text(detail, "path"), run_text(detail, "to") } });
	find_hint(result, violation, &hint);
	fputs("  policy  ", stdout);
	out_text(stdout, buf_size(&hint) && buf_text(&hint) ? buf_text(&hint) : no_hint(violation));
	putchar('\n');
}

/* What a kind of fact is about, in a person's words. */
static const struct {
	const char *event, *words;
} kinds[] = {
	{ "NetworkAccessViolation", "network" },  { "FilesystemWriteViolation", "writes" },
	{ "FilesystemReadViolation", "reads" },   { "SyscallViolation", "system calls" },
	{ "ProcessLimitViolation", "processes" }, { "MemoryLimitViolation", "memory" },
	{ "ScratchLimitViolation", "scratch" },
};

static const char *words_of(const char *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_is(kinds[i].event, event))
			return kinds[i].words;
	return *event ? event : "?";
}

/* Was this reason told with an earlier kind? */
static bool is_told(const json_t *list, size_t before, const json_t *reasons, const char *why)
{
	for (size_t i = 0; i < before; i++) {
		const char *event = json_string_value(json_array_get(list, i));

		if (event && str_is(run_text(reasons, event), why))
			return true;
	}
	return false;
}

/* "reads, writes": every kind of the list from `at` on that has the same reason. */
static int add_kinds(const json_t *list, size_t at, const json_t *reasons, struct buf *line)
{
	const char *first = json_string_value(json_array_get(list, at));
	const char *why = first ? run_text(reasons, first) : "";
	int r = buf_add_text(line, words_of(first ? first : ""));

	for (size_t i = at + 1; r == 0 && *why && i < json_array_size(list); i++) {
		const char *event = json_string_value(json_array_get(list, i));

		if (event && str_is(run_text(reasons, event), why))
			r = buf_printf(line, ", %s", words_of(event));
	}
	return r < 0 || !*why ? r : buf_printf(line, ": %s", why);
}

/* The absence of a fact says little where nobody looked: what was not watched, and why. */
static void print_unseen(const json_t *result)
{
	const json_t *list = json_object_get(result, "not_observed"), *item;
	const json_t *reasons = json_object_get(result, "not_observed_why");
	size_t i;

	json_array_foreach(list, i, item) {
		const char *event = json_string_value(item);
		const char *why = event ? run_text(reasons, event) : "";
		_cleanup_buf_ struct buf line;

		if (*why && is_told(list, i, reasons, why))
			continue;
		buf_init(&line, LINE_MAX_BYTES);
		if (add_kinds(list, i, reasons, &line) == 0 && buf_text(&line))
			out_tell(stdout, &(struct out_told){ .label = "not watched: ",
							     .text = buf_text(&line) });
	}
}

/* Why it did not start, or was lost. */
static void print_error(const json_t *result)
{
	const char *text = run_text(json_object_get(result, "error"), "text");

	if (!*text)
		return;
	out_text(stdout, text);
	putchar('\n');
}

/* "3 s ago" */
static void format_age(int64_t age_ms, char *ret_text, size_t size)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = { { 24 * 3600 * 1000, "days" }, { 3600 * 1000, "h" }, { 60 * 1000, "min" } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (age_ms >= 2 * units[i].ms) {
			snprintf(ret_text, size, "%lld %s ago", (long long)(age_ms / units[i].ms),
				 units[i].unit);
			return;
		}
	snprintf(ret_text, size, "%lld s ago", (long long)(age_ms > 0 ? age_ms / 1000 : 0));
}

/* Which run this is: `run bef23f, 3 s ago: sh -c "…", exited 2` */
static void print_head(const struct run *run)
{
	size_t length = strlen(run->id);
	struct run_info info = { 0 };
	char age[32], end[96];

	printf("run %s", run->id + (length > SHORT_ID ? length - SHORT_ID : 0));
	if (list_info(run->root_fd, run->id, false, &info) >= 0 && info.started_ms > 0) {
		format_age(clock_wall_ms() - info.started_ms, age, sizeof age);
		printf(", %s", age);
	}
	fputs(": ", stdout);
	run_print_command(run->result, COMMAND_COLUMNS);
	fputs(", ", stdout);
	if (!run_describe_stop(run->result, end, sizeof end))
		run_describe_end(run->result, end, sizeof end);
	out_text(stdout, end);
	putchar('\n');
}

/* What it could not read although it is there. */
static void print_hidden(const json_t *result)
{
	char text[RUN_HIDDEN_TEXT];

	run_list_texts(json_object_get(result, "hidden"), 0, text, sizeof text);
	if (!*text)
		return;
	fputs("hidden  ", stdout);
	out_text(stdout, text);
	puts(" (workspace.hide)");
}

static json_t *why_json(const struct run *run)
{
	json_t *list = json_array(), *violation, *copy;
	struct buf hint;
	size_t i;

	json_array_foreach(json_object_get(run->result, "violations"), i, violation) {
		copy = json_copy(violation);
		buf_init(&hint, HINT_MAX);
		find_hint(run->result, violation, &hint);
		json_object_set_new(copy, "policy",
				    buf_size(&hint) ? json_string(buf_text(&hint)) : json_null());
		buf_done(&hint);
		json_array_append_new(list, copy);
	}
	return json_pack("{s:s, s:O?, s:O?, s:o, s:O?, s:O?}", "run_id", run->id, "termination",
			 json_object_get(run->result, "termination"), "error",
			 json_object_get(run->result, "error"), "violations", list, "not_observed",
			 json_object_get(run->result, "not_observed"), "not_observed_why",
			 json_object_get(run->result, "not_observed_why"));
}

int cli_why(struct cli *cli)
{
	_cleanup_run_ struct run run = RUN_NONE;
	struct csn_error err = { 0 };
	const json_t *violations, *violation;
	size_t i;

	if (run_open(cli, cli->arg_count ? cli->args[0] : "", &run, &err) < 0 ||
	    run_read_result(&run, &err) < 0)
		return cli_fail(cli, &err);
	if (cli->options.json)
		return out_json(why_json(&run));
	print_head(&run);
	print_error(run.result);
	violations = json_object_get(run.result, "violations");
	if (json_array_size(violations) == 0)
		puts("nothing was recorded as denied");
	json_array_foreach(violations, i, violation)
		print_violation(cli, run.result, violation);
	print_hidden(run.result);
	print_unseen(run.result);
	return CLI_OK;
}
