/* Connections and who left; see http_watch.h. Callbacks run under the lock: they only cancel a
 * call or wake a stream. */
#include "serve/http_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum { TICK_MS = 250, EVENTS = 64, STRANGERS_MAX = 256 };

static void tell(struct peer *peer)
{
	peer_gone_fn on_gone = peer->on_gone;

	peer->is_gone = true;
	peer->on_gone = NULL;
	if (on_gone)
		on_gone(peer->data);
}

/* The HTTP library reads the end of a socket that is shut down, and cleans up by itself. */
static void hang_up(struct watch *watch, struct peer *peer)
{
	watch->strangers -= !peer->is_known && !peer->is_hung_up;
	peer->is_hung_up = true;
	peer->deadline_ms = 0;
	shutdown(peer->fd, SHUT_RDWR);
}

/* Peers are listed from the newest on. */
static void hang_up_oldest_stranger(struct watch *watch)
{
	struct peer *oldest = NULL;

	for (struct peer *peer = watch->peers; peer; peer = peer->next)
		if (!peer->is_known && !peer->is_hung_up)
			oldest = peer;
	if (oldest)
		hang_up(watch, oldest);
}

static void hang_up_late_ones(struct watch *watch, uint64_t now_ms)
{
	for (struct peer *peer = watch->peers; peer; peer = peer->next) {
		if (peer->deadline_ms == 0 || peer->deadline_ms > now_ms)
			continue;
		hang_up(watch, peer);
	}
}

/* An event may be of a peer that was removed after it was queued, and its memory another's by now:
 * so peers are told apart by a number. */
static void tell_if_listed(struct watch *watch, uint64_t serial)
{
	for (struct peer *peer = watch->peers; peer; peer = peer->next)
		if (peer->serial == serial) {
			tell(peer);
			return;
		}
}

static void *run(void *data)
{
	struct watch *watch = data;
	struct epoll_event events[EVENTS];
	bool is_ending = false;

	while (!is_ending) {
		int count = epoll_wait(watch->epoll_fd, events, EVENTS, TICK_MS);

		pthread_mutex_lock(&watch->lock);
		for (int i = 0; i < count; i++)
			tell_if_listed(watch, events[i].data.u64);
		hang_up_late_ones(watch, clock_now_ms());
		is_ending = watch->is_ending;
		pthread_mutex_unlock(&watch->lock);
	}
	return NULL;
}

int watch_start(struct watch *watch)
{
	int r;

	*watch = (struct watch){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	if (watch->epoll_fd < 0)
		return -errno;
	pthread_mutex_init(&watch->lock, NULL);
	r = pthread_create(&watch->thread, NULL, run, watch);
	watch->has_thread = r == 0;
	return -r;
}

void watch_end(struct watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	watch->is_ending = true;
	for (struct peer *peer = watch->peers; peer; peer = peer->next)
		tell(peer);
	pthread_mutex_unlock(&watch->lock);
	if (watch->has_thread)
		pthread_join(watch->thread, NULL);
	watch->has_thread = false;
}

void watch_done(struct watch *watch)
{
	watch->epoll_fd = fd_close(watch->epoll_fd);
	pthread_mutex_destroy(&watch->lock);
}

struct peer *watch_add(struct watch *watch, int fd)
{
	struct peer *peer = calloc(1, sizeof *peer);
	struct epoll_event event = { .events = EPOLLET };

	if (!peer)
		return NULL;
	peer->fd = fd;
	pthread_mutex_lock(&watch->lock);
	peer->serial = event.data.u64 = ++watch->last_serial;
	peer->is_gone =
		watch->is_ending || epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0;
	peer->next = watch->peers;
	if (peer->next)
		peer->next->previous = peer;
	watch->peers = peer;
	if (++watch->strangers > STRANGERS_MAX)
		hang_up_oldest_stranger(watch);
	pthread_mutex_unlock(&watch->lock);
	return peer;
}

void watch_know(struct watch *watch, struct peer *peer)
{
	pthread_mutex_lock(&watch->lock);
	if (!peer->is_known && !peer->is_hung_up)
		watch->strangers--;
	peer->is_known = true;
	pthread_mutex_unlock(&watch->lock);
}

void watch_remove(struct watch *watch, struct peer *peer)
{
	pthread_mutex_lock(&watch->lock);
	epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, peer->fd, NULL);
	watch->strangers -= !peer->is_known && !peer->is_hung_up;
	if (peer->next)
		peer->next->previous = peer->previous;
	if (peer->previous)
		peer->previous->next = peer->next;
	else
		watch->peers = peer->next;
	pthread_mutex_unlock(&watch->lock);
	free(peer);
}

void watch_expect(struct watch *watch, struct peer *peer, uint64_t within_ms)
{
	pthread_mutex_lock(&watch->lock);
	peer->deadline_ms = within_ms ? clock_now_ms() + within_ms : 0;
	pthread_mutex_unlock(&watch->lock);
}

void watch_hold(struct watch *watch, struct peer *peer, peer_gone_fn on_gone, void *data)
{
	struct epoll_event event = { .events = EPOLLRDHUP | EPOLLONESHOT,
				     .data.u64 = peer->serial };

	pthread_mutex_lock(&watch->lock);
	peer->on_gone = on_gone;
	peer->data = data;
	if (peer->is_gone || epoll_ctl(watch->epoll_fd, EPOLL_CTL_MOD, peer->fd, &event) < 0)
		tell(peer);
	pthread_mutex_unlock(&watch->lock);
}

void watch_release(struct watch *watch, struct peer *peer)
{
	struct epoll_event event = { .events = EPOLLET, .data.u64 = peer->serial };

	pthread_mutex_lock(&watch->lock);
	peer->on_gone = NULL;
	epoll_ctl(watch->epoll_fd, EPOLL_CTL_MOD, peer->fd, &event);
	pthread_mutex_unlock(&watch->lock);
}
