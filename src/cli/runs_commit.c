/*
 * caisson runs commit: apply a run's layer to the workspace
 *
 * Everything happens beneath the workspace's descriptor, without following a link: a folder
 * that became a link meanwhile is an error, not a way out. A file appears in one step under
 * its name, so a reader sees the old or the new one. What changed in the workspace since the
 * run, what is guarded and what cannot be applied is left out, and said.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cow.h"
#include "cli/out.h"

enum { BLOCK = 64 << 10, RECORDED_PATHS = 200, TEMPORARY_NAME = 40 };

struct commit {
	const struct cli *cli;
	struct cow *cow;
	json_t *applied; /* {"path","change"} */
	json_t *left;    /* {"path","change","reason"} */
};

/* ---- one entry ------------------------------------------------------------------------ */

/* A name that nobody has; the workspace is the caller's, so EXCL and a retry are enough. */
static void temporary_name(char *ret_name, size_t size)
{
	static unsigned count;

	snprintf(ret_name, size, ".caisson-%d-%u-%llx", (int)getpid(), count++,
		 (unsigned long long)clock_now_us());
}

/* Copies data, not holes: a sandbox can make a file of a tebibyte for nothing. */
static int copy_data(int from, int to, off_t size)
{
	char block[BLOCK];
	off_t at = 0, hole;
	ssize_t n;

	while (at < size && (at = lseek(from, at, SEEK_DATA)) >= 0 && at < size) {
		hole = lseek(from, at, SEEK_HOLE);
		hole = hole < 0 || hole > size ? size : hole;
		if (lseek(to, at, SEEK_SET) < 0)
			return -errno;
		for (; at < hole; at += n) {
			n = pread(from, block, hole - at < BLOCK ? (size_t)(hole - at) : BLOCK, at);
			if (n <= 0)
				return n < 0 ? -errno : -EIO;
			if (fd_write_all(to, block, (size_t)n) < 0)
				return -errno;
		}
	}
	return ftruncate(to, size) < 0 ? -errno : 0;
}

/* Gives a temporary file its bytes, mode and, where root replaces a user's file, its owner. */
static int fill_file(const struct commit *commit, const struct layer_entry *entry, int to)
{
	_cleanup_fd_ int from = layer_open(commit->cow->upper_fd, entry->path, 0);
	struct stat st;
	int r;

	if (from < 0)
		return from;
	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	r = copy_data(from, to, st.st_size);
	if (r < 0)
		return r;
	if (geteuid() == 0 && entry->change == LAYER_MODIFIED &&
	    fchown(to, entry->old.st_uid, entry->old.st_gid) < 0)
		return -errno;
	/* Never set-user-id: the owner is the caller, whoever wrote the bytes. */
	if (fchmod(to, st.st_mode & 0777) < 0 || fsync(to) < 0)
		return -errno;
	return 0;
}

static int rename_into_place(int dir_fd, const char *temporary, const char *name)
{
	if (renameat(dir_fd, temporary, dir_fd, name) == 0)
		return 0;
	return -errno;
}

static int put_file(const struct commit *commit, const struct layer_entry *entry, int dir_fd,
		    const char *name)
{
	char temporary[TEMPORARY_NAME];
	_cleanup_fd_ int fd = -1;
	int r;

	temporary_name(temporary, sizeof temporary);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fill_file(commit, entry, fd);
	if (r == 0)
		r = rename_into_place(dir_fd, temporary, name);
	if (r < 0)
		unlinkat(dir_fd, temporary, 0);
	return r;
}

static int read_target(const struct commit *commit, const struct layer_entry *entry,
		       char ret_target[PATH_MAX])
{
	_cleanup_fd_ int fd = -1;
	const char *name;
	ssize_t n;

	fd = layer_open_parent(commit->cow->upper_fd, entry->path, &name);
	if (fd < 0)
		return fd;
	n = readlinkat(fd, name, ret_target, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	ret_target[n] = 0;
	return 0;
}

static int put_link(const struct commit *commit, const struct layer_entry *entry, int dir_fd,
		    const char *name)
{
	char target[PATH_MAX], temporary[TEMPORARY_NAME];
	int r;

	r = read_target(commit, entry, target);
	if (r < 0)
		return r;
	temporary_name(temporary, sizeof temporary);
	if (symlinkat(target, dir_fd, temporary) < 0)
		return -errno;
	r = rename_into_place(dir_fd, temporary, name);
	if (r < 0)
		unlinkat(dir_fd, temporary, 0);
	return r;
}

static int put_folder(const struct layer_entry *entry, int dir_fd, const char *name)
{
	_cleanup_fd_ int fd = -1;

	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, entry->now.st_mode & 0777) < 0)
		return -errno;
	return 0;
}

static int apply(const struct commit *commit, const struct layer_entry *entry)
{
	_cleanup_fd_ int dir_fd = -1;
	const char *name;

	dir_fd = layer_open_parent(commit->cow->lower_fd, entry->path, &name);
	if (dir_fd < 0)
		return dir_fd;
	if (entry->change == LAYER_DELETED)
		return unlinkat(dir_fd, name, S_ISDIR(entry->old.st_mode) ? AT_REMOVEDIR : 0) < 0
			       ? -errno
			       : 0;
	if (S_ISDIR(entry->now.st_mode))
		return put_folder(entry, dir_fd, name);
	if (S_ISLNK(entry->now.st_mode))
		return put_link(commit, entry, dir_fd, name);
	return put_file(commit, entry, dir_fd, name);
}

/* ---- what is left out ------------------------------------------------------------------- */

/* Did somebody else change it after the run began? Its ctime cannot be set back. */
static bool has_changed_since(const struct commit *commit, const struct layer_entry *entry)
{
	const struct timespec *changed = &entry->old.st_ctim;

	if (entry->change == LAYER_ADDED || S_ISDIR(entry->old.st_mode) ||
	    commit->cow->started_ms == 0)
		return false;
	return (int64_t)changed->tv_sec * 1000 + changed->tv_nsec / 1000000 >
	       commit->cow->started_ms;
}

static bool is_named_link(const struct commit *commit, const struct layer_entry *entry)
{
	for (int i = 0; i < commit->cow->path_count; i++)
		if (str_is(commit->cow->paths[i], entry->path))
			return true;
	return false;
}

/* A sentence why the entry is left out, NULL if it is not. */
static const char *objection(const struct commit *commit, const struct layer_entry *entry)
{
	mode_t mode = entry->now.st_mode;
	char target[PATH_MAX];
	const char *who;

	if (cow_is_policy(commit->cow, entry->path))
		return "a policy file is never written";
	who = cow_objection(commit->cow, entry);
	if (who)
		return who;
	if (entry->is_unreadable)
		return "its mode keeps you out";
	if (entry->change != LAYER_DELETED && !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
		return "it is a device, a socket or a pipe";
	if (S_ISLNK(mode) && !is_named_link(commit, entry) &&
	    (read_target(commit, entry, target) < 0 || cow_link_leaves(entry->path, target)))
		return "the link points out of the workspace";
	if (!commit->cli->options.force && has_changed_since(commit, entry))
		return "it changed in the workspace since the run began; --force replaces it";
	return NULL;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void note(const struct commit *commit, const struct layer_entry *entry, const char *reason)
{
	static const char letters[] = {
		[LAYER_ADDED] = 'A', [LAYER_MODIFIED] = 'M', [LAYER_DELETED] = 'D'
	};
	char *name = cow_path_text(entry);
	json_t *value = json_pack("{s:s?, s:s}", "path", name, "change", cow_change_name(entry));

	if (reason)
		json_object_set_new(value, "reason", json_string(reason));
	json_array_append_new(reason ? commit->left : commit->applied, value);
	if (!commit->cli->options.json && reason)
		printf("  %s left out: %s\n", name ? name : "?", reason);
	else if (!commit->cli->options.json && !commit->cli->options.quiet)
		printf("%c %s\n", letters[entry->change], name ? name : "?");
	free(name);
}

static void commit_all(const struct commit *commit)
{
	const struct layer *layer = &commit->cow->layer;
	const char *reason;
	int r;

	for (size_t i = 0; i < layer->count; i++) {
		const struct layer_entry *entry = &layer->entries[i];

		if (!cow_is_named(commit->cow, entry))
			continue;
		reason = objection(commit, entry);
		if (!reason && !commit->cli->options.dry_run) {
			r = apply(commit, entry);
			reason = r < 0 ? strerror(-r) : NULL;
		}
		note(commit, entry, reason);
	}
}

/* The account of it, in the run's own chain. */
static int record_commit(const struct commit *commit, struct record *record, struct csn_error *err)
{
	json_t *paths = json_array();
	size_t count = json_array_size(commit->applied);

	for (size_t i = 0; i < count && i < RECORDED_PATHS; i++)
		json_array_append(paths, json_array_get(commit->applied, i));
	chain_add(&record->chain, EVENT_COMMITTED,
		  json_pack("{s:s, s:I, s:I, s:o}", "workspace", commit->cow->workspace, "applied",
			    (json_int_t)count, "left_out",
			    (json_int_t)json_array_size(commit->left), "paths", paths));
	return record_close(record, commit->cow->run.result, err);
}

/* Opens the record first: a record that does not verify or is in use stops everything. */
static int commit_recorded(const struct commit *commit, struct csn_error *err)
{
	struct record record;
	int r;

	if (commit->cli->options.dry_run) {
		commit_all(commit);
		return 0;
	}
	r = record_reopen(&record, commit->cow->run.root_fd, commit->cow->run.id, err);
	if (r < 0)
		return r;
	commit_all(commit);
	r = record_commit(commit, &record, err);
	record_done(&record);
	return r;
}

int cli_runs_commit(struct cli *cli)
{
	_cleanup_cow_ struct cow cow = COW_NONE;
	struct commit commit = { .cli = cli, .cow = &cow };
	struct csn_error err = { 0 };
	int status;

	if (cow_open(cli, &cow, &err) < 0)
		return cli_fail(cli, &err);
	commit.applied = json_array();
	commit.left = json_array();
	if (commit_recorded(&commit, &err) < 0)
		status = cli_fail(cli, &err);
	else
		status = json_array_size(commit.left) ? CLI_FAILED : CLI_OK;
	if (!err.code && json_array_size(commit.applied) + json_array_size(commit.left) == 0)
		cow_say_nothing(cli);
	if (cli->options.json && !err.code)
		out_json(json_pack("{s:s, s:s, s:b, s:O, s:O}", "run_id", cow.run.id, "workspace",
				   cow.workspace, "dry_run", cli->options.dry_run, "applied",
				   commit.applied, "left_out", commit.left));
	json_decref(commit.applied);
	json_decref(commit.left);
	return status;
}
