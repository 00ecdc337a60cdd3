/*
 * Passing descriptors between our own processes: the cleaner learns which process is the wall's
 * first, a sandbox gets the net namespace that was made beside it. See pass.h.
 */
#include "os/pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Aligned for its head, with room for one descriptor. */
union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int))];
};

int pass_send(int socket, char byte, int fd)
{
	union control control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
	}
	while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int pass_receive(int socket, char *ret_byte, int *ret_fd)
{
	union control control;
	struct iovec iov = { ret_byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *head;
	ssize_t n;

	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_fd = -1;
	head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(head), sizeof *ret_fd);
	return n > 0;
}
