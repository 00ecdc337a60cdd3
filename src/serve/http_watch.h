/*
 * http_watch - one thread that looks after all connections
 *
 * A client that leaves while its request runs is told to whoever works for it, so that its command
 * is cancelled; one that takes too long to say what it wants is hung up on (slowloris). While a
 * request runs, whatever ends the client's side counts as leaving, a half-closed stream too.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Is told once that the client left, or the server ends; holds the peer's lock. */
typedef void (*peer_gone_fn)(void *data);

/* A connection. */
struct peer {
	struct peer *next, *previous;
	uint64_t serial;
	int fd;               /* borrowed of the HTTP library, good until watch_remove() */
	uint64_t deadline_ms; /* when it is hung up on; 0: never */
	bool is_known;        /* it showed a token once */
	bool is_hung_up;
	bool is_gone;
	peer_gone_fn on_gone; /* NULL: nobody works for it */
	void *data;
};

struct watch {
	pthread_mutex_t lock;
	pthread_t thread;
	struct peer *peers;
	uint64_t last_serial;
	unsigned strangers; /* that were not hung up on yet */
	int epoll_fd;       /* -1: not started */
	bool is_ending;
	bool has_thread;
};

/* 0 or -errno. */
int watch_start(struct watch *watch);
/* Tells all that they are gone, then ends the thread; peers stay until they are removed. */
void watch_end(struct watch *watch);
void watch_done(struct watch *watch);

/* A connection was accepted, or is over. NULL: no memory. Whoever knows the port can connect: of
 * those that showed no token only the newest STRANGERS_MAX stay, so that they never have all the
 * connections that there are. */
struct peer *watch_add(struct watch *watch, int fd);
void watch_remove(struct watch *watch, struct peer *peer);

/* It showed a token. */
void watch_know(struct watch *watch, struct peer *peer);

/* It has so long to finish what it is sending. */
void watch_expect(struct watch *watch, struct peer *peer, uint64_t within_ms);

/* Somebody works for it, until watch_release(). Called at once if it is gone. */
void watch_hold(struct watch *watch, struct peer *peer, peer_gone_fn on_gone, void *data);
/* Nobody is told any more when this returns. */
void watch_release(struct watch *watch, struct peer *peer);
