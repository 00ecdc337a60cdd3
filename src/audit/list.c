/*
 * Which runs there are. The ids sort by time, so the newest come first without opening
 * anything; a clock that was set back gives an older place in the list, nothing worse.
 */
#include "audit/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/files.h"
#include "base/tree.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

enum { STATE_MAX = 1 << 20 };

/* ---- one run -------------------------------------------------------------------------------- */

static bool is_there(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The process that state.json names. A pid alone may belong to another by now. */
static enum named_process { NAMED_NONE, NAMED_ALIVE, NAMED_GONE } look_at_process(int dir_fd)
{
	json_t *state = NULL;
	json_int_t pid, start;
	uint64_t ticks;

	if (files_read_json(dir_fd, "state.json", STATE_MAX, &state) < 0)
		return NAMED_NONE;
	pid = json_integer_value(json_object_get(state, "pid"));
	start = json_integer_value(json_object_get(state, "pid_start"));
	json_decref(state);
	if (pid <= 0 || start <= 0)
		return NAMED_NONE;
	if (files_process_start(pid, &ticks) == 0 && ticks == (uint64_t)start)
		return NAMED_ALIVE;
	return NAMED_GONE;
}

bool list_is_ending(int dir_fd)
{
	uint64_t ticks;

	/* Where /proc is hidden nobody seems to live. */
	return files_process_start(getpid(), &ticks) == 0 && look_at_process(dir_fd) == NAMED_GONE;
}

int list_fail_busy(int dir_fd, const char *run_id, struct csn_error *err)
{
	if (list_is_ending(dir_fd))
		return csn_fail(err, -EBUSY, "record", LIST_ENDING, run_id);
	return csn_fail(err, -EBUSY, "record", "%s is still running", run_id);
}

enum run_status list_status(int dir_fd)
{
	/* Shared, so that two who look at the same time do not see each other. */
	if (flock(dir_fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return RUN_RUNNING;
	flock(dir_fd, LOCK_UN);
	if (is_there(dir_fd, "result.json"))
		return RUN_FINISHED;
	return look_at_process(dir_fd) == NAMED_ALIVE ? RUN_RUNNING : RUN_LOST;
}

/* The time in an id: "20260102-030405-8000…" is half a second past 03:04:05. */
static int64_t id_time(const char *run_id)
{
	uint64_t date, clock, fraction = 0;
	char digits[9] = { 0 };
	struct tm tm = { 0 };

	memcpy(digits, run_id, 8);
	if (str_parse_u64(digits, 99999999, &date) < 0)
		return 0;
	memcpy(digits, run_id + 9, 6);
	digits[6] = 0;
	if (str_parse_u64(digits, 999999, &clock) < 0)
		return 0;
	for (const char *at = run_id + 16; at < run_id + 20; at++)
		fraction = fraction * 16 + (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
	tm.tm_year = (int)(date / 10000) - 1900;
	tm.tm_mon = (int)(date / 100 % 100) - 1;
	tm.tm_mday = (int)(date % 100);
	tm.tm_hour = (int)(clock / 10000);
	tm.tm_min = (int)(clock / 100 % 100);
	tm.tm_sec = (int)(clock % 100);
	return (int64_t)timegm(&tm) * 1000 + (int64_t)(fraction * 1000 / 65536);
}

int list_info(int root_fd, const char *run_id, bool has_size, struct run_info *ret_info)
{
	static const char *const names[] = {
		[RUN_RUNNING] = "running", [RUN_FINISHED] = "finished", [RUN_LOST] = "lost"
	};
	_cleanup_fd_ int fd = files_open_dir(root_fd, run_id);
	struct run_info info = { 0 };

	if (fd < 0)
		return fd;
	snprintf(info.run_id, sizeof info.run_id, "%s", run_id);
	snprintf(info.status, sizeof info.status, "%s", names[list_status(fd)]);
	info.started_ms = id_time(run_id);
	info.size_bytes = has_size ? tree_size(root_fd, run_id) : 0;
	info.is_kept = is_there(fd, "keep");
	*ret_info = info;
	return 0;
}

/* ---- all runs ---------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
	return strcmp(b, a);
}

static int read_ids(DIR *dir, char (**ids)[RUN_ID_SIZE], size_t *count)
{
	char(*more)[RUN_ID_SIZE];
	struct dirent *entry;
	size_t room = 0;

	while ((entry = readdir(dir))) {
		if (!record_is_id(entry->d_name))
			continue;
		if (*count == room) {
			room = room ? room * 2 : 256;
			more = realloc(*ids, room * sizeof **ids);
			if (!more)
				return -ENOMEM;
			*ids = more;
		}
		memcpy((*ids)[(*count)++], entry->d_name, strlen(entry->d_name) + 1);
	}
	return 0;
}

int list_ids(int root_fd, char (**ret_ids)[RUN_ID_SIZE], size_t *ret_count)
{
	int fd = files_open_dir(root_fd, "."), r; /* a place of its own: root_fd keeps its offset */
	char(*ids)[RUN_ID_SIZE] = NULL;
	size_t count = 0;
	DIR *dir;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return -ENOMEM;
	}
	r = read_ids(dir, &ids, &count);
	closedir(dir);
	if (r < 0) {
		free(ids);
		return r;
	}
	if (count)
		qsort(ids, count, sizeof *ids, newest_first);
	*ret_ids = ids;
	*ret_count = count;
	return 0;
}

int record_list(int root_fd, int (*each)(const struct run_info *info, void *data), void *data,
		struct csn_error *err)
{
	char(*ids)[RUN_ID_SIZE];
	struct run_info info;
	size_t count;
	int r = list_ids(root_fd, &ids, &count);

	if (r < 0)
		return files_fail(err, r, "read", "the run root");
	for (size_t i = 0; i < count && r == 0; i++) {
		if (list_info(root_fd, ids[i], true, &info) == 0) /* else removed a moment ago */
			r = each(&info, data);
	}
	free(ids);
	return r;
}

/* ---- names ------------------------------------------------------------------------------- */

static bool ends_in(const char *text, const char *tail)
{
	size_t size = strlen(text), tail_size = strlen(tail);

	return tail_size <= size && str_is(text + size - tail_size, tail);
}

static int resolve(char (*ids)[RUN_ID_SIZE], size_t count, const char *name, char *ret_id,
		   struct csn_error *err)
{
	_cleanup_buf_ struct buf candidates;
	size_t found = 0;

	buf_init(&candidates, 400);
	for (size_t i = 0; i < count && (*name || !found); i++) {
		if (!ends_in(ids[i], name))
			continue;
		if (found++ == 0)
			snprintf(ret_id, RUN_ID_SIZE, "%s", ids[i]);
		buf_printf(&candidates, "%s%s", found > 1 ? ", " : "", ids[i]); /* as many as fit */
	}
	if (found == 1)
		return 0;
	if (found > 1)
		return csn_fail(err, -ENOTUNIQ, "record", "%zu runs end in %s: %s", found, name,
				buf_text(&candidates));
	if (!*name)
		return csn_fail(err, -ENOENT, "record", "there are no runs here");
	return csn_fail(err, -ENOENT, "record", "no run ends in %s; `caisson runs ls` lists them",
			name);
}

/* A job's name is whole: nobody else's ends in it by chance. */
static bool is_job(int root_fd, const char *name)
{
	_cleanup_fd_ int fd = record_is_job_id(name) ? files_open_dir(root_fd, name) : -1;

	return fd >= 0 && is_there(fd, "logs/events.jsonl");
}

static int take_name(const char *name, char *ret_id, size_t size, struct csn_error *err)
{
	if (size <= strlen(name))
		return csn_fail(err, -ENOSPC, "record", "no room for a run id");
	memcpy(ret_id, name, strlen(name) + 1);
	return 0;
}

int record_resolve(int root_fd, const char *name, char *ret_id, size_t size, struct csn_error *err)
{
	char(*ids)[RUN_ID_SIZE], id[RUN_ID_SIZE];
	size_t count;
	int r;

	if (is_job(root_fd, name))
		return take_name(name, ret_id, size, err);
	r = list_ids(root_fd, &ids, &count);
	if (r < 0)
		return files_fail(err, r, "read", "the run root");
	r = resolve(ids, count, name, id, err);
	free(ids);
	if (r < 0)
		return r;
	return take_name(id, ret_id, size, err);
}
