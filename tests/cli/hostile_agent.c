/*
 * An agent that is not ours: what a monitor gets to read when everything inside is lost. The kind
 * of hostility is compiled in by -DKIND=…; frames go out on descriptor 1 as the real agent's do.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint8_t term[1 << 17];
static size_t size;

static void byte(unsigned value)
{
	term[size++] = (uint8_t)value;
}

static void number(uint64_t value, int bytes)
{
	while (bytes-- > 0)
		byte((unsigned)(value >> 8 * bytes));
}

static void atom(const char *name)
{
	byte(119);
	byte((unsigned)strlen(name));
	memcpy(term + size, name, strlen(name));
	size += strlen(name);
}

static void tuple(unsigned count)
{
	byte(104);
	byte(count);
}

static void map(unsigned count)
{
	byte(116);
	number(count, 4);
}

static void integer(int32_t value)
{
	byte(98);
	number((uint32_t)value, 4);
}

static void binary(size_t length, int fill)
{
	byte(109);
	number(length, 4);
	memset(term + size, fill, length);
	size += length;
}

static void begin(void)
{
	size = 0;
	byte(131);
}

static int put(const void *data, size_t length)
{
	const char *at = data;

	while (length > 0) {
		ssize_t n = write(1, at, length);

		if (n <= 0)
			_exit(0);
		at += n;
		length -= (size_t)n;
	}
	return 0;
}

static void head(uint32_t length)
{
	uint8_t bytes[4] = { (uint8_t)(length >> 24), (uint8_t)(length >> 16),
			     (uint8_t)(length >> 8), (uint8_t)length };

	put(bytes, 4);
}

static void send_term(void)
{
	head((uint32_t)size);
	put(term, size);
}

static void ready_with(int has_gates)
{
	begin();
	tuple(2);
	atom("ready");
	map(has_gates ? 4 : 3);
	if (has_gates) {
		atom("gates");
		atom("true");
	}
	atom("version");
	integer(1);
	atom("verbs");
	byte(108);
	number(1, 4);
	atom("exec");
	byte(106);
	atom("enforces");
	byte(106);
	send_term();
}

static void ready(void)
{
	ready_with(0);
}

static void data(int ref, const char *stream, size_t length)
{
	begin();
	tuple(4);
	atom("data");
	integer(ref);
	atom(stream);
	binary(length, 'x');
	send_term();
}

static void reply(int ref, int code)
{
	begin();
	tuple(3);
	atom("reply");
	integer(ref);
	map(5);
	atom("exit_code");
	integer(code);
	atom("signal");
	atom("null");
	atom("user_us");
	integer(1);
	atom("system_us");
	integer(1);
	atom("max_rss_bytes");
	integer(1);
	send_term();
}

static void text(const char *value)
{
	byte(109);
	number(strlen(value), 4);
	while (*value)
		byte(*value++);
}

static void gate_twice(void)
{
	ready_with(1);
	for (int i = 0; i < 40; i++) {
		begin();
		tuple(4);
		atom("gate_call");
		integer(0);
		text("slow");
		text("{}");
		send_term();
	}
	for (;;)
		pause();
}

static void forward_ready(void)
{
	begin();
	tuple(2);
	atom("ready");
	map(4);
	atom("forwards");
	atom("true");
	atom("version");
	integer(1);
	atom("verbs");
	byte(106);
	atom("enforces");
	byte(106);
	send_term();
}

static void forward(const char *name, int ref, int value)
{
	begin();
	tuple(value < 0 ? 2 : 3);
	atom(name);
	integer(ref);
	if (value >= 0)
		integer(value);
	send_term();
}

static void forward_data(int ref, size_t length)
{
	begin();
	tuple(3);
	atom("forward_data");
	integer(ref);
	binary(length, 'x');
	send_term();
}

static void wait_for_end(void)
{
	for (;;)
		pause();
}

static void forward_number(void)
{
	forward_ready();
	forward("forward_open", 1, 1);
	wait_for_end();
}

static void forward_unopened(void)
{
	forward_ready();
	forward_data(7, 10);
	wait_for_end();
}

static void forward_twice(void)
{
	forward_ready();
	forward("forward_open", 1, 0);
	forward("forward_open", 1, 0);
	wait_for_end();
}

static void forward_crowd(void)
{
	forward_ready();
	for (int ref = 1; ref < 100; ref++)
		forward("forward_open", ref, 0);
	wait_for_end();
}

static void forward_overrun(void)
{
	forward_ready();
	forward("forward_open", 1, 0);
	for (;;)
		forward_data(1, 65536);
}

static void forward_window(void)
{
	forward_ready();
	forward("forward_open", 1, 0);
	forward("forward_window", 1, 1);
	wait_for_end();
}

static void forward_after_end(void)
{
	forward_ready();
	forward("forward_open", 1, 0);
	forward("forward_end", 1, -1);
	forward_data(1, 1);
	wait_for_end();
}

static void garbage(void)
{
	for (int i = 0; i < 4096; i++)
		put("\x00\x00\x00\x04\xde\xad\xbe\xef", 8);
}
static void close_at_once(void)
{
	_exit(0);
}
static void crash(void)
{
	raise(SIGSEGV);
}
static void silent(void)
{
	for (;;)
		pause();
}
static void deaf_after_ready(void)
{
	ready();
	for (;;)
		pause();
}
static void closed_stream(void)
{
	ready();
	shutdown(1, SHUT_RDWR);
	close(1);
	close(0);
	for (;;)
		pause();
}
static void half_frame(void)
{
	head(1000);
	put("\x83", 1);
	for (;;)
		pause();
}
static void half_frame_closed(void)
{
	head(1000);
	put("\x83h", 2);
	_exit(0);
}
static void oversized(void)
{
	head(0xffffffff);
	for (;;)
		put(term, sizeof term);
}
static void too_long(void)
{
	head((16 << 20) + 1);
	for (;;)
		put(term, sizeof term);
}
static void empty_frames(void)
{
	for (;;)
		head(0);
}
static void twice_ready(void)
{
	ready();
	ready();
	silent();
}
static void reply_first(void)
{
	reply(1, 0);
	silent();
}
static void other_ref(void)
{
	ready();
	reply(77, 0);
	silent();
}
static void two_replies(void)
{
	ready();
	reply(1, 0);
	reply(1, 0);
	silent();
}
static void data_first(void)
{
	data(1, "stdout", 10);
	silent();
}
static void overrun(void)
{
	ready();
	for (;;)
		data(1, "stdout", 65536);
}
static void big_piece(void)
{
	ready();
	data(1, "stdout", 65537);
	silent();
}
static void other_stream(void)
{
	ready();
	data(1, "stdlog", 10);
	silent();
}
static void windows(void)
{
	ready();
	for (;;) {
		begin();
		tuple(3);
		atom("window");
		integer(1);
		integer(0x7fffffff);
		send_term();
	}
}
static void facts(void)
{
	ready();
	for (;;) {
		begin();
		tuple(2);
		atom("fact");
		map(0);
		send_term();
	}
}
static void our_message(void)
{
	ready();
	begin();
	tuple(1);
	atom("stop");
	send_term();
	silent();
}
static void unknown(void)
{
	ready();
	begin();
	tuple(2);
	atom("no_such_message");
	map(0);
	send_term();
	silent();
}
static void bad_exit(void)
{
	ready();
	reply(1, 100000);
	silent();
}
static void wrong_version(void)
{
	byte(130);
	size = 1;
	head(1);
	term[0] = 130;
	put(term, 1);
	silent();
}
static void deep(void)
{
	begin();
	for (int i = 0; i < 60000; i++) {
		byte(104);
		byte(1);
	}
	byte(106);
	send_term();
	silent();
}
static void wide(void)
{
	begin();
	byte(105);
	number(0xffffffff, 4);
	send_term();
	silent();
}
static void long_list(void)
{
	begin();
	byte(108);
	number(0x7fffffff, 4);
	send_term();
	silent();
}
static void compressed(void)
{
	begin();
	byte(80);
	number(1 << 30, 4);
	byte(0x78);
	byte(0x9c);
	send_term();
	silent();
}
static void bye(void)
{
	begin();
	tuple(2);
	atom("bye");
	map(0);
	send_term();
	silent();
}
static void forged(void)
{
	ready();
	data(1, "stdout", 5);
	reply(1, 0);
	silent();
}

int main(void)
{
	signal(SIGPIPE, SIG_DFL);
	KIND();
	return 0;
}
