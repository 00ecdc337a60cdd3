/*
 * Opening a layer, and what in it may not pass unasked
 *
 * Some names make other programs run something on the host: a git hook, an editor's task, a
 * shell's .envrc. What a sandbox wrote under such a name is code that would run outside the
 * wall, so it is applied only when a person names it.
 */
#include "cli/cow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/out.h"
#include "cli/project.h"

enum { PATH_TEXT_MAX = 8 * PATH_MAX };

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

static int open_folders(struct cow *cow, struct csn_error *err)
{
	char path[RUN_ID_SIZE + 16];

	snprintf(path, sizeof path, "%s/cow/upper", cow->run.id);
	cow->upper_fd = layer_open(cow->run.root_fd, path, O_DIRECTORY);
	if (cow->upper_fd < 0)
		return csn_fail(err, cow->upper_fd, "cow",
				"run %s kept no layer of changes; it must be started with --cow "
				"and a record",
				cow->run.id);
	cow->lower_fd = open(cow->workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cow->lower_fd < 0)
		return csn_fail(err, -errno, "cow", "cannot open the workspace %s: %s",
				cow->workspace, strerror(errno));
	return 0;
}

bool cow_is_kept(int root_fd, const char *run_id)
{
	char path[RUN_ID_SIZE + 16];
	struct stat st;

	snprintf(path, sizeof path, "%s/cow/upper", run_id);
	return fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
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

int cow_open(const struct cli *cli, struct cow *cow, struct csn_error *err)
{
	int r;

	cow->paths = cli->args + 1;
	cow->path_count = cli->arg_count > 1 ? cli->arg_count - 1 : 0;
	/* "" is the last run elsewhere: too easily an unset variable here. */
	if (cli->arg_count && !cli->args[0][0])
		return csn_fail(err, -EINVAL, "usage", "an empty text names no run");
	r = cli->arg_count ? run_open(cli, cli->args[0], &cow->run, err)
			   : open_newest(cli, cow, err);
	if (r == 0)
		r = run_read_result(&cow->run, err);
	if (r < 0)
		return r;
	snprintf(cow->workspace, PATH_MAX, "%s", find_workspace(cow->run.result));
	if (cow->workspace[0] != '/')
		return csn_fail(err, -ENOENT, "cow",
				"run %s had no copy-on-write workspace; start it with --cow",
				cow->run.id);
	r = open_folders(cow, err);
	if (r == 0)
		r = record_list(cow->run.root_fd, note_start, cow, err);
	return r < 0 ? r : layer_read(cow->upper_fd, cow->lower_fd, &cow->layer, err);
}

void cow_done(struct cow *cow)
{
	layer_done(&cow->layer);
	cow->upper_fd = fd_close(cow->upper_fd);
	cow->lower_fd = fd_close(cow->lower_fd);
	run_done(&cow->run);
}

/* Is `path` the path `above` or beneath it? Both relative. */
static bool is_at_or_beneath(const char *path, const char *above)
{
	size_t length = strlen(above);

	return strncmp(path, above, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* A path as a person types it, without "./" and trailing slashes. */
static void tidy(const char *typed, char ret_path[PATH_MAX])
{
	char absolute[PATH_MAX];

	if (path_join("/", typed, absolute, sizeof absolute) < 0)
		snprintf(absolute, sizeof absolute, "/%s", typed);
	snprintf(ret_path, PATH_MAX, "%s", absolute + 1);
}

/* Does a named path cover the entry? */
static bool covers(const char *named, const struct layer_entry *entry)
{
	bool is_new_folder = entry->change == LAYER_ADDED && S_ISDIR(entry->now.st_mode);

	return !*named || is_at_or_beneath(entry->path, named) ||
	       (is_new_folder && is_at_or_beneath(named, entry->path));
}

void cow_say_nothing(const struct cli *cli)
{
	if (!cli->options.json && !cli->options.quiet)
		fputs("nothing changed\n", stderr);
}

bool cow_is_named(const struct cow *cow, const struct layer_entry *entry)
{
	char path[PATH_MAX];

	for (int i = 0; i < cow->path_count; i++) {
		tidy(cow->paths[i], path);
		if (covers(path, entry))
			return true;
	}
	return cow->path_count == 0;
}

/* What git itself writes when a sandbox commits; everything else in .git can run programs. */
static const char *const git_data[] = { "objects",    "refs",       "logs",           "index",
					"HEAD",       "ORIG_HEAD",  "FETCH_HEAD",     "MERGE_HEAD",
					"MERGE_MSG",  "MERGE_MODE", "COMMIT_EDITMSG", "packed-refs",
					"description" };

static bool is_git_data(const char *tail)
{
	for (size_t i = 0; i < ARRAY_SIZE(git_data); i++)
		if (is_at_or_beneath(tail, git_data[i]))
			return !is_at_or_beneath(tail, "objects/info");
	return false;
}

/* Names of files and folders at any depth, and who runs what is in them. */
static const struct {
	const char *name;
	const char *who;
} guarded[] = {
	{ ".git", "git runs programs that it names" },      { ".envrc", "direnv runs it" },
	{ ".vscode", "an editor runs its tasks" },          { ".idea", "an editor runs its tasks" },
	{ ".devcontainer", "an editor runs its commands" },
};

/* Names that mean the same for every policy. */
static const char *guard_by_name(const char *path)
{
	size_t length;

	if (str_starts(path, ".git/") && is_git_data(path + strlen(".git/")))
		return NULL;
	for (const char *part = path; *part; part += length + (part[length] == '/')) {
		length = strcspn(part, "/");
		for (size_t i = 0; i < ARRAY_SIZE(guarded); i++)
			/* Without regard to case: so do some file systems. */
			if (strlen(guarded[i].name) == length &&
			    strncasecmp(part, guarded[i].name, length) == 0)
				return guarded[i].who;
	}
	return NULL;
}

/* Protected names are paths. What is put in the place of a folder above one changes it too. */
static bool is_protected(const char *name, const char *path, bool is_folder)
{
	size_t length = strlen(name), size = strlen(path);

	if (strncasecmp(path, name, length) == 0 && (path[length] == 0 || path[length] == '/'))
		return true;
	return !is_folder && size < length && name[size] == '/' &&
	       strncasecmp(name, path, size) == 0;
}

/* What the policy that was in force protected or hid. */
static const char *guard_by_policy(const json_t *result, const char *path, bool is_folder)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(result, "protect"), i, item) {
		const char *name = json_string_value(item);

		if (name && *name && is_protected(name, path, is_folder))
			return "the policy protects it";
	}
	json_array_foreach(json_object_get(result, "hide"), i, item) {
		const char *pattern = json_string_value(item);

		if (pattern && *pattern && str_path_covers(pattern, path))
			return "the policy hides it";
	}
	return NULL;
}

static const char *guard(const struct cow *cow, const char *path, bool is_folder)
{
	const char *who = guard_by_name(path);

	return who ? who : guard_by_policy(cow->run.result, path, is_folder);
}

static bool is_folder(const struct layer_entry *entry)
{
	return S_ISDIR(entry->change == LAYER_DELETED ? entry->old.st_mode : entry->now.st_mode);
}

const char *cow_guard(const struct cow *cow, const struct layer_entry *entry)
{
	return guard(cow, entry->path, is_folder(entry));
}

const char *cow_objection(const struct cow *cow, const struct layer_entry *entry)
{
	const char *who = cow_guard(cow, entry);
	char named[PATH_MAX];

	/* Named itself, or with a folder that is guarded: naming "." is not naming .git. */
	for (int i = 0; who && i < cow->path_count; i++) {
		tidy(cow->paths[i], named);
		if (covers(named, entry) && (str_is(named, entry->path) || guard(cow, named, true)))
			return NULL;
	}
	return who;
}

bool cow_is_policy(const struct cow *cow, const char *path)
{
	const char *in_force = run_text(json_object_get(cow->run.result, "policy"), "path");
	const char *slash = strrchr(path, '/');
	char absolute[2 * PATH_MAX];

	snprintf(absolute, sizeof absolute, "%s/%s", cow->workspace, path);
	return strcasecmp(slash ? slash + 1 : path, POLICY_FILE_NAME) == 0 ||
	       str_is(absolute, in_force);
}

bool cow_link_leaves(const char *path, const char *target)
{
	int depth = 0;
	size_t length;

	if (target[0] == '/')
		return true;
	for (const char *at = path; (at = strchr(at, '/')); at++)
		depth++;
	for (const char *part = target; *part; part += length + (part[length] == '/')) {
		length = strcspn(part, "/");
		if (length == 2 && part[0] == '.' && part[1] == '.')
			depth--;
		else if (length > 0 && !(length == 1 && part[0] == '.'))
			depth++;
		if (depth < 0)
			return true;
	}
	return false;
}

char *cow_path_text(const struct layer_entry *entry)
{
	_cleanup_buf_ struct buf text;
	mode_t mode = entry->change == LAYER_DELETED ? entry->old.st_mode : entry->now.st_mode;

	buf_init(&text, PATH_TEXT_MAX);
	if (escape_add(&text, entry->path, strlen(entry->path), false) < 0 ||
	    (S_ISDIR(mode) && buf_add_byte(&text, '/') < 0) || !buf_text(&text))
		return NULL;
	return strdup(buf_text(&text));
}

const char *cow_change_name(const struct layer_entry *entry)
{
	static const char *const names[] = {
		[LAYER_ADDED] = "added", [LAYER_MODIFIED] = "modified", [LAYER_DELETED] = "deleted"
	};

	return names[entry->change];
}

const char *cow_kind_name(const struct layer_entry *entry)
{
	mode_t mode = entry->change == LAYER_DELETED ? entry->old.st_mode : entry->now.st_mode;

	if (S_ISREG(mode))
		return "file";
	if (S_ISLNK(mode))
		return "link";
	return S_ISDIR(mode) ? "folder" : "other";
}
