/* Sockets; see http_listen.h. No name service is asked: what a server listens on is an address. */
#include "serve/http_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { BACKLOG = 128 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

/* ---- TCP ------------------------------------------------------------------------------------- */

static socklen_t set_address(const char *host, uint16_t port, union address *ret_address)
{
	if (str_is(host, "localhost"))
		host = "127.0.0.1";
	*ret_address = (union address){ 0 };
	if (inet_pton(AF_INET, host, &ret_address->v4.sin_addr) == 1) {
		ret_address->v4.sin_family = AF_INET;
		ret_address->v4.sin_port = htons(port);
		return sizeof ret_address->v4;
	}
	if (inet_pton(AF_INET6, host, &ret_address->v6.sin6_addr) == 1) {
		ret_address->v6.sin6_family = AF_INET6;
		ret_address->v6.sin6_port = htons(port);
		return sizeof ret_address->v6;
	}
	return 0;
}

/* "127.0.0.1:80", "[::1]:80": the host without brackets. 0: neither. */
static socklen_t parse(const char *where, union address *ret_address)
{
	const char *colon = strrchr(where, ':');
	char host[INET6_ADDRSTRLEN + 2];
	size_t size = colon ? (size_t)(colon - where) : 0;
	uint64_t port;

	if (!colon || size >= sizeof host || str_parse_u64(colon + 1, UINT16_MAX, &port) < 0)
		return 0;
	if (*where == '[') {
		if (size < 2 || where[size - 1] != ']')
			return 0;
		where++;
		size -= 2;
	}
	memcpy(host, where, size);
	host[size] = 0;
	return set_address(host, (uint16_t)port, ret_address);
}

static int name_it(struct listener *listener)
{
	char host[INET6_ADDRSTRLEN];
	union address address;
	socklen_t size = sizeof address;

	if (getsockname(listener->fd, &address.any, &size) < 0)
		return -errno;
	if (address.any.sa_family == AF_INET) {
		listener->port = ntohs(address.v4.sin_port);
		inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host);
		snprintf(listener->name, LISTENER_NAME, "%s:%u", host, listener->port);
	} else {
		listener->port = ntohs(address.v6.sin6_port);
		inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host);
		snprintf(listener->name, LISTENER_NAME, "[%s]:%u", host, listener->port);
	}
	return 0;
}

static int open_tcp(const char *where, struct listener *listener, struct csn_error *err)
{
	union address address;
	socklen_t size = parse(where, &address);
	const int yes = 1;

	if (!size)
		return csn_fail(err, -EINVAL, "serve",
				"--listen %.80s: expected ADDRESS:PORT, as 127.0.0.1:4647 or "
				"[::1]:0, or unix:PATH",
				where);
	listener->fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener->fd >= 0)
		setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (listener->fd < 0 || bind(listener->fd, &address.any, size) < 0 ||
	    listen(listener->fd, BACKLOG) < 0 || name_it(listener) < 0)
		return csn_fail(err, -errno, "serve", "cannot listen on %.80s: %m", where);
	return 0;
}

/* ---- Unix ------------------------------------------------------------------------------------ */

/* What nobody listens on is not in use. */
static bool is_left_over(const union address *address)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, &address->any, sizeof address->un) < 0 &&
	       errno == ECONNREFUSED;
}

/* Nobody can connect before listen(), so the mode is set in time. */
static int bind_there(int fd, const union address *address)
{
	const char *path = address->un.sun_path;

	if (bind(fd, &address->any, sizeof address->un) < 0) {
		if (errno != EADDRINUSE || !is_left_over(address))
			return -errno;
		if (unlink(path) < 0 || bind(fd, &address->any, sizeof address->un) < 0)
			return -errno;
	}
	return chmod(path, 0600) < 0 || listen(fd, BACKLOG) < 0 ? -errno : 0;
}

static int open_unix(const char *path, struct listener *listener, struct csn_error *err)
{
	union address address = { .un = { .sun_family = AF_UNIX } };
	int r;

	if (!*path || strlen(path) >= sizeof address.un.sun_path)
		return csn_fail(err, -ENAMETOOLONG, "serve",
				"--listen unix:PATH takes a path of 1 to %zu bytes",
				sizeof address.un.sun_path - 1);
	memcpy(address.un.sun_path, path, strlen(path) + 1);
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	r = listener->fd < 0 ? -errno : bind_there(listener->fd, &address);
	if (r < 0)
		return csn_fail(err, r, "serve", "cannot listen on %.200s: %s", path, strerror(-r));
	memcpy(listener->path, path, strlen(path) + 1);
	return 0;
}

int listener_open(const char *where, struct listener *ret_listener, struct csn_error *err)
{
	int r;

	*ret_listener = (struct listener){ .fd = -1 };
	r = str_starts(where, "unix:") ? open_unix(where + 5, ret_listener, err)
				       : open_tcp(where, ret_listener, err);
	if (r < 0)
		ret_listener->fd = fd_close(ret_listener->fd);
	return r;
}

void listener_leave(const struct listener *listener)
{
	if (listener->path[0])
		unlink(listener->path);
}

void listener_close(struct listener *listener)
{
	listener_leave(listener);
	listener->fd = fd_close(listener->fd);
}
