/* The descriptors between a monitor and a first process that it forks itself; see channels.h. */
#include "backend/channels.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

int channels_make(struct channels *channels, struct wall *wall, bool has_listeners)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	wall->stream = pair[0];
	channels->stream = pair[1];
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	wall->failure = pair[0];
	channels->failure = pair[1];
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	channels->life = pair[0];
	wall->life = pair[1];
	if (has_listeners) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
			return -errno;
		wall->listeners = pair[0];
		channels->listeners = pair[1];
		/* The kernel then says which process, in our pid namespace, wrote a message. */
		if (setsockopt(wall->listeners, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) <
		    0)
			return -errno;
	}
	return fd_set_nonblock(wall->stream, 1);
}

void channels_done(struct channels *channels)
{
	fd_cleanup(&channels->stream);
	fd_cleanup(&channels->listeners);
	fd_cleanup(&channels->failure);
	fd_cleanup(&channels->life);
}

void channels_fill(const struct channels *channels, const struct plan *plan,
		   const struct backend_start *how, struct launch *launch)
{
	static char *const agent_argv[] = { (char *)"caisson-agent", NULL };
	const struct plan_limits *limits = &plan->limits;

	/* 1, not 0: a pipe in core_pattern is started for 0 too, on the host and as root, and for 1
	 * it is not (the kernel's do_coredump). The command filter keeps it there. */
	launch_limit(launch, RLIMIT_CORE, 1);
	/* RLIMIT_DATA, never RLIMIT_AS: WebAssembly reserves address space it does not use. */
	if (how->data_bytes != PLAN_UNLIMITED)
		launch_limit(launch, RLIMIT_DATA, how->data_bytes);
	if (limits->cpu_milli != PLAN_UNLIMITED)
		launch->cpu_count = (unsigned)((limits->cpu_milli + 999) / 1000);
	launch->cpu_first = (unsigned)getpid();
	memcpy(launch->agent_enter, how->agent_enter, sizeof launch->agent_enter);
	memcpy(launch->cmd_enter, how->cmd_enter, sizeof launch->cmd_enter);
	launch->landlock_abi = landlock_abi();
	launch->has_tty = how->has_tty;
	launch->workdir = "/";
	launch->agent_argv = agent_argv;
	launch->agent_fd = how->agent_fd;
	launch->life_fd = channels->life;
	launch->stream_fd = channels->stream;
	launch->listeners_fd = channels->listeners;
	launch->error_fd = channels->failure;
}
