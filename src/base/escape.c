/*
 * See escape.h. One pass, a character at a time: what is no UTF-8 is escaped byte by byte, so that
 * a terminal that reads it otherwise than we do finds nothing in it.
 */
#include "base/escape.h"

#include "base/str.h"

int escape_add(struct buf *buf, const void *data, size_t size, bool keeps_lines)
{
	const unsigned char *at = data;
	char one[STR_ESCAPED_MAX];
	size_t length;
	int r = 0;

	for (; size > 0 && r == 0; at += length, size -= length) {
		length = str_escape_one(at, size, keeps_lines, one);
		r = buf_add_text(buf, one);
	}
	return r;
}
