/*
 * System V segments are asked for where they are.
 *
 *   we ── clone ──► child ── setns(user, ipc) ── shmctl(SHM_INFO) ──► pipe, exit
 *
 * A process with several threads cannot change its user namespace, and one that changed it does
 * not come back; hence a child for each question. Code behind the wall can keep its locks busy,
 * so nothing here waits without an end: a late child is killed, and reaped by a later question.
 * Until then there is no other, or such code could have our user's processes used up.
 *
 * The children end without a signal, which makes them "clone children": waitid() finds them among
 * all others of ours without a list.
 */
#include "os/sysv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "os/sys.h"

enum { REAP_MS = 100 }; /* a child that was killed, or has answered, ends sooner than that */

struct answer {
	int64_t error; /* negative errno or 0 */
	uint64_t resident_pages;
	uint64_t swapped_pages;
};

/* The child: system calls only. */
static _Noreturn void ask(int pidfd, int to)
{
	struct answer answer = { 0 };
	struct shm_info info = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	sys_not_dumpable();
	if (setns(pidfd, CLONE_NEWUSER | CLONE_NEWIPC) < 0 ||
	    shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info) < 0)
		answer.error = -errno;
	answer.resident_pages = info.shm_rss;
	answer.swapped_pages = info.shm_swp;
	_exit(write(to, &answer, sizeof answer) != sizeof answer);
}

static bool is_ready(int fd, uint64_t deadline_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	uint64_t now;
	int r;

	do {
		now = clock_now_ms();
		r = poll(&poll_fd, 1, now < deadline_ms ? (int)(deadline_ms - now) : 0);
	} while (r < 0 && errno == EINTR);
	return r > 0;
}

/* What was written at once is read at once. */
static int hear(int from, int timeout_ms, struct answer *ret_answer)
{
	ssize_t n;

	if (!is_ready(from, clock_now_ms() + (uint64_t)timeout_ms))
		return -ETIMEDOUT;
	n = read(from, ret_answer, sizeof *ret_answer);
	return n == sizeof *ret_answer ? (int)ret_answer->error : -EIO;
}

static void reap(int child, int timeout_ms)
{
	siginfo_t info;

	is_ready(child, clock_now_ms() + (uint64_t)timeout_ms);
	waitid(P_PIDFD, (id_t)child, &info, WEXITED | WNOHANG | __WCLONE);
}

/* Reaps late children of earlier questions. True: one of them has not ended yet. */
static bool is_waiting_for_late(void)
{
	siginfo_t info;

	do {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WCLONE) < 0)
			return false; /* ECHILD */
	} while (info.si_pid != 0);
	return true;
}

static int clone_child(int *ret_pidfd)
{
	struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (uintptr_t)ret_pidfd };
	long pid = syscall(SYS_clone3, &args, sizeof args);

	return pid < 0 ? -errno : (int)pid;
}

int sysv_use(pid_t pid, int timeout_ms, struct sysv_use *ret_use)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	_cleanup_fd_ int from = -1, to = -1, there = sys_pidfd_open(pid), child = -1;
	struct answer answer;
	int ends[2], r;

	if (there < 0)
		return there;
	if (is_waiting_for_late())
		return -ETIMEDOUT;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	from = ends[0];
	to = ends[1];
	r = clone_child(&child);
	if (r < 0)
		return r;
	if (r == 0)
		ask(there, to);
	to = fd_close(to);
	r = hear(from, timeout_ms, &answer);
	if (r == -ETIMEDOUT)
		sys_pidfd_signal(child, SIGKILL);
	reap(child, REAP_MS);
	if (r < 0)
		return r;
	*ret_use = (struct sysv_use){ .resident_bytes = answer.resident_pages * page,
				      .swapped_bytes = answer.swapped_pages * page };
	return 0;
}
