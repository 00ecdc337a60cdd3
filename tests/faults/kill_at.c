/*
 * kill_at N|fork|forked2 COMMAND…: runs COMMAND and kills it at its Nth entry to or return from the
 * kernel, where it asks for its first child, or as soon as it has its second; "0" only counts. What
 * COMMAND forks is not followed. Prints the number of stops.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int forks; /* asked for so far */

/* 1: at the entry to a fork; 2: at its return. */
static int fork_side(pid_t pid)
{
	static bool is_forking;
	struct __ptrace_syscall_info info = { 0 };

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) < 0)
		return 0;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		is_forking = info.entry.nr == SYS_clone || info.entry.nr == SYS_clone3;
		forks += is_forking;
		return is_forking;
	}
	return is_forking ? 2 : 0;
}

static bool is_there(pid_t pid, const char *where)
{
	int side = fork_side(pid);

	return (strcmp(where, "fork") == 0 && side == 1) ||
	       (strcmp(where, "forked2") == 0 && side == 2 && forks == 2);
}

int main(int argc, char **argv)
{
	long wanted = argc > 2 ? strtol(argv[1], NULL, 10) : 0, count = 0;
	int status, signal;
	pid_t pid;

	if (argc < 3)
		return 2;
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		signal = WSTOPSIG(status) & ~0x80;
		if (signal == SIGTRAP)
			signal = 0;
		if (count++ == 0)
			ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
		if (count == wanted || is_there(pid, argv[1]))
			kill(pid, SIGKILL);
		else
			ptrace(PTRACE_SYSCALL, pid, 0, signal);
	}
	printf("%ld\n", count);
	return 0;
}
