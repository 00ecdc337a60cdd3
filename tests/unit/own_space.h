/*
 * own_space - ids and mounts of a test's own
 *
 * A test runs in a process of its own (tap.h); what it changes here dies with it. Most run as
 * the caller and, started by root, once more as an ordinary user.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "tap.h"

enum { ORDINARY = 65534 };

static inline void put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		printf("# cannot write %s: %s\n", path, strerror(errno));
	CHECK(fd >= 0);
	close(fd);
}

/* The contents of a small file, "" if there is none; the next call overwrites it. */
static inline const char *get_text(const char *path)
{
	static char text[8192];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return text;
}

/* Root becomes a user who owns nothing; others stay who they are. */
static inline void be_ordinary(void)
{
	if (geteuid() == 0) {
		CHECK(setgroups(0, NULL) == 0);
		CHECK(setresgid(ORDINARY, ORDINARY, ORDINARY) == 0);
		CHECK(setresuid(ORDINARY, ORDINARY, ORDINARY) == 0);
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else our /proc files are root's */
	}
	CHECK(geteuid() != 0);
}

/* A user namespace in which the caller is 0 and has every capability; `more`: other flags. */
static inline void own_users(int more)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[32];

	if (unshare(CLONE_NEWUSER | more) < 0)
		SKIP("namespaces: %s", strerror(errno));
	put_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %u 1", uid);
	put_text("/proc/self/uid_map", map);
	snprintf(map, sizeof map, "0 %u 1", gid);
	put_text("/proc/self/gid_map", map);
}

/* Mounts of our own; the working directory is an empty file system, /mnt. */
static inline void own_mounts(void)
{
	if (geteuid() != 0)
		own_users(CLONE_NEWNS);
	else if (unshare(CLONE_NEWNS) < 0)
		SKIP("namespaces: %s", strerror(errno));
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755") == 0 && chdir("/mnt") == 0);
}

/* What a child process made of `run` ended with: its exit status, or -1. */
static inline int status_of(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(30);
		run();
		fflush(stdout);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Two tests from a function of that name: as the caller, and as an ordinary user. */
#define AS_BOTH(name)                  \
	static void name##_plain(void) \
	{                              \
		name();                \
	}                              \
	static void name##_user(void)  \
	{                              \
		be_ordinary();         \
		name();                \
	}
#define BOTH_ROWS(name, what)                        \
	{ what, name##_plain },                      \
	{                                            \
		what " (ordinary user)", name##_user \
	}
