/*
 * See escape.h. One pass, a character at a time: what is no UTF-8 is escaped byte by byte, so that
 * a terminal that reads it otherwise than we do finds nothing in it.
 */
#include "base/escape.h"

#include "base/str.h"

int escape_add(struct buf *buf, const void *data, size_t size, bool keeps_lines)
{
	const unsigned char *at = data;
	unsigned code = 0;
	size_t length;
	int r = 0;

	for (; size > 0 && r == 0; at += length, size -= length) {
		length = str_decode(at, size, &code);
		if (length == 0) {
			length = 1;
			r = buf_printf(buf, "\\x%02x", at[0]);
		} else if ((keeps_lines && (code == '\n' || code == '\t')) ||
			   !str_is_unsafe(code)) {
			r = buf_add(buf, at, length);
		} else if (code == '\n') {
			r = buf_add_text(buf, "\\n");
		} else if (code < 0x100) {
			r = buf_printf(buf, "\\x%02x", code);
		} else {
			r = buf_printf(buf, "\\u{%x}", code);
		}
	}
	return r;
}
