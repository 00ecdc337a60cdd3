/*
 * caisson job stop: a signal to the launcher, and patience
 *
 * The launcher is who holds the folder's lock; state.json names his process. A number may be
 * another's by now, so it is held by a descriptor first and compared afterwards.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "audit/files.h"
#include "audit/list.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/job.h"
#include "jobs/state.h"
#include "os/sys.h"

/* Longer than the books, a manifest and the grace of most jobs take. */
enum { LOOK_NS = 50000000, PATIENCE_MS = 300000 };

static int find_launcher(int dir_fd, const char *id, int *ret_pidfd, struct csn_error *err)
{
	_cleanup_fd_ int pidfd = -1;
	json_t *state = NULL;
	json_int_t pid = 0, start = 0;
	uint64_t ticks;

	if (list_status(dir_fd) != RUN_RUNNING)
		return csn_fail(err, -ESRCH, "job", "%s is not running", id);
	if (state_read(dir_fd, &state) == 0) {
		pid = json_integer_value(json_object_get(state, "pid"));
		start = json_integer_value(json_object_get(state, "pid_start"));
		json_decref(state);
	}
	pidfd = pid > 0 ? sys_pidfd_open((pid_t)pid) : -ESRCH;
	if (pidfd < 0 || files_process_start(pid, &ticks) < 0 || ticks != (uint64_t)start)
		return csn_fail(
			err, -ESRCH, "job",
			"%s is held by somebody, but its state names no living launcher; try "
			"again in a moment",
			id);
	*ret_pidfd = fd_take(&pidfd);
	return 0;
}

static int stop(const struct job_place *place, struct csn_error *err)
{
	_cleanup_fd_ int dir_fd = files_open_dir(place->root_fd, place->id), pidfd = -1;
	uint64_t until_ms;
	int r;

	if (dir_fd < 0)
		return files_fail(err, dir_fd, "open the job", place->id);
	r = find_launcher(dir_fd, place->id, &pidfd, err);
	if (r < 0)
		return r;
	r = sys_pidfd_signal(pidfd, SIGTERM);
	if (r < 0 && r != -ESRCH)
		return csn_fail(err, r, "job", "%s: its launcher cannot be signalled", place->id);
	until_ms = clock_now_ms() + PATIENCE_MS;
	while (list_status(dir_fd) == RUN_RUNNING) {
		if (clock_now_ms() >= until_ms)
			return csn_fail(
				err, -ETIMEDOUT, "job",
				"%s was told to stop %d s ago and has not ended: its --grace "
				"may be longer; ask again, or see `caisson job show %s`",
				place->id, PATIENCE_MS / 1000, place->id);
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
	return 0;
}

int cli_job_stop(struct cli *cli)
{
	_cleanup_job_place_ struct job_place place = JOB_PLACE_NONE;
	struct csn_error err = { 0 };
	int r = job_place_open(cli, cli->args[0], &place, &err);

	if (r == 0)
		r = stop(&place, &err);
	return r < 0 ? cli_fail(cli, &err) : CLI_OK;
}
