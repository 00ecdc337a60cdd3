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

enum { ROUNDS = 200, DEPTH = 64, CLEAN_ROUNDS = 3, CHILD_LOOKS = 50 };

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

/*
 * The calling process's children, as the kernel lists them in one go (CONFIG_PROC_CHILDREN); all
 * but the spared ones are killed and, if they are dead already, reaped. A chain that forks and
 * exits is always among them: whoever lost its parent is ours. Returns how many there were, -1
 * where there is no such list.
 */
static int kill_children(const pid_t *spared)
{
	_cleanup_fd_ int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	int seen = 0;

	if (n < 0)
		return -1;
	text[n] = 0;
	for (char *at = text, *end; (end = strchr(at, ' ')); at = end + 1) {
		uint64_t pid;

		*end = 0;
		if (str_parse_u64(at, INT32_MAX, &pid) < 0 || is_spared((pid_t)pid, spared))
			continue;
		kill((pid_t)pid, SIGKILL);
		waitpid((pid_t)pid, NULL, WNOHANG);
		seen++;
	}
	return seen;
}

/* Where the list is missing: every dead child up to the first that somebody else waits for. */
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

/* A look at the children costs little, so a fast chain meets many before /proc is read again. */
static int kill_children_often(const pid_t *spared)
{
	int seen = 1;

	for (int look = 0; look < CHILD_LOOKS && seen > 0; look++)
		seen = kill_children(spared);
	return seen;
}

bool sweep_kill(const pid_t *spared)
{
	int clean = 0;

	for (int round = 0; round < ROUNDS && clean < CLEAN_ROUNDS; round++) {
		int children = kill_children_often(spared);

		if (children == 0)
			return true; /* nobody's orphan is elsewhere: nobody is left */
		/* With children left, a clean /proc is one that hides them (hidepid). */
		clean = sweep_signal(SIGKILL, spared) == 0 && children < 0 ? clean + 1 : 0;
		if (children < 0)
			reap(spared);
	}
	return clean == CLEAN_ROUNDS;
}
