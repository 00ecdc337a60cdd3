/* The agent itself, on a stream of frames, as the monitor sees it: one agent a test, no wall. */
#include "wire/emit.h"
#include "wire/frame.h"

#include "base/clock.h"
#include "base/str.h"
#include "os/agent_fds.h"
#include "tap.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { REF = 7, WINDOW = 256 << 10, WAIT_MS = 10000 };

static int stream;
static pid_t agent;
static struct buf in, out;
static char output[1 << 20]; /* of the command, all its streams */
static size_t output_size, granted;
static struct arena arena; /* of the last frame */
static struct term frame;

/* build/tests/unit/test_agent -> build/src/agent/caisson-agent */
static void agent_path(char *ret_path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret_path, size - 1);

	CHECK(n > 0);
	for (int up = 0; up < 3; up++) {
		while (n > 0 && ret_path[n - 1] != '/')
			n--;
		CHECK(n-- > 0);
	}
	snprintf(ret_path + n, size - (size_t)n, "/src/agent/caisson-agent");
}

static struct emit begin(const char *name, uint32_t arity)
{
	struct emit emit = emit_begin(&out);

	emit_tuple(&emit, arity);
	emit_atom(&emit, name);
	if (!str_is(name, "init"))
		emit_int(&emit, REF);
	return emit;
}

static void send_frame(struct emit *emit)
{
	CHECK(emit_end(emit) == 0);
	while (buf_size(&out) > 0) {
		ssize_t n = write(stream, buf_at(&out), buf_size(&out));

		CHECK(n > 0);
		buf_consume(&out, (size_t)n);
	}
}

static void send_init(const char *workspace)
{
	struct emit emit = begin("init", 2);

	emit_map(&emit, 2);
	emit_atom(&emit, "workspace");
	emit_text(&emit, workspace);
	emit_atom(&emit, "profile");
	emit_text(&emit, "none");
	send_frame(&emit);
}

static void send_call(const char *command, const char *const *flags, size_t flag_count)
{
	struct emit emit = begin("call", 4);

	emit_atom(&emit, "exec");
	emit_map(&emit, (uint32_t)flag_count + 1);
	for (size_t i = 0; i < flag_count; i++) {
		emit_atom(&emit, flags[i]);
		emit_bool(&emit, 1);
	}
	emit_atom(&emit, "command");
	emit_text(&emit, command);
	send_frame(&emit);
}
#define CALL(command, ...)                                                \
	send_call(command, (const char *const[]){ "stdin", __VA_ARGS__ }, \
		  sizeof((const char *const[]){ "stdin", __VA_ARGS__ }) / sizeof(char *))

/* A limit that the protocol has. */
static void call_with_limit(const char *command, const char *limit)
{
	struct emit emit = begin("call", 4);

	emit_atom(&emit, "exec");
	emit_map(&emit, 2);
	emit_atom(&emit, "command");
	emit_text(&emit, command);
	emit_atom(&emit, "limits");
	emit_map(&emit, 1);
	emit_atom(&emit, limit);
	emit_int(&emit, 5);
	send_frame(&emit);
}

/* NULL: the end of the input. */
static void send_input(const char *text)
{
	struct emit emit = begin("data", 4);

	emit_atom(&emit, "stdin");
	if (text)
		emit_text(&emit, text);
	else
		emit_atom(&emit, "eof");
	send_frame(&emit);
}

static void grant(size_t bytes)
{
	struct emit emit = begin("window", 3);

	emit_int(&emit, (int64_t)bytes);
	send_frame(&emit);
}

/* The next frame's index in frame_messages; -1 if none comes within the time. */
static int next_within(uint64_t wait_ms)
{
	uint64_t end_ms = clock_now_ms() + wait_ms, now_ms;
	const uint8_t *payload;
	size_t size;
	int r;

	while ((r = frame_peek(&in, FRAME_MAX, &payload, &size, NULL)) == 0) {
		struct pollfd ready = { .fd = stream, .events = POLLIN };
		uint8_t *at = buf_reserve(&in, 64 << 10);
		ssize_t n;

		now_ms = clock_now_ms();
		if (now_ms >= end_ms || poll(&ready, 1, (int)(end_ms - now_ms)) <= 0)
			return -1;
		n = read(stream, at, 64 << 10);
		CHECK(n > 0);
		buf_grew(&in, (size_t)n);
	}
	CHECK(r == 1);
	arena_done(&arena);
	r = frame_decode(&arena, (struct term_input){ payload, size }, FROM_AGENT, &frame, NULL);
	CHECK(r >= 0);
	buf_consume(&in, FRAME_HEAD + size);
	return r;
}

static void start(const char *workspace)
{
	char path[4096];
	int pair[2];

	agent_path(path, sizeof path);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	agent = fork();
	if (agent == 0) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
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
	buf_init(&in, FRAME_MAX + (64 << 10));
	buf_init(&out, FRAME_MAX);
	arena_init(&arena, 64 << 20);
	send_init(workspace);
	CHECK(next_within(WAIT_MS) == FRAME_READY);
}

/* Takes frames until the one with this index; output is collected, and granted again if asked. */
static void until(int index, bool grants)
{
	int r;

	while ((r = next_within(WAIT_MS)) != index) {
		const struct term *bytes = &frame.items[3];

		CHECK(r == FRAME_DATA_OUT || r == FRAME_WINDOW_OUT);
		if (r == FRAME_WINDOW_OUT) {
			granted += (size_t)frame.items[2].integer;
			continue;
		}
		CHECK(output_size + bytes->bytes.size < sizeof output);
		memcpy(output + output_size, bytes->bytes.data, bytes->bytes.size);
		output_size += bytes->bytes.size;
		output[output_size] = 0;
		if (grants)
			grant(bytes->bytes.size);
	}
}

static void until_output(size_t size)
{
	while (output_size < size) {
		int r = next_within(WAIT_MS);

		CHECK(r == FRAME_DATA_OUT || r == FRAME_WINDOW_OUT);
		output_size += r == FRAME_DATA_OUT ? frame.items[3].bytes.size : 0;
	}
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* Processor time that the agent used, ms. */
static long agent_cpu_ms(void)
{
	struct timespec used;
	clockid_t clock;

	CHECK(clock_getcpuclockid(agent, &clock) == 0 && clock_gettime(clock, &used) == 0);
	return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static int64_t exit_code(void)
{
	const struct term *code = term_get(&frame.items[2], "exit_code");

	return code && code->type == TERM_INT ? code->integer : -1;
}

static void runs(void)
{
	start("/");
	CALL("echo hello; exit 3");
	until(FRAME_REPLY, true);
	CHECK_STR(output, "hello\n");
	CHECK(exit_code() == 3);
}

/* What a command wrote before its end arrives, however long the monitor was busy elsewhere. */
static void slow_reader(void)
{
	start("/");
	CALL("head -c 300000 /dev/zero");
	until_output(WINDOW);
	pause_ms(400);
	grant(WINDOW);
	until(FRAME_REPLY, true);
	CHECK(output_size == 300000);
	CHECK(exit_code() == 0);
}

/* The same for an agent that did not run for a while, and what somebody else still writes. */
static void stopped_agent(void)
{
	start("/");
	CALL("sleep 0.1; (sleep 5; echo late) & head -c 60000 /dev/zero");
	pause_ms(20);
	CHECK(kill(agent, SIGSTOP) == 0);
	pause_ms(400);
	CHECK(kill(agent, SIGCONT) == 0);
	until(FRAME_REPLY, true);
	CHECK(output_size == 60000);
}

/* A writer that never stops does not keep an ended command. */
static void held_output(void)
{
	uint64_t begin_ms = clock_now_ms();

	start("/");
	CALL("yes & sleep 0.05");
	while (next_within(WAIT_MS) != FRAME_REPLY)
		grant(WINDOW);
	CHECK(clock_now_ms() - begin_ms < 2000);
}

/* A closed pipe is always "ready": the agent must not ask again and again. */
static void idle_while_output_waits(void)
{
	long used;

	start("/");
	CALL("head -c 300000 /dev/zero");
	until_output(WINDOW);
	pause_ms(150);
	used = agent_cpu_ms();
	pause_ms(500);
	CHECK(agent_cpu_ms() - used < 100);
}

static void idle_when_input_is_closed(void)
{
	long used;

	start("/");
	CALL("read x; echo $x; exec 0</dev/null; sleep 5");
	send_input("one\n");
	until_output(4);
	pause_ms(50);
	used = agent_cpu_ms();
	pause_ms(500);
	CHECK(agent_cpu_ms() - used < 100);
}

/* Input that nobody will read is taken: its sender goes on. */
static void unread_input(void)
{
	static char text[60001];

	start("/");
	CALL("exec 0</dev/null; sleep 0.3; echo end");
	memset(text, 'x', sizeof text - 1);
	pause_ms(100);
	for (int i = 0; i < 4; i++)
		send_input(text);
	until(FRAME_REPLY, true);
	CHECK_STR(output, "end\n");
	CHECK(granted == 4 * (sizeof text - 1));
}

static void long_terminal_input(void)
{
	char lines[64 * 40 + 1];

	for (size_t i = 0; i < sizeof lines - 1; i++)
		lines[i] = i % 40 == 39 ? '\n' : 'x';
	lines[sizeof lines - 1] = 0;
	start("/");
	CALL("stty -echo; sleep 0.3; wc -l", "tty");
	pause_ms(150);
	for (int i = 0; i < 30; i++)
		send_input(lines);
	send_input(NULL);
	until(FRAME_REPLY, true);
	CHECK_STR(output, "1920\r\n");
}

/* The end of file is a character, and only at the start of a line is it the end. */
static void terminal_input_without_newline(void)
{
	start("/");
	CALL("stty -echo; echo ready; cat; echo end", "tty");
	until_output(7);
	output_size = 0;
	send_input("abc");
	send_input(NULL);
	until(FRAME_REPLY, true);
	CHECK_STR(output, "abcend\r\n");
}

/* Without a folder of its own a command starts in the workspace. */
static void default_folder(void)
{
	start("/usr/bin");
	CALL("pwd");
	until(FRAME_REPLY, true);
	CHECK_STR(output, "/usr/bin\n");
}

/* What the protocol has and this agent has not is refused, not left out. */
static void unsupported(void)
{
	start("/");
	call_with_limit("true", "processes");
	CHECK(next_within(WAIT_MS) == FRAME_FAILED);
	CHECK(term_is_atom(&frame.items[2], "not_supported"));
}

static const struct tap_test tests[] = {
	{ "a command runs", runs },
	{ "a slow reader gets all output", slow_reader },
	{ "a stopped agent forwards all output", stopped_agent },
	{ "endless output of others does not hold the reply", held_output },
	{ "no work while output waits", idle_while_output_waits },
	{ "no work when input is closed", idle_when_input_is_closed },
	{ "input that nobody reads is taken", unread_input },
	{ "a terminal takes long input", long_terminal_input },
	{ "a terminal's input ends after half a line", terminal_input_without_newline },
	{ "commands start in the workspace", default_folder },
	{ "what is not there is refused", unsupported },
};

TAP_MAIN(tests)
