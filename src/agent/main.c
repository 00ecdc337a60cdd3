/*
 * caisson-agent: one epoll loop. With --stdio nobody prepared it: alone.h; with --ahead everything
 * but one step: ahead.h.
 *
 *   0  frames from the monitor ─┐                    ┌─ stdin, stdout, stderr, pty of commands
 *   1  frames to the monitor  ◄─┴── epoll ── signalfd ┴─ SIGCHLD: reap whatever is ours
 *
 * Nothing blocks. The stream's end, a broken frame or {stop} ends the agent; behind the process
 * wall that ends every process of the sandbox, elsewhere the sweep before exit does.
 */
#include "agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/ahead.h"
#include "agent/alone.h"
#include "agent/commands.h"
#include "agent/exec.h"
#include "agent/forwards.h"
#include "agent/gate_client.h"
#include "agent/gates.h"
#include "agent/job.h"
#include "agent/monitor.h"
#include "agent/search.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/agent_fds.h"
#include "os/landlock.h"
#include "os/sweep.h"
#include "os/sys.h"

enum { EVENTS = 32 };

void agent_watch(struct agent *agent, int fd, uint32_t events, struct agent_source source)
{
	struct epoll_event event = { .events = events,
				     .data.u64 =
					     (uint64_t)source.slot << 8 | (uint64_t)source.kind };
	int r = epoll_ctl(agent->epoll_fd, EPOLL_CTL_MOD, fd, &event);

	if (r < 0 && errno == ENOENT)
		r = epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, fd, &event);
	if (r < 0)
		agent->is_broken = true;
}

void agent_unwatch(struct agent *agent, int fd)
{
	epoll_ctl(agent->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Reaps everything, orphans too. Keepers that were stopped are news as well. */
static void reap(struct agent *agent)
{
	struct signalfd_siginfo info;
	struct rusage usage;
	int status;
	pid_t pid;

	while (read(agent->signal_fd, &info, sizeof info) > 0)
		;
	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage)) > 0)
		if (!exec_child(agent, pid, status, &usage) && !spare_child(agent, pid, status) &&
		    !idle_child(&agent->idle, pid, status) && !WIFSTOPPED(status))
			search_reaped(agent, pid, status);
}

static int dispatch(struct agent *agent, const struct epoll_event *event)
{
	enum source_kind kind = event->data.u64 & 0xff;
	uint64_t slot = event->data.u64 >> 8;

	if (kind == SOURCE_STREAM)
		return event->events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? monitor_read(agent) : 0;
	if (kind == SOURCE_SIGNALS)
		reap(agent);
	else if (kind == SOURCE_SEARCH)
		search_ready(agent, (unsigned)slot);
	else if (kind == SOURCE_GATE_DOOR)
		gates_knock(agent);
	else if (kind == SOURCE_GATE)
		gates_ready(agent, (unsigned)slot, event->events);
	else if (kind == SOURCE_FORWARD_DOOR)
		forwards_knock(agent, (unsigned)slot);
	else if (kind == SOURCE_FORWARD)
		forwards_ready(agent, (unsigned)slot, event->events);
	else if (slot < AGENT_CALLS && agent->execs[slot])
		exec_ready(agent, agent->execs[slot], kind);
	return 0;
}

/* Of two times to wait, -1: for ever. */
static int sooner(int a_ms, int b_ms)
{
	return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static int loop(struct agent *agent)
{
	struct epoll_event events[EVENTS];
	int r;

	for (;;) {
		uint64_t now_ms = clock_now_ms();
		int wait_ms = exec_finish(agent, now_ms), search_ms = search_finish(agent, now_ms);
		int news_ms = commands_wake(agent, now_ms);
		bool is_spare_due;
		int n;

		wait_ms = sooner(wait_ms, sooner(search_ms, news_ms));
		if (!agent->is_stopping && jobs_step(agent))
			wait_ms = 0;
		is_spare_due = spare_is_due(agent);
		r = monitor_flush(agent);
		if (agent->is_broken)
			r = -EPIPE;
		if (r < 0 || (agent->is_stopping && buf_size(&agent->out) == 0))
			break;
		n = epoll_wait(agent->epoll_fd, events, EVENTS, is_spare_due ? 0 : wait_ms);
		if (n == 0 && is_spare_due)
			spare_fork(agent);
		for (int i = 0; i < n && r >= 0; i++)
			r = dispatch(agent, &events[i]);
		if (r < 0)
			break;
	}
	monitor_flush(agent);
	jobs_done(agent);
	search_done(agent);
	commands_done(agent);
	gates_done(agent);
	forwards_done(agent);
	return r;
}

static int setup(struct agent *agent)
{
	sigset_t signals;
	int r = sys_not_dumpable();

	if (r < 0)
		return r;
	agent->is_pid_1 = getpid() == 1;
	agent->landlock_abi = landlock_abi();
	spare_init(&agent->spare);
	monitor_init(agent);
	if (!agent->is_pid_1 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -errno;
	for (int fd = AGENT_FD_LISTENERS; fd < AGENT_FD_END; fd++)
		fd_set_cloexec(fd, 1);
	agent->has_search = search_is_lent();
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file too large is an answer: EFBIG */
	agent->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	agent->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (agent->signal_fd < 0 || agent->epoll_fd < 0)
		return -errno;
	if (fd_set_nonblock(AGENT_FD_IN, 1) < 0 || fd_set_nonblock(AGENT_FD_OUT, 1) < 0)
		return -errno;
	agent_watch(agent, AGENT_FD_IN, EPOLLIN, (struct agent_source){ SOURCE_STREAM, 0 });
	agent_watch(agent, agent->signal_fd, EPOLLIN, (struct agent_source){ SOURCE_SIGNALS, 0 });
	return 0;
}

int main(int argc, char **argv)
{
	struct agent agent = { 0 };
	const char *how = argc > 1 ? argv[1] : "";
	int r;

	if (gate_client_is_meant())
		return gate_client_main(argc, argv);
	r = str_is(how, "--stdio") ? alone_prepare(argc > 2 ? argv[2] : NULL) : 0;
	if (r >= 0)
		r = setup(&agent);
	if (r >= 0 && str_is(how, AGENT_AHEAD))
		r = ahead_prepare();
	if (r >= 0)
		r = loop(&agent);
	if (!agent.is_pid_1) /* a namespace dies with its pid 1 */
		sweep_kill(NULL);
	return r < 0 ? 1 : 0;
}
