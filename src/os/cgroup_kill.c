/*
 * Killing what is in a sandbox's groups, and sweeping groups that a crash left behind.
 *
 * v2 kills a group in one write. v1 has no such call: read the list, take a pidfd of each
 * number, read the list again and kill those that are still in it. A number that died and was
 * given to a stranger between the readings is then not in the second list. Forks are stopped
 * first by a process limit of 0, so that the loop ends against a fork bomb too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/cgroup.h"
#include "os/cgroup_file.h"

enum { ROUND = 64, SWEEP_MAX = 1024, SWEEP_MS = 500 };

/* One reading of cgroup.procs: the first ROUND processes that are not we. */
struct listed {
	int count;
	pid_t pids[ROUND];
};

static int list(int dir_fd, struct listed *ret_listed)
{
	char text[CGROUP_TEXT], *at = text, *word;
	uint64_t pid;
	int n = cgroup_file_read(dir_fd, "cgroup.procs", text, sizeof text);

	ret_listed->count = 0;
	if (n < 0)
		return n;
	while (ret_listed->count < ROUND && (word = strsep(&at, "\n")) != NULL) {
		if (!at) /* no newline: the last number may be cut */
			break;
		/* 0: not in our pid namespace */
		if (str_parse_u64(word, INT32_MAX, &pid) == 0 && pid != 0 && (pid_t)pid != getpid())
			ret_listed->pids[ret_listed->count++] = (pid_t)pid;
	}
	return 0;
}

static bool is_listed(const struct listed *listed, pid_t pid)
{
	for (int i = 0; i < listed->count; i++)
		if (listed->pids[i] == pid)
			return true;
	return false;
}

/* Kills one round. Returns how many were listed. */
static int kill_round(int dir_fd)
{
	struct listed first, second;
	int fds[ROUND], r = list(dir_fd, &first);

	if (r < 0 || first.count == 0)
		return r == -ENODEV || r == -ENOENT ? 0 : r;
	for (int i = 0; i < first.count; i++)
		fds[i] = (int)syscall(SYS_pidfd_open, first.pids[i], 0);
	r = list(dir_fd, &second);
	for (int i = 0; i < first.count; i++) {
		if (r == 0 && fds[i] >= 0 && is_listed(&second, first.pids[i]))
			syscall(SYS_pidfd_send_signal, fds[i], SIGKILL, NULL, 0);
		fd_close(fds[i]);
	}
	return r < 0 ? r : first.count;
}

static int kill_until(int dir_fd, uint64_t deadline_ms)
{
	const struct timespec pause = { .tv_nsec = 500000 };
	int n;

	if (dir_fd < 0)
		return 0;
	for (;;) {
		n = kill_round(dir_fd);
		if (n <= 0)
			return n;
		if (clock_now_ms() >= deadline_ms)
			return -ETIMEDOUT;
		if (n < ROUND)
			nanosleep(&pause, NULL);
	}
}

int cgroup_kill_side(const struct cgroup *cg, enum cgroup_side side, uint64_t timeout_ms)
{
	uint64_t deadline_ms = clock_now_ms() + timeout_ms;
	int r, worst = 0;

	/* v2, and v1's pids: none of the two is an error, the loop below kills as well. */
	if (cg->layout == CGROUP_V2 && cg->side_fd[0][side] >= 0)
		cgroup_file_write(cg->side_fd[0][side], "cgroup.kill", "1");
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		r = kill_until(cg->side_fd[i][side], deadline_ms);
		worst = r < 0 ? r : worst;
	}
	return worst;
}

/* Nobody forks any more; the groups are to be removed. */
static void stop_forks(const struct cgroup *cg)
{
	int row = cg->layout == CGROUP_V2 ? 0 : CGROUP_PIDS;

	if (cg->top_fd[row] >= 0)
		cgroup_file_write(cg->top_fd[row], "pids.max", "0");
}

int cgroup_kill(const struct cgroup *cg, uint64_t timeout_ms)
{
	uint64_t deadline_ms = clock_now_ms() + timeout_ms, now_ms;
	int r, worst = 0;

	stop_forks(cg);
	for (int side = 0; side < CGROUP_SIDES; side++) {
		now_ms = clock_now_ms();
		r = cgroup_kill_side(cg, (enum cgroup_side)side,
				     now_ms < deadline_ms ? deadline_ms - now_ms : 0);
		worst = r < 0 ? r : worst;
	}
	return worst;
}

/* Opens what is left of a group, in one hierarchy. Missing parts stay -1. */
static void reopen(struct cgroup *cg, int row, int base_fd, const char *id)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	static const char *const sides[CGROUP_SIDES] = { "agent", "cmd" };

	memcpy(cg->id, id, strlen(id) + 1);
	cg->base_fd[row] = fcntl(base_fd, F_DUPFD_CLOEXEC, 3);
	cg->top_fd[row] = openat(base_fd, id, flags);
	for (int side = 0; side < CGROUP_SIDES; side++)
		cg->side_fd[row][side] = openat(cg->top_fd[row], sides[side], flags);
	if (cg->side_fd[row][CGROUP_CMD] < 0 && cg->top_fd[row] >= 0)
		cg->side_fd[row][CGROUP_CMD] = openat(cg->top_fd[row], ".", flags);
}

static int sweep_one(enum cgroup_layout layout, int row, int base_fd, const char *id)
{
	struct cgroup cg;
	int r;

	cgroup_init(&cg);
	cg.layout = layout;
	reopen(&cg, row, base_fd, id);
	r = cgroup_kill(&cg, SWEEP_MS);
	if (r == 0)
		r = cgroup_remove(&cg, SWEEP_MS);
	cgroup_done(&cg);
	return r;
}

static int sweep_dir(enum cgroup_layout layout, int row, const char *base,
		     bool (*is_alive)(const char *, void *), void *data)
{
	const struct dirent *entry;
	DIR *dir = opendir(base);
	int removed = 0;

	for (int i = 0; dir && i < SWEEP_MAX; i++) {
		entry = readdir(dir);
		if (!entry)
			break;
		if (entry->d_type != DT_DIR || !cgroup_id_is_valid(entry->d_name))
			continue;
		if (!is_alive(entry->d_name, data) &&
		    sweep_one(layout, row, dirfd(dir), entry->d_name) == 0)
			removed++;
	}
	if (dir)
		closedir(dir);
	return removed;
}

int cgroup_sweep(const struct cgroup_probe *probe, bool (*is_alive)(const char *id, void *data),
		 void *data)
{
	int removed = 0;

	if (probe->layout == CGROUP_V2)
		return sweep_dir(CGROUP_V2, 0, probe->base[0], is_alive, data);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (probe->has[i])
			removed += sweep_dir(CGROUP_V1, i, probe->base[i], is_alive, data);
	return removed;
}
