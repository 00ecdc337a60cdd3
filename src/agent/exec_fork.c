/* Between a checked call and a process: pipes or a terminal, then the fork; see exec.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/exec.h"
#include "agent/keeper.h"
#include "base/fd.h"
#include "os/agent_fds.h"
#include "os/terminal.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U /* Linux 6.3 */
#endif

/* The command's ends of its streams; closed in the parent after the fork. */
struct ends {
	int fds[3];
	int slave;
	int report;
	int image; /* no end of a stream, and as short-lived */
	int failure;
};

static void ends_done(struct ends *ends)
{
	for (int i = 0; i < 3; i++)
		fd_cleanup(&ends->fds[i]);
	fd_cleanup(&ends->slave);
	fd_cleanup(&ends->report);
	fd_cleanup(&ends->image);
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

/* The one that was made before files were restricted, or that the monitor sent for this call, or a
 * new one. */
static int open_tty(int64_t ref, int *ret_master, int *ret_slave)
{
	_cleanup_fd_ int master = -1;
	int slave, r;

	if (!isatty(AGENT_FD_TTY_PEER)) {
		r = terminal_take(AGENT_FD_TTY, ref, ret_master, ret_slave);
		return r == -ENOTSOCK ? terminal_make(ret_master, ret_slave) : r;
	}
	master = take_fixed(AGENT_FD_TTY);
	slave = master < 0 ? master : take_fixed(AGENT_FD_TTY_PEER);
	if (slave < 0)
		return slave;
	*ret_master = fd_take(&master);
	*ret_slave = slave;
	return 0;
}

static int make_tty(struct exec *exec, const struct command *command, struct ends *ends)
{
	struct streams *streams = &exec->streams;
	int r = open_tty(exec->ref, &streams->output_fd[STREAMS_TTY], &ends->slave);

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

/* A program that was sent along lies nowhere inside: nothing there can change it. */
static int make_image(const struct command *command, int *ret_fd)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (!command->image)
		return 0;
	fd = memfd_create("caisson-evaluator", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("caisson-evaluator", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, command->image, command->image_size);
	if (r >= 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	if (r >= 0)
		*ret_fd = fd_take(&fd);
	return r;
}

static void fork_last(struct exec *exec, struct child *child)
{
	child->parent = getpid();
	exec->pid = fork();
	if (exec->pid == 0)
		child_run(child);
}

/* Reports are looked at when the program was executed: one waking for both. */
static int fork_keeper(struct exec *exec, struct child *child)
{
	_cleanup_fd_ int theirs = -1;
	pid_t self = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	exec->keeper_fd = pair[0];
	exec->keeper_turns = child->is_kept;
	theirs = pair[1];
	exec->keeper = fork();
	if (exec->keeper == 0)
		keeper_run(child, self, theirs);
	return exec->keeper < 0 ? -errno : 0;
}

static int fork_child(struct agent *agent, struct exec *exec, const struct command *command,
		      struct ends *ends)
{
	struct child child = {
		.ref = exec->ref,
		.argv = command->argv,
		.env = command->env,
		.path = command->path,
		.cwd = command->cwd ? command->cwd : agent->workspace,
		.workspace = agent->workspace,
		.fds = { ends->fds[0], ends->fds[1], ends->fds[2] },
		.tty_fd = ends->slave,
		.report_fd = ends->report > 0 ? ends->report : 0,
		.image_fd = ends->image > 0 ? ends->image : 0,
		.failure_fd = ends->failure,
		.listeners_fd = agent->may_listen ? AGENT_FD_LISTENERS : -1,
		.enter_fd = AGENT_FD_ENTER,
		.open_files = command->open_files,
		.landlock_abi = agent->landlock_abi,
		.profile = command->profile ? command->profile : agent->profile,
	};

	if (!command->is_last) {
		child.is_kept = !command->image && idle_may_keep(agent, child.profile);
		return !command->has_report && !command->image && spare_use(agent, &child, exec)
			       ? 0
			       : fork_keeper(exec, &child);
	}
	fork_last(exec, &child);
	return exec->pid < 0 ? -errno : 0;
}

int exec_fork(struct agent *agent, struct exec *exec, const struct command *command)
{
	struct ends ends = { { -1, -1, -1 }, -1, -1, -1, -1 };
	int r = command->has_tty ? make_tty(exec, command, &ends)
				 : make_pipes(&exec->streams, command, &ends);

	if (r >= 0 && command->has_report)
		r = make_pipe(&exec->streams.output_fd[STREAMS_REPORT], &ends.report);
	if (r >= 0)
		r = make_image(command, &ends.image);
	if (r >= 0)
		r = make_pipe(&exec->failure_fd, &ends.failure);
	if (r >= 0)
		r = fork_child(agent, exec, command, &ends);
	ends_done(&ends);
	if (r < 0)
		return r;
	streams_begin(agent, &exec->streams);
	fd_set_nonblock(exec->failure_fd, 1);
	agent_watch(agent, exec->failure_fd, EPOLLIN,
		    (struct agent_source){ SOURCE_FAILURE, exec->slot });
	return 0;
}
