/* Signals to every descendant; see sweep.h. */
#include "os/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
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
	char path[32], text[512], number[16];
	_cleanup_fd_ int fd = -1;
	const char *at;
	uint64_t parent;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strrchr(text, ')');
	if (!at || strlen(at) < 4)
		return 0;
	snprintf(number, sizeof number, "%.*s", (int)strcspn(at + 4, " "), at + 4);
	return str_parse_u64(number, INT32_MAX, &parent) < 0 ? 0 : (pid_t)parent;
}

static bool is_spared(pid_t pid, const pid_t *spared)
{
	for (; spared && *spared; spared++)
		if (*spared == pid)
			return true;
	return false;
}

static bool is_descendant(pid_t pid, pid_t ancestor, const pid_t *spared)
{
	for (int depth = 0; depth < DEPTH && pid > 1 && !is_spared(pid, spared); depth++) {
		pid = parent_of(pid);
		if (pid == ancestor)
			return true;
	}
	return false;
}

unsigned sweep_signal(int signal_number, const pid_t *spared)
{
	DIR *dir = opendir("/proc");
	pid_t self = getpid();
	unsigned seen = 0;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		uint64_t pid;

		if (str_parse_u64(entry->d_name, INT32_MAX, &pid) < 0 ||
		    !is_descendant((pid_t)pid, self, spared))
			continue;
		kill((pid_t)pid, signal_number);
		seen++;
	}
	if (dir)
		closedir(dir);
	return seen;
}

/* Reaps every child but the spared ones, which somebody else waits for. */
static void reap(const pid_t *spared)
{
	siginfo_t info;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0 ||
		    is_spared(info.si_pid, spared))
			return;
		waitpid(info.si_pid, NULL, WNOHANG);
	}
}

void sweep_kill(const pid_t *spared)
{
	int clean = 0;

	for (int round = 0; round < ROUNDS && clean < CLEAN_ROUNDS; round++) {
		clean = sweep_signal(SIGKILL, spared) == 0 ? clean + 1 : 0;
		reap(spared);
	}
}
