/*
 * caisson runs diff: what a run changed in its copy-on-write workspace
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/changes_out.h"
#include "cli/cow.h"
#include "cli/out.h"
#include "monitor/copy_diff.h"
#include "monitor/copy_foreign.h"

struct listing {
	const struct cli *cli;
	const struct cow *cow;
	json_t *list;
};

static int add_entry(void *data, const struct layer_entry *entry, const struct layer_entry *other)
{
	const struct listing *listing = data;
	bool is_gone = entry->change == LAYER_DELETED;
	char *name = copy_path_text(entry), *other_name = other ? copy_path_text(other) : NULL;
	json_t *value;

	value = json_pack("{s:s?, s:s, s:s, s:I, s:i, s:b}", "path", name, "change",
			  copy_change_name(entry), "kind", copy_kind_name(entry), "size",
			  (json_int_t)(is_gone ? entry->old.st_size : entry->now.st_size), "mode",
			  (int)(copy_mode(entry) & 07777), "guarded",
			  copy_guard(&listing->cow->copy, entry) != NULL);
	if (other_name)
		json_object_set_new(value, is_gone ? "to" : "from", json_string(other_name));
	free(name);
	free(other_name);
	return json_array_append_new(listing->list, value) < 0 ? -ENOMEM : 0;
}

static int print(void *data, const void *bytes, size_t size)
{
	const struct listing *listing = data;

	return changes_print_text(listing->cli, bytes, size);
}

/* Their number. */
static unsigned say_foreign(const struct cli *cli, const struct cow *cow)
{
	struct copy_foreign foreign;

	copy_find_foreign(cow->copy.lower_fd, &foreign);
	changes_say_foreign(cli, foreign.count, (const char *const *)foreign.names, foreign.named);
	copy_foreign_done(&foreign);
	return foreign.count;
}

int cli_runs_diff(struct cli *cli)
{
	_cleanup_cow_ struct cow cow = COW_NONE;
	struct listing listing = { .cli = cli, .cow = &cow };
	const struct copy_diff diff = { .copy = &cow.copy,
					.names_only = cli->options.names_only,
					.is_silent = cli->options.json,
					.write = print,
					.entry = cli->options.json ? add_entry : NULL,
					.data = &listing };
	struct csn_error err = { 0 };
	unsigned foreign = 0;
	int count;

	cow.reaches = true;
	if (cow_open(cli, &cow, &err) < 0)
		return cli_fail(cli, &err);
	listing.list = json_array();
	count = copy_diff_all(&diff);
	if (count < 0)
		csn_fail(&err, count, "diff", "cannot show the changes: %s", strerror(-count));
	if (count == 0)
		cow_say_nothing(cli);
	if (count >= 0)
		foreign = say_foreign(cli, &cow);
	if (count >= 0 && cli->options.json)
		return out_json(json_pack("{s:s, s:s, s:o, s:i}", "run_id", cow.run.id, "workspace",
					  cow.copy.facts.workspace, "changes", listing.list,
					  "foreign", (int)foreign));
	json_decref(listing.list);
	return count < 0 ? cli_fail(cli, &err) : CLI_OK;
}
