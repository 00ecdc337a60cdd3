/*
 * A growing run of bytes with a ceiling; see buf.h. Growth doubles, so appending
 * is linear; consumed bytes are reclaimed by moving the rest to the front when
 * space is needed, so a queue that drains does not grow.
 */
#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_FIRST = 256 };

void buf_init(struct buf *buf, size_t max)
{
	*buf = (struct buf){ .max = max };
}

void buf_done(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){ .max = buf->max };
}

static int grow(struct buf *buf, size_t need)
{
	size_t first = buf->max < BUF_FIRST ? buf->max : BUF_FIRST;
	size_t cap = buf->cap ? buf->cap : first;
	uint8_t *data;

	while (cap < need)
		cap = cap > buf->max / 2 ? buf->max : cap * 2;
	data = realloc(buf->data, cap);
	if (!data)
		return -ENOMEM;
	buf->data = data;
	buf->cap = cap;
	return 0;
}

uint8_t *buf_reserve(struct buf *buf, size_t size)
{
	if (size > buf_room(buf))
		return NULL;
	if (buf->start && buf->end + size > buf->cap) {
		memmove(buf->data, buf_at(buf), buf_size(buf));
		buf->end -= buf->start;
		buf->start = 0;
	}
	if (buf->end + size > buf->cap && grow(buf, buf->end + size) < 0)
		return NULL;
	return buf->data + buf->end;
}

void buf_grew(struct buf *buf, size_t size)
{
	assert(size <= buf->cap - buf->end);
	buf->end += size;
}

int buf_add(struct buf *buf, const void *data, size_t size)
{
	uint8_t *at;

	if (size == 0)
		return 0;
	if (size > buf_room(buf))
		return -E2BIG;
	at = buf_reserve(buf, size);
	if (!at)
		return -ENOMEM;
	memcpy(at, data, size);
	buf->end += size;
	return 0;
}

int buf_add_byte(struct buf *buf, uint8_t byte)
{
	return buf_add(buf, &byte, 1);
}

int buf_add_text(struct buf *buf, const char *text)
{
	return buf_add(buf, text, strlen(text));
}

int buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args, again;
	uint8_t *at;
	int size, r = 0;

	va_start(args, format);
	va_copy(again, args);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	at = size < 0 ? NULL : buf_reserve(buf, (size_t)size + 1);
	if (at) {
		vsnprintf((char *)at, (size_t)size + 1, format, again);
		buf->end += (size_t)size;
	} else {
		r = size >= 0 && (size_t)size < buf_room(buf) ? -ENOMEM : -E2BIG;
	}
	va_end(again);
	return r;
}

void buf_consume(struct buf *buf, size_t size)
{
	assert(size <= buf_size(buf));
	buf->start += size;
	if (buf->start == buf->end)
		buf->start = buf->end = 0;
}

void buf_truncate(struct buf *buf, size_t size)
{
	assert(size <= buf_size(buf));
	buf->end = buf->start + size;
}

void buf_clear(struct buf *buf)
{
	buf->start = buf->end = 0;
}

const char *buf_text(struct buf *buf)
{
	uint8_t *at = buf_reserve(buf, 1);

	if (!at)
		return NULL;
	*at = 0;
	return (const char *)buf_at(buf);
}
