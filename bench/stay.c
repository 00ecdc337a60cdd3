/*
 * stay - what a sandbox that stays costs through libcaisson, beside the least that can be
 *
 *	stay exec CAISSON ROUNDS	/bin/true in it, to fork, exec and wait
 *	stay read CAISSON ROUNDS	a file of 4 KiB (`small`), to two bare hops
 *	stay life CAISSON ROUNDS	open, a command and close, to `caisson run -- /bin/true`
 *	stay pool CAISSON ROUNDS	the same from the pool `bench`, and its parts
 *	stay copy CAISSON ROUNDS MIB	so much read (`sparse`, `large`) and written, to bare hops
 *	stay crowd CAISSON COUNT	many at once, a call in each; closes at end of input
 *
 * What is compared goes in turn, in this one process, so that the noise of the machine hits both.
 * Files lie in the current folder, which becomes the workspace. Prints a line each: name, samples,
 * min, p50, p99; in microseconds, of `copy` in MB/s. Status 2 and a sentence when anything fails.
 *
 *	cc -O2 -D_GNU_SOURCE -Isrc -Iinclude bench/stay.c src/base/str.c libcaisson.a -lpthread
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "caisson.h"

enum {
	ROUNDS_MAX = 100000,
	ROWS = 8,
	CROWD_MAX = 4096,
	ASK = 38,            /* bytes of a call for a short path, as the library sends it */
	ANSWER = 4140,       /* and of the reply with 4 KiB */
	PIECE = 64 << 10,    /* of a `data` frame */
	POOL_PAUSE_MS = 100, /* until the pool is full again */
};

struct row {
	const char *name;
	double *samples;
	size_t count;
};

static struct row rows[ROWS];
static const char *caisson;

static _Noreturn void die(const char *what, const csn_error *err)
{
	if (err)
		fprintf(stderr, "stay: %s: %s: %s\n", what, csn_code_name(err->code), err->text);
	else
		fprintf(stderr, "stay: %s: %s\n", what, strerror(errno));
	exit(2);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void note(const char *name, double value)
{
	struct row *row = rows;

	while (row->name && !str_is(row->name, name))
		row++;
	if (!row->name) {
		*row = (struct row){ name, calloc(ROUNDS_MAX, sizeof(double)), 0 };
		if (!row->samples)
			die("memory", NULL);
	}
	row->samples[row->count++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_rows(void)
{
	for (const struct row *row = rows; row < rows + ROWS && row->name; row++) {
		qsort(row->samples, row->count, sizeof(double), compare);
		printf("%s\t%zu\t%.1f\t%.1f\t%.1f\n", row->name, row->count, row->samples[0],
		       row->samples[row->count / 2], row->samples[row->count * 99 / 100]);
	}
}

/* ---- a sandbox ------------------------------------------------------------------------------ */

static csn_sandbox *open_one(const csn_options *more)
{
	csn_options options = *more;
	csn_error err;
	csn_sandbox *sandbox;

	options.program = caisson;
	sandbox = csn_open(&options, &err);
	if (!sandbox)
		die("open", &err);
	return sandbox;
}

static void exec_true(csn_sandbox *sandbox)
{
	static const char *const argv[] = { "/bin/true", NULL };
	csn_exec_request request = { .argv = argv };
	csn_exec_result *result;
	csn_error err;

	if (csn_exec(sandbox, &request, &result, &err) < 0)
		die("exec", &err);
	if (result->reason != CSN_REASON_EXITED || result->exit_code != 0)
		die("/bin/true inside failed", NULL);
	csn_free(result);
}

static void spawn(const char *const *argv)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die(argv[0], NULL);
}

/* ---- the bare way: a relay, and one that answers; nothing is decoded ------------------------- */

/* A turn: so many bytes there, so many back. With `has_poll` each waits in poll() before it reads,
 * as whoever serves more than one must. */
struct way {
	size_t ask, answer;
	bool has_poll;
	const char *file; /* where who answers puts what came; NULL: nowhere */
	int fd;           /* ours */
};

static char piece[PIECE];

/* One read of at most `size` bytes; who reads of a closed one ends. */
static size_t take_some(const struct way *way, int fd, size_t size)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (way->has_poll)
		poll(&ready, 1, -1);
	n = read(fd, piece, size < PIECE ? size : PIECE);
	if (n <= 0)
		_exit(0);
	return (size_t)n;
}

static void give(int fd, size_t size)
{
	for (ssize_t n; size > 0; size -= (size_t)n) {
		n = write(fd, piece, size < PIECE ? size : PIECE);
		if (n <= 0)
			_exit(0);
	}
}

static void take(const struct way *way, int fd, size_t size)
{
	while (size > 0)
		size -= take_some(way, fd, size);
}

static void store(const struct way *way, int client)
{
	int fd = open(way->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	for (size_t left = way->ask, n; left > 0; left -= n) {
		n = take_some(way, client, left);
		if (write(fd, piece, n) != (ssize_t)n)
			_exit(1);
	}
	close(fd);
	unlink(way->file);
}

static void pass(const struct way *way, int from, int to, size_t size)
{
	for (size_t n; size > 0; size -= n) {
		n = take_some(way, from, size);
		give(to, n);
	}
}

static _Noreturn void serve(const struct way *way, int client, int server)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (server < 0) {
			if (way->file)
				store(way, client);
			else
				take(way, client, way->ask);
			give(client, way->answer);
		} else {
			pass(way, client, server, way->ask);
			pass(way, server, client, way->answer);
		}
	}
}

static void begin_way(struct way *way)
{
	int near[2], far[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, near) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, far) < 0)
		die("socketpair", NULL);
	if (fork() == 0) {
		close(near[0]);
		close(far[1]);
		serve(way, near[1], far[0]);
	}
	if (fork() == 0) {
		close(near[0]);
		close(near[1]);
		close(far[0]);
		serve(way, far[1], -1);
	}
	close(near[1]);
	close(far[0]);
	close(far[1]);
	way->fd = near[0];
}

static void turn(const struct way *way)
{
	give(way->fd, way->ask);
	take(way, way->fd, way->answer);
}

/* ---- what is measured ----------------------------------------------------------------------- */

static void measure_exec(uint64_t rounds)
{
	static const char *const argv[] = { "/bin/true", NULL };
	csn_sandbox *sandbox = open_one(&(csn_options){ 0 });

	for (uint64_t i = 0; i < rounds; i++) {
		double start = now_us(), middle;

		exec_true(sandbox);
		middle = now_us();
		spawn(argv);
		note("exec", middle - start);
		note("fork", now_us() - middle);
	}
	csn_close(sandbox);
}

static void read_small(csn_sandbox *sandbox)
{
	csn_read_request request = { .path = "small" };
	csn_bytes *bytes;
	csn_error err;

	if (csn_read(sandbox, &request, &bytes, &err) < 0)
		die("read", &err);
	if (bytes->size != 4096)
		die("small is not 4 KiB", NULL);
	csn_free(bytes);
}

static void measure_read(uint64_t rounds)
{
	struct way bare = { .ask = ASK, .answer = ANSWER }, polled = bare;
	csn_sandbox *sandbox;

	polled.has_poll = true;
	begin_way(&bare);
	begin_way(&polled);
	sandbox = open_one(&(csn_options){ 0 });
	for (uint64_t i = 0; i < rounds; i++) {
		double at[4];

		at[0] = now_us();
		read_small(sandbox);
		at[1] = now_us();
		turn(&bare);
		at[2] = now_us();
		turn(&polled);
		at[3] = now_us();
		note("read", at[1] - at[0]);
		note("relay", at[2] - at[1]);
		note("relay, poll", at[3] - at[2]);
	}
	csn_close(sandbox);
}

static void measure_life(uint64_t rounds)
{
	const char *const argv[] = { caisson, "run", "-q", "--", "/bin/true", NULL };

	for (uint64_t i = 0; i < rounds; i++) {
		double start = now_us(), middle;
		csn_sandbox *sandbox = open_one(&(csn_options){ 0 });

		exec_true(sandbox);
		csn_close(sandbox);
		middle = now_us();
		spawn(argv);
		note("life", middle - start);
		note("run", now_us() - middle);
	}
}

/* The pool fills again meanwhile: what is measured is what somebody waits for. */
static void measure_pool(uint64_t rounds)
{
	static const char *const argv[] = { "/bin/true", NULL };

	for (uint64_t i = 0; i < rounds; i++) {
		double at[5];
		csn_sandbox *sandbox;

		poll(NULL, 0, POOL_PAUSE_MS);
		at[0] = now_us();
		sandbox = open_one(&(csn_options){ .pool = "bench" });
		at[1] = now_us();
		exec_true(sandbox);
		at[2] = now_us();
		csn_close(sandbox);
		at[3] = now_us();
		poll(NULL, 0, POOL_PAUSE_MS);
		at[4] = now_us();
		spawn(argv);
		note("fork", now_us() - at[4]);
		note("open", at[1] - at[0]);
		note("exec", at[2] - at[1]);
		note("close", at[3] - at[2]);
		note("life", at[3] - at[0]);
	}
}

/* ---- much at once --------------------------------------------------------------------------- */

static int count_output(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	(void)stream;
	(void)bytes;
	*(size_t *)data += size;
	return 0;
}

static void read_much(csn_sandbox *sandbox, const char *path, size_t size)
{
	size_t got = 0;
	csn_read_request request = { .path = path, .on_output = count_output, .data = &got };
	csn_bytes *bytes;
	csn_error err;

	if (csn_read(sandbox, &request, &bytes, &err) < 0)
		die(path, &err);
	csn_free(bytes);
	if (got != size)
		die("bytes are missing", NULL);
}

static ptrdiff_t fill(void *data, void *ret_bytes, size_t size)
{
	size_t *left = data, n = *left < size ? *left : size;

	memcpy(ret_bytes, piece, n < PIECE ? n : PIECE);
	n = n < PIECE ? n : PIECE;
	*left -= n;
	return (ptrdiff_t)n;
}

static void write_much(csn_sandbox *sandbox, size_t size)
{
	size_t left = size;
	csn_write_request request = { .path = "written", .on_input = fill, .data = &left };
	csn_error err;

	if (csn_write(sandbox, &request, &err) < 0)
		die("write", &err);
	if (csn_remove(sandbox, &(csn_path_request){ .path = "written" }, &err) < 0)
		die("remove", &err);
}

static void measure_copy(uint64_t rounds, size_t size)
{
	struct way bare = { .ask = 1, .answer = size };
	struct way stored = { .ask = size, .answer = 1, .file = "stored" };
	csn_sandbox *sandbox;

	begin_way(&bare);
	begin_way(&stored);
	sandbox = open_one(&(csn_options){ .workspace = ".:rw" });
	for (uint64_t i = 0; i < rounds; i++) {
		double at[6];

		at[0] = now_us();
		read_much(sandbox, "sparse", size);
		at[1] = now_us();
		read_much(sandbox, "large", size);
		at[2] = now_us();
		write_much(sandbox, size);
		at[3] = now_us();
		turn(&bare);
		at[4] = now_us();
		turn(&stored);
		at[5] = now_us();
		note("read, sparse", (double)size / (at[1] - at[0]));
		note("read", (double)size / (at[2] - at[1]));
		note("write", (double)size / (at[3] - at[2]));
		note("relay", (double)size / (at[4] - at[3]));
		note("relay, stored", (double)size / (at[5] - at[4]));
	}
	csn_close(sandbox);
}

/* ---- many at once --------------------------------------------------------------------------- */

static void measure_crowd(uint64_t count)
{
	static csn_sandbox *crowd[CROWD_MAX];
	struct rlimit files;
	double at[4];

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	at[0] = now_us();
	for (uint64_t i = 0; i < count; i++)
		crowd[i] = open_one(&(csn_options){ 0 });
	at[1] = now_us();
	for (uint64_t i = 0; i < count; i++)
		exec_true(crowd[i]);
	at[2] = now_us();
	printf("open\t%.0f\ncall\t%.0f\n", (at[1] - at[0]) / (double)count,
	       (at[2] - at[1]) / (double)count);
	fflush(stdout);
	while (read(STDIN_FILENO, piece, PIECE) > 0)
		;
	at[2] = now_us();
	for (uint64_t i = 0; i < count; i++)
		csn_close(crowd[i]);
	at[3] = now_us();
	printf("close\t%.0f\n", (at[3] - at[2]) / (double)count);
}

static const struct {
	const char *name;
	void (*measure)(uint64_t rounds);
} parts[] = { { "exec", measure_exec },
	      { "read", measure_read },
	      { "life", measure_life },
	      { "pool", measure_pool } };

static int measure(const char *what, uint64_t rounds, uint64_t mib)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (str_is(what, parts[i].name)) {
			parts[i].measure(rounds);
			return 0;
		}
	if (str_is(what, "copy") && mib > 0)
		measure_copy(rounds, (size_t)mib << 20);
	else if (str_is(what, "crowd") && rounds > 0 && rounds <= CROWD_MAX)
		measure_crowd(rounds);
	else
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t rounds = 0, mib = 0;
	int status;

	if (argc < 4 || str_parse_u64(argv[3], ROUNDS_MAX, &rounds) < 0)
		return 2;
	if (argc > 4 && str_parse_u64(argv[4], 1 << 16, &mib) < 0)
		return 2;
	caisson = argv[2];
	status = measure(argv[1], rounds, mib);
	print_rows();
	return status;
}
