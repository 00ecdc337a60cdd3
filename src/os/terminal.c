/* One message a terminal: the Ref, and both sides by SCM_RIGHTS (unix(7)). See terminal.h. */
#include "os/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

enum { SIDES = 2 };

/* Aligned for its head. */
union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int[SIDES]))];
};

int terminal_make(int *ret_master, int *ret_slave)
{
	_cleanup_fd_ int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int slave;

	if (master < 0 || unlockpt(master) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	*ret_master = fd_take(&master);
	*ret_slave = slave;
	return 0;
}

int terminal_send(int socket, int64_t ref)
{
	_cleanup_fd_ int master = -1, slave = -1;
	union control control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int[SIDES])),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { &ref, sizeof ref };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	int r = terminal_make(&master, &slave);

	if (r < 0)
		return r;
	memcpy(CMSG_DATA(&control.head), (const int[SIDES]){ master, slave }, sizeof(int[SIDES]));
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* The next message: whose it is, and both sides. */
static int receive(int socket, int64_t *ret_ref, int ret_sides[SIDES])
{
	union control control = { 0 };
	struct iovec part = { ret_ref, sizeof *ret_ref };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *head;

	if (n < 0)
		return errno == EAGAIN ? -ENOENT : -errno;
	head = CMSG_FIRSTHDR(&message);
	if (n != sizeof *ret_ref || !head || head->cmsg_level != SOL_SOCKET ||
	    head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int[SIDES])))
		return n == 0 ? -ENOENT : -EPROTO;
	memcpy(ret_sides, CMSG_DATA(head), sizeof(int[SIDES]));
	return 0;
}

int terminal_take(int socket, int64_t ref, int *ret_master, int *ret_slave)
{
	int sides[SIDES], r;
	int64_t whose = 0;

	while ((r = receive(socket, &whose, sides)) == 0 && whose != ref) {
		close(sides[0]);
		close(sides[1]);
	}
	if (r < 0)
		return r;
	*ret_master = sides[0];
	*ret_slave = sides[1];
	return 0;
}
