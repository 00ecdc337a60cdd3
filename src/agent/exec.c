/*
 * One command: started, pumped, reaped; see exec.h. All descriptors are non-blocking on our
 * side. Output is read only while the monitor's window is open, so a slow reader stops the
 * command and nothing else; input is taken only as fast as the command reads it.
 */
#include "agent/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/command.h"
#include "base/clock.h"
#include "base/fd.h"
#include "os/agent_fds.h"
#include "os/sweep.h"
#include "base/errno_name.h"
#include "wire/frame.h"

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
	fd_cleanup(&exec->stdin_fd);
	fd_cleanup(&exec->out_fd);
	fd_cleanup(&exec->err_fd);
	fd_cleanup(&exec->tty_fd);
	fd_cleanup(&exec->failure_fd);
	buf_done(&exec->input);
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
		exec->stdin_fd = exec->out_fd = exec->err_fd = exec->tty_fd = exec->failure_fd = -1;
		exec->window = AGENT_WINDOW;
		buf_init(&exec->input, AGENT_WINDOW + FRAME_PIECE);
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

static int make_pipes(struct exec *exec, const struct command *command, struct ends *ends)
{
	int r = make_pipe(&exec->out_fd, &ends->fds[1]);

	if (r >= 0)
		r = make_pipe(&exec->err_fd, &ends->fds[2]);
	if (r >= 0 && command->has_stdin)
		r = make_pipe(&ends->fds[0], &exec->stdin_fd);
	else if (r >= 0)
		ends->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return r < 0 ? r : ends->fds[0] < 0 ? -errno : 0;
}

/* The one that was made before files were restricted, or a new one. */
static int open_tty(struct exec *exec, struct ends *ends)
{
	if (isatty(AGENT_FD_TTY_PEER)) {
		exec->tty_fd = fcntl(AGENT_FD_TTY, F_DUPFD_CLOEXEC, AGENT_FD_END);
		ends->slave = fcntl(AGENT_FD_TTY_PEER, F_DUPFD_CLOEXEC, AGENT_FD_END);
		close(AGENT_FD_TTY_PEER); /* or its end would never be seen */
		return exec->tty_fd < 0 || ends->slave < 0 ? -errno : 0;
	}
	exec->tty_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (exec->tty_fd < 0 || unlockpt(exec->tty_fd) < 0)
		return -errno;
	ends->slave = ioctl(exec->tty_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return ends->slave < 0 ? -errno : 0;
}

static int make_tty(struct exec *exec, const struct command *command, struct ends *ends)
{
	int r = open_tty(exec, ends);

	if (r < 0)
		return r;
	exec_resize(exec, command->rows, command->cols);
	for (int i = 0; i < 3; i++) {
		ends->fds[i] = fcntl(ends->slave, F_DUPFD_CLOEXEC, 3);
		if (ends->fds[i] < 0)
			return -errno;
	}
	return 0;
}

static void watch_all(struct agent *agent, struct exec *exec)
{
	int *fds[] = { &exec->out_fd, &exec->err_fd, &exec->tty_fd, &exec->failure_fd };
	static const enum source_kind kinds[] = { SOURCE_STDOUT, SOURCE_STDERR, SOURCE_TTY,
						  SOURCE_FAILURE };

	for (int i = 0; i < 4; i++)
		if (*fds[i] >= 0) {
			fd_set_nonblock(*fds[i], 1);
			agent_watch(agent, *fds[i], EPOLLIN, kinds[i], exec->slot);
		}
	if (exec->stdin_fd >= 0)
		fd_set_nonblock(exec->stdin_fd, 1);
}

static pid_t fork_child(struct agent *agent, const struct command *command, struct ends *ends)
{
	struct child child = {
		.argv = command->argv,
		.env = command->env,
		.path = command->path,
		.cwd = command->cwd,
		.fds = { ends->fds[0], ends->fds[1], ends->fds[2] },
		.tty_fd = ends->slave,
		.failure_fd = ends->failure,
		.listeners_fd = agent->may_listen ? AGENT_FD_LISTENERS : -1,
		.enter_fd = AGENT_FD_ENTER,
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
	int r = command->has_tty ? make_tty(exec, command, &ends)
				 : make_pipes(exec, command, &ends);

	if (r >= 0)
		r = make_pipe(&exec->failure_fd, &ends.failure);
	if (r >= 0) {
		exec->pid = fork_child(agent, command, &ends);
		r = exec->pid < 0 ? -errno : 0;
	}
	ends_done(&ends);
	if (r >= 0)
		watch_all(agent, exec);
	return r;
}

void exec_start(struct agent *agent, int64_t ref, const struct term *map)
{
	_cleanup_arena_ struct arena arena;
	struct command command;
	struct exec *exec;
	int r;

	arena_init(&arena, 16 << 20);
	r = command_read(map, &arena, &command);
	if (r < 0) {
		agent_fail(agent, ref, errno_name(-r), "the call needs argv or command");
		return;
	}
	if (exec_find(agent, ref)) {
		agent_fail(agent, ref, "invalid", "this Ref is in use");
		return;
	}
	exec = exec_new(agent, ref);
	if (!exec) {
		agent_fail(agent, ref, "eagain", "too many calls at once");
		return;
	}
	r = start(agent, exec, &command);
	if (r < 0) {
		agent_fail(agent, ref, errno_name(-r), "cannot start the command");
		exec_free(agent, exec);
	}
}

/* ---- output --------------------------------------------------------------------------------- */

static void close_source(struct agent *agent, int *fd)
{
	agent_unwatch(agent, *fd);
	fd_cleanup(fd);
}

static void send_data(struct agent *agent, struct exec *exec, const char *stream, const void *data,
		      size_t size)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "data");
	emit_int(&emit, exec->ref);
	emit_atom(&emit, stream);
	emit_binary(&emit, data, size);
	agent_send(agent, &emit);
}

/* Output sources sleep while the monitor takes no more. */
static void update_sources(struct agent *agent, struct exec *exec)
{
	uint32_t events = exec->window > 0 ? EPOLLIN : 0;

	if (exec->out_fd >= 0)
		agent_watch(agent, exec->out_fd, events, SOURCE_STDOUT, exec->slot);
	if (exec->err_fd >= 0)
		agent_watch(agent, exec->err_fd, events, SOURCE_STDERR, exec->slot);
	if (exec->tty_fd >= 0)
		agent_watch(agent, exec->tty_fd, events, SOURCE_TTY, exec->slot);
}

static void pump_output(struct agent *agent, struct exec *exec, int *fd, const char *stream)
{
	char data[FRAME_PIECE];
	size_t want = exec->window < FRAME_PIECE ? (size_t)exec->window : FRAME_PIECE;
	ssize_t n;

	if (want == 0) {
		update_sources(agent, exec);
		return;
	}
	n = read(*fd, data, want);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* a pty's other side closed is EIO */
		close_source(agent, fd);
		return;
	}
	send_data(agent, exec, stream, data, (size_t)n);
	exec->window -= n;
	if (exec->window == 0)
		update_sources(agent, exec);
}

void exec_window(struct agent *agent, struct exec *exec, int64_t bytes)
{
	bool was_shut = exec->window == 0;

	exec->window += bytes;
	if (exec->window > AGENT_WINDOW)
		exec->window = AGENT_WINDOW;
	if (was_shut && exec->window > 0)
		update_sources(agent, exec);
}

/* ---- input ---------------------------------------------------------------------------------- */

static void grant_input(struct agent *agent, struct exec *exec, size_t bytes)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "window");
	emit_int(&emit, exec->ref);
	emit_int(&emit, (int64_t)bytes);
	agent_send(agent, &emit);
}

static int *input_fd(struct exec *exec)
{
	return exec->tty_fd >= 0 ? &exec->tty_fd : &exec->stdin_fd;
}

/* The end of a terminal's input is its end-of-file character, not a closed descriptor. */
static void end_input(struct agent *agent, struct exec *exec)
{
	static const char end_of_file = 4;

	if (exec->tty_fd >= 0) {
		if (write(exec->tty_fd, &end_of_file, 1) < 0)
			return;
	} else if (exec->stdin_fd >= 0) {
		close_source(agent, &exec->stdin_fd);
	}
}

static void pump_input(struct agent *agent, struct exec *exec)
{
	int *fd = input_fd(exec);
	ssize_t n = 0;

	if (*fd < 0) {
		n = (ssize_t)buf_size(&exec->input);
		buf_clear(&exec->input);
	} else if (buf_size(&exec->input) > 0) {
		n = write(*fd, buf_at(&exec->input), buf_size(&exec->input));
		if (n < 0 && errno == EPIPE)
			close_source(agent, fd);
		if (n > 0)
			buf_consume(&exec->input, (size_t)n);
	}
	if (n > 0)
		grant_input(agent, exec, (size_t)n);
	if (buf_size(&exec->input) == 0 && exec->is_input_over)
		end_input(agent, exec);
	if (exec->stdin_fd >= 0)
		agent_watch(agent, exec->stdin_fd, buf_size(&exec->input) > 0 ? EPOLLOUT : 0,
			    SOURCE_STDIN, exec->slot);
}

int exec_input(struct agent *agent, struct exec *exec, const void *data, size_t size, bool is_end)
{
	exec->is_input_over |= is_end;
	if (size > 0 && buf_add(&exec->input, data, size) < 0)
		return -EMSGSIZE;
	pump_input(agent, exec);
	return 0;
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
	close_source(agent, &exec->failure_fd);
}

void exec_ready(struct agent *agent, struct exec *exec, enum source_kind kind)
{
	if (kind == SOURCE_STDOUT && exec->out_fd >= 0)
		pump_output(agent, exec, &exec->out_fd, "stdout");
	else if (kind == SOURCE_STDERR && exec->err_fd >= 0)
		pump_output(agent, exec, &exec->err_fd, "stderr");
	else if (kind == SOURCE_TTY && exec->tty_fd >= 0)
		pump_output(agent, exec, &exec->tty_fd, "tty");
	else if (kind == SOURCE_STDIN)
		pump_input(agent, exec);
	else if (kind == SOURCE_FAILURE && exec->failure_fd >= 0)
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

void exec_resize(struct exec *exec, unsigned rows, unsigned cols)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };

	if (exec->tty_fd >= 0 && rows > 0 && cols > 0)
		ioctl(exec->tty_fd, TIOCSWINSZ, &size);
}

void exec_reaped(struct agent *agent, struct exec *exec, int status, const struct rusage *usage)
{
	(void)agent;
	exec->is_reaped = true;
	exec->status = status;
	exec->usage = *usage;
	exec->drain_until_ms = clock_now_ms() + AGENT_DRAIN_MS;
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
	emit_map(&emit, exec->is_failed ? 7 : 5);
	emit_number_or_null(&emit, "exit_code", is_exit, WEXITSTATUS(exec->status));
	emit_number_or_null(&emit, "signal", WIFSIGNALED(exec->status), WTERMSIG(exec->status));
	emit_atom(&emit, "user_us");
	emit_int(&emit, microseconds(&exec->usage.ru_utime));
	emit_atom(&emit, "system_us");
	emit_int(&emit, microseconds(&exec->usage.ru_stime));
	emit_atom(&emit, "max_rss_bytes");
	emit_int(&emit, (int64_t)exec->usage.ru_maxrss * 1024);
	if (exec->is_failed) {
		emit_atom(&emit, "error");
		emit_atom(&emit, errno_name(exec->error));
		emit_atom(&emit, "stage");
		emit_text(&emit, exec->stage);
	}
	agent_send(agent, &emit);
}

static bool is_drained(const struct exec *exec, uint64_t now_ms)
{
	bool is_empty =
		exec->out_fd < 0 && exec->err_fd < 0 && exec->tty_fd < 0 && exec->failure_fd < 0;

	return is_empty || (now_ms >= exec->drain_until_ms && exec->window > 0);
}

int exec_finish(struct agent *agent, uint64_t now_ms)
{
	int wait_ms = -1;

	for (int i = 0; i < AGENT_CALLS; i++) {
		struct exec *exec = agent->execs[i];

		if (!exec || !exec->is_reaped)
			continue;
		if (is_drained(exec, now_ms)) {
			reply(agent, exec);
			exec_free(agent, exec);
		} else if (now_ms < exec->drain_until_ms) {
			int left = (int)(exec->drain_until_ms - now_ms);

			wait_ms = wait_ms < 0 || left < wait_ms ? left : wait_ms;
		}
	}
	return wait_ms;
}
