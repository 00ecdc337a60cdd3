/*
 * Signals to every descendant; see sweep.h. Without a pid namespace the agent is a child
 * subreaper, so every orphan becomes its child and /proc shows the tree. A chain that forks
 * and exits faster than one reading of /proc is caught by the next: each round kills what it
 * saw and reaps, and a clean round ends the sweep.
 */
#include "agent/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { ROUNDS = 200, DEPTH = 64, CLEAN_ROUNDS = 3 };

/* The parent in /proc/PID/stat: the second field after the name's closing parenthesis. */
static pid_t parent_of(pid_t pid)
{
	char path[32], text[512];
	_cleanup_fd_ int fd = -1;
	const char *at;
	ssize_t n;
	int parent = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strrchr(text, ')');
	return at && sscanf(at + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static bool is_descendant(pid_t pid, pid_t ancestor)
{
	for (int depth = 0; depth < DEPTH && pid > 1; depth++) {
		pid = parent_of(pid);
		if (pid == ancestor)
			return true;
	}
	return false;
}

static unsigned sweep_once(int signal_number)
{
	DIR *dir = opendir("/proc");
	pid_t self = getpid();
	unsigned seen = 0;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		uint64_t pid;

		if (str_parse_u64(entry->d_name, INT32_MAX, &pid) < 0 ||
		    !is_descendant((pid_t)pid, self))
			continue;
		kill((pid_t)pid, signal_number);
		seen++;
	}
	if (dir)
		closedir(dir);
	return seen;
}

void sweep_all(bool is_pid_1, int signal_number)
{
	int clean = 0;

	if (is_pid_1) {
		kill(-1, signal_number);
		return;
	}
	if (signal_number != SIGKILL) {
		sweep_once(signal_number);
		return;
	}
	for (int round = 0; round < ROUNDS && clean < CLEAN_ROUNDS; round++) {
		clean = sweep_once(SIGKILL) == 0 ? clean + 1 : 0;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}
