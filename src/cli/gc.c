/*
 * caisson gc: removes what killed sandboxes and runs left, and says what it was
 *
 * Whoever lives holds a lock on all that is his; what nobody holds belongs to a dead one. Each room
 * knows its own leftovers and how to tell them from somebody else's: here they are only asked for,
 * in an order that ends processes first.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "backend/engine/engine.h"
#include "backend/oci/leftover.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/pool.h"
#include "base/removed.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cli/runs.h"
#include "monitor/limits.h"
#include "monitor/pending.h"
#include "monitor/scratch.h"

/* In the order in which they are removed. */
static const struct {
	const char *kind;
	const char *words; /* for a person */
} kinds[] = {
	{ "container", "the container of" },    { "bundle", "the container's bundle" },
	{ "group", "the control groups" },      { "run", "placeholders and scratch of the run" },
	{ "scratch", "the scratch folder" },    { "record", "the rest of the record" },
	{ "skeleton", "the unused root tree" }, { "name", "the name" },
	{ "pool", "the name of the pool" },
};

struct gc {
	const struct cli *cli;
	json_t *list;
	size_t count;
};

static void tell(void *data, const char *kind, const char *what)
{
	struct gc *gc = data;

	gc->count++;
	json_array_append_new(gc->list, json_pack("{s:s, s:s}", "kind", kind, "what", what));
	if (gc->cli->options.json || gc->cli->options.quiet)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_is(kinds[i].kind, kind))
			printf("removed %s ", kinds[i].words);
	out_text(stdout, what);
	putchar('\n');
}

/* ---- names ---------------------------------------------------------------------------------- */

/* "NAME.lock", "NAME.sock": cuts the ending off. */
static bool is_of_name(char *file)
{
	char *dot = strrchr(file, '.');

	if (!dot || (!str_is(dot, ".lock") && !str_is(dot, ".sock")))
		return false;
	*dot = 0;
	return place_is_name(file);
}

/* A listing may show what was removed since. */
static bool is_there(int place, const char *file)
{
	struct stat st;

	return fstatat(place, file, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* `place` may be below zero: `err` says why then. */
static int sweep_names(const struct removed *removed, int place, const char *kind,
		       struct csn_error *err)
{
	int fd = place < 0 ? -1 : openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (place < 0)
		return place;
	if (!dir) {
		int r = -errno;

		fd_close(fd);
		return csn_fail(err, r, "gc", "cannot list the sandboxes: %s", strerror(-r));
	}
	while ((entry = readdir(dir))) {
		if (!is_there(place, entry->d_name) || !is_of_name(entry->d_name))
			continue;
		if (!place_is_alive(place, entry->d_name))
			removed_tell(removed, kind, entry->d_name);
	}
	closedir(dir);
	return 0;
}

/* Of sandboxes, and of pools in the folder beside them. */
static int sweep_places(const struct removed *removed, struct csn_error *err)
{
	_cleanup_fd_ int place = place_open(err);
	_cleanup_fd_ int pools = -1;
	int r = sweep_names(removed, place, "name", err);

	if (r < 0 || !is_there(place, "pools"))
		return r; /* not made only to be looked at */
	pools = pool_place(err);
	return sweep_names(removed, pools, "pool", err);
}

/* ---- all ------------------------------------------------------------------------------------ */

static int sweep_records(const struct cli *cli, const struct removed *removed,
			 struct csn_error *err)
{
	_cleanup_run_ struct run run = RUN_NONE;
	int r = run_open_root(cli, &run, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r; /* nobody ran anything yet */
	pending_sweep(run.root, removed);
	record_sweep(run.root_fd, removed);
	return 0;
}

/* Their containers hold groups of their own. */
static void sweep_bundles(const struct cli *cli, const struct removed *removed)
{
	_cleanup_run_ struct run run = RUN_NONE;
	struct csn_error err;

	if (run_open_root(cli, &run, &err) >= 0)
		leftover_sweep(run.root, removed);
}

int cli_gc(struct cli *cli)
{
	struct gc gc = { .cli = cli, .list = json_array() };
	const struct removed removed = { tell, &gc };
	struct csn_error err = { 0 };
	int r;

	sweep_bundles(cli, &removed);
	limits_sweep(&removed); /* first: it ends what may still write to the rest */
	engine_sweep(&removed);
	r = sweep_records(cli, &removed, &err);
	scratch_sweep(&removed);
	if (r >= 0)
		r = sweep_places(&removed, &err);
	if (r < 0) {
		json_decref(gc.list);
		return cli_fail(cli, &err);
	}
	if (cli->options.json)
		return out_json(json_pack("{s:o}", "removed", gc.list));
	json_decref(gc.list);
	if (gc.count == 0 && !cli->options.quiet)
		puts("nothing was left");
	return CLI_OK;
}
