/*
 * agent-exec - what a command costs through the agent, beside fork, exec and wait from C
 *
 *	agent-exec AGENT [ROUNDS [PROFILE]]
 *
 * Starts the agent on a socket pair, without a wall, and runs /bin/true ROUNDS times (500) through
 * it and as often by itself, in turn, so that the noise of the machine hits both. Prints the p50
 * and p90 of both in microseconds, and their ratio. PROFILE: "none", or a command's profile that
 * needs no listener ("command-alone"): no_new_privs is set for it.
 *
 *	cc -O2 -D_GNU_SOURCE -Isrc -o agent-exec bench/agent-exec.c src/wire/[eft]*.c \
 *		src/wire/messages.c src/base/{arena,buf,errno_name,error,fd,str}.c
 */
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "os/agent_fds.h"
#include "wire/emit.h"
#include "wire/frame.h"

enum { ROUNDS_MAX = 100000 };

static struct buf in, out;
static int stream;

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(2);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void begin_agent(const char *path)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair");
	if (fork() == 0) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		dup2(pair[1], 100);
		for (int fd = AGENT_FD_LISTENERS; fd < AGENT_FD_END; fd++)
			dup2(null, fd);
		dup2(100, AGENT_FD_IN);
		dup2(100, AGENT_FD_OUT);
		close_range(AGENT_FD_END, ~0U, 0);
		execl(path, "caisson-agent", NULL);
		_exit(127);
	}
	close(pair[1]);
	stream = pair[0];
}

static void send_frame(struct emit *emit)
{
	if (emit_end(emit) < 0 || write(stream, buf_at(&out), buf_size(&out)) < 0)
		die("write");
	buf_clear(&out);
}

/* Reads until a frame of this name came. */
static void await(const char *name)
{
	static alignas(max_align_t) char first[16 << 10];

	for (;;) {
		const uint8_t *payload;
		size_t size;

		while (frame_peek(&in, FRAME_MAX, &payload, &size, NULL) == 1) {
			struct arena arena;
			struct term frame;
			int r;

			arena_init_in(&arena, 1 << 20, first, sizeof first);
			r = frame_decode(&arena, (struct term_input){ payload, size }, FROM_AGENT,
					 &frame, NULL);
			if (r < 0)
				die("frame");
			buf_consume(&in, FRAME_HEAD + size);
			arena_done(&arena);
			if (str_is(frame_messages[r].name, name))
				return;
		}
		uint8_t *at = buf_reserve(&in, 64 << 10);
		ssize_t n = read(stream, at, 64 << 10);

		if (n <= 0)
			die("read");
		buf_grew(&in, (size_t)n);
	}
}

static void send_init(const char *profile)
{
	struct emit emit = emit_begin(&out);

	emit_tuple(&emit, 2);
	emit_atom(&emit, "init");
	emit_map(&emit, 2);
	emit_atom(&emit, "workspace");
	emit_text(&emit, "/");
	emit_atom(&emit, "profile");
	emit_text(&emit, profile);
	send_frame(&emit);
	await("ready");
}

static void through_agent(int64_t ref)
{
	struct emit emit = emit_begin(&out);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "call");
	emit_int(&emit, ref);
	emit_atom(&emit, "exec");
	emit_map(&emit, 1);
	emit_atom(&emit, "argv");
	emit_list(&emit, 1);
	emit_text(&emit, "/bin/true");
	emit_nil(&emit);
	send_frame(&emit);
	await("reply");
}

static void directly(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		die("/bin/true");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double samples[2][ROUNDS_MAX];
	uint64_t rounds = 500;

	if (argc < 2 || (argc > 2 && str_parse_u64(argv[2], ROUNDS_MAX, &rounds) < 0))
		return 2;
	buf_init(&in, FRAME_MAX + (64 << 10));
	buf_init(&out, FRAME_MAX);
	begin_agent(argv[1]);
	send_init(argc > 3 ? argv[3] : "none");
	for (uint64_t i = 0; i < rounds; i++) {
		double start = now_us(), middle;

		through_agent((int64_t)i);
		middle = now_us();
		directly();
		samples[0][i] = middle - start;
		samples[1][i] = now_us() - middle;
	}
	for (int i = 0; i < 2; i++) {
		qsort(samples[i], rounds, sizeof(double), compare);
		printf("%s\t%.0f\t%.0f\n", i ? "direct" : "agent", samples[i][rounds / 2],
		       samples[i][rounds * 9 / 10]);
	}
	printf("ratio\t%.2f\n", samples[0][rounds / 2] / samples[1][rounds / 2]);
	return 0;
}
