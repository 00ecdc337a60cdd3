/*
 * http_listen - the socket of a server
 *
 * "HOST:PORT" with a literal address or localhost, port 0 for a free one; or "unix:PATH", a socket
 * of mode 0600. A socket file that nobody listens on is what a killed server left, and is replaced.
 */
#pragma once

#include <stdint.h>
#include <sys/un.h>

#include "base/error.h"

enum { LISTENER_NAME = 80 };

struct listener {
	int fd;                   /* owned until the HTTP library has it */
	uint16_t port;            /* 0: a Unix socket */
	char name[LISTENER_NAME]; /* "127.0.0.1:4647" */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "" or the socket's */
};

/* 0 or -errno with a sentence. */
int listener_open(const char *where, struct listener *ret_listener, struct csn_error *err);

/* Removes the socket's file; the descriptor is the HTTP library's. */
void listener_leave(const struct listener *listener);
/* The same, and closes it. */
void listener_close(struct listener *listener);
