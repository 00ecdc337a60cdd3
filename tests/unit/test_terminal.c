/* Terminals that are handed over: each to the call that it was made for, and to no other. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/terminal.h"
#include "tap.h"

static void test_each_to_its_call(void)
{
	int pair[2], master = -1, slave = -1, before, after;
	char byte = 0;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(terminal_take(pair[1], 1, &master, &slave) == -ENOENT);
	before = dup(0);
	close(before);
	for (int64_t ref = 1; ref <= 3; ref++)
		CHECK(terminal_send(pair[0], ref) == 0);
	CHECK(terminal_take(pair[1], 2, &master, &slave) == 0);
	CHECK(isatty(master) && isatty(slave) && fcntl(slave, F_GETFD) == FD_CLOEXEC);
	CHECK(write(master, "\n", 1) == 1 && read(slave, &byte, 1) == 1 && byte == '\n');
	close(master);
	close(slave);
	CHECK(terminal_take(pair[1], 3, &master, &slave) == 0);
	close(master);
	close(slave);
	CHECK(terminal_take(pair[1], 3, &master, &slave) == -ENOENT);
	after = dup(0);
	CHECK(after == before); /* that of the first, which nobody asked for, is closed */
}

static void test_not_this_way(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), pair[2], master = -1, slave = -1;

	CHECK(terminal_take(null, 1, &master, &slave) == -ENOTSOCK);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(write(pair[0], "x", 1) == 1);
	CHECK(terminal_take(pair[1], 1, &master, &slave) == -EPROTO);
	close(pair[0]);
	CHECK(terminal_take(pair[1], 1, &master, &slave) == -ENOENT);
	CHECK(master == -1 && slave == -1);
}

static const struct tap_test tests[] = {
	{ "each goes to the call that it was made for", test_each_to_its_call },
	{ "nothing comes where there is no such way", test_not_this_way },
};

TAP_MAIN(tests)
