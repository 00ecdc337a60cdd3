/*
 * The endpoint of a forward; see forwards_end.h. Its path is real, by policy's word: whoever puts a
 * link in the way later, as code may that can write the folder, is refused here. What is connected
 * to is the very socket that was judged, through its descriptor.
 */
#include "monitor/forwards_end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/sys.h"

static const char stage[] = "forward";

/* Whoever speaks to one of these is root on the host, by whatever name he reaches it. */
static bool is_privileged(const struct stat *st)
{
	static const char *const paths[] = {
		"/run/docker.sock",          "/run/podman/podman.sock",
		"/run/crio/crio.sock",       "/run/containerd/containerd.sock",
		"/run/systemd/private",      "/run/dbus/system_bus_socket",
		"/run/libvirt/libvirt-sock", "/run/buildkit/buildkitd.sock",
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct stat other;

		if (stat(paths[i], &other) == 0 && other.st_dev == st->st_dev &&
		    other.st_ino == st->st_ino)
			return true;
	}
	return false;
}

/* -ELOOP: a link; -ENOTSOCK; -EPERM: a privileged one. */
static int open_socket(const char *path, int *ret_fd)
{
	_cleanup_fd_ int fd = sys_openat2(AT_FDCWD, path, O_PATH, RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	if (is_privileged(&st))
		return -EPERM;
	*ret_fd = fd_take(&fd);
	return 0;
}

static struct sockaddr_in loopback(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

/* A port that somebody listens on cannot be had, also with SO_REUSEADDR. Who may not have it does
 * not learn that; the first connection tells. */
static int check_port(uint16_t port, struct csn_error *err)
{
	struct sockaddr_in address = loopback(port);
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0)
		return csn_fail(err, -errno, stage, "cannot make a socket: %m");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return 0;
	return csn_fail(err, -ECONNREFUSED, stage,
			"nobody listens on 127.0.0.1:%u, which --forward names: start that first",
			port);
}

static const char *why(int error)
{
	switch (-error) {
	case ENOENT:
		return "is not there: start what listens on it first";
	case ELOOP:
		return "is reached by a symbolic link: name the place that it means";
	case ENOTSOCK:
		return "is not a socket";
	case EPERM:
		return "is a socket of a privileged service: whoever speaks to it is root";
	default:
		return strerror(-error);
	}
}

int forwards_end_check(const struct plan_forward *forward, struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	char shown[128];
	int r;

	if (forward->host_port)
		return check_port(forward->host_port, err);
	r = open_socket(forward->host, &fd);
	if (r == 0)
		return 0;
	str_escape(forward->host, false, shown, sizeof shown);
	return csn_fail(err, r, stage, "%s, which --forward names, %s", shown, why(r));
}

static int start(int fd, const struct sockaddr *address, socklen_t size, bool *ret_waits)
{
	int r = connect(fd, address, size) < 0 ? -errno : 0;

	*ret_waits = r == -EINPROGRESS;
	return r == -EINPROGRESS ? 0 : r;
}

int forwards_end_connect(const struct plan_forward *forward, int *ret_fd, bool *ret_waits)
{
	struct sockaddr_in port = loopback(forward->host_port);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_fd_ int target = -1;
	_cleanup_fd_ int fd = socket(forward->host_port ? AF_INET : AF_UNIX,
				     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : 0;

	if (r == 0 && forward->host_port) {
		r = start(fd, (struct sockaddr *)&port, sizeof port, ret_waits);
	} else if (r == 0) {
		r = open_socket(forward->host, &target);
		snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", target);
		if (r == 0)
			r = start(fd, (struct sockaddr *)&address, sizeof address, ret_waits);
	}
	if (r == 0)
		*ret_fd = fd_take(&fd);
	return r;
}
