/*
 * starter - a monitor as a child process, started without a fork of the host
 *
 * posix_spawn() shares nothing that a thread of the host may hold at that moment. The monitor gets
 * its end of a socket as descriptor 3, an empty input, and for what it says before it can speak in
 * frames a sealed file of 4 KiB, and as descriptor 4 the stream to a wall of the host's own;
 * nothing else that is open here. It has a process group of its own: an interrupt at the terminal
 * is the host's to understand.
 */
#pragma once

#include <sys/types.h>

#include "client/code.h"

struct spawned {
	int fd;      /* our end, owned */
	int said_fd; /* what it writes on stderr, owned; -1: a pool's */
	pid_t pid;   /* 0: a pool's, which waits for it */
};

/* What of the host's goes along; borrowed. */
struct lent_host {
	int wall_fd;              /* the other end of the stream to a wall of his own; -1: none */
	const char *const *gates; /* as --gate takes them, ends with NULL; NULL: none */
};

/* Takes one from a pool, or starts `caisson monitor --fd 3 FLAGS`. 0 or -code. */
int starter_spawn(const csn_options *options, const struct lent_host *host,
		  struct spawned *ret_spawned, csn_error *err);
