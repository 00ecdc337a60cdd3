/*
 * command - what the walls of a command cost the kernel, without Caisson
 *
 *	command AT_ONCE ROUNDS
 *
 *	fork     fork, exec of /bin/true, wait
 *	domain   the same behind a Landlock domain that cuts signals and abstract sockets
 *	filter   and behind a filter as long as a command's, with a listener
 *	keeper   and beneath a process of its own, which reaps it and ends
 *
 * Nobody tells anybody anything: what Caisson takes more is the way of a call through it. Each
 *round starts AT_ONCE processes that do one of these CALLS times, and times all of it; kinds go in
 *turn, so that the noise of the machine hits all. The filter allows everything, and finds that at
 *once.
 *
 * Prints a line each: name, calls a second (the median of the rounds), and microseconds of
 *processor time a call. Ends with a message where the kernel has no such domain (Linux 6.12).
 *
 *	cc -O2 -D_GNU_SOURCE -Isrc bench/command.c src/base/str.c
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

enum {
	CALLS = 100,
	AT_ONCE_MAX = 64,
	ROUNDS_MAX = 100,
	FILTER_SIZE = 270,     /* that of the profile "command" */
	NO_SYSCALL = 1u << 20, /* greater than any number */
};

/* As <linux/landlock.h> has it from 6.12 on. */
struct landlock_scopes {
	uint64_t files, net, scoped;
};

enum wall { FORK, DOMAIN, FILTER, KEEPER, WALLS };

static const char *const names[WALLS] = { "fork", "domain", "filter", "keeper" };
static struct sock_filter code[FILTER_SIZE];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "command: %s: %s\n", what, strerror(errno));
	exit(2);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* The kernel checks and compiles all of it; what runs is the beginning. */
static void fill_code(void)
{
	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, nr));
	code[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, NO_SYSCALL, 1, 0);
	code[2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	for (int i = 3; i < FILTER_SIZE - 1; i++)
		code[i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						       NO_SYSCALL + (unsigned)i, 0, 0);
	code[FILTER_SIZE - 1] = code[2];
}

static void enter_domain(void)
{
	const struct landlock_scopes scopes = { .scoped = 3 };
	long fd = syscall(SYS_landlock_create_ruleset, &scopes, sizeof scopes, 0);

	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		die("Landlock cuts no signals here");
}

static void load_filter(void)
{
	const struct sock_fprog program = { FILTER_SIZE, code };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		    &program) < 0)
		die("no filter with a listener");
}

static _Noreturn void run_true(enum wall wall)
{
	static char *const argv[] = { (char *)"true", NULL };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("no_new_privs");
	if (wall >= DOMAIN)
		enter_domain();
	if (wall >= FILTER)
		load_filter();
	execv("/bin/true", argv);
	die("/bin/true");
}

static void reap(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die("a command did not end well");
}

static void call(enum wall wall)
{
	pid_t pid = fork();

	if (pid == 0 && wall == KEEPER) {
		pid = fork();
		if (pid == 0)
			run_true(wall);
		reap(pid);
		_exit(0);
	}
	if (pid == 0)
		run_true(wall);
	reap(pid);
}

/* Calls a second. */
static double run_round(enum wall wall, unsigned at_once)
{
	double begin = now_us();
	pid_t pids[AT_ONCE_MAX];

	for (unsigned i = 0; i < at_once; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		for (int n = 0; pids[i] == 0 && n < CALLS; n++)
			call(wall);
		if (pids[i] == 0)
			_exit(0);
	}
	for (unsigned i = 0; i < at_once; i++)
		reap(pids[i]);
	return at_once * CALLS * 1e6 / (now_us() - begin);
}

static double spent_us(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static unsigned number(const char *text, uint64_t most)
{
	uint64_t value;

	if (str_parse_u64(text, most, &value) < 0 || value == 0) {
		fprintf(stderr, "command: %s: not a number from 1 to %llu\n", text,
			(unsigned long long)most);
		exit(2);
	}
	return (unsigned)value;
}

int main(int argc, char **argv)
{
	static double rates[WALLS][ROUNDS_MAX];
	double spent[WALLS] = { 0 };
	unsigned at_once, rounds;

	if (argc != 3) {
		fputs("usage: command AT_ONCE ROUNDS\n", stderr);
		return 2;
	}
	at_once = number(argv[1], AT_ONCE_MAX);
	rounds = number(argv[2], ROUNDS_MAX);
	fill_code();
	for (unsigned round = 0; round < rounds; round++)
		for (int wall = 0; wall < WALLS; wall++) {
			double before = spent_us();

			rates[wall][round] = run_round((enum wall)wall, at_once);
			spent[wall] += spent_us() - before;
		}
	for (int wall = 0; wall < WALLS; wall++) {
		qsort(rates[wall], rounds, sizeof rates[wall][0], compare);
		printf("%s\t%.0f\t%.0f\n", names[wall], rates[wall][rounds / 2],
		       spent[wall] / ((double)at_once * rounds * CALLS));
	}
	return 0;
}
