/*
 * caisson runs ls, show, verify, rm, gc: the records
 *
 * The audit room does the work; here is what a person and a program read of it.
 */
#include "cli/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/list.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cow.h"
#include "cli/lost.h"
#include "cli/out.h"
#include "cli/project.h"
#include "monitor/ending.h"
#include "monitor/pending.h"
#include "monitor/scratch.h"
#include "os/layer.h"
#include "policy/keys.h"
#include "policy/slip.h"

enum {
	RESULT_MAX_BYTES = 64 << 20,
	TERM_TEXT = 64,
	WORD_BYTES = 32 << 10,
	LINE_BYTES = 128 << 10,
	LABEL = 9,
	EVENTS_BYTES = 64 << 10, /* in which the start of a run is found */
	TIME_COLUMNS = 23,       /* with the blanks around it */
	END_COLUMNS = 19,        /* "timeout (command)" */
	LEAST_COMMAND = 8,
	DAY_MS = 24 * 3600 * 1000,
};

/* ---- finding and reading -------------------------------------------------------------- */

int run_open_root(const struct cli *cli, struct run *run, struct csn_error *err)
{
	int r;

	r = project_run_root(cli->options.run_dir, run->root, sizeof run->root, err);
	if (r < 0)
		return r;
	r = record_open_root(run->root, &run->root_fd, err);
	if (r == -ENOENT)
		return csn_fail(err, r, "record", "there are no records in %s yet", run->root);
	return r;
}

int run_open(const struct cli *cli, const char *name, struct run *run, struct csn_error *err)
{
	int r;

	r = run_open_root(cli, run, err);
	if (r < 0)
		return r;
	return record_resolve(run->root_fd, name, run->id, sizeof run->id, err);
}

static int read_result(struct run *run, int fd, struct csn_error *err)
{
	struct buf text;
	struct stat st;
	uint8_t *room;
	ssize_t n = -EINVAL;

	buf_init(&text, RESULT_MAX_BYTES);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < RESULT_MAX_BYTES) {
		room = buf_reserve(&text, (size_t)st.st_size + 1);
		n = room ? fd_read_all(fd, room, (size_t)st.st_size) : -ENOMEM;
		if (n >= 0)
			run->result = json_loadb((const char *)room, (size_t)n,
						 JSON_REJECT_DUPLICATES, NULL);
	}
	buf_done(&text);
	if (run->result && json_is_object(run->result))
		return 0;
	return csn_fail(
		err, n < 0 ? (int)n : -EBADMSG, "record",
		"the result of run %s cannot be read; `caisson runs verify %s` says what is wrong",
		run->id, run->id);
}

int run_read_result(struct run *run, struct csn_error *err)
{
	char path[RUN_ID_SIZE + 16];
	_cleanup_fd_ int fd = -1;

	snprintf(path, sizeof path, "%s/result.json", run->id);
	fd = layer_open(run->root_fd, path, 0);
	if (fd == -ENOENT)
		return lost_explain(run, err);
	if (fd < 0)
		return csn_fail(err, fd, "record", "cannot read the result of run %s: %s", run->id,
				strerror(-fd));
	return read_result(run, fd, err);
}

void run_done(struct run *run)
{
	run->root_fd = fd_close(run->root_fd);
	json_decref(run->result);
	run->result = NULL;
}

const char *run_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* "SIGKILL"; a real-time signal has no name of its own. */
static void describe_signal(const json_t *end, char *ret_text, size_t size)
{
	const char *name = run_text(end, "signal_name");
	json_int_t number = json_integer_value(json_object_get(end, "signal"));

	if (*name && !str_is(name, "SIGRT") && !str_is(name, "SIG?"))
		snprintf(ret_text, size, "%s", name);
	else
		snprintf(ret_text, size, "%lld", (long long)number);
}

/* A sandbox that stays has no command of its own: its end was asked for. */
static bool is_sandbox(const json_t *result)
{
	const json_t *command = json_object_get(result, "command");

	return json_is_array(command) && json_array_size(command) == 0;
}

void run_describe_end(const json_t *result, char *ret_text, size_t size)
{
	const json_t *end = json_object_get(result, "termination");
	const char *reason = run_text(end, "reason"), *clock = run_text(end, "clock");
	char signal[32];

	if (is_sandbox(result) && str_is(reason, "cancelled"))
		reason = "ended";
	describe_signal(end, signal, sizeof signal);
	if (str_is(reason, "exited"))
		snprintf(ret_text, size, "exited %d",
			 (int)json_integer_value(json_object_get(end, "exit_code")));
	else if (str_is(reason, "signaled"))
		snprintf(ret_text, size, "signal %s", signal);
	else if ((str_is(reason, "cancelled") || str_is(reason, "ended")) &&
		 json_is_integer(json_object_get(end, "signal")))
		snprintf(ret_text, size, "%s (%s)", reason, signal);
	else if (*clock)
		snprintf(ret_text, size, "%s (%s)", reason, clock);
	else
		snprintf(ret_text, size, "%s", reason);
}

void run_list_texts(const json_t *list, size_t most, char *ret_text, size_t size)
{
	const json_t *item;
	size_t i, used = 0;
	int n;

	*ret_text = 0;
	json_array_foreach(list, i, item) {
		const char *text = json_string_value(item);
		bool is_last = (most && i == most) || used + PATH_MAX / 16 > size;

		n = snprintf(ret_text + used, size - used, "%s%s", i ? ", " : "",
			     is_last ? "…"
			     : text  ? text
				     : "?");
		if (is_last || n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

bool run_describe_stop(const json_t *result, char *ret_text, size_t size)
{
	const json_t *end = json_object_get(result, "termination"), *limit;
	const char *reason = run_text(end, "reason");
	const struct ending_stop *stop = ending_stop_find(reason, run_text(end, "clock"));

	if (!stop)
		return false;
	limit = json_object_get(json_object_get(result, "limits"), stop->limit);
	if (*stop->limit && (!json_is_integer(limit) || json_integer_value(limit) <= 0))
		return false;
	ending_stop_say(stop, (uint64_t)json_integer_value(limit), ret_text, size);
	return true;
}

/* A word of a command as a shell takes it back; of one that is too long the start, and an error. */
static int add_word(struct buf *line, const char *word)
{
	char text[WORD_BYTES];
	int r = str_shell_word(word, text, sizeof text);

	if (r < 0)
		snprintf(text, sizeof text, "%s", word);
	return buf_printf(line, "%s%s", buf_size(line) ? " " : "", text) < 0 ? -E2BIG : r;
}

static void print_command(const json_t *command, size_t columns)
{
	const json_t *word;
	bool is_cut = false;
	struct buf line;
	size_t i;

	buf_init(&line, LINE_BYTES);
	json_array_foreach(command, i, word) {
		is_cut = json_is_string(word) && add_word(&line, json_string_value(word)) < 0;
		if (is_cut)
			break;
	}
	if (columns && buf_size(&line) > columns) {
		/* Not in the middle of a character. */
		while (columns > 0 && (buf_at(&line)[columns] & 0xc0) == 0x80)
			columns--;
		buf_at(&line)[columns] = 0;
		is_cut = true;
	}
	if (buf_text(&line))
		out_text(stdout, buf_text(&line));
	fputs(is_cut ? "…" : "", stdout);
	buf_done(&line);
}

static void print_sandbox(const char *name)
{
	printf("(sandbox%s", *name ? " " : "");
	out_text(stdout, name);
	putchar(')');
}

void run_print_command(const json_t *result, size_t columns)
{
	if (is_sandbox(result))
		print_sandbox(run_text(result, "sandbox"));
	else
		print_command(json_object_get(result, "command"), columns);
}

/* ---- ls ------------------------------------------------------------------------------- */

struct listing {
	const struct cli *cli;
	struct run *run;
	json_t *rows; /* for --json */
	bool has_head, has_any;
};

/* The command of a run without a result, from how it began; a new reference, NULL: unknown. */
static json_t *begun_command(const struct run *run)
{
	char path[RUN_ID_SIZE + 32], text[EVENTS_BYTES];
	_cleanup_fd_ int fd = -1;
	json_t *command = NULL;
	ssize_t n;

	snprintf(path, sizeof path, "%s/logs/events.jsonl", run->id);
	fd = layer_open(run->root_fd, path, 0);
	n = fd < 0 ? -1 : fd_read_all(fd, text, sizeof text - 1);
	if (n < 0)
		return NULL;
	text[n] = 0;
	for (char *line = text, *end; !command && (end = strchr(line, '\n')); line = end + 1) {
		json_t *event = json_loadb(line, (size_t)(end - line), 0, NULL);

		if (str_is(run_text(event, "event"), "RunStarted"))
			command = json_incref(
				json_object_get(json_object_get(event, "payload"), "command"));
		json_decref(event);
	}
	return command;
}

static json_t *row_json(const struct run_info *info, const struct run *run, json_t *command)
{
	const json_t *result = run->result;
	char time[CLOCK_TEXT];

	clock_format(info->started_ms, time);
	return json_pack("{s:s, s:s, s:s, s:I, s:b, s:b, s:O?, s:O?, s:O?}", "run_id", info->run_id,
			 "status", info->status, "started", time, "size_bytes",
			 (json_int_t)info->size_bytes, "kept", info->is_kept, "cow",
			 cow_is_kept(run->root_fd, info->run_id), "runtime",
			 json_object_get(result, "runtime"), "command", command, "termination",
			 json_object_get(result, "termination"));
}

/* What is left of the terminal's line for the command. */
static size_t room_after(size_t used)
{
	struct winsize size = { 0 };

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 ||
	    size.ws_col < used + LEAST_COMMAND)
		return COMMAND_COLUMNS;
	return size.ws_col - used - 1;
}

/* To a person the end of an id, which every command takes: its start is the time beside it. */
static const char *shown_id(const struct run_info *info)
{
	const char *end = strrchr(info->run_id, '-');

	return isatty(STDOUT_FILENO) && end ? end + 1 : info->run_id;
}

static void print_unfinished(const struct run *run)
{
	json_t *state = lost_state(run);

	print_sandbox(run_text(state, "sandbox"));
	json_decref(state);
}

static void print_run(const struct run_info *info, const struct run *run, const json_t *command)
{
	bool is_cow = cow_is_kept(run->root_fd, info->run_id);
	char time[CLOCK_TEXT], end[TERM_TEXT] = "";
	const char *id = shown_id(info);
	size_t used;

	clock_format(info->started_ms, time);
	time[strlen("2026-01-02T03:04:05")] = 0;
	time[strlen("2026-01-02")] = ' ';
	if (run->result)
		run_describe_end(run->result, end, sizeof end);
	if (!*end)
		snprintf(end, sizeof end, "%s", info->status);
	used = strlen(end);
	snprintf(end + used, sizeof end - used, "%s", is_cow ? ", cow" : "");
	used = strlen(end) + 2 > END_COLUMNS ? strlen(end) + 2 : END_COLUMNS;
	printf("%s  %s  ", id, time);
	/* Our own words, but the file could have been changed: escaped like the rest. */
	out_text(stdout, end);
	printf("%*s", (int)(used - strlen(end)), "");
	if (run->result && is_sandbox(run->result))
		print_sandbox(run_text(run->result, "sandbox"));
	else if (json_is_array(command) && json_array_size(command) == 0)
		print_unfinished(run);
	else
		print_command(command, room_after(strlen(id) + TIME_COLUMNS + used));
	putchar('\n');
}

/* For a person only: a program that reads the lines must not meet one that is no run. */
static void print_head(struct listing *listing, const struct run_info *first)
{
	if (listing->has_head || !isatty(STDOUT_FILENO))
		return;
	listing->has_head = true;
	printf("%s%-*s  %-*s%-*s%s%s\n", out_color(listing->cli, stdout, OUT_DIM),
	       (int)strlen(shown_id(first)), "RUN", TIME_COLUMNS - 2, "STARTED (UTC)", END_COLUMNS,
	       "END", "COMMAND", out_plain(listing->cli, stdout));
}

static int list_one(const struct run_info *info, void *data)
{
	struct listing *listing = data;
	struct run *run = listing->run;
	json_t *command;

	listing->has_any = true;
	snprintf(run->id, sizeof run->id, "%s", info->run_id);
	json_decref(run->result);
	run->result = NULL;
	run_read_result(run, NULL);
	command = run->result ? json_incref(json_object_get(run->result, "command"))
			      : begun_command(run);
	if (listing->rows) {
		json_array_append_new(listing->rows, row_json(info, run, command));
	} else {
		print_head(listing, info);
		print_run(info, run, command);
	}
	json_decref(command);
	return 0;
}

/* Ids and nothing else, for programs and completion: no run is opened, so it is quick. */
static int list_quietly(int root_fd, struct csn_error *err)
{
	char(*ids)[RUN_ID_SIZE] = NULL;
	size_t count = 0;
	int r = list_ids(root_fd, &ids, &count);

	for (size_t i = 0; r == 0 && i < count; i++)
		puts(ids[i]);
	free(ids);
	return r < 0 ? csn_fail(err, r, "record", "cannot read the run root: %s", strerror(-r)) : 0;
}

static int list_runs(const struct cli *cli, struct run *run, struct listing *listing,
		     struct csn_error *err)
{
	if (cli->options.quiet && !cli->options.json)
		return list_quietly(run->root_fd, err);
	return record_list(run->root_fd, list_one, listing, err);
}

int cli_runs_ls(struct cli *cli)
{
	_cleanup_run_ struct run run = RUN_NONE;
	struct listing listing = { .cli = cli, .run = &run };
	struct csn_error err = { 0 };
	int r;

	r = run_open_root(cli, &run, &err);
	if (r < 0 && r != -ENOENT)
		return cli_fail(cli, &err);
	if (cli->options.json)
		listing.rows = json_array();
	if (r == 0)
		r = list_runs(cli, &run, &listing, &err);
	if (r < 0 && r != -ENOENT) {
		json_decref(listing.rows);
		return cli_fail(cli, &err);
	}
	if (!listing.has_any)
		out_empty(cli, "there are no records of runs here; each `caisson run -- COMMAND` "
			       "leaves one (--run-dir names another folder)");
	return cli->options.json ? out_json(listing.rows) : CLI_OK;
}

/* ---- show ----------------------------------------------------------------------------- */

static void print_label(const char *label)
{
	printf("%-*s ", LABEL, label);
}

/* Numbers of the result's usage, in the order of the line. */
static const struct usage_field {
	const char *key, *name;
	bool is_size;
} usage_fields[] = {
	{ "wall_ms", "wall", false },         { "cpu_ms", "cpu", false },
	{ "mem_peak_bytes", "memory", true }, { "stdout_bytes", "stdout", true },
	{ "stderr_bytes", "stderr", true },
};

static void print_usage(const json_t *result)
{
	const json_t *usage = json_object_get(result, "usage"), *value;
	const char *comma = "";
	char text[32];
	double number;

	print_label("usage");
	for (size_t i = 0; i < ARRAY_SIZE(usage_fields); i++) {
		value = json_object_get(usage, usage_fields[i].key);
		number = json_number_value(value);
		if (!json_is_number(value) || number < 0 || number > 1e15)
			continue;
		if (usage_fields[i].is_size)
			str_format_size((uint64_t)number, text, sizeof text);
		else
			snprintf(text, sizeof text, "%.0f ms", number);
		printf("%s%s %s", comma, usage_fields[i].name, text);
		comma = ", ";
	}
	putchar('\n');
}

static void print_list(const char *label, const json_t *list)
{
	char start[LABEL + 2];
	const json_t *item;
	struct buf line;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	snprintf(start, sizeof start, "%-*s ", LABEL, label);
	buf_init(&line, LINE_BYTES);
	json_array_foreach(list, i, item) {
		const char *text = json_string_value(item);

		/* An entry may be an object that says why. */
		text = text ? text : run_text(item, "what");
		if (buf_printf(&line, "%s%s", i ? ", " : "", text) < 0)
			break;
	}
	if (buf_text(&line))
		out_tell(stdout, &(struct out_told){ .label = start,
						     .text = buf_text(&line),
						     .hang = LABEL + 1 });
	buf_done(&line);
}

static void print_error(const json_t *result)
{
	const json_t *error = json_object_get(result, "error");

	if (!json_is_object(error))
		return;
	print_label("error");
	out_text(stdout, run_text(error, "text"));
	putchar('\n');
}

static void print_policy(const json_t *policy)
{
	const json_t *modified = json_object_get(policy, "modified");
	const char *path = run_text(policy, "path"), *commit = run_text(policy, "commit");

	out_text(stdout, *path ? path : "built-in defaults");
	if (*commit) {
		fputs(" (commit ", stdout);
		out_text(stdout, commit);
		printf("%s)", json_is_true(modified) ? ", modified" : "");
	}
	putchar('\n');
}

static void print_hidden(const json_t *result)
{
	char text[RUN_HIDDEN_TEXT];

	run_list_texts(json_object_get(result, "hidden"), 0, text, sizeof text);
	print_label("hidden");
	out_text(stdout, text);
	puts(" (workspace.hide)");
}

static void print_result(const struct run *run)
{
	const json_t *result = run->result, *policy = json_object_get(result, "policy");
	json_t *snapshots = cow_snapshots(run->root_fd, run->id);
	size_t denied = json_array_size(json_object_get(result, "violations"));
	char end[TERM_TEXT];

	run_describe_end(result, end, sizeof end);
	printf("%-*s %s\n", LABEL, "run", run->id);
	print_label("command");
	run_print_command(result, 0);
	putchar('\n');
	print_label("wall");
	out_text(stdout, run_text(result, "runtime"));
	putchar('\n');
	print_label("end");
	out_text(stdout, end);
	putchar('\n');
	print_error(result);
	print_usage(result);
	if (denied)
		printf("%-*s %zu; `caisson why %s` explains\n", LABEL, "denied", denied, run->id);
	print_label("policy");
	print_policy(policy);
	if (json_array_size(json_object_get(result, "hidden")) > 0)
		print_hidden(result);
	print_list("enforced", json_object_get(result, "enforced"));
	print_list("tools", json_object_get(result, "toolchains"));
	print_list("unseen", json_object_get(result, "not_observed"));
	print_list("snapshots", snapshots);
	json_decref(snapshots);
	print_label("record");
	out_text(stdout, run->root);
	printf("/%s\n", run->id);
}

int cli_runs_show(struct cli *cli)
{
	_cleanup_run_ struct run run = RUN_NONE;
	struct csn_error err = { 0 };

	if (run_open(cli, cli->arg_count ? cli->args[0] : "", &run, &err) < 0 ||
	    run_read_result(&run, &err) < 0)
		return cli_fail(cli, &err);
	if (cli->options.json)
		return out_json(json_incref(run.result));
	print_result(&run);
	return CLI_OK;
}

/* ---- verify, rm, gc ------------------------------------------------------------------- */

int cli_runs_verify(struct cli *cli)
{
	_cleanup_run_ struct run run = RUN_NONE;
	struct verdict verdict = { 0 };
	struct csn_error err = { 0 };

	if (run_open(cli, cli->arg_count ? cli->args[0] : "", &run, &err) < 0 ||
	    record_verify(run.root_fd, run.id, &verdict, &err) < 0)
		return cli_fail(cli, &err);
	if (cli->options.json) {
		out_json(json_pack("{s:s, s:b, s:s?, s:I, s:s?}", "run_id", run.id, "good",
				   verdict.is_good, "file", verdict.is_good ? NULL : verdict.file,
				   "line", (json_int_t)verdict.line, "reason",
				   verdict.is_good ? NULL : verdict.reason));
	} else if (verdict.is_good) {
		printf("%s: good\n", run.id);
	} else {
		out_text(stdout, verdict.file);
		if (verdict.line)
			printf(":%llu", (unsigned long long)verdict.line);
		fputs(": ", stdout);
		out_text(stdout, verdict.reason);
		putchar('\n');
	}
	return verdict.is_good ? CLI_OK : CLI_FAILED;
}

int cli_runs_rm(struct cli *cli)
{
	struct csn_error err = { 0 };
	json_t *removed = json_array();
	int status = CLI_OK;

	for (int i = 0; i < cli->arg_count; i++) {
		_cleanup_run_ struct run run = RUN_NONE;

		/* "" means the last run elsewhere: too easily an unset variable here. */
		if (!cli->args[i][0])
			csn_fail(&err, -EINVAL, "usage", "an empty text names no run");
		if (!cli->args[i][0] || run_open(cli, cli->args[i], &run, &err) < 0 ||
		    record_remove(run.root_fd, run.id, &err) < 0) {
			status = cli_fail(cli, &err);
			continue;
		}
		json_array_append_new(removed, json_string(run.id));
		if (!cli->options.json && !cli->options.quiet)
			printf("removed %s\n", run.id);
	}
	if (cli->options.json && status == CLI_OK)
		return out_json(json_pack("{s:o}", "removed", removed));
	json_decref(removed);
	return status;
}

/* "; did you mean 120h?" for 5d: `key` is one of the same kind. */
static const char *meant(enum key_id key, const char *text, char ret_text[64])
{
	char value[SLIP_TEXT];

	ret_text[0] = 0;
	if (slip_value(&policy_keys[key], text, value))
		snprintf(ret_text, 64, "; did you mean %s?", value);
	return ret_text;
}

static int read_bounds(const struct cli_options *options, struct retention *ret_bounds,
		       struct csn_error *err)
{
	char near[64];

	if (options->max_runs && str_parse_u64(options->max_runs, 1u << 30, &ret_bounds->runs) < 0)
		return csn_fail(err, -EINVAL, "usage", "--runs %s is not a number of runs",
				options->max_runs);
	if (options->max_age && str_parse_duration(options->max_age, &ret_bounds->age_ms) < 0)
		return csn_fail(err, -EINVAL, "usage", "--age %s is not a time as 48h%s",
				options->max_age,
				meant(KEY_LIMITS_COMMAND, options->max_age, near));
	if (options->max_size && str_parse_size(options->max_size, &ret_bounds->bytes) < 0)
		return csn_fail(err, -EINVAL, "usage", "--size %s is not a size as 500MiB%s",
				options->max_size,
				meant(KEY_LIMITS_OUTPUT, options->max_size, near));
	return 0;
}

int cli_runs_gc(struct cli *cli)
{
	_cleanup_run_ struct run run = RUN_NONE;
	struct retention bounds = { .runs = 200, .age_ms = 7ull * DAY_MS, .bytes = 1ull << 30 };
	struct csn_error err = { 0 };
	int r;

	if (read_bounds(&cli->options, &bounds, &err) < 0)
		return cli_misuse(cli, &err);
	r = run_open_root(cli, &run, &err);
	/* What lost runs left elsewhere: placeholders in workspaces, folders in /tmp. */
	if (r == 0)
		pending_sweep(run.root, NULL);
	scratch_sweep(NULL);
	if (r == 0)
		r = record_retain(run.root_fd, &bounds, &err);
	if (r == -ENOENT)
		r = 0;
	if (r < 0)
		return cli_fail(cli, &err);
	if (cli->options.json)
		return out_json(json_pack("{s:i}", "removed", r));
	if (!cli->options.quiet)
		printf("removed %d\n", r);
	return CLI_OK;
}
