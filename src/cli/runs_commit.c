/*
 * caisson runs commit: apply a run's layer to the workspace
 *
 * The account of it goes into the run's own chain, which is opened first: a record that does not
 * verify or is in use stops everything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/changes_out.h"
#include "cli/cow.h"
#include "cli/out.h"
#include "monitor/copy_commit.h"

enum { RECORDED_PATHS = 200 };

struct committing {
	const struct cli *cli;
	const struct cow *cow;
	json_t *applied; /* {"path","change"} */
	json_t *left;    /* {"path","change","reason"} */
};

static void note(void *data, const struct layer_entry *entry, const char *reason)
{
	const struct committing *committing = data;
	char *name = copy_path_text(entry);
	json_t *value = json_pack("{s:s?, s:s}", "path", name, "change", copy_change_name(entry));

	if (reason)
		json_object_set_new(value, "reason", json_string(reason));
	json_array_append_new(reason ? committing->left : committing->applied, value);
	changes_print_committed(committing->cli, copy_change_letter(entry), name ? name : "?",
				reason);
	free(name);
}

/* The account of it, in the run's own chain. */
static int record_commit(const struct committing *committing, struct record *record,
			 struct csn_error *err)
{
	json_t *paths = json_array();
	size_t count = json_array_size(committing->applied);

	for (size_t i = 0; i < count && i < RECORDED_PATHS; i++)
		json_array_append(paths, json_array_get(committing->applied, i));
	chain_add(&record->chain, EVENT_COMMITTED,
		  json_pack("{s:s, s:I, s:I, s:o}", "workspace",
			    committing->cow->copy.facts.workspace, "applied", (json_int_t)count,
			    "left_out", (json_int_t)json_array_size(committing->left), "paths",
			    paths));
	if (committing->cow->is_lost) {
		chain_flush(&record->chain);
		return 0;
	}
	return record_close(record, committing->cow->run.result, err);
}

static int commit_recorded(struct committing *committing, struct csn_error *err)
{
	struct copy_book book = COPY_BOOK_NONE;
	const struct cli_options *options = &committing->cli->options;
	const struct copy *copy = &committing->cow->copy;
	const struct copy_commit commit = { .copy = copy,
					    .book = &book,
					    .is_forced = options->force,
					    .is_dry_run = options->dry_run,
					    .tell = note,
					    .data = committing };
	struct record record;
	int r = copy_book_open(&book, copy->cow_fd, !options->dry_run, err);

	if (r == 0 && !options->dry_run)
		r = record_reopen(&record, committing->cow->run.root_fd, committing->cow->run.id,
				  err);
	if (r >= 0)
		copy_commit_all(&commit);
	if (r >= 0 && !options->dry_run) {
		r = record_commit(committing, &record, err);
		record_done(&record);
	}
	copy_book_done(&book);
	return r;
}

int cli_runs_commit(struct cli *cli)
{
	_cleanup_cow_ struct cow cow = COW_NONE;
	struct committing committing = { .cli = cli, .cow = &cow };
	struct csn_error err = { 0 };
	int status;

	cow.reaches = true;
	if (cow_open(cli, &cow, &err) < 0)
		return cli_fail(cli, &err);
	committing.applied = json_array();
	committing.left = json_array();
	if (commit_recorded(&committing, &err) < 0)
		status = cli_fail(cli, &err);
	else
		status = json_array_size(committing.left) ? CLI_FAILED : CLI_OK;
	if (!err.code &&
	    json_array_size(committing.applied) + json_array_size(committing.left) == 0)
		cow_say_nothing(cli);
	if (cli->options.json && !err.code)
		out_json(json_pack("{s:s, s:s, s:b, s:O, s:O}", "run_id", cow.run.id, "workspace",
				   cow.copy.facts.workspace, "dry_run", cli->options.dry_run,
				   "applied", committing.applied, "left_out", committing.left));
	json_decref(committing.applied);
	json_decref(committing.left);
	return status;
}
