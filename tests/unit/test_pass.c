/* Passing descriptors: what arrives is that file, closed on exec; ends and lone bytes are told. */
#include "os/pass.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

static int ours, theirs;

static void start(void)
{
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	ours = pair[0];
	theirs = pair[1];
}

static void with_a_file(void)
{
	int files[2], fd = -7;
	char byte = 0, text[4] = "";

	start();
	CHECK(pipe2(files, O_CLOEXEC) == 0);
	CHECK(pass_send(ours, 'w', files[1]) == 0);
	CHECK(pass_receive(theirs, &byte, &fd) == 1 && byte == 'w' && fd > 2);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && fd != files[1]);
	CHECK(write(fd, "ab", 2) == 2 && read(files[0], text, sizeof text) == 2);
	CHECK_STR(text, "ab");
}

/* One message a call, also when several wait; a number without a file is -1. */
static void one_by_one(void)
{
	int fd = -7;
	char byte = 0;

	start();
	CHECK(pass_send(ours, 'a', -1) == 0 && pass_send(ours, 'b', ours) == 0);
	CHECK(pass_send(ours, 0, -1) == 0);
	CHECK(pass_receive(theirs, &byte, &fd) == 1 && byte == 'a' && fd == -1);
	CHECK(pass_receive(theirs, &byte, &fd) == 1 && byte == 'b' && fd > 2);
	fd_close(fd);
	CHECK(pass_receive(theirs, &byte, &fd) == 1 && byte == 0 && fd == -1);
}

static void ends(void)
{
	int fd = -7;
	char byte = 'x';

	start();
	close(ours);
	CHECK(pass_receive(theirs, &byte, &fd) == 0 && fd == -1);
	CHECK(pass_send(theirs, 'a', -1) == -EPIPE); /* and no signal */
	CHECK(pass_send(-1, 'a', -1) == -EBADF && pass_receive(-1, &byte, &fd) == -EBADF);
	CHECK(pass_send(theirs, 'a', 9999) == -EBADF);
}

static const struct tap_test tests[] = {
	{ "a file arrives", with_a_file },
	{ "messages stay apart", one_by_one },
	{ "the end and its errors", ends },
};

TAP_MAIN(tests)
