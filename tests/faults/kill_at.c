/*
 * kill_at N|both:N|fork|forked2 COMMAND…: runs COMMAND and kills it at its Nth entry to or return
 * from the kernel, where it asks for its first child, or as soon as it has its second; "0" only
 * counts. With both: its first child, the cleaner, is killed before it. What COMMAND forks is not
 * followed. Prints the number of stops.
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

static int forks;         /* asked for so far */
static pid_t first_child; /* 0: there was none yet */

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
	if (!is_forking)
		return 0;
	is_forking = false;
	if (forks == 1 && info.exit.rval > 0)
		first_child = (pid_t)info.exit.rval;
	return 2;
}

static bool is_there(int side, const char *where)
{
	return (strcmp(where, "fork") == 0 && side == 1) ||
	       (strcmp(where, "forked2") == 0 && side == 2 && forks == 2);
}

/* Is it there and alive? Its number may be another's when it was waited for. */
static bool is_first_child(pid_t parent)
{
	char path[64], state = 0;
	FILE *stat;
	int ppid = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)first_child);
	stat = first_child ? fopen(path, "r") : NULL;
	if (!stat)
		return false;
	if (fscanf(stat, "%*d (%*[^)]) %c %d", &state, &ppid) != 2)
		state = 'Z';
	fclose(stat);
	return ppid == parent && state != 'Z';
}

/* Its parent stands still: it stays a child, dead or alive. */
static void kill_first_child(pid_t parent)
{
	while (is_first_child(parent)) {
		kill(first_child, SIGKILL);
		usleep(500);
	}
}

int main(int argc, char **argv)
{
	bool is_both = argc > 2 && strncmp(argv[1], "both:", 5) == 0;
	long wanted = argc > 2 ? strtol(argv[1] + (is_both ? 5 : 0), NULL, 10) : 0, count = 0;
	int status, signal, side;
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
		side = fork_side(pid);
		if (count == wanted || is_there(side, argv[1])) {
			if (is_both)
				kill_first_child(pid);
			kill(pid, SIGKILL);
		} else {
			ptrace(PTRACE_SYSCALL, pid, 0, signal);
		}
	}
	printf("%ld\n", count);
	return 0;
}
