/*
 * sha - SHA-256 as lower-case hex
 *
 * The low-level calls of libcrypto: they need no provider to be loaded, which would cost
 * more than a whole launch. They cannot fail.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA_HEX = 65 }; /* 64 digits and a NUL */

struct sha_part {
	const void *data; /* borrowed */
	size_t size;      /* bytes */
};

/* The hash of `count` parts, one after the other, into SHA_HEX bytes. */
void sha_parts(const struct sha_part *parts, size_t count, char *ret_hex);

/*
 * The hash and the size of what is left to read of a descriptor. 0, or a negative errno;
 * -EFBIG beyond `max` bytes, so that a file which grows while it is read ends.
 */
int sha_fd(int fd, uint64_t max, uint64_t *ret_size, char *ret_hex);

struct sha_limit {
	uint64_t bytes;                    /* -EFBIG beyond them */
	bool (*is_over)(const void *data); /* -ECANCELED once it says so; asked often */
	const void *data;
};

/* sha_fd() that can be called off. */
int sha_fd_within(int fd, const struct sha_limit *limit, uint64_t *ret_size, char *ret_hex);

/* What git calls a blob: SHA-1 of "blob SIZE", a zero byte and the bytes, into 20 bytes. */
void sha_git_blob(const void *data, size_t size, uint8_t *ret_hash);
