/*
 * The reaper of one command after the other, and what the agent says to it; see keeper.h. It holds
 * no pipe: an inherited one of another call would keep that call's output open.
 */
#include "agent/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "os/agent_fds.h"
#include "os/sweep.h"
#include "os/sys.h"

enum { KEPT = 16, SLEEP_MIN_US = 200, SLEEP_MAX_US = 500000 };

/* Room for one descriptor. */
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

struct keeper {
	int fd;
	int signal_fd;
	struct keeper_report report;
};

/* ---- the agent's side ------------------------------------------------------------------------ */

void keeper_order(int fd, int signal, bool is_tree)
{
	struct keeper_order order = { signal, is_tree, false };

	(void)!send(fd, &order, sizeof order, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int keeper_next(int fd, int command_fd)
{
	struct keeper_order order = { .is_next = true };
	union control control = { 0 };
	struct iovec part = { &order, sizeof order };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof control };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &command_fd, sizeof command_fd);
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int keeper_read(int fd, struct keeper_report *ret_report)
{
	ssize_t n = recv(fd, ret_report, sizeof *ret_report, MSG_DONTWAIT);

	/* It ended with an order of ours unread: told once, and before what it had said. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(fd, ret_report, sizeof *ret_report, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n == sizeof *ret_report ? 1 : -EPIPE;
}

/* ---- the keeper ------------------------------------------------------------------------------ */

static void close_range_of(unsigned first, unsigned last)
{
	if (first <= last)
		syscall(SYS_close_range, first, last, 0);
}

/* Closes all but these; in any order, -1 is none. */
static void keep_only(int *fds, size_t count)
{
	unsigned next = 0;

	for (size_t i = 1; i < count; i++)
		for (size_t k = i; k > 0 && fds[k - 1] > fds[k]; k--) {
			int swapped = fds[k];

			fds[k] = fds[k - 1];
			fds[k - 1] = swapped;
		}
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		if (fds[i] > 0)
			close_range_of(next, (unsigned)fds[i] - 1);
		next = (unsigned)fds[i] + 1;
	}
	close_range_of(next, ~0U);
}

/* What the command's process will ask for; the streams of the agent are not among it. */
static void keep_for_child(const struct keeper *keeper, const struct child *child)
{
	int fds[KEPT] = { keeper->fd,
			  keeper->signal_fd,
			  child->fds[0],
			  child->fds[1],
			  child->fds[2],
			  child->tty_fd,
			  child->failure_fd,
			  child->listeners_fd,
			  child->command_fd > 0 ? child->command_fd : -1,
			  child->report_fd > 0 ? child->report_fd : -1,
			  child->image_fd > 0 ? child->image_fd : -1 };
	size_t count = 11;

	for (int i = 0; child->enter_fd >= 0 && i < AGENT_FD_ENTER_COUNT; i++)
		fds[count++] = child->enter_fd + i;
	keep_only(fds, count);
}

/* Of any command: none of its streams. */
static struct child child_without_streams(const struct child *child)
{
	return (struct child){
		.fds = { -1, -1, -1 },
		.tty_fd = -1,
		.failure_fd = -1,
		.listeners_fd = child->listeners_fd,
		.enter_fd = child->enter_fd,
		.landlock_abi = child->landlock_abi,
		.profile = child->profile,
		.parent = child->parent,
		.is_kept = child->is_kept,
	};
}

/* Nothing that comes later may take the places of a leader's streams. */
static bool take_places(struct child *child)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3; i++) {
		if (null < 0 || dup2(null, i) < 0)
			return false;
		child->fds[i] = i;
	}
	if (null > STDERR_FILENO)
		close(null);
	return true;
}

/* Once the leader has its own. */
static void drop_streams(const struct keeper *keeper, struct child *child)
{
	int own[] = { keeper->fd, keeper->signal_fd };

	*child = child_without_streams(child);
	if (child->is_kept)
		keep_for_child(keeper, child);
	else
		keep_only(own, ARRAY_SIZE(own));
	if (child->is_kept)
		child->is_kept = take_places(child);
}

static int setup(struct keeper *keeper, pid_t agent)
{
	sigset_t all;

	/* Nothing but SIGKILL and SIGSTOP does anything to it. */
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != agent)
		return -ECHILD;
	if (sys_not_dumpable() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -EPERM;
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	keeper->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return keeper->signal_fd < 0 ? -errno : 0;
}

static void tell(const struct keeper *keeper, enum keeper_word word)
{
	struct keeper_report report = keeper->report;

	report.word = (int32_t)word;
	while (send(keeper->fd, &report, sizeof report, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

/* The leader is not reaped yet, so its number and its group's are nobody else's. */
static void obey(const struct keeper *keeper)
{
	struct keeper_order order;
	ssize_t n = recv(keeper->fd, &order, sizeof order, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof order || order.is_next) /* the agent is gone, or not itself */
		order = (struct keeper_order){ SIGKILL, true, false };
	if (!order.is_tree) {
		kill(-keeper->report.pid, order.signal);
		return;
	}
	kill(keeper->report.pid, order.signal);
	sweep_signal(order.signal, NULL);
}

/* Everybody who died; true: the leader did. */
static bool reap(struct keeper *keeper)
{
	struct signalfd_siginfo info;
	struct rusage usage;
	int status;
	pid_t pid;

	while (read(keeper->signal_fd, &info, sizeof info) > 0)
		;
	while ((pid = wait4(-1, &status, WNOHANG | __WALL, &usage)) > 0) {
		if (pid != keeper->report.pid)
			continue;
		keeper->report.status = status;
		keeper->report.usage = usage;
		return true;
	}
	return false;
}

static void wait_for_leader(struct keeper *keeper)
{
	struct pollfd fds[] = { { .fd = keeper->signal_fd, .events = POLLIN },
				{ .fd = keeper->fd, .events = POLLIN } };

	while (!reap(keeper)) {
		if (poll(fds, ARRAY_SIZE(fds), -1) > 0 && fds[1].revents)
			obey(keeper);
	}
}

/* A subreaper without a child has no descendant. */
static bool is_alone(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
		;
	return pid < 0 && errno == ECHILD;
}

/* What does not die at once (a call that cannot be interrupted) is asked again, ever more slowly;
 * the agent has a clock for that. */
static void kill_the_rest(void)
{
	long sleep_us = SLEEP_MIN_US;

	while (!is_alone()) {
		sweep_kill(NULL);
		if (is_alone())
			return;
		nanosleep(&(struct timespec){ .tv_nsec = sleep_us * 1000 }, NULL);
		sleep_us = sleep_us < SLEEP_MAX_US ? 2 * sleep_us : SLEEP_MAX_US;
	}
}

static int fork_leader(struct keeper *keeper, struct child *child)
{
	keeper->report = (struct keeper_report){ .pid = fork() };
	if (keeper->report.pid == 0)
		child_run(child);
	return keeper->report.pid < 0 ? -errno : 0;
}

static _Noreturn void fail(struct keeper *keeper, int error)
{
	keeper->report.error = error;
	tell(keeper, KEEPER_ENDED);
	_exit(1);
}

/* From the leader's begin to the last one's end. */
static void keep(struct keeper *keeper)
{
	tell(keeper, KEEPER_STARTED);
	wait_for_leader(keeper);
	kill_the_rest();
	tell(keeper, KEEPER_ENDED);
}

/* The descriptor that came with an order for another leader; -1: an order for the last one; a
 * negative errno: there will be none. */
static int wait_for_next(const struct keeper *keeper)
{
	struct keeper_order order;
	union control control;
	struct iovec part = { &order, sizeof order };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof control };
	ssize_t n = recvmsg(keeper->fd, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *rights = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	int fd = -1;

	if (n < 0 && errno == EINTR)
		return -1;
	if (n != sizeof order || (order.is_next && !rights))
		return -EPIPE;
	if (order.is_next)
		memcpy(&fd, CMSG_DATA(rights), sizeof fd);
	return fd;
}

/* False: the agent is gone, or needs us no more. */
static bool begin_next(struct keeper *keeper, struct child *child)
{
	int fd, r;

	prctl(PR_SET_NAME, "caisson-idle", 0, 0, 0); /* for people who look */
	do
		fd = wait_for_next(keeper);
	while (fd == -1);
	if (fd < 0)
		return false;
	prctl(PR_SET_NAME, "caisson-agent", 0, 0, 0);
	child->command_fd = fd;
	r = fork_leader(keeper, child);
	if (r < 0)
		fail(keeper, -r);
	close(fd);
	return true;
}

_Noreturn void keeper_run(struct child *child, pid_t agent, int fd)
{
	struct keeper keeper = { .fd = fd };
	int r = setup(&keeper, agent);

	if (r >= 0) {
		keep_for_child(&keeper, child);
		child->parent = getpid();
		r = fork_leader(&keeper, child);
	}
	if (r < 0)
		fail(&keeper, -r);
	/* From here on the agent's end is that of our stream, and kills the tree before us: what
	 * lost its parent could outlive us, where no namespace ends and nobody above is left. */
	prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	drop_streams(&keeper, child);
	do
		keep(&keeper);
	while (child->is_kept && begin_next(&keeper, child));
	_exit(0);
}
