/*
 * A `data` frame before its bytes are there: see frame_data_begun() in frame.h. Only the form in
 * which emit.h writes one is known here; whoever writes another is read as a whole, as always.
 */
#include "wire/frame.h"

#include <string.h>

#include "wire/etf.h"

enum { BINARY_HEAD = 5 };

static size_t number(const uint8_t *at)
{
	return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

/* Bytes of an integer, 0: it is none of a Ref's. */
static size_t integer_size(const uint8_t *at)
{
	if (at[0] == ETF_SMALL_INTEGER)
		return 2;
	if (at[0] == ETF_INTEGER)
		return 5;
	return at[0] == ETF_SMALL_BIG && at[1] <= sizeof(int64_t) ? 3u + at[1] : 0;
}

/* Bytes of a frame up to those of its binary; 0: it is none, or has not come so far. */
static size_t head_size(const uint8_t *at, size_t have)
{
	static const uint8_t begin[] = {
		ETF_VERSION, ETF_SMALL_TUPLE, 4, ETF_SMALL_ATOM_UTF8, 4, 'd', 'a', 't', 'a'
	};
	size_t n = FRAME_HEAD + sizeof begin, ref;

	if (have < n + 2 || memcmp(at + FRAME_HEAD, begin, sizeof begin) != 0)
		return 0;
	ref = integer_size(at + n);
	n += ref;
	if (ref == 0 || have < n + 2 || at[n] != ETF_SMALL_ATOM_UTF8)
		return 0;
	n += 2u + at[n + 1];
	if (have < n + BINARY_HEAD || at[n] != ETF_BINARY || n + BINARY_HEAD > FRAME_DATA_HEAD)
		return 0;
	return n + BINARY_HEAD;
}

bool frame_data_begun(const struct buf *in, enum frame_side side, struct arena *arena,
		      struct frame_data *ret_data)
{
	uint8_t copy[FRAME_DATA_HEAD] = { 0 };
	const uint8_t *at = buf_at(in);
	size_t head = head_size(at, buf_size(in)), size;
	int index;

	if (head == 0)
		return false;
	size = number(at + head - 4);
	if (size == 0 || size > FRAME_PIECE || number(at) != head - FRAME_HEAD + size)
		return false;
	/* The same without its bytes, so that the tables judge the rest. */
	memcpy(copy, at, head - 4);
	index = frame_decode(arena,
			     (struct term_input){ copy + FRAME_HEAD, head - FRAME_HEAD, false },
			     side, &ret_data->term, NULL);
	if (index < 0)
		return false;
	ret_data->index = index;
	ret_data->head = head;
	ret_data->size = size;
	return true;
}
