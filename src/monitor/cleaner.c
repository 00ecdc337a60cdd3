/* What removes a sandbox's traces when its monitor is killed; see cleaner.h. */
#include "monitor/cleaner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/limits.h"
#include "monitor/scratch.h"
#include "os/pass.h"
#include "os/sys.h"

enum { KILL_MS = 2000, REMOVE_MS = 2000, WALL_MS = 2000, SWEEP_MS = 1000, LOCK_MS = 1000 };

bool cleaner_is_needed(const struct cleaner_work *work)
{
	return work->probe || work->scratch_dir || work->has_program || work->remove ||
	       (work->protect && work->protect->placeholder_count);
}

/* The note goes last, and only when all that it names is gone. */
static void clean_files(const struct cleaner_work *work, uint64_t wait_ms)
{
	bool is_all = true;

	if (work->protect)
		is_all &= protect_clean(work->protect, wait_ms);
	if (work->scratch_dir)
		is_all &= scratch_remove(work->scratch_dir);
	if (work->pending && is_all)
		pending_remove(work->pending);
}

void cleaner_clean(const struct cleaner_work *work, const struct cgroup *group)
{
	if (work->remove)
		work->remove(work->state_root, work->id);
	if (group && cgroup_remove(group, 0) < 0) {
		cgroup_kill(group, KILL_MS);
		cgroup_remove(group, REMOVE_MS);
	}
	clean_files(work, 0);
}

/* Keeps nothing of the caller's: a pipe held open here would keep his pipeline waiting. */
static void let_go(int socket)
{
	sigset_t all;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (int fd = 0; fd < 3; fd++)
		dup2(null_fd, fd);
	fcntl(socket, F_SETFD, 0);
	setsid();
	prctl(PR_SET_NAME, "caisson-cleaner", 0, 0, 0);
}

static void end_wall(const struct cleaner_work *work, int pidfd, bool is_patient)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0)
		return;
	if (!is_patient || poll(&end, 1, SWEEP_MS) == 0) {
		sys_pidfd_signal(pidfd, SIGKILL);
		poll(&end, 1, WALL_MS);
	}
	/* How it ended is not known here. */
	if (work->take_down)
		work->take_down(work->id);
}

_Noreturn static void wait_and_clean(const struct cleaner_work *work, int socket)
{
	int wall_pidfd = -1, fd;
	bool is_patient = false;
	char byte = 0;

	let_go(socket);
	while (pass_receive(socket, &byte, &fd) > 0) {
		if (byte == 'd')
			_exit(0);
		wall_pidfd = fd;
		is_patient = byte == 'p';
	}
	end_wall(work, wall_pidfd, is_patient);
	if (work->remove)
		work->remove(work->state_root, work->id);
	if (work->probe)
		limits_remove(work->probe, work->id, REMOVE_MS);
	clean_files(work, LOCK_MS);
	_exit(0);
}

int cleaner_start(const struct cleaner_work *work, struct cleaner *ret_cleaner)
{
	struct cleaner cleaner = CLEANER_NONE;
	int pair[2];

	*ret_cleaner = cleaner;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	cleaner.pid = sys_clone(0, NULL, -1);
	if (cleaner.pid == 0) {
		close(pair[1]);
		wait_and_clean(work, pair[0]);
	}
	close(pair[0]);
	cleaner.socket = pair[1];
	if (cleaner.pid < 0) {
		fd_close(cleaner.socket);
		return cleaner.pid;
	}
	*ret_cleaner = cleaner;
	return 0;
}

void cleaner_watch(const struct cleaner *cleaner, int pidfd, bool is_patient)
{
	/* Without it the cleaner still works, by groups, and by the wall's own end. */
	if (cleaner->pid >= 0 && pidfd >= 0)
		pass_send(cleaner->socket, is_patient ? 'p' : 'w', pidfd);
}

void cleaner_stop(struct cleaner *cleaner)
{
	if (cleaner->pid < 0)
		return;
	if (send(cleaner->socket, "d", 1, MSG_NOSIGNAL) < 0)
		kill(cleaner->pid, SIGKILL);
	fd_close(cleaner->socket);
	while (waitpid(cleaner->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*cleaner = CLEANER_NONE;
}
