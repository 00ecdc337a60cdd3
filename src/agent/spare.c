/*
 * The agent's side of a command that is forked ahead: forks, tells, gives away, forgets; see
 * spare.h. What it is told is packed as spare_message.h says, and unpacked in spare_take.c.
 */
#include "agent/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/child.h"
#include "agent/exec.h"
#include "agent/keeper.h"
#include "agent/spare_message.h"
#include "base/fd.h"
#include "os/agent_fds.h"
#include "os/landlock.h"

void spare_init(struct spare *spare)
{
	*spare = (struct spare){ .keeper_fd = -1, .command_fd = -1 };
}

bool spare_is_due(const struct agent *agent)
{
	return agent->spare.is_wanted && agent->spare.keeper == 0 && !agent->is_stopping;
}

/* The leader ends with its stream, and the keeper with its leader. */
static void drop(struct spare *spare)
{
	bool is_wanted = spare->is_wanted;

	fd_close(spare->keeper_fd);
	fd_close(spare->command_fd);
	spare_init(spare);
	spare->is_wanted = is_wanted;
}

/* A keeper of its own, for a leader that gets `command`. */
static void fork_keeper(struct agent *agent, int command)
{
	struct spare *spare = &agent->spare;
	_cleanup_fd_ int report = -1;
	_cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct child child = {
		.fds = { null, null, null },
		.tty_fd = -1,
		.failure_fd = -1,
		.listeners_fd = agent->may_listen ? AGENT_FD_LISTENERS : -1,
		.enter_fd = AGENT_FD_ENTER,
		.landlock_abi = agent->landlock_abi,
		.profile = agent->profile,
		.command_fd = command,
		.is_kept = idle_may_keep(agent, agent->profile),
	};
	pid_t self = getpid();
	int pair[2];

	if (null < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	spare->keeper_fd = pair[0];
	report = pair[1];
	spare->keeper = fork();
	if (spare->keeper == 0)
		keeper_run(&child, self, report);
	spare->turns = child.is_kept;
}

void spare_fork(struct agent *agent)
{
	struct spare *spare = &agent->spare;
	_cleanup_fd_ int command = -1;
	int pair[2];

	spare->is_wanted = false; /* not again and again where it fails; the next end asks */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	spare->command_fd = pair[0];
	command = pair[1];
	if (!idle_take(&agent->idle, command, spare))
		fork_keeper(agent, command);
	if (spare->keeper <= 0)
		drop(spare);
}

/* ---- the agent's message -------------------------------------------------------------------- */

struct message {
	struct iovec parts[SPARE_TEXTS + 1];
	size_t count;
	size_t size;
};

/* Counts what does not fit, too. */
static void add(struct message *message, const void *bytes, size_t size)
{
	if (message->count < SPARE_TEXTS + 1)
		message->parts[message->count] = (struct iovec){ (void *)(uintptr_t)bytes, size };
	message->count++;
	message->size += size;
}

static void add_text(struct message *message, const char *text)
{
	add(message, text, strlen(text) + 1);
}

static uint32_t add_texts(struct message *message, char *const *texts)
{
	uint32_t count = 0;

	for (; texts[count] && message->count <= SPARE_TEXTS; count++)
		add_text(message, texts[count]);
	return count;
}

/* The two lists end with a NULL each, which needs a place beside the texts. */
static bool fits(const struct message *message)
{
	return message->count + 2 <= SPARE_TEXTS && message->size <= SPARE_BYTES;
}

static bool send_message(int fd, struct message *message, const int *fds, size_t count)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int[SPARE_FDS]))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr header = {
		.msg_iov = message->parts,
		.msg_iovlen = message->count,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
	return sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)message->size;
}

static bool tell(int fd, const struct child *child)
{
	int fds[SPARE_FDS] = { child->fds[0], child->fds[1], child->fds[2], child->failure_fd,
			       child->tty_fd };
	struct spare_head head = {
		.ref = child->ref,
		.open_files = child->open_files,
		.has_tty = child->tty_fd >= 0,
		.has_workspace = child->workspace != NULL,
	};
	struct message message = { .count = 0 };

	add(&message, &head, sizeof head);
	add_text(&message, child->workspace ? child->workspace : "");
	add_text(&message, child->cwd);
	add_text(&message, child->path);
	head.args = add_texts(&message, child->argv);
	head.variables = add_texts(&message, child->env);
	return fits(&message) &&
	       send_message(fd, &message, fds, head.has_tty ? SPARE_FDS : SPARE_FDS - 1);
}

/* Where no scope cuts signals, a command that is over may have left it stopped. */
static void wake(const struct agent *agent)
{
	if (agent->landlock_abi < LANDLOCK_ABI_SCOPE || strcmp(agent->profile, "none") == 0)
		keeper_order(agent->spare.keeper_fd, SIGCONT, false);
}

bool spare_use(struct agent *agent, const struct child *child, struct exec *exec)
{
	struct spare *spare = &agent->spare;

	if (strcmp(child->profile, agent->profile) != 0)
		return false;
	if (spare->keeper == 0 && agent->idle.count > 0)
		spare_fork(agent);
	if (spare->keeper == 0 || !tell(spare->command_fd, child))
		return false;
	wake(agent);
	exec->keeper = spare->keeper;
	exec->keeper_fd = fd_take(&spare->keeper_fd);
	exec->keeper_turns = spare->turns;
	drop(spare);
	return true;
}

bool spare_child(struct agent *agent, pid_t pid, int status)
{
	if (pid != agent->spare.keeper)
		return false;
	if (WIFSTOPPED(status))
		kill(pid, SIGCONT);
	else
		drop(&agent->spare);
	return true;
}
