/*
 * pass - a descriptor from one process to another (SCM_RIGHTS, unix(7))
 *
 * One message holds one byte, which tells what the descriptor is or how it went, and at most one
 * descriptor, which arrives O_CLOEXEC.
 */
#pragma once

/* Sends `byte`, with `fd` if it is not -1. 0 or a negative errno; no SIGPIPE. */
int pass_send(int socket, char byte, int fd);

/*
 * Waits for a message: 1 with *ret_byte and *ret_fd (-1: none came with it), 0 at the end of the
 * stream, a negative errno. A descriptor that came is the caller's.
 */
int pass_receive(int socket, char *ret_byte, int *ret_fd);
