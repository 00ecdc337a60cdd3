/*
 * The kernel's list of sockets says it without disturbing whoever listens. Where /proc has no such
 * list (subset=pid), a connection to the loopback address must do, which is closed at once.
 */
#include "agent/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum {
	PIECE = 32 << 10,
	LIST_MAX = 8 << 20, /* a wall without a network of its own: a host's */
	ANSWER_MS = 10
};

/* The n-th field of a line (from 0) and its length; NULL: it has fewer. */
static const char *field(const char *line, int n, size_t *ret_size)
{
	line += strspn(line, " ");
	for (; n > 0 && *line; n--) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	*ret_size = strcspn(line, " ");
	return *ret_size > 0 ? line : NULL;
}

/* "  0: 0100007F:1F90 00000000:0000 0A …": local address, state 0A is LISTEN. */
static bool line_listens(const char *line, uint16_t port)
{
	size_t size, state_size;
	const char *local = field(line, 1, &size), *state = field(line, 3, &state_size);
	char end[8];

	snprintf(end, sizeof end, ":%04X", port);
	return local && state && size > 5 && memcmp(local + size - 5, end, 5) == 0 &&
	       state_size == 2 && memcmp(state, "0A", 2) == 0;
}

/* Looks at each whole line; what follows the last one is kept. True: found. */
static bool take_lines(char *text, size_t *size, uint16_t port)
{
	char *line = text, *end;

	while ((end = memchr(line, '\n', *size - (size_t)(line - text)))) {
		*end = 0;
		if (line_listens(line, port))
			return true;
		line = end + 1;
	}
	*size -= (size_t)(line - text);
	memmove(text, line, *size);
	return false;
}

static int look_in(const char *path, uint16_t port, bool *ret_open)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[PIECE];
	size_t size = 0, total = 0;

	if (fd < 0)
		return -errno;
	while (total < LIST_MAX && size < sizeof text) {
		ssize_t n = read(fd, text + size, sizeof text - size);

		if (n <= 0)
			return n < 0 ? -errno : 0;
		total += (size_t)n;
		size += (size_t)n;
		if (take_lines(text, &size, port)) {
			*ret_open = true;
			return 0;
		}
	}
	return 0;
}

/* What became of a connection: 0, or an errno. Loopback answers while we ask, so the time is for a
 * busy machine; a full queue, which does not answer, is asked again later. */
static int result_of(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	int error = 0;
	socklen_t size = sizeof error;

	if (poll(&ready, 1, ANSWER_MS) != 1)
		return EINPROGRESS;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

static int try_connect(uint16_t port, bool *ret_open)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0)
		return -EOPNOTSUPP;
	error = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 ? 0 : errno;
	if (error == EINPROGRESS)
		error = result_of(fd);
	*ret_open = error == 0;
	return error == 0 || error == ECONNREFUSED || error == EINPROGRESS ? 0 : -EOPNOTSUPP;
}

int port_is_open(uint16_t port, bool *ret_open)
{
	static const char *const lists[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	bool has_list = false;

	*ret_open = false;
	for (size_t i = 0; i < ARRAY_SIZE(lists) && !*ret_open; i++)
		has_list |= look_in(lists[i], port, ret_open) == 0;
	return has_list ? 0 : try_connect(port, ret_open);
}
