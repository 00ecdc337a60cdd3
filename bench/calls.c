/*
 * calls - what one file operation costs here; run outside and inside, then compared
 *
 *	calls read FILE		read 4 KiB of an open file
 *	calls open FILE		open for reading, close
 *	calls stat FILE
 *	calls write-open FILE	open for writing, close; made first if it is missing
 *
 * Prints the best and the middle of the rounds in nanoseconds per operation, parted by a tab. The
 * pauses let a listener's token bucket fill again, so that what is measured is the cost of a call
 * and not the brake on a flood.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15, CALLS = 2000, PAUSE_MS = 100 };

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Opened once: what is timed is the read alone. */
static int do_read(const char *path)
{
	static int fd = -1;
	char data[4096];

	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	return (int)pread(fd, data, sizeof data, 0);
}

static int do_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static int do_stat(const char *path)
{
	struct stat st;

	return stat(path, &st);
}

static int do_write_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static const struct {
	const char *name;
	int (*call)(const char *path);
} operations[] = {
	{ "read", do_read },
	{ "open", do_open },
	{ "stat", do_stat },
	{ "write-open", do_write_open },
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int measure(int (*call)(const char *path), const char *path)
{
	static double rounds[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		double begin = now_ns();

		for (int k = 0; k < CALLS; k++)
			if (call(path) < 0)
				return -1;
		rounds[i] = (now_ns() - begin) / CALLS;
		nanosleep(&(struct timespec){ 0, PAUSE_MS * 1000000L }, NULL);
	}
	qsort(rounds, ROUNDS, sizeof *rounds, compare);
	printf("%.0f\t%.0f\n", rounds[0], rounds[ROUNDS / 2]);
	return 0;
}

int main(int argc, char **argv)
{
	int fd = -1;

	for (size_t i = 0; argc == 3 && i < sizeof operations / sizeof *operations; i++) {
		if (strcmp(argv[1], operations[i].name) != 0)
			continue;
		if (strcmp(argv[1], "write-open") == 0)
			fd = open(argv[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
		if (measure(operations[i].call, argv[2]) == 0)
			return 0;
		perror(argv[2]);
		return 1;
	}
	fprintf(stderr, "usage: calls read|open|stat|write-open FILE\n");
	return 2;
}
