/*
 * caisson diff, caisson commit: of a sandbox that lives, or of a finished run
 *
 * A living one is asked over the library; a run's layer is opened here (runs_diff.c,
 * runs_commit.c). Both print the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/call.h"
#include "cli/changes_out.h"
#include "cli/out.h"

enum { PATH_TEXT_MAX = 32 << 10, LINE_BYTES = 8 << 20, FOREIGN_NAMES = 10 };

bool changes_is_living(const char *name)
{
	struct csn_error err = { 0 };
	_cleanup_fd_ int place = place_is_name(name) ? place_open(&err) : -1;

	return place >= 0 && place_is_alive(place, name);
}

/* ---- as they are printed ----------------------------------------------------------------- */

/* Safe to print, a folder with '/'; owned by the caller, NULL when out of memory. */
static char *path_text(const csn_change *change)
{
	_cleanup_buf_ struct buf text;

	buf_init(&text, PATH_TEXT_MAX);
	if (escape_add(&text, change->path, strlen(change->path), false) < 0 ||
	    (change->kind && str_is(change->kind, "folder") && buf_add_byte(&text, '/') < 0) ||
	    !buf_text(&text))
		return NULL;
	return strdup(buf_text(&text));
}

static char letter_of(const csn_change *change)
{
	return change->change[0] == 'a' ? 'A' : change->change[0] == 'm' ? 'M' : 'D';
}

static json_t *diff_json(const csn_change *change)
{
	csn_change other = { .path = change->other };
	char *name = path_text(change), *other_name = change->other ? path_text(&other) : NULL;
	json_t *value = json_pack("{s:s?, s:s, s:s, s:I, s:i, s:b}", "path", name, "change",
				  change->change, "kind", change->kind ? change->kind : "other",
				  "size", (json_int_t)change->size, "mode", (int)change->mode,
				  "guarded", change->guarded);

	if (other_name)
		json_object_set_new(value, letter_of(change) == 'D' ? "to" : "from",
				    json_string(other_name));
	free(name);
	free(other_name);
	return value;
}

static json_t *commit_json(const csn_change *changes, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		char *name = path_text(&changes[i]);
		json_t *value = json_pack("{s:s?, s:s}", "path", name, "change", changes[i].change);

		if (changes[i].reason)
			json_object_set_new(value, "reason", json_string(changes[i].reason));
		json_array_append_new(list, value);
		free(name);
	}
	return list;
}

static void say_truncated(bool is_truncated)
{
	if (is_truncated)
		fprintf(stderr, "caisson: there are more than can be listed; name paths\n");
}

/* ---- diff -------------------------------------------------------------------------------- */

/* Pieces come as they were cut; what is printed ends in a line. */
struct lines {
	const struct cli *cli;
	struct buf rest;
};

static int take_text(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct lines *lines = data;
	const char *end;
	size_t whole;

	(void)stream;
	if (lines->cli->options.json)
		return 0;
	if (buf_add(&lines->rest, bytes, size) < 0)
		return -E2BIG;
	end = memrchr(buf_at(&lines->rest), '\n', buf_size(&lines->rest));
	if (!end)
		return 0;
	whole = (size_t)(end - (const char *)buf_at(&lines->rest)) + 1;
	if (changes_print_text(lines->cli, buf_at(&lines->rest), whole) < 0)
		return -EIO;
	buf_consume(&lines->rest, whole);
	return 0;
}

/* Nothing of what was named has changed; is it there at all? */
static int find_named(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	for (int i = 1; i < cli->arg_count; i++) {
		csn_path_request request = { .path = cli->args[i] };
		csn_stat_result *st = NULL;
		int r = csn_stat(sandbox, &request, &st, err);

		csn_free(st);
		if (r == -CSN_ENOENT)
			return r;
	}
	return 0;
}

static int diff_living(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	struct lines lines = { .cli = cli };
	csn_changes_request request = { .names_only = cli->options.names_only || cli->options.json,
					.on_output = take_text,
					.output_data = &lines };
	csn_diff_result *diff = NULL;
	json_t *list;
	int r;

	if (cli->arg_count > 1)
		request.paths = (const char *const *)cli->args + 1;
	buf_init(&lines.rest, LINE_BYTES);
	r = csn_diff(sandbox, &request, &diff, err);
	buf_done(&lines.rest);
	if (r == 0 && diff->count == 0)
		r = find_named(cli, sandbox, err);
	if (r < 0) {
		csn_free(diff);
		return r;
	}
	list = json_array();
	for (size_t i = 0; cli->options.json && i < diff->count; i++)
		json_array_append_new(list, diff_json(&diff->changes[i]));
	if (diff->count == 0 && !cli->options.json && !cli->options.quiet)
		fputs("nothing changed\n", stderr);
	if (cli->options.json)
		out_json(json_pack("{s:s, s:O, s:b, s:I}", "sandbox", cli->args[0], "changes", list,
				   "truncated", diff->truncated, "foreign",
				   (json_int_t)diff->foreign));
	else if (!cli->options.quiet)
		say_truncated(diff->truncated);
	changes_say_foreign(cli, diff->foreign, diff->foreign_names, FOREIGN_NAMES);
	json_decref(list);
	csn_free(diff);
	return CLI_OK;
}

int cli_diff(struct cli *cli)
{
	return changes_is_living(cli->args[0]) ? call_verb(cli, diff_living) : cli_runs_diff(cli);
}

/* ---- commit ------------------------------------------------------------------------------ */

static void print_all(const struct cli *cli, const csn_change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *name = path_text(&changes[i]);

		changes_print_committed(cli, letter_of(&changes[i]), name ? name : "?",
					changes[i].reason);
		free(name);
	}
}

static void print_commit(const struct cli *cli, const csn_commit_result *commit)
{
	if (cli->options.json) {
		out_json(json_pack("{s:s, s:b, s:o, s:o, s:b}", "sandbox", cli->args[0], "dry_run",
				   cli->options.dry_run, "applied",
				   commit_json(commit->applied, commit->applied_count), "left_out",
				   commit_json(commit->left, commit->left_count), "truncated",
				   commit->truncated));
		return;
	}
	print_all(cli, commit->applied, commit->applied_count);
	print_all(cli, commit->left, commit->left_count);
	if (commit->applied_count + commit->left_count == 0 && !cli->options.quiet)
		fputs("nothing changed\n", stderr);
	say_truncated(commit->truncated);
}

static int commit_living(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_changes_request request = { .force = cli->options.force,
					.dry_run = cli->options.dry_run };
	csn_commit_result *commit = NULL;
	int status;

	if (cli->arg_count > 1)
		request.paths = (const char *const *)cli->args + 1;
	if (csn_commit(sandbox, &request, &commit, err) < 0)
		return -1;
	if (commit->applied_count + commit->left_count == 0 && find_named(cli, sandbox, err) < 0) {
		csn_free(commit);
		return -1;
	}
	print_commit(cli, commit);
	status = commit->left_count ? CLI_FAILED : CLI_OK;
	csn_free(commit);
	return status;
}

int cli_commit(struct cli *cli)
{
	return changes_is_living(cli->args[0]) ? call_verb(cli, commit_living)
					       : cli_runs_commit(cli);
}
