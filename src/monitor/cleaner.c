/* What removes a sandbox's traces when its monitor is killed; see cleaner.h. */
#include "monitor/cleaner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/tree.h"
#include "base/fd.h"
#include "os/sys.h"

enum { KILL_MS = 2000, REMOVE_MS = 2000, PIPE_FD = 3, LAST_TRIES = 50 };

static void remove_scratch(const char *path)
{
	_cleanup_fd_ int tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* The last processes may still be writing: a folder that fills while it is emptied is
	 * tried again. */
	for (int i = 0; tmp_fd >= 0 && i < LAST_TRIES; i++) {
		if (tree_remove(tmp_fd, path + strlen("/tmp/")) >= 0 || errno == ENOENT)
			return;
		usleep(20000);
	}
}

void cleaner_clean(const struct cleaner_work *work)
{
	if (work->group && cgroup_remove(work->group, 0) < 0) {
		cgroup_kill(work->group, KILL_MS);
		cgroup_remove(work->group, REMOVE_MS);
	}
	if (work->protect)
		protect_clean(work->protect);
	if (work->scratch_dir)
		remove_scratch(work->scratch_dir);
}

/* Keeps nothing of the caller's: a pipe held open here would keep his pipeline waiting. */
static void let_go(int pipe_fd)
{
	sigset_t all;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (int fd = 0; fd < 3; fd++)
		dup2(null_fd, fd);
	fcntl(pipe_fd, F_SETFD, 0);
	setsid();
	prctl(PR_SET_NAME, "caisson-cleaner", 0, 0, 0);
}

_Noreturn static void wait_and_clean(const struct cleaner_work *work, int pipe_fd)
{
	char byte;
	ssize_t n;

	let_go(pipe_fd);
	do
		n = read(pipe_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		cleaner_clean(work);
	_exit(0);
}

int cleaner_start(const struct cleaner_work *work, struct cleaner *ret_cleaner)
{
	struct cleaner cleaner = CLEANER_NONE;
	int pair[2];

	*ret_cleaner = cleaner;
	if (!work->group && !work->scratch_dir &&
	    !(work->protect && work->protect->placeholder_count))
		return 0;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	cleaner.pid = sys_clone(0, NULL, -1);
	if (cleaner.pid == 0) {
		close(pair[1]);
		wait_and_clean(work, pair[0]);
	}
	close(pair[0]);
	cleaner.pipe_fd = pair[1];
	if (cleaner.pid < 0) {
		fd_close(cleaner.pipe_fd);
		return cleaner.pid;
	}
	*ret_cleaner = cleaner;
	return 0;
}

void cleaner_stop(struct cleaner *cleaner)
{
	if (cleaner->pid < 0)
		return;
	if (write(cleaner->pipe_fd, "d", 1) < 0)
		kill(cleaner->pid, SIGKILL);
	fd_close(cleaner->pipe_fd);
	while (waitpid(cleaner->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*cleaner = CLEANER_NONE;
}
