/*
 * buf - a growing run of bytes with a ceiling
 *
 * Invariants: start <= end <= cap <= max; `data` is NULL only while `cap` is 0. Consuming
 * from the front is cheap (`start` moves), so a buf serves as an output queue too.
 * A buf never grows past `max`: untrusted input can fill it and no more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data; /* owned */
	size_t start;  /* first unread byte */
	size_t end;    /* one past the last byte */
	size_t cap;
	size_t max;
};

#define _cleanup_buf_ __attribute__((cleanup(buf_done)))

/* Empty, allocates nothing. `max` is the ceiling in bytes. */
void buf_init(struct buf *buf, size_t max);
void buf_done(struct buf *buf);

static inline size_t buf_size(const struct buf *buf)
{
	return buf->end - buf->start;
}

static inline uint8_t *buf_at(const struct buf *buf)
{
	return buf->data + buf->start;
}

/* Bytes that may still be added before the ceiling. */
static inline size_t buf_room(const struct buf *buf)
{
	return buf->max - buf_size(buf);
}

/*
 * Makes space for `size` (1 or more) more bytes and returns where they go, or NULL: ceiling
 * reached or out of memory. The caller writes there, then calls buf_grew(). Pointers into the
 * buf from before are no longer good.
 */
uint8_t *buf_reserve(struct buf *buf, size_t size);
void buf_grew(struct buf *buf, size_t size);

/* Appends a copy. 0, -E2BIG at the ceiling, -ENOMEM; nothing is appended on failure. buf_printf()
 * needs room for one byte more than it appends. */
int buf_add(struct buf *buf, const void *data, size_t size);
int buf_add_byte(struct buf *buf, uint8_t byte);
int buf_add_text(struct buf *buf, const char *text);
__attribute__((format(printf, 2, 3))) int buf_printf(struct buf *buf, const char *format, ...);

/* Drops `size` bytes from the front. */
void buf_consume(struct buf *buf, size_t size);
/* Keeps the first `size` bytes, of as many or more. */
void buf_truncate(struct buf *buf, size_t size);
void buf_clear(struct buf *buf);

/* A NUL-terminated view of the contents, owned by the buf and good until it changes; NULL when
 * there is no room for the NUL: ceiling reached, or out of memory. */
const char *buf_text(struct buf *buf);
