/*
 * sample_tree - a tree of processes that holds memory, for tests of sampling
 *
 * The test is the root; children tell it when they hold what they should.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "os/sample.h"
#include "tap.h"

enum { MIB = 1 << 20 };

static int ready[2];

static inline void tell(void)
{
	CHECK(write(ready[1], "x", 1) == 1);
}

static inline void await(int count)
{
	char byte;

	while (count--)
		CHECK(read(ready[0], &byte, 1) == 1);
}

static inline void sleep_well(void)
{
	alarm(30); /* a test that failed does not come back for us */
	tell();
	for (;;)
		pause();
}

static inline char *fill(size_t size, int flags)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 1, size);
	return p;
}

/* What other such tests take is growth of this machine that nobody here can explain. */
static inline void be_alone(void)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < 1000 && flock(fd, LOCK_EX | LOCK_NB) < 0; i++)
		usleep(10000);
}

/* This process is the root of its tree, orphans come back to it, and all go with it. */
static inline void begin(void)
{
	be_alone();
	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

static inline void end(void)
{
	struct sample_tree tree;
	char text[16384], path[64];

	for (int i = 0; i < 200; i++) {
		snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof text - 1);
		close(fd);
		if (n <= 0)
			break;
		text[n] = 0;
		for (char *at = text, *word; (word = strsep(&at, " ")) && *word;)
			kill((pid_t)strtol(word, NULL, 10), SIGKILL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep(5000);
	}
	CHECK(sample_tree(getpid(), UINT64_MAX, NULL, &tree) == 0 && tree.processes == 0);
}

static inline void need_children(void)
{
	struct sample_tree tree;

	if (sample_tree(getpid(), UINT64_MAX, NULL, &tree) == -ENOTSUP)
		SKIP("proc: the kernel does not list children");
}

/* A memfd of `size` bytes that nobody maps. */
static inline int file_of(size_t size)
{
	static char block[MIB];
	int fd = memfd_create("test", MFD_CLOEXEC);

	CHECK(fd >= 0);
	memset(block, 1, sizeof block);
	for (size_t done = 0; done < size; done += sizeof block)
		CHECK(write(fd, block, sizeof block) == (ssize_t)sizeof block);
	return fd;
}
