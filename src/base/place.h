/*
 * place - where the sockets of sandboxes that stay lie, and what their names may be
 *
 * $XDG_RUNTIME_DIR/caisson; /run/caisson for root; else /tmp/caisson-UID. The folder is the
 * caller's and 0700, or it is refused: whoever could write it could answer in a sandbox's place.
 * Beside NAME.sock lies NAME.lock, held by the monitor for as long as it lives: a socket without a
 * held lock is what a crash left.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { PLACE_NAME_MAX = 64 };

/* Its path, as the environment says; whether it is there or not. 0, or -ENAMETOOLONG. */
int place_path(char *ret_path, size_t size);

/* The folder, made if it is missing; O_PATH descriptor or -errno with a sentence. */
int place_open(struct csn_error *err);

/* 1 to 64 letters, digits, '-', '_', '.', the first a letter or digit. */
bool place_is_name(const char *name);

/* Takes NAME and listens: *ret_lock is its lock, *ret_socket listens, non-blocking. -EEXIST: a
 * sandbox of that name lives. */
int place_listen(int place_fd, const char *name, int *ret_lock, int *ret_socket,
		 struct csn_error *err);

/* Notes in its lock that the sandbox is up: before it answers nobody. */
void place_mark_up(int lock);

/* What `ps` shows of a name whose lock is held. */
struct place_life {
	bool is_up;
	int64_t since_ms; /* up, or starting; since 1970, UTC */
};

/* False: there is no such lock. */
bool place_life_of(int place_fd, const char *name, struct place_life *ret_life);

/* Removes what place_listen() made; the lock is still held. */
void place_leave(int place_fd, const char *name);

/* Connects to NAME: a blocking stream, or -errno with a sentence (-ENOENT: no such sandbox). */
int place_connect(int place_fd, const char *name, struct csn_error *err);

/* The same without waiting, non-blocking and without a sentence; -EAGAIN: nobody lets us in. */
int place_connect_now(int place_fd, const char *name);

/* Is its lock held? Removes what a dead one left. */
bool place_is_alive(int place_fd, const char *name);
