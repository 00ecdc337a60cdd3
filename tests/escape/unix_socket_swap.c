/*
 * Swaps the path between a socket of its own on scratch and the host's in the workspace, in a
 * second thread, while the first one connects.
 *
 * Would gain: the host's service, if whoever checks the address reads it before the kernel does.
 */
#include "inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { TRIES = 1500 };

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static atomic_bool is_over;
static char own[100], other[100];

/* Each path stays for a while of changing length, so that both are met at every stage. */
static void *swap(void *unused)
{
	volatile unsigned spin;

	(void)unused;
	for (unsigned round = 0; !is_over; round++) {
		memcpy(address.sun_path, round % 2 ? own : other, sizeof own);
		atomic_thread_fence(memory_order_seq_cst);
		for (spin = 0; spin < round * 37 % 20000; spin++)
			;
	}
	return NULL;
}

/* What the kernel says who is at the other end: only our own listener has our id. */
static bool is_own(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == getpid();
}

int main(void)
{
	const char *scratch = getenv("TMPDIR");
	int server = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int reached_own = 0, reached_other = 0;
	pthread_t thread;

	snprintf(own, sizeof own, "%s/own", scratch ? scratch : "/tmp");
	snprintf(other, sizeof other, "race.sock");
	memcpy(address.sun_path, own, sizeof own);
	if (bind(server, (void *)&address, sizeof address) < 0 || listen(server, TRIES) < 0 ||
	    pthread_create(&thread, NULL, swap, NULL) != 0)
		return 1;
	for (int i = 0; i < TRIES; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (fd < 0)
			return 1;
		if (connect(fd, (void *)&address, sizeof address) == 0) {
			reached_own += is_own(fd);
			reached_other += !is_own(fd);
		}
		close(fd);
		fd = accept(server, NULL, NULL);
		if (fd >= 0)
			close(fd);
	}
	is_over = true;
	pthread_join(thread, NULL);
	errno = EACCES;
	CONTROL("some connects reached our own", reached_own > 0 ? 0 : -1);
	ATTEMPT("some connects reached the host", reached_other > 0 ? 0 : -1);
	return done();
}
