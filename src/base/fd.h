/*
 * Descriptors that close themselves
 *
 * Every descriptor is born with O_CLOEXEC, lives in a `_cleanup_fd_` variable and
 * leaves it by fd_take(). -1 means "none" and is fine everywhere.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define _cleanup_fd_ __attribute__((cleanup(fd_cleanup)))

/* Closes a descriptor and returns -1; errno is kept. */
int fd_close(int fd);

/* For `_cleanup_fd_`. */
void fd_cleanup(int *fd);

/* Moves the descriptor out of `*fd`, which becomes -1. */
int fd_take(int *fd);

/* Writes all `size` bytes to a blocking descriptor. 0 or a negative errno. */
int fd_write_all(int fd, const void *data, size_t size);

/*
 * Reads a blocking descriptor to its end, at most `size` bytes. Returns the number
 * of bytes, or -E2BIG when there is more, or a negative errno.
 */
ssize_t fd_read_all(int fd, void *data, size_t size);

/* O_NONBLOCK on or off. 0 or a negative errno. */
int fd_set_nonblock(int fd, int on);

/* FD_CLOEXEC on or off. 0 or a negative errno. */
int fd_set_cloexec(int fd, int on);

/* Room for that many bytes in a socket before it takes no more, as far as the kernel lends it; what
 * is no socket stays as it is. */
void fd_widen(int fd, int bytes);
