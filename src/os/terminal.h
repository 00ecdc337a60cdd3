/*
 * terminal - pseudo terminals, made here or handed over
 *
 * Landlock knows no "terminals that I make": whoever may open the other side of a new one may open
 * every terminal of the user's (tests/escape/other_terminals.py). So behind a wall of it somebody
 * outside makes them: before the domain is entered, or, for commands to come, the monitor, who
 * sends both sides through a socket (SOCK_SEQPACKET), each pair with the Ref of the call that it is
 * for.
 */
#pragma once

#include <stdint.h>

/* A new one: both sides, O_CLOEXEC and nobody's controlling terminal. 0 or -errno. */
int terminal_make(int *ret_master, int *ret_slave);

/* Sends a new one. -EAGAIN: nobody takes them; or another negative errno. */
int terminal_send(int socket, int64_t ref);

/*
 * Takes that of `ref`, without waiting; those of calls before it that came to nothing are closed.
 * 0, -ENOENT: none was sent; -ENOTSOCK: they do not come this way; or another negative errno.
 */
int terminal_take(int socket, int64_t ref, int *ret_master, int *ret_slave);
