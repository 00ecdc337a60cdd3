/*
 * spawn - how long commands take, one beside the other
 *
 *	spawn [-r ROUNDS] [-w WARM-UP] [-p PAUSE_MS] FILE	one at a time
 *	spawn -j AT_ONCE [-r ROUNDS] [-n LAUNCHES] FILE		many at once
 *
 * FILE has one command a line, its fields parted by tabs: name, mount namespace (a path such as
 * /proc/PID/ns/mnt, or "-"), argv. Each round runs every command once, in a new random order, so
 * that the noise of the machine, and what one command leaves behind, hits all alike. A time is
 * from before the fork to after the wait; input and output are /dev/null.
 *
 * Prints a line a command: name, samples, failures, min, p50, p99, in microseconds; with -j the
 * numbers are launches per second, of LAUNCHES in a row, worst, p50 and best. A command that
 * fails prints its status on stderr once.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

enum { COMMANDS = 32, ARGS = 256, LINE = 64 << 10 };

struct command {
	const char *name;
	int mount_ns; /* -1: ours */
	char *argv[ARGS];
	double *samples;
	size_t count;
	size_t failures;
};

struct options {
	uint64_t rounds, warm_up, pause_ms, at_once, launches;
	const char *file;
};

static struct command commands[COMMANDS];
static size_t command_count;
static int null_fd;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "spawn: %s: %s\n", what, strerror(errno));
	exit(2);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* As posix_spawn() does it: the child borrows our memory until it executes. */
static pid_t launch(const struct command *command)
{
	extern char **environ;
	pid_t pid = vfork();

	if (pid != 0)
		return pid;
	dup2(null_fd, STDIN_FILENO);
	dup2(null_fd, STDOUT_FILENO);
	if (command->mount_ns >= 0 && setns(command->mount_ns, CLONE_NEWNS) < 0)
		_exit(126);
	execve(command->argv[0], command->argv, environ);
	_exit(127);
}

static void judge(struct command *command, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (command->failures++ == 0)
		fprintf(stderr, "spawn: %s failed, status %#x\n", command->name, (unsigned)status);
}

static double time_one(struct command *command)
{
	double begin = now_us(), end;
	int status = 0;
	pid_t pid = launch(command);

	if (pid < 0)
		die("fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	end = now_us();
	judge(command, status);
	return end - begin;
}

/* Launches per second of `launches` with `at_once` of them alive. */
static double time_many(struct command *command, uint64_t at_once, uint64_t launches)
{
	double begin = now_us();
	uint64_t started = 0, ended = 0;

	while (ended < launches) {
		int status = 0;

		if (started < launches && started - ended < at_once) {
			if (launch(command) < 0)
				die("fork");
			started++;
			continue;
		}
		if (wait(&status) > 0) {
			judge(command, status);
			ended++;
		}
	}
	return (double)launches * 1e6 / (now_us() - begin);
}

static void shuffle(size_t *order)
{
	for (size_t i = command_count; i > 1; i--) {
		size_t other = (size_t)random() % i, swap = order[i - 1];

		order[i - 1] = order[other];
		order[other] = swap;
	}
}

static void run(const struct options *options)
{
	struct timespec pause = { (time_t)(options->pause_ms / 1000),
				  (long)(options->pause_ms % 1000) * 1000000 };
	size_t order[COMMANDS];

	for (size_t i = 0; i < command_count; i++)
		order[i] = i;
	for (uint64_t round = 0; round < options->warm_up + options->rounds; round++) {
		shuffle(order);
		for (size_t i = 0; i < command_count; i++) {
			struct command *command = &commands[order[i]];
			double sample;

			if (options->pause_ms)
				nanosleep(&pause, NULL);
			sample = options->at_once
					 ? time_many(command, options->at_once, options->launches)
					 : time_one(command);
			if (round >= options->warm_up)
				command->samples[command->count++] = sample;
		}
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(void)
{
	for (size_t i = 0; i < command_count; i++) {
		struct command *command = &commands[i];
		size_t n = command->count;

		if (n == 0)
			continue;
		qsort(command->samples, n, sizeof(double), compare);
		printf("%s\t%zu\t%zu\t%.1f\t%.1f\t%.1f\n", command->name, n, command->failures,
		       command->samples[0], command->samples[n / 2],
		       command->samples[n * 99 / 100]);
	}
}

static void add_command(char *line, uint64_t rounds)
{
	struct command *command = &commands[command_count];
	char *at = line, *ns;
	size_t n = 0;

	if (command_count == COMMANDS)
		return;
	command->name = strdup(strsep(&at, "\t"));
	ns = strsep(&at, "\t");
	command->mount_ns = -1;
	if (ns && !str_is(ns, "-")) {
		command->mount_ns = open(ns, O_RDONLY | O_CLOEXEC);
		if (command->mount_ns < 0)
			die(ns);
	}
	while (at && n < ARGS - 1)
		command->argv[n++] = strdup(strsep(&at, "\t"));
	command->samples = calloc(rounds, sizeof(double));
	if (n > 0 && command->samples)
		command_count++;
}

static void read_commands(const char *path, uint64_t rounds)
{
	static char line[LINE];
	FILE *file = fopen(path, "re");

	if (!file)
		die(path);
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0])
			add_command(line, rounds);
	}
	fclose(file);
}

static void read_options(int argc, char **argv, struct options *options)
{
	static const char letters[] = "rwpjn";
	uint64_t *const values[] = { &options->rounds, &options->warm_up, &options->pause_ms,
				     &options->at_once, &options->launches };
	int option;

	while ((option = getopt(argc, argv, "r:w:p:j:n:")) != -1) {
		const char *letter = strchr(letters, option);

		if (!letter || str_parse_u64(optarg, 1000000, values[letter - letters]) < 0) {
			fprintf(stderr, "usage: spawn [-r N] [-w N] [-p MS] [-j N -n N] FILE\n");
			exit(2);
		}
	}
	options->file = optind < argc ? argv[optind] : "/dev/stdin";
}

int main(int argc, char **argv)
{
	struct options options = { .rounds = 100, .warm_up = 3, .launches = 80 };

	read_options(argc, argv, &options);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		die("/dev/null");
	read_commands(options.file, options.rounds ? options.rounds : 1);
	run(&options);
	report();
	return 0;
}
