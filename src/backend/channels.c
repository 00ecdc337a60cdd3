/* The descriptors between a monitor and a first process that it forks itself; see channels.h. */
#include "backend/channels.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/privs.h"
#include "os/yama.h"
#include "wire/frame.h"

int channels_make(struct channels *channels, struct wall *wall, bool has_listeners)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	fd_widen(pair[0], FRAME_STREAM);
	fd_widen(pair[1], FRAME_STREAM);
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
	/* Only a switch that is 3 closes them to the owner of a namespace; walls without one ask
	 * before they come here. */
	if (has_listeners && yama_permits(true)) {
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

/* Where the caller's own hard limit is 0, only root of the host may raise it, before the child is
 * in a user namespace. A soft limit of 0 stays ours. */
static void raise_core(void)
{
	struct rlimit core;

	if (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max > 0)
		return;
	core.rlim_max = 1;
	setrlimit(RLIMIT_CORE, &core); /* refused to others; channels_weaken() says what follows */
}

/* Does the kernel start a program for a crash whose limit is 0, and can we set no other? */
static bool has_crash_handler(void)
{
	_cleanup_fd_ int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
	struct rlimit core;
	char first;

	if (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max > 0 || privs_has(CAP_SYS_RESOURCE))
		return false;
	return fd >= 0 && read(fd, &first, 1) == 1 && first == '|';
}

static void add_weakness(struct backend_report *report, const char *text)
{
	size_t n = strlen(report->weaker);

	snprintf(report->weaker + n, sizeof report->weaker - n, "%s%s", n ? "; " : "", text);
}

void channels_weaken(struct backend_report *report, bool is_owner, const char *loss)
{
	char text[sizeof report->weaker];

	if (!yama_permits(is_owner)) {
		snprintf(text, sizeof text, "kernel.yama.ptrace_scope is %d: %s", yama_scope(),
			 loss);
		add_weakness(report, text);
	}
	if (has_crash_handler())
		add_weakness(report, "a crash starts the handler in kernel.core_pattern, because "
				     "the hard limit of core files is 0 (ulimit -Hc) and not 1");
}

void channels_limit(const struct backend_start *how, struct launch *launch)
{
	/* 1, not 0: a pipe in core_pattern is started for 0 too, on the host and as root, and for 1
	 * it is not (the kernel's do_coredump). The command filter keeps it there. */
	raise_core();
	launch_limit(launch, RLIMIT_CORE, 1);
	/* RLIMIT_DATA, never RLIMIT_AS: WebAssembly reserves address space it does not use. */
	if (how->data_bytes != PLAN_UNLIMITED)
		launch_limit(launch, RLIMIT_DATA, how->data_bytes);
}

void channels_fill(const struct channels *channels, const struct plan *plan,
		   const struct backend_start *how, struct launch *launch)
{
	static char *const agent_argv[] = { (char *)"caisson-agent", NULL };
	static char *const ahead_argv[] = { (char *)"caisson-agent", (char *)AGENT_AHEAD, NULL };
	const struct plan_limits *limits = &plan->limits;

	channels_limit(how, launch);
	if (limits->cpu_milli != PLAN_UNLIMITED)
		launch->cpu_count = (unsigned)((limits->cpu_milli + 999) / 1000);
	launch->cpu_first = (unsigned)getpid();
	memcpy(launch->agent_enter, how->agent_enter, sizeof launch->agent_enter);
	memcpy(launch->cmd_enter, how->cmd_enter, sizeof launch->cmd_enter);
	launch->landlock_abi = landlock_abi();
	launch->has_tty = how->has_tty;
	launch->workdir = "/";
	launch->agent_argv = how->waits ? ahead_argv : agent_argv;
	launch->agent_fd = how->agent_fd;
	launch->search_fd = how->search_fd;
	launch->life_fd = channels->life;
	launch->stream_fd = channels->stream;
	launch->listeners_fd = channels->listeners;
	launch->error_fd = channels->failure;
}
