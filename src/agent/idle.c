/*
 * Keepers between two commands; see idle.h. A stream's end is what ends one, so to forget it is to
 * close that; it is reaped as any child whom nobody knows.
 */
#include "agent/idle.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/agent.h"
#include "agent/exec.h"
#include "agent/keeper.h"
#include "base/fd.h"
#include "os/landlock.h"

bool idle_may_keep(const struct agent *agent, const char *profile)
{
	return agent->landlock_abi >= LANDLOCK_ABI_SCOPE && strcmp(profile, "none") != 0 &&
	       strcmp(profile, agent->profile) == 0;
}

bool idle_keep(struct idle *idle, struct exec *exec)
{
	bool may_serve = exec->keeper > 0 && !exec->error && exec->keeper_turns > 0 &&
			 exec->keeper_turns < IDLE_TURNS;

	if (!may_serve || idle->count == IDLE_MAX)
		return false;
	idle->keepers[idle->count++] = (struct idle_keeper){
		.pid = exec->keeper,
		.fd = fd_take(&exec->keeper_fd),
		.turns = exec->keeper_turns,
	};
	exec->keeper = 0;
	return true;
}

bool idle_take(struct idle *idle, int command, struct spare *spare)
{
	while (idle->count > 0) {
		struct idle_keeper *last = &idle->keepers[--idle->count];

		if (keeper_next(last->fd, command) < 0) {
			fd_close(last->fd);
			continue;
		}
		spare->keeper = last->pid;
		spare->keeper_fd = last->fd;
		spare->turns = last->turns + 1;
		return true;
	}
	return false;
}

size_t idle_pids(const struct idle *idle, pid_t *ret_pids)
{
	for (unsigned i = 0; i < idle->count; i++)
		ret_pids[i] = idle->keepers[i].pid;
	return idle->count;
}

bool idle_child(struct idle *idle, pid_t pid, int status)
{
	for (unsigned i = 0; i < idle->count; i++) {
		if (idle->keepers[i].pid != pid)
			continue;
		if (WIFSTOPPED(status)) {
			kill(pid, SIGCONT);
			return true;
		}
		fd_close(idle->keepers[i].fd);
		idle->keepers[i] = idle->keepers[--idle->count];
		return true;
	}
	return false;
}
