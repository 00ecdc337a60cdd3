/*
 * Descriptors that close themselves, and the loops around read() and write()
 * that everybody needs: EINTR and short transfers are handled here and nowhere else.
 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

int fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

void fd_cleanup(int *fd)
{
	*fd = fd_close(*fd);
}

int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

int fd_write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) /* some devices take nothing, forever */
			return -EIO;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

ssize_t fd_read_all(int fd, void *data, size_t size)
{
	char *at = data;
	size_t have = 0;
	char extra;

	for (;;) {
		ssize_t n = have < size ? read(fd, at + have, size - have) : read(fd, &extra, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return (ssize_t)have;
		if (have == size)
			return -E2BIG;
		have += (size_t)n;
	}
}

int fd_set_nonblock(int fd, int on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_set_cloexec(int fd, int on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

void fd_widen(int fd, int bytes)
{
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}
