/* See mcp_text.h. */
#include "serve/mcp_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"

static const char replacement[] = "\xef\xbf\xbd";

/* What can be kept as it is from `at` on. */
static size_t plain(const unsigned char *at, size_t size)
{
	size_t i = 0, length;
	unsigned code;

	while (i < size) {
		length = at[i] == 0 ? 0 : at[i] < 0x80 ? 1 : str_decode(at + i, size - i, &code);
		if (length == 0)
			break;
		i += length;
	}
	return i;
}

json_t *mcp_string(const void *bytes, size_t size)
{
	_cleanup_buf_ struct buf text = { 0 };
	const unsigned char *at = bytes;
	size_t length = plain(at, size);

	if (length == size)
		return json_stringn_nocheck(size ? bytes : "", size);
	buf_init(&text, 3 * size + 1);
	while (size > 0) {
		if (buf_add(&text, at, length) < 0)
			return NULL;
		if (length < size && buf_add(&text, replacement, 3) < 0)
			return NULL;
		length += length < size;
		at += length;
		size -= length;
		length = plain(at, size);
	}
	return json_stringn_nocheck((const char *)buf_at(&text), buf_size(&text));
}

size_t mcp_text_torn(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	size_t back;

	for (back = 1; back <= 3 && back <= size; back++) {
		unsigned char byte = at[size - back];

		if (byte >= 0xc0)
			return (byte >= 0xf0 ? 4u : byte >= 0xe0 ? 3u : 2u) > back ? back : 0;
		if (byte < 0x80)
			return 0;
	}
	return 0;
}

/* ---- ends ----------------------------------------------------------------------------------- */

void mcp_ends_init(struct mcp_ends *ends, size_t max)
{
	*ends = (struct mcp_ends){ .max = max };
	buf_init(&ends->head, max / 2);
	buf_init(&ends->tail, max / 2);
}

void mcp_ends_done(struct mcp_ends *ends)
{
	buf_done(&ends->head);
	buf_done(&ends->tail);
}

/* Into the ring: at most its size, from the end of what came. */
static int add_tail(struct mcp_ends *ends, const uint8_t *at, size_t size)
{
	size_t room = buf_room(&ends->tail), ring = ends->max / 2, first;
	int r;

	if (room > 0) {
		first = size < room ? size : room;
		r = buf_add(&ends->tail, at, first);
		if (r < 0)
			return r;
		at += first;
		size -= first;
	}
	if (size > ring) {
		at += size - ring;
		size = ring;
	}
	while (size > 0) {
		first = size < ring - ends->at ? size : ring - ends->at;
		memcpy(buf_at(&ends->tail) + ends->at, at, first);
		ends->at = (ends->at + first) % ring;
		at += first;
		size -= first;
	}
	return 0;
}

int mcp_ends_add(struct mcp_ends *ends, const void *bytes, size_t size)
{
	size_t room = buf_room(&ends->head), first = size < room ? size : room;
	int r = buf_add(&ends->head, bytes, first);

	ends->total += size;
	return r < 0 || first == size
		       ? r
		       : add_tail(ends, (const uint8_t *)bytes + first, size - first);
}

/* The ring in order. */
static int unroll(const struct mcp_ends *ends, struct buf *ret_tail)
{
	size_t size = buf_size(&ends->tail);
	int r = 0;

	if (size > 0)
		r = buf_add(ret_tail, buf_at(&ends->tail) + ends->at, size - ends->at);
	return r < 0 || ends->at == 0 ? r : buf_add(ret_tail, buf_at(&ends->tail), ends->at);
}

/* Without the half of a line at its end, if something is left then. */
static size_t whole_lines(const uint8_t *at, size_t size)
{
	const uint8_t *end = size ? memrchr(at, '\n', size) : NULL;

	return end ? (size_t)(end - at) + 1 : size - mcp_text_torn(at, size);
}

/* How much of a line's end stands before the first whole one. */
static size_t half_line(const uint8_t *at, size_t size)
{
	const uint8_t *end = size ? memchr(at, '\n', size) : NULL;
	size_t skip = 0;

	if (end && (size_t)(end - at) + 1 < size)
		return (size_t)(end - at) + 1;
	while (skip < size && skip < 3 && (at[skip] & 0xc0) == 0x80)
		skip++;
	return skip;
}

int mcp_ends_take(struct mcp_ends *ends, struct buf *ret_text, uint64_t *ret_cut)
{
	_cleanup_buf_ struct buf tail = { 0 };
	size_t head = buf_size(&ends->head), skip = 0;
	bool is_cut = ends->total > head + buf_size(&ends->tail);
	int r;

	buf_init(&tail, ends->max);
	r = unroll(ends, &tail);
	if (is_cut && r == 0) {
		head = whole_lines(buf_at(&ends->head), head);
		skip = half_line(buf_at(&tail), buf_size(&tail));
	}
	*ret_cut = ends->total - head - (buf_size(&tail) - skip);
	if (r == 0 && head > 0)
		r = buf_add(ret_text, buf_at(&ends->head), head);
	if (r == 0 && is_cut)
		r = buf_printf(ret_text,
			       "%s[… %" PRIu64 " of %" PRIu64 " bytes are left out here …]\n",
			       head && buf_at(&ends->head)[head - 1] != '\n' ? "\n" : "", *ret_cut,
			       ends->total);
	if (r == 0 && buf_size(&tail) > skip)
		r = buf_add(ret_text, buf_at(&tail) + skip, buf_size(&tail) - skip);
	return r;
}
