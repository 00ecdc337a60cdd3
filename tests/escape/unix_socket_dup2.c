/*
 * Puts another socket under the descriptor's number while a connect by that number is judged.
 *
 * Would gain: a connection of a socket that was never judged, such as one to the host's network.
 */
#include "inside.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { TRIES = 800, NUMBER = 50 };

static atomic_bool is_over, has_begun;
static int local_fd, inet_fd;

static void *swap(void *unused)
{
	(void)unused;
	while (!is_over) {
		dup2(local_fd, NUMBER);
		dup2(inet_fd, NUMBER);
		has_begun = true;
	}
	return NULL;
}

int main(int count, char **args)
{
	struct sockaddr_un own = { .sun_family = AF_UNIX };
	struct sockaddr_in host = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *scratch = getenv("TMPDIR");
	int server = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), reached = 0, own_reached = 0;
	pthread_t thread;

	host.sin_port = htons((unsigned short)strtoul(count > 1 ? args[1] : "0", NULL, 10));
	snprintf(own.sun_path, sizeof own.sun_path, "%s/dup2.sock", scratch ? scratch : "/tmp");
	inet_fd = socket(AF_INET, SOCK_STREAM, 0);
	local_fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(server, (void *)&own, sizeof own) < 0 || listen(server, 64) < 0 ||
	    pthread_create(&thread, NULL, swap, NULL) != 0)
		return 1;
	while (!has_begun) /* a busy machine may let us do all tries before */
		sched_yield();
	for (int i = 0; i < TRIES || (own_reached == 0 && i < TRIES * 20); i++) {
		struct sockaddr_storage peer;
		socklen_t size = sizeof peer;
		int fd;

		own_reached += connect(NUMBER, (void *)&own, sizeof own) == 0;
		connect(NUMBER, (void *)&host, sizeof host);
		reached += getpeername(inet_fd, (void *)&peer, &size) == 0;
		fd = accept(server, NULL, NULL);
		if (fd >= 0)
			close(fd);
	}
	is_over = true;
	pthread_join(thread, NULL);
	errno = EACCES;
	CONTROL("our own was connected at least once", own_reached > 0 ? 0 : -1);
	ATTEMPT("the other socket got a peer", reached > 0 ? 0 : -1);
	return done();
}
