/*
 * Removing runs: one by name, or the oldest beyond the bounds. A run is first renamed to a
 * name that is no run's, under its lock, and then taken apart: who looks meanwhile sees it
 * whole or not at all, and what a crash leaves is finished by the next call.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/files.h"
#include "audit/list.h"
#include "audit/roots.h"
#include "base/tree.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define GONE ".gone-" /* then the id */

static int remove_gone(int root_fd, const char *name, struct csn_error *err)
{
	int r = tree_remove(root_fd, name);

	if (r == -EXDEV || r == -EBUSY)
		return csn_fail(err, r, "record",
				"something is still mounted in %s: unmount it, then run "
				"`caisson runs gc`",
				name);
	return r < 0 && r != -ENOENT ? files_fail(err, r, "remove", name) : 0;
}

int record_remove(int root_fd, const char *run_id, struct csn_error *err)
{
	_cleanup_fd_ int fd = record_is_id(run_id) ? files_open_dir(root_fd, run_id) : -ENOENT;
	char gone[sizeof GONE + RUN_ID_SIZE];

	if (fd < 0)
		return files_fail(err, fd, "open the run", run_id);
	if (list_status(fd) == RUN_RUNNING ||
	    (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK))
		return list_fail_busy(fd, run_id, err);
	snprintf(gone, sizeof gone, GONE "%s", run_id);
	if (renameat(root_fd, run_id, root_fd, gone) < 0)
		return files_fail(err, -errno, "remove", run_id);
	return remove_gone(root_fd, gone, err);
}

/* Made ahead for a run that never was: whoever made it held its lock. */
static bool is_left_ahead(int root_fd, const char *name)
{
	_cleanup_fd_ int fd = -1;

	if (!str_starts(name, RECORD_AHEAD) || !record_is_id(name + strlen(RECORD_AHEAD)))
		return false;
	fd = files_open_dir(root_fd, name);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* What earlier calls began to remove and did not finish, and what was made ahead in vain. */
static void finish_gone(int root_fd, const struct removed *removed)
{
	int fd = files_open_dir(root_fd, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		fd_close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (str_starts(entry->d_name, GONE) && record_is_id(entry->d_name + strlen(GONE)))
			if (remove_gone(root_fd, entry->d_name, NULL) == 0)
				removed_tell(removed, "record", entry->d_name + strlen(GONE));
		if (is_left_ahead(root_fd, entry->d_name) &&
		    remove_gone(root_fd, entry->d_name, NULL) == 0)
			removed_tell(removed, "record", entry->d_name + strlen(RECORD_AHEAD));
	}
	closedir(dir);
}

struct tally {
	const struct retention *bounds;
	int64_t now_ms;
	uint64_t runs, bytes; /* so far, newest first */
};

/*
 * Is this run beyond a bound? Only finished runs that nobody keeps count and go. The newest is
 * never too big: it is the one that somebody wants to look at. A start in the future (the
 * clock was set back) is age 0.
 */
static bool is_beyond(struct tally *tally, const struct run_info *info)
{
	uint64_t age_ms =
		info->started_ms < tally->now_ms ? (uint64_t)(tally->now_ms - info->started_ms) : 0;

	if (info->is_kept || !str_is(info->status, "finished"))
		return false;
	tally->runs++;
	tally->bytes += info->size_bytes;
	return tally->runs > tally->bounds->runs || age_ms > tally->bounds->age_ms ||
	       (tally->runs > 1 && tally->bytes > tally->bounds->bytes);
}

void record_sweep(int root_fd, const struct removed *removed)
{
	finish_gone(root_fd, removed);
	roots_sweep(root_fd, removed);
}

int record_retain(int root_fd, const struct retention *bounds, struct csn_error *err)
{
	struct tally tally = { .bounds = bounds, .now_ms = clock_wall_ms() };
	int removed = 0, first = 0, r;
	char(*ids)[RUN_ID_SIZE];
	struct run_info info;
	size_t count;

	record_sweep(root_fd, NULL);
	r = list_ids(root_fd, &ids, &count);
	if (r < 0)
		return files_fail(err, r, "read", "the run root");
	for (size_t i = 0; i < count; i++) {
		if (list_info(root_fd, ids[i], bounds->bytes != UINT64_MAX, &info) < 0 ||
		    !is_beyond(&tally, &info))
			continue;
		r = record_remove(root_fd, ids[i], first < 0 ? NULL : err);
		removed += r == 0;
		if (r < 0 && r != -ENOENT && r != -EBUSY && first == 0)
			first = r; /* the others still go */
	}
	free(ids);
	return first < 0 ? first : removed;
}

/*
 * Records that retention must leave (kept ones, those of killed monitors) count as links too: so
 * many links make it due for one run in eight only, or every run would walk over all records.
 */
bool record_retain_is_due(int root_fd, const char *run_id, struct retention *bounds)
{
	uint64_t many = bounds->runs + bounds->runs / 8 + 2;
	size_t size = strlen(run_id);
	struct stat st;

	if (size < 2)
		return false;
	/* Age and bytes, and file systems that do not count links: one run in 64. */
	if (strchr("048c", run_id[size - 1]) && run_id[size - 2] == '0')
		return true;
	/* A folder has a link for itself, one from above and one from each folder in it. */
	if (fstat(root_fd, &st) < 0 || (uint64_t)st.st_nlink <= many)
		return false;
	bounds->bytes = UINT64_MAX;
	return strchr("08", run_id[size - 1]) != NULL;
}
