/* Channels: an agent that lies ends its channel with a reason, and holds no memory by lying. */
#include "monitor/channel.h"

#include "base/fd.h"
#include "base/str.h"
#include "tap.h"
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

static struct channel channel;
static int agent;
static struct csn_error err;
static int seen, refuse_from;
static int last_index;

static int handle(void *data, int index, const struct term *items, struct csn_error *ret_err)
{
	CHECK(data == &agent && items[0].type == TERM_ATOM);
	last_index = index;
	if (++seen == refuse_from)
		return csn_fail(ret_err, -EPROTO, "wire", "not now");
	return 0;
}

static void start(void)
{
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	agent = pair[1];
	channel_init(&channel, pair[0]);
	seen = refuse_from = 0;
}

static int read_once(void)
{
	err = (struct csn_error){ 0 };
	return channel_read(&channel, handle, &agent, &err);
}

/* A frame around the body of a term. */
static void send_body(const char *body, size_t size)
{
	size_t n = size + 1;
	const uint8_t head[] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
				 (uint8_t)n, 131 };

	CHECK(write(agent, head, sizeof head) == sizeof head);
	CHECK(write(agent, body, size) == (ssize_t)size);
}
#define SEND(text) send_body((text), sizeof(text) - 1)
#define GOOD "h\3w\6windowa\7a\1"

static void good_frames(void)
{
	start();
	CHECK(read_once() == 0 && seen == 0); /* nothing there yet */
	SEND(GOOD);
	SEND("h\4w\4dataa\7w\6stdoutm\0\0\0\1x");
	CHECK(read_once() == 0 && seen == 2 && last_index == FRAME_DATA_OUT);
	CHECK(!channel.is_broken && !channel.is_ended && buf_size(&channel.in) == 0);
}

/* However it is cut, a frame is handled once, when its last byte is there. */
static void pieces(void)
{
	static const char frame[] = "\0\0\0\17\x83" GOOD;

	start();
	for (size_t i = 0; i + 1 < sizeof frame; i++) {
		CHECK(seen == 0);
		CHECK(write(agent, frame + i, 1) == 1 && read_once() == 0);
	}
	CHECK(seen == 1 && last_index == FRAME_WINDOW_OUT);
}

#define BAD(text) (text), sizeof(text) - 1
static const struct {
	const char *what;
	const char *bytes;
	size_t size;
	int result;
} lies[] = {
	{ "no length", BAD("\0\0\0\0"), -EMSGSIZE },
	{ "more than a frame may be", BAD("\1\0\0\1"), -EMSGSIZE },
	{ "four gigabytes", BAD("\377\377\377\377"), -EMSGSIZE },
	{ "text", BAD("HTTP/1.1 200 OK\r\n"), -EMSGSIZE },
	{ "another version", BAD("\0\0\0\2\x82j"), -EBADMSG },
	{ "no tuple", BAD("\0\0\0\2\x83j"), -EBADMSG },
	{ "an empty tuple", BAD("\0\0\0\3\x83h\0"), -EBADMSG },
	{ "half a term", BAD("\0\0\0\4\x83h\3w"), -EBADMSG },
	{ "an unknown name", BAD("\0\0\0\10\x83h\1w\3oh!"), -EBADMSG },
	{ "bytes after the term", BAD("\0\0\0\20\x83" GOOD "x"), -EBADMSG },
	{ "a monitor's frame", BAD("\0\0\0\11\x83h\1w\4stop"), -EBADMSG },
	{ "too few arguments", BAD("\0\0\0\15\x83h\2w\6windowa\7"), -EBADMSG },
	{ "a negative size", BAD("\0\0\0\22\x83h\3w\6windowa\7b\377\377\377\377"), -EBADMSG },
	{ "a compressed term", BAD("\0\0\0\7\x83P\0\0\0\1x"), -EBADMSG },
	{ "a list without end", BAD("\0\0\0\6\x83l\177\377\377\377"), -EBADMSG },
};

static void liars(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		int r;

		start();
		CHECK(write(agent, lies[i].bytes, lies[i].size) == (ssize_t)lies[i].size);
		r = read_once();
		if (r != lies[i].result || !err.text[0])
			printf("# %s: %d %s\n", lies[i].what, r, err.text);
		CHECK(r == lies[i].result && err.text[0] && seen == 0 && channel.is_broken);
		/* broken for good: good frames that follow are not believed */
		SEND(GOOD);
		CHECK(read_once() == 0 && seen == 0);
		CHECK(!channel_wants_out(&channel));
		channel_done(&channel);
	}
}

static void after_a_good_one(void)
{
	start();
	SEND(GOOD);
	CHECK(write(agent, "\0\0\0\2\x83j", 6) == 6);
	SEND(GOOD);
	CHECK(read_once() == -EBADMSG && seen == 1 && channel.is_broken);
}

/* Well formed, but not now: the handler says so, and the rest is not looked at. */
static void out_of_turn(void)
{
	start();
	refuse_from = 2;
	for (int i = 0; i < 3; i++)
		SEND(GOOD);
	CHECK(read_once() == -EPROTO && seen == 2 && channel.is_broken);
	CHECK_STR(err.text, "not now");
}

/* An announced size takes no memory before its bytes are there, and never more than a frame. */
static void memory_is_bounded(void)
{
	static uint8_t piece[65536];
	uint8_t head[] = { 1, 0, 0, 0 };
	size_t sent = 0;
	int r = 0;

	start();
	CHECK(write(agent, head, 4) == 4 && read_once() == 0);
	CHECK(channel.in.cap < 1 << 20);
	while (r == 0 && sent < 64 << 20) {
		ssize_t n = write(agent, piece, sizeof piece);

		sent += n > 0 ? (size_t)n : 0;
		r = read_once();
	}
	CHECK(r == -EBADMSG && sent <= FRAME_MAX + (1 << 20));
	CHECK(channel.in.cap <= FRAME_MAX + (1 << 20));
}

static void ends(void)
{
	start();
	CHECK(write(agent, "\0\0", 2) == 2 && read_once() == 0);
	close(agent);
	CHECK(read_once() == 0 && channel.is_ended && !channel.is_broken);
	CHECK(read_once() == 0 && !channel_wants_out(&channel));
}

static void writes(void)
{
	struct emit emit;
	char bytes[256];
	ssize_t n;

	start();
	CHECK(!channel_wants_out(&channel) && channel_flush(&channel) == 0);
	emit = channel_frame(&channel);
	emit_tuple(&emit, 1);
	emit_atom(&emit, "stop");
	CHECK(channel_send(&channel, &emit) == 0 && channel_wants_out(&channel));
	CHECK(channel_flush(&channel) == 0 && !channel_wants_out(&channel));
	n = read(agent, bytes, sizeof bytes);
	CHECK(n == 13 && memcmp(bytes, "\0\0\0\11\x83h\1w\4stop", 13) == 0);
}

/* An agent that does not read: what does not fit waits, without end it does not. */
static void deaf_agent(void)
{
	static char data[65536];
	int r = 0, sent = 0;

	start();
	for (; r == 0 && sent < 2000; sent++) {
		struct emit emit = channel_frame(&channel);

		emit_tuple(&emit, 4);
		emit_atom(&emit, "data");
		emit_int(&emit, 1);
		emit_atom(&emit, "stdin");
		emit_binary(&emit, data, sizeof data);
		r = channel_send(&channel, &emit);
		CHECK(channel_flush(&channel) == 0);
	}
	CHECK(r == -E2BIG && sent < 600 && channel_wants_out(&channel));
	close(agent);
	signal(SIGPIPE, SIG_IGN);
	CHECK(channel_flush(&channel) == -EPIPE && channel.is_unheard);
	CHECK(!channel_wants_out(&channel));
}

/* An agent that answers and goes: what it said counts, though nobody hears us any more. */
static void last_words(void)
{
	struct emit emit;

	start();
	emit = channel_frame(&channel);
	emit_atom(&emit, "stop");
	CHECK(channel_send(&channel, &emit) == 0 && channel_flush(&channel) == 0);
	SEND(GOOD);
	close(agent); /* with our frame unread: the kernel calls that a reset */
	signal(SIGPIPE, SIG_IGN);
	emit = channel_frame(&channel);
	emit_atom(&emit, "stop");
	CHECK(channel_send(&channel, &emit) == 0 && channel_flush(&channel) == -EPIPE);
	CHECK(read_once() == 0 && seen == 1 && !channel.is_ended);
	CHECK(read_once() == 0 && channel.is_ended && !channel.is_broken);
}

/* ---- bulk: data that goes on to another channel --------------------------------------------- */

static struct channel client;
static int reader;            /* the client's end */
static size_t passed, wanted; /* bytes; of a frame that are passed on */
static bool is_refused;

static int pass_on(void *data, int index, const struct term *items, struct csn_error *ret_err)
{
	size_t size = channel_bytes(&channel, &items[3]);
	struct emit emit;

	CHECK(data == &agent && index == FRAME_DATA_OUT);
	seen++;
	channel.expects_bulk = true;
	if (is_refused)
		return csn_fail(ret_err, -EBADMSG, "wire", "not now");
	size = size < wanted ? size : wanted;
	if (size == 0)
		return 0;
	emit = channel_frame(&client);
	CHECK(channel_pass(&client, &emit, &channel, &items[3], size) == 0);
	passed += size;
	return 0;
}

static void start_bulk(void)
{
	int pair[2];

	start();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	channel_init(&client, pair[0]);
	reader = pair[1];
	channel.expects_bulk = true;
	wanted = FRAME_PIECE;
	passed = 0;
	is_refused = false;
}

static int pump(void)
{
	err = (struct csn_error){ 0 };
	return channel_read(&channel, pass_on, &agent, &err);
}

/* A `data` frame with `size` bytes that count on from `first`. */
static size_t make_data(uint8_t *at, size_t size, size_t first)
{
	static const char head[] = "h\4w\4dataa\7w\6stdoutm";
	size_t length = sizeof head + 4 + size; /* with the version in place of the NUL */
	const uint8_t numbers[] = { (uint8_t)(length >> 16), (uint8_t)(length >> 8),
				    (uint8_t)length,         (uint8_t)(size >> 16),
				    (uint8_t)(size >> 8),    (uint8_t)size };

	memset(at, 0, 4 + length - size);
	memcpy(at + 1, numbers, 3);
	at[4] = 131;
	memcpy(at + 5, head, sizeof head - 1);
	memcpy(at + 5 + sizeof head, numbers + 3, 3);
	for (size_t i = 0; i < size; i++)
		at[4 + length - size + i] = (uint8_t)((first + i) * 31 >> 3);
	return 4 + length;
}

/* All that the client is told, once nothing waits: heads (10 bytes each) left out. */
static void check_passed(size_t size)
{
	static uint8_t bytes[4 << 20];
	size_t have = 0, at = 0;
	ssize_t n;

	do {
		n = read(reader, bytes + have, sizeof bytes - have);
		have += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (channel_wants_out(&client) && channel_flush(&client) == 0));
	for (size_t i = 0; i < have;) {
		size_t piece =
			(size_t)bytes[i + 7] << 16 | (size_t)bytes[i + 8] << 8 | bytes[i + 9];

		CHECK(bytes[i + 4] == 131 && bytes[i + 5] == 'm' && i + 10 + piece <= have);
		for (size_t k = 0; k < piece; k++, at++)
			CHECK(bytes[i + 10 + k] == (uint8_t)(at * 31 >> 3));
		i += 10 + piece;
	}
	CHECK(at == size);
}

/* However it is cut: frames of all sizes, in pieces that end anywhere. */
static void bulk_in_pieces(void)
{
	static uint8_t stream[1 << 20];
	static const size_t sizes[] = { FRAME_PIECE, 1, FRAME_PIECE, 17, 5000, FRAME_PIECE, 12 };
	static const size_t cuts[] = { 1 << 20, 1 << 15, 4096, 131, 47 };
	size_t size = 0, total = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		size += make_data(stream + size, sizes[i], total);
		total += sizes[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
		start_bulk();
		for (size_t at = 0; at < size;) {
			size_t left = size - at;
			ssize_t n = write(agent, stream + at, left < cuts[i] ? left : cuts[i]);

			at += n > 0 ? (size_t)n : 0;
			for (int turn = 0; turn < 3; turn++)
				CHECK(pump() == 0);
		}
		for (int turn = 0; turn < 20; turn++)
			CHECK(pump() == 0);
		CHECK(seen == ARRAY_SIZE(sizes) && passed == total);
		check_passed(total);
		channel_done(&channel);
		channel_done(&client);
	}
}

/* A reader that stopped: what he does not take waits, in order, and nothing blocks. */
static void bulk_for_a_reader_that_stopped(void)
{
	static uint8_t frame[FRAME_PIECE + 64];
	size_t total = 0;

	start_bulk();
	for (int i = 0; i < 16; i++) {
		size_t size = make_data(frame, FRAME_PIECE, total);

		CHECK(write(agent, frame, size) == (ssize_t)size);
		for (int turn = 0; turn < 3; turn++)
			CHECK(pump() == 0);
		total += FRAME_PIECE;
	}
	CHECK(passed == total && channel_wants_out(&client));
	check_passed(total);
}

/* Who begins a frame and does not end it holds up nobody: the client hears nothing of it. */
static void bulk_that_stops(void)
{
	static uint8_t frame[FRAME_PIECE + 64];
	size_t size = make_data(frame, FRAME_PIECE, 0);
	char byte;

	start_bulk();
	CHECK(write(agent, frame, size - 1) == (ssize_t)size - 1);
	for (int turn = 0; turn < 5; turn++)
		CHECK(pump() == 0);
	CHECK(seen == 0 && read(reader, &byte, 1) < 0 && buf_size(&client.out) == 0);
	CHECK(write(agent, frame + size - 1, 1) == 1 && pump() == 0 && seen == 1);
	check_passed(FRAME_PIECE);
	close(agent);
	for (int turn = 0; turn < 3; turn++)
		CHECK(pump() == 0);
	CHECK(channel.is_ended && !channel.is_broken && channel.flow.in < 0);
}

/* Only a part of a frame is wanted, or nothing of it: the next one is whole. */
static void bulk_that_is_cut(void)
{
	static uint8_t frame[FRAME_PIECE + 64];
	size_t size;

	start_bulk();
	for (int i = 0; i < 3; i++) {
		wanted = i == 1 ? 0 : 1000;
		size = make_data(frame, FRAME_PIECE, passed);
		CHECK(write(agent, frame, size) == (ssize_t)size && pump() == 0 && pump() == 0);
	}
	CHECK(seen == 3 && passed == 2000);
	check_passed(2000);
}

/* A lie among the bulk: it ends the channel as always, and what lay in the flow goes with it. */
static void bulk_lies(void)
{
	static uint8_t frame[FRAME_PIECE + 64];
	size_t size = make_data(frame, FRAME_PIECE, 0);

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		start_bulk();
		CHECK(write(agent, frame, size) == (ssize_t)size);
		CHECK(write(agent, lies[i].bytes, lies[i].size) == (ssize_t)lies[i].size);
		CHECK(pump() == lies[i].result || pump() == lies[i].result);
		CHECK(seen == 1 && channel.is_broken && err.text[0]);
		channel_done(&channel);
	}
	start_bulk();
	is_refused = true;
	CHECK(write(agent, frame, size) == (ssize_t)size);
	CHECK(pump() == -EBADMSG && channel.is_broken && buf_size(&client.out) == 0);
	CHECK(pump() == 0 && seen == 1);
}

/* Descriptors that come along are closed by the kernel: nobody asks for them. */
static void descriptors_are_dropped(void)
{
	static uint8_t frame[FRAME_PIECE + 64];
	size_t size = make_data(frame, FRAME_PIECE, 0);
	char space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { frame, size };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof space };
	int pipes[2], before;
	char byte;

	start_bulk();
	CHECK(pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0);
	*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
						     .cmsg_level = SOL_SOCKET,
						     .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &pipes[1], sizeof(int));
	before = dup(0);
	close(before);
	for (int i = 0; i < 8; i++) {
		CHECK(sendmsg(agent, &message, 0) == (ssize_t)size);
		for (int turn = 0; turn < 3; turn++)
			CHECK(pump() == 0);
	}
	CHECK(seen == 8);
	channel_done(&channel);
	CHECK(dup(0) == before);
	close(pipes[1]);
	CHECK(read(pipes[0], &byte, 1) == 0); /* no writer is left */
}

static const struct tap_test tests[] = {
	{ "good frames are handled in order", good_frames },
	{ "a frame in pieces is handled once", pieces },
	{ "a malformed frame ends the channel with a reason", liars },
	{ "what came before it was good", after_a_good_one },
	{ "a frame out of turn ends the channel", out_of_turn },
	{ "memory is bounded by one frame", memory_is_bounded },
	{ "the end of the stream", ends },
	{ "frames to the agent", writes },
	{ "an agent that does not read", deaf_agent },
	{ "an agent that answers and goes", last_words },
	{ "bulk in pieces", bulk_in_pieces },
	{ "bulk for a reader that stopped", bulk_for_a_reader_that_stopped },
	{ "bulk that stops", bulk_that_stops },
	{ "bulk of which a part is wanted", bulk_that_is_cut },
	{ "lies among the bulk", bulk_lies },
	{ "descriptors that come along", descriptors_are_dropped },
};

TAP_MAIN(tests)
