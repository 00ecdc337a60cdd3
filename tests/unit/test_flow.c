/* Flows: what goes in comes out, in order and whole, whatever is at either end. */
#include "os/flow.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

enum { SIZE = 1 << 20, PIECE = 64 << 10 };

static uint8_t content[SIZE], seen[SIZE];
static struct flow flow;

/* A file in memory with `content`. */
static int make_file(void)
{
	int fd = memfd_create("flow", MFD_CLOEXEC);

	for (size_t i = 0; i < SIZE; i++)
		content[i] = (uint8_t)(i * 7 + i / 251);
	CHECK(fd >= 0 && fd_write_all(fd, content, SIZE) == 0);
	flow_init(&flow);
	return fd;
}

static void make_sockets(int pair[2])
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
}

/* Reads what is there; how many bytes. */
static size_t take(int fd, uint8_t *at, size_t size)
{
	ssize_t n = read(fd, at, size);

	return n < 0 ? 0 : (size_t)n;
}

static void from_file_to_socket(void)
{
	int file = make_file(), pair[2];
	int64_t at = 5; /* not at a page's beginning */
	size_t got = 0;
	ssize_t n;

	make_sockets(pair);
	CHECK(flow.in < 0);
	while ((n = flow_fill(&flow, file, &at, PIECE)) > 0) {
		while (flow.size > 0) {
			CHECK(flow_pour(&flow, pair[0]) == 0);
			got += take(pair[1], seen + got, SIZE - got);
		}
		got += take(pair[1], seen + got, SIZE - got);
	}
	CHECK(n == 0 && at == SIZE && got == SIZE - 5);
	CHECK(memcmp(seen, content + 5, got) == 0);
	flow_done(&flow);
	CHECK(flow.in < 0 && flow.out < 0);
}

/* A socket that is full keeps the rest here, which is then copied: nothing is lost between. */
static void a_full_socket(void)
{
	int file = make_file(), pair[2];
	size_t got = 0, n;
	int64_t at = 0;
	bool was_full = false;

	make_sockets(pair);
	while (!was_full && flow_fill(&flow, file, &at, PIECE) > 0) {
		CHECK(flow_pour(&flow, pair[0]) == 0);
		was_full = flow.size > 0;
	}
	CHECK(was_full);
	n = flow.size;
	CHECK(flow_drain(&flow, seen + at - n) == 0 && flow.size == 0);
	while (got < (size_t)at - n)
		got += take(pair[1], seen + got, (size_t)at - n - got);
	CHECK(memcmp(seen, content, (size_t)at) == 0);
}

static void from_socket_to_file(void)
{
	int file = make_file(), pair[2];

	make_sockets(pair);
	CHECK(flow_fill(&flow, pair[1], NULL, PIECE) == -EAGAIN && flow.size == 0);
	CHECK(lseek(file, 100, SEEK_SET) == 100);
	CHECK(write(pair[0], "abcdef", 6) == 6);
	CHECK(flow_fill(&flow, pair[1], NULL, 4) == 4);
	CHECK(flow_pour(&flow, file) == 0 && flow.size == 0);
	CHECK(flow_fill(&flow, pair[1], NULL, 4) == 2);
	CHECK(flow_pour(&flow, file) == 0);
	CHECK(pread(file, seen, 6, 100) == 6 && memcmp(seen, "abcdef", 6) == 0);
	close(pair[0]);
	CHECK(flow_fill(&flow, pair[1], NULL, 4) == 0);
}

/* What is refused stays here, with the reason. */
static void refused(void)
{
	int file = make_file(), pair[2], log;
	int64_t at = 0;

	make_sockets(pair);
	CHECK(flow_fill(&flow, open("/", O_RDONLY | O_CLOEXEC), &at, PIECE) == -EINVAL);
	CHECK(flow_fill(&flow, file, &at, 10) == 10);
	log = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
	CHECK(flow_pour(&flow, log) == -EBADF && flow.size == 10);
	CHECK(fcntl(file, F_SETFL, O_APPEND) == 0);
	CHECK(flow_pour(&flow, file) == -EINVAL && flow.size == 10);
	signal(SIGPIPE, SIG_IGN);
	close(pair[1]);
	CHECK(flow_pour(&flow, pair[0]) == -EPIPE && flow.size == 10);
	CHECK(flow_drain(&flow, seen) == 0 && memcmp(seen, content, 10) == 0);
}

/* A file that shrinks meanwhile gives what it had; a hole is zeros. */
static void cut_and_holes(void)
{
	int file = make_file();
	int64_t at = SIZE - 10;

	CHECK(flow_fill(&flow, file, &at, PIECE) == 10);
	CHECK(ftruncate(file, 0) == 0);
	CHECK(flow_drain(&flow, seen) == 0);
	CHECK(flow_fill(&flow, file, &at, PIECE) == 0 && flow.size == 0);
	CHECK(ftruncate(file, (off_t)1 << 40) == 0);
	at = (int64_t)1 << 39;
	memset(seen, 1, PIECE);
	CHECK(flow_fill(&flow, file, &at, PIECE) == PIECE && flow_drain(&flow, seen) == 0);
	for (size_t i = 0; i < PIECE; i++)
		CHECK(seen[i] == 0);
}

static const struct tap_test tests[] = {
	{ "from a file to a socket", from_file_to_socket },
	{ "a socket that is full", a_full_socket },
	{ "from a socket to a file", from_socket_to_file },
	{ "what is refused stays", refused },
	{ "a file that is cut, and holes", cut_and_holes },
};
TAP_MAIN(tests)
