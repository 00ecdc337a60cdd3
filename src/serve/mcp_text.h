/* mcp_text - any bytes as JSON text, and output whose middle is left out */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"

/* A JSON string; what is no UTF-8, and NUL, becomes U+FFFD. The caller's; NULL without memory. */
json_t *mcp_string(const void *bytes, size_t size);

/* How many bytes at the end of `bytes` are the beginning of a character that goes on, at most 3. */
size_t mcp_text_torn(const void *bytes, size_t size);

/*
 * The first and the last half of what came, each cut where a line ends if there is such a place. At
 * most `max` bytes are kept.
 */
struct mcp_ends {
	size_t max;
	struct buf head; /* its first half, at most */
	struct buf tail; /* a ring of the last half */
	size_t at;       /* in the tail: where the next byte goes */
	uint64_t total;  /* bytes that came */
};

/* Nothing came yet; allocates nothing. */
void mcp_ends_init(struct mcp_ends *ends, size_t max);
/* Frees it. */
void mcp_ends_done(struct mcp_ends *ends);
/* 0 or -ENOMEM. */
int mcp_ends_add(struct mcp_ends *ends, const void *bytes, size_t size);

/*
 * Appends the whole, with a line that says what is missing. 0 or -ENOMEM. How many bytes are
 * missing is *ret_cut.
 */
int mcp_ends_take(struct mcp_ends *ends, struct buf *ret_text, uint64_t *ret_cut);
