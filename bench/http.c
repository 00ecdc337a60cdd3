/*
 * http - calls of `caisson serve` beside plain fork and exec
 *
 *	http PORT TOKEN SANDBOX CLIENTS ROUNDS
 *
 * Each round starts CLIENTS processes that all do the same thing CALLS times: POST an exec of
 * /bin/true on a connection that stays, or posix_spawn() /bin/true and wait for it; then one
 * process does so. A client of C, because one of Python would take the processors from what it
 * measures.
 *
 * Prints a line each: name, calls, min, p50, p99 in microseconds, and calls a second (the median of
 * the rounds). An answer that is not a command's end with status 0 ends it with a message.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

enum { CALLS = 100, CLIENTS_MAX = 64, ROUNDS_MAX = 100, ANSWER_MAX = 64 << 10, KINDS = 4 };

struct kind {
	const char *name;
	void (*call)(void);
	uint64_t clients;
	double *samples;
	size_t count;
	double rates[ROUNDS_MAX];
};

static char request[4096];
static uint16_t port;
static int line = -1;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "http: %s: %s\n", what, strerror(errno));
	exit(2);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- what is measured -------------------------------------------------------------------------
 */

static void dial(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int yes = 1;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	line = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (line < 0 || connect(line, (struct sockaddr *)&to, sizeof to) < 0)
		die("connect");
	setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/* Where an answer ends; 0: not yet here. */
static size_t find_end(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");
	const char *length = body ? strstr(answer, "Content-Length: ") : NULL;

	return length ? (size_t)(body + 4 - answer) + strtoul(length + 16, NULL, 10) : 0;
}

static void ask(void)
{
	char answer[ANSWER_MAX] = "";
	size_t size = 0, end = 0;

	if (line < 0)
		dial();
	if (write(line, request, strlen(request)) != (ssize_t)strlen(request))
		die("write");
	while (end == 0 || size < end) {
		ssize_t n = read(line, answer + size, sizeof answer - 1 - size);

		if (n <= 0)
			die("read");
		size += (size_t)n;
		answer[size] = 0;
		end = find_end(answer);
	}
	if (!strstr(answer, "\"exit_code\":0")) {
		fprintf(stderr, "http: %.600s\n", answer);
		exit(2);
	}
}

static void start(void)
{
	char *argv[] = { (char *)(uintptr_t) "/bin/true", NULL }, *environment[] = { NULL };
	pid_t pid;
	int status;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environment) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		die("/bin/true");
}

/* ---- rounds -----------------------------------------------------------------------------------
 */

static _Noreturn void work(const struct kind *kind, double *samples)
{
	for (int i = 0; i < CALLS; i++) {
		double begun = now_us();

		kind->call();
		samples[i] = now_us() - begun;
	}
	exit(0);
}

static void run(struct kind *kind, uint64_t round)
{
	double begun = now_us();

	for (uint64_t i = 0; i < kind->clients; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0)
			work(kind, kind->samples + kind->count);
		kind->count += CALLS;
	}
	for (uint64_t i = 0; i < kind->clients; i++) {
		int status;

		if (wait(&status) < 0 || status != 0)
			die("a client failed");
	}
	kind->rates[round] = (double)(kind->clients * CALLS) / (now_us() - begun) * 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void show(struct kind *kind, uint64_t rounds)
{
	qsort(kind->samples, kind->count, sizeof(double), compare);
	qsort(kind->rates, rounds, sizeof(double), compare);
	printf("%s\t%zu\t%.1f\t%.1f\t%.1f\t%.1f\n", kind->name, kind->count, kind->samples[0],
	       kind->samples[kind->count / 2], kind->samples[kind->count * 99 / 100],
	       kind->rates[rounds / 2]);
}

static uint64_t number(const char *text, uint64_t most)
{
	uint64_t value = 0;

	if (str_parse_u64(text, most, &value) < 0 || value == 0) {
		fprintf(stderr, "http: %s: expected 1 to %llu\n", text, (unsigned long long)most);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	static const char body[] = "{\"argv\":[\"/bin/true\"]}";
	struct kind kinds[KINDS] = { { .name = "exec", .call = ask, .clients = 1 },
				     { .name = "spawn", .call = start, .clients = 1 },
				     { .name = "exec at once", .call = ask },
				     { .name = "spawn at once", .call = start } };
	uint64_t rounds;

	if (argc != 6) {
		fputs("usage: http PORT TOKEN SANDBOX CLIENTS ROUNDS\n", stderr);
		return 2;
	}
	port = (uint16_t)number(argv[1], UINT16_MAX);
	kinds[2].clients = kinds[3].clients = number(argv[4], CLIENTS_MAX);
	rounds = number(argv[5], ROUNDS_MAX);
	snprintf(request, sizeof request,
		 "POST /v1/sandboxes/%s/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
		 "%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 argv[3], argv[2], sizeof body - 1, body);
	for (int i = 0; i < KINDS; i++) {
		size_t size = kinds[i].clients * rounds * CALLS * sizeof(double);

		kinds[i].samples =
			mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (kinds[i].samples == MAP_FAILED)
			die("mmap");
	}
	for (uint64_t round = 0; round < rounds; round++)
		for (int i = 0; i < KINDS; i++)
			run(&kinds[i], round);
	for (int i = 0; i < KINDS; i++)
		show(&kinds[i], rounds);
	return 0;
}
