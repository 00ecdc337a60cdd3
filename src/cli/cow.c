/*
 * Opening the layer of a finished run: what the monitor knew of it stands in its result
 */
#include "cli/cow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/lost.h"
#include "cli/out.h"
#include "os/reach.h"

/* The copy-on-write mount of a result: the workspace. */
static const char *find_workspace(const json_t *result)
{
	const json_t *mount;
	size_t i;

	json_array_foreach(json_object_get(result, "mounts"), i, mount)
		if (str_is(run_text(mount, "access"), "cow") ||
		    str_is(run_text(mount, "mode"), "cow"))
			return run_text(mount, "host");
	return "";
}

static int note_start(const struct run_info *info, void *data)
{
	struct cow *cow = data;

	if (!str_is(info->run_id, cow->run.id))
		return 0;
	cow->started_ms = info->started_ms;
	return 1;
}

/* The texts of a list, ended by NULL; the array is owned, they are the list's. */
static const char **read_texts(const json_t *list)
{
	const char **texts = calloc(json_array_size(list) + 1, sizeof *texts);
	size_t count = 0, i;
	const json_t *item;

	json_array_foreach(list, i, item)
		if (texts && json_is_string(item))
			texts[count++] = json_string_value(item);
	return texts;
}

bool cow_is_kept(int root_fd, const char *run_id)
{
	char path[RUN_ID_SIZE + 16];
	struct stat st;

	snprintf(path, sizeof path, "%s/cow/upper", run_id);
	return fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

json_t *cow_snapshots(int root_fd, const char *run_id)
{
	char path[RUN_ID_SIZE + 16];
	json_t *list = json_array();
	struct dirent *entry;
	DIR *dir;
	int fd;

	snprintf(path, sizeof path, "%s/cow/snapshots", run_id);
	fd = layer_open(root_fd, path, O_DIRECTORY);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return list;
	}
	while ((entry = readdir(dir)))
		if (place_is_name(entry->d_name)) /* others are half copied */
			json_array_append_new(list, json_string(entry->d_name));
	closedir(dir);
	return list;
}

/* The newest run that has a layer, for record_list(). */
struct newest {
	int root_fd;
	char id[RUN_ID_SIZE];
};

static int find_newest(const struct run_info *info, void *data)
{
	struct newest *newest = data;

	if (!cow_is_kept(newest->root_fd, info->run_id))
		return 0;
	snprintf(newest->id, sizeof newest->id, "%s", info->run_id);
	return 1;
}

/* The newest run of a sandbox, for record_list(). */
struct namesake {
	struct run *run;
	const char *name;
	char id[RUN_ID_SIZE];
};

static int find_namesake(const struct run_info *info, void *data)
{
	struct namesake *namesake = data;
	struct run run = { .root_fd = namesake->run->root_fd };
	json_t *state;
	bool is_it;

	snprintf(run.id, sizeof run.id, "%s", info->run_id);
	state = lost_state(&run);
	is_it = str_is(run_text(state, "sandbox"), namesake->name);
	json_decref(state);
	if (is_it)
		snprintf(namesake->id, sizeof namesake->id, "%s", info->run_id);
	return is_it;
}

/* By its id, the end of that, or the name that its sandbox had: the last one of that name. What
 * means two runs is refused: a commit of the wrong one cannot be taken back. */
static int open_named(const struct cli *cli, struct cow *cow, struct csn_error *err)
{
	struct namesake namesake = { .run = &cow->run, .name = cli->args[0] };
	int r = run_open(cli, namesake.name, &cow->run, err), found;

	if ((r < 0 && r != -ENOENT && r != -ENOTUNIQ) || cow->run.root_fd < 0 ||
	    !place_is_name(namesake.name) || (r == 0 && str_is(cow->run.id, namesake.name)))
		return r;
	found = record_list(cow->run.root_fd, find_namesake, &namesake, r == 0 ? err : NULL);
	if (found <= 0 || (r == 0 && str_is(cow->run.id, namesake.id)))
		return r == 0 && found < 0 ? found : r;
	if (r != -ENOENT)
		return csn_fail(err, -ENOTUNIQ, "cow",
				"%s is the end of a run's id and the name of the sandbox of run "
				"%s; give an id that says which",
				namesake.name, namesake.id);
	snprintf(cow->run.id, sizeof cow->run.id, "%s", namesake.id);
	return 0;
}

/* Without a name: not the last run of all, which may have had nothing to do with a copy. */
static int open_newest(const struct cli *cli, struct cow *cow, struct csn_error *err)
{
	struct newest newest = { 0 };
	int r = run_open(cli, "", &cow->run, err);

	if (r < 0)
		return r;
	newest.root_fd = cow->run.root_fd;
	r = record_list(cow->run.root_fd, find_newest, &newest, err);
	if (r <= 0 || strcmp(newest.id, cow->run.id) == 0)
		return r < 0 ? r : 0;
	run_done(&cow->run);
	return run_open(cli, newest.id, &cow->run, err);
}

static int open_copy(struct cow *cow, struct csn_error *err)
{
	const json_t *result = cow->run.result;
	_cleanup_fd_ int run_fd = layer_open(cow->run.root_fd, cow->run.id, O_DIRECTORY);
	struct copy_facts facts = {
		.run_id = cow->run.id,
		.workspace = find_workspace(result),
		.policy_path = run_text(json_object_get(result, "policy"), "path"),
		.started_ms = cow->started_ms,
	};

	if (facts.workspace[0] != '/')
		return csn_fail(err, -ENOENT, "cow",
				"run %s had no copy-on-write workspace; start it with --cow",
				cow->run.id);
	facts.protect = cow->protect = read_texts(json_object_get(result, "protect"));
	facts.hide = cow->hide = read_texts(json_object_get(result, "hide"));
	if (!cow->protect || !cow->hide)
		return csn_fail(err, -ENOMEM, "cow", "out of memory");
	if (cow->reaches)
		reach_own_files(); /* where it cannot, what is closed is named */
	return copy_open(&cow->copy, run_fd, &facts, err);
}

static int read_facts(struct cow *cow, struct csn_error *err)
{
	int r = run_read_result(&cow->run, err);

	if (r != -ENOENT)
		return r;
	r = lost_read(&cow->run, err);
	cow->is_lost = r == 0;
	return r;
}

int cow_open(const struct cli *cli, struct cow *cow, struct csn_error *err)
{
	int r;

	if (cli->arg_count > 1)
		cow->copy.paths = (const char *const *)cli->args + 1;
	/* "" is the last run elsewhere: too easily an unset variable here. */
	if (cli->arg_count && !cli->args[0][0])
		return csn_fail(err, -EINVAL, "usage", "an empty text names no run");
	r = cli->arg_count ? open_named(cli, cow, err) : open_newest(cli, cow, err);
	if (r == 0)
		r = read_facts(cow, err);
	if (r == 0)
		r = record_list(cow->run.root_fd, note_start, cow, err);
	return r < 0 ? r : open_copy(cow, err);
}

void cow_done(struct cow *cow)
{
	copy_done(&cow->copy);
	free(cow->protect);
	free(cow->hide);
	run_done(&cow->run);
}

void cow_say_nothing(const struct cli *cli)
{
	if (!cli->options.json && !cli->options.quiet)
		fputs("nothing changed\n", stderr);
}
