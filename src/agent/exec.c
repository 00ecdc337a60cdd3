/*
 * One command: started, signalled, reaped, answered; see exec.h. What it reads and writes is in
 * streams.c. A command is over when its leader is dead and what it wrote was sent; the last
 * inherited pipe may stay open for longer than anybody wants to wait.
 */
#include "agent/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/command.h"
#include "base/clock.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "os/agent_fds.h"
#include "os/sweep.h"
#include "wire/frame.h"

enum { ARENA_FIRST = 8 << 10 }; /* for the usual environment */

struct exec *exec_find(struct agent *agent, int64_t ref)
{
	for (int i = 0; i < AGENT_CALLS; i++)
		if (agent->execs[i] && agent->execs[i]->ref == ref)
			return agent->execs[i];
	return NULL;
}

static void exec_free(struct agent *agent, struct exec *exec)
{
	agent->execs[exec->slot] = NULL;
	streams_done(&exec->streams);
	fd_cleanup(&exec->failure_fd);
	free(exec);
}

static struct exec *exec_new(struct agent *agent, int64_t ref)
{
	struct exec *exec;

	for (unsigned slot = 0; slot < AGENT_CALLS; slot++) {
		if (agent->execs[slot])
			continue;
		exec = calloc(1, sizeof *exec);
		if (!exec)
			return NULL;
		exec->ref = ref;
		exec->slot = slot;
		exec->failure_fd = -1;
		streams_init(&exec->streams, ref, slot);
		agent->execs[slot] = exec;
		return exec;
	}
	return NULL;
}

/* ---- starting ----------------------------------------------------------------------------- */

/* The command's ends of its streams; closed in the parent after the fork. */
struct ends {
	int fds[3];
	int slave;
	int failure;
};

static void ends_done(struct ends *ends)
{
	for (int i = 0; i < 3; i++)
		fd_cleanup(&ends->fds[i]);
	fd_cleanup(&ends->slave);
	fd_cleanup(&ends->failure);
}

static int make_pipe(int *ret_read, int *ret_write)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = pair[0];
	*ret_write = pair[1];
	return 0;
}

static int make_pipes(struct streams *streams, const struct command *command, struct ends *ends)
{
	int r = make_pipe(&streams->output_fd[STREAMS_STDOUT], &ends->fds[1]);

	if (r >= 0)
		r = make_pipe(&streams->output_fd[STREAMS_STDERR], &ends->fds[2]);
	if (r >= 0 && command->has_stdin)
		r = make_pipe(&ends->fds[0], &streams->stdin_fd);
	else if (r >= 0)
		ends->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return r < 0 ? r : ends->fds[0] < 0 ? -errno : 0;
}

/* Moves a descriptor of the contract out of its place, where /dev/null then is, as when there is
 * no terminal: the next command must not find an unrelated descriptor under that number. */
static int take_fixed(int fd)
{
	_cleanup_fd_ int taken = fcntl(fd, F_DUPFD_CLOEXEC, AGENT_FD_END), null = -1;

	if (taken < 0)
		return -errno;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup3(null, fd, O_CLOEXEC) < 0)
		return -errno;
	return fd_take(&taken);
}

/* The one that was made before files were restricted, or a new one. */
static int open_tty(int *ret_master, int *ret_slave)
{
	_cleanup_fd_ int master = -1;
	int slave;

	if (isatty(AGENT_FD_TTY_PEER)) {
		master = take_fixed(AGENT_FD_TTY);
		slave = master < 0 ? master : take_fixed(AGENT_FD_TTY_PEER);
		if (slave < 0)
			return slave;
	} else {
		master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (master < 0 || unlockpt(master) < 0)
			return -errno;
		slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (slave < 0)
			return -errno;
	}
	*ret_master = fd_take(&master);
	*ret_slave = slave;
	return 0;
}

static int make_tty(struct streams *streams, const struct command *command, struct ends *ends)
{
	int r = open_tty(&streams->output_fd[STREAMS_TTY], &ends->slave);

	if (r < 0)
		return r;
	streams_resize(streams, command->rows, command->cols);
	for (int i = 0; i < 3; i++) {
		ends->fds[i] = fcntl(ends->slave, F_DUPFD_CLOEXEC, 3);
		if (ends->fds[i] < 0)
			return -errno;
	}
	return 0;
}

static pid_t fork_child(struct agent *agent, const struct command *command, struct ends *ends)
{
	struct child child = {
		.argv = command->argv,
		.env = command->env,
		.path = command->path,
		.cwd = command->cwd ? command->cwd : agent->workspace,
		.fds = { ends->fds[0], ends->fds[1], ends->fds[2] },
		.tty_fd = ends->slave,
		.failure_fd = ends->failure,
		.listeners_fd = agent->may_listen ? AGENT_FD_LISTENERS : -1,
		.enter_fd = AGENT_FD_ENTER,
		.parent = getpid(),
		.open_files = command->open_files,
		.landlock_abi = agent->landlock_abi,
		.profile = command->profile ? command->profile : agent->profile,
	};
	pid_t pid = fork();

	if (pid == 0)
		child_run(&child);
	return pid;
}

static int start(struct agent *agent, struct exec *exec, const struct command *command)
{
	struct ends ends = { { -1, -1, -1 }, -1, -1 };
	int r = command->has_tty ? make_tty(&exec->streams, command, &ends)
				 : make_pipes(&exec->streams, command, &ends);

	if (r >= 0)
		r = make_pipe(&exec->failure_fd, &ends.failure);
	if (r >= 0) {
		exec->pid = fork_child(agent, command, &ends);
		r = exec->pid < 0 ? -errno : 0;
	}
	ends_done(&ends);
	if (r < 0)
		return r;
	streams_begin(agent, &exec->streams);
	fd_set_nonblock(exec->failure_fd, 1);
	agent_watch(agent, exec->failure_fd, EPOLLIN,
		    (struct agent_source){ SOURCE_FAILURE, exec->slot });
	return 0;
}

void exec_start(struct agent *agent, int64_t ref, const struct term *map)
{
	alignas(max_align_t) char first[ARENA_FIRST];
	_cleanup_arena_ struct arena arena;
	struct command command;
	struct exec *exec;
	int r;

	arena_init_in(&arena, 16 << 20, first, sizeof first);
	r = command_read(map, &arena, &command);
	if (r == -EOPNOTSUPP) {
		agent_fail(agent, ref, "not_supported", "this agent lacks a key of the call");
		return;
	}
	if (r < 0) {
		agent_fail(agent, ref, errno_name(-r), "the call needs argv or command");
		return;
	}
	exec = exec_new(agent, ref);
	if (!exec) {
		agent_fail(agent, ref, "eagain", "too many calls at once");
		return;
	}
	exec->is_last = command.is_last;
	exec->kill_at_ms = command.timeout_ms ? clock_now_ms() + command.timeout_ms : CLOCK_NEVER;
	r = start(agent, exec, &command);
	if (r < 0) {
		agent_fail(agent, ref, errno_name(-r), "cannot start the command");
		exec_free(agent, exec);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

static void read_failure(struct agent *agent, struct exec *exec)
{
	struct child_failure failure;
	ssize_t n = read(exec->failure_fd, &failure, sizeof failure);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n == sizeof failure) {
		exec->is_failed = true;
		exec->error = failure.error;
		failure.stage[sizeof failure.stage - 1] = 0;
		snprintf(exec->stage, sizeof exec->stage, "%s", failure.stage);
	}
	agent_unwatch(agent, exec->failure_fd);
	fd_cleanup(&exec->failure_fd);
}

void exec_ready(struct agent *agent, struct exec *exec, enum source_kind kind)
{
	if (kind != SOURCE_FAILURE)
		streams_ready(agent, &exec->streams, kind);
	else if (exec->failure_fd >= 0)
		read_failure(agent, exec);
}

/* SIGKILL and SIGTERM reach the whole tree; others what a terminal would send them to. */
void exec_signal(struct agent *agent, struct exec *exec, int signal)
{
	if ((signal == SIGKILL || signal == SIGTERM) && agent->is_pid_1)
		kill(-1, signal);
	else if (signal == SIGKILL || signal == SIGTERM)
		sweep_signal(signal, NULL);
	else if (!exec->is_reaped)
		kill(-exec->pid, signal);
}

void exec_reaped(struct exec *exec, int status, const struct rusage *usage)
{
	exec->is_reaped = true;
	exec->status = status;
	exec->usage = *usage;
	exec->drain_until_ms = clock_now_ms() + AGENT_DRAIN_MS;
	streams_leader_ended(&exec->streams);
}

static void emit_number_or_null(struct emit *emit, const char *key, bool has, int64_t value)
{
	emit_atom(emit, key);
	if (has)
		emit_int(emit, value);
	else
		emit_atom(emit, "null");
}

static int64_t microseconds(const struct timeval *tv)
{
	return (int64_t)tv->tv_sec * 1000000 + tv->tv_usec;
}

static void reply(struct agent *agent, const struct exec *exec)
{
	bool is_exit = WIFEXITED(exec->status) && !exec->is_failed;
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, exec->ref);
	emit_map(&emit, (exec->is_failed ? 7u : 5u) + exec->is_late);
	emit_number_or_null(&emit, "exit_code", is_exit, WEXITSTATUS(exec->status));
	emit_number_or_null(&emit, "signal", WIFSIGNALED(exec->status), WTERMSIG(exec->status));
	emit_atom(&emit, "user_us");
	emit_int(&emit, microseconds(&exec->usage.ru_utime));
	emit_atom(&emit, "system_us");
	emit_int(&emit, microseconds(&exec->usage.ru_stime));
	emit_atom(&emit, "max_rss_bytes");
	emit_int(&emit, (int64_t)exec->usage.ru_maxrss * 1024);
	if (exec->is_late) {
		emit_atom(&emit, "timed_out");
		emit_bool(&emit, true);
	}
	if (exec->is_failed) {
		emit_atom(&emit, "error");
		emit_atom(&emit, errno_name(exec->error));
		emit_atom(&emit, "stage");
		emit_text(&emit, exec->stage);
	}
	agent_send(agent, &emit);
}

/* Over: all output ended, or its time is up and what the leader wrote was sent. What it said about
 * its own failure was written before it died. */
static bool is_over(struct agent *agent, struct exec *exec, uint64_t now_ms)
{
	if (!streams_are_over(&exec->streams) &&
	    (now_ms < exec->drain_until_ms || !streams_drain(agent, &exec->streams)))
		return false;
	if (exec->failure_fd >= 0)
		read_failure(agent, exec);
	return true;
}

enum { KILL_AGAIN_MS = 100, LOOK_MS = 60000 };

/* By itself, and not reaped yet, as where we were stopped meanwhile: no clock ended it. */
static bool has_ended(const struct exec *exec)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)exec->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == exec->pid;
}

/* The sandbox is this command's: everything goes. Milliseconds until then, -1: there is no such
 * time. */
static int kill_late(struct agent *agent, struct exec *exec, uint64_t now_ms)
{
	if (exec->kill_at_ms == CLOCK_NEVER)
		return -1;
	if (now_ms < exec->kill_at_ms)
		return (int)(exec->kill_at_ms - now_ms < LOOK_MS ? exec->kill_at_ms - now_ms
								 : LOOK_MS);
	if (!exec->is_late && has_ended(exec))
		return KILL_AGAIN_MS; /* its signal waits for us */
	exec->is_late = true;
	exec_signal(agent, exec, SIGKILL);
	exec->kill_at_ms = now_ms + KILL_AGAIN_MS; /* a chain of forks is caught by the next one */
	return KILL_AGAIN_MS;
}

int exec_finish(struct agent *agent, uint64_t now_ms)
{
	int wait_ms = -1;

	for (int i = 0; i < AGENT_CALLS; i++) {
		struct exec *exec = agent->execs[i];

		if (!exec)
			continue;
		if (!exec->is_reaped) {
			int left = kill_late(agent, exec, now_ms);

			wait_ms = left >= 0 && (wait_ms < 0 || left < wait_ms) ? left : wait_ms;
			continue;
		}
		if (is_over(agent, exec, now_ms)) {
			reply(agent, exec);
			agent->is_stopping |= exec->is_last;
			exec_free(agent, exec);
		} else if (now_ms < exec->drain_until_ms) {
			int left = (int)(exec->drain_until_ms - now_ms);

			wait_ms = wait_ms < 0 || left < wait_ms ? left : wait_ms;
		}
	}
	return wait_ms;
}
