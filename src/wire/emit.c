/*
 * Terms written straight into a buf; see emit.h. One function appends bytes and keeps
 * the first error, so the others are straight lines. Every value has one form here: the
 * one that Erlang itself writes (minor version 2).
 */
#include "wire/emit.h"

#include <errno.h>
#include <string.h>

#include "wire/etf.h"
#include "wire/frame.h"

enum { BIG_HEAD = 3 };

void emit_raw(struct emit *emit, const void *data, size_t size)
{
	if (emit->error == 0)
		emit->error = buf_add(emit->buf, data, size);
}

static void put_u32(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 24);
	at[1] = (uint8_t)(value >> 16);
	at[2] = (uint8_t)(value >> 8);
	at[3] = (uint8_t)value;
}

static void add_head(struct emit *emit, enum etf tag, uint32_t value)
{
	uint8_t head[5] = { (uint8_t)tag };

	put_u32(head + 1, value);
	emit_raw(emit, head, sizeof head);
}

struct emit emit_begin(struct buf *buf)
{
	static const uint8_t head[FRAME_HEAD + 1] = { [FRAME_HEAD] = ETF_VERSION };
	struct emit emit = { .buf = buf, .frame = buf_size(buf) };

	emit_raw(&emit, head, sizeof head);
	return emit;
}

void emit_drop(struct emit *emit)
{
	buf_truncate(emit->buf, emit->frame);
}

int emit_end_before(struct emit *emit, size_t tail)
{
	struct buf *buf = emit->buf;
	size_t size = buf_size(buf) - emit->frame + tail;

	if (emit->error == 0 && size > FRAME_HEAD + (size_t)FRAME_MAX)
		emit->error = -E2BIG; /* the reader would refuse it */
	if (emit->error < 0)
		emit_drop(emit);
	else
		put_u32(buf_at(buf) + emit->frame, (uint32_t)(size - FRAME_HEAD));
	return emit->error;
}

int emit_end(struct emit *emit)
{
	return emit_end_before(emit, 0);
}

void emit_tuple(struct emit *emit, uint32_t arity)
{
	const uint8_t head[2] = { ETF_SMALL_TUPLE, (uint8_t)arity };

	if (arity <= UINT8_MAX)
		emit_raw(emit, head, sizeof head);
	else
		add_head(emit, ETF_LARGE_TUPLE, arity);
}

void emit_map(struct emit *emit, uint32_t pairs)
{
	add_head(emit, ETF_MAP, pairs);
}

void emit_list(struct emit *emit, uint32_t count)
{
	if (count)
		add_head(emit, ETF_LIST, count);
}

void emit_nil(struct emit *emit)
{
	const uint8_t tag = ETF_NIL;

	emit_raw(emit, &tag, 1);
}

void emit_atom(struct emit *emit, const char *name)
{
	size_t size = strlen(name);
	const uint8_t head[2] = { ETF_SMALL_ATOM_UTF8, (uint8_t)size };

	if (size > UINT8_MAX && emit->error == 0)
		emit->error = -E2BIG;
	emit_raw(emit, head, sizeof head);
	emit_raw(emit, name, size);
}

/* Beyond 32 bits: sign and magnitude, little endian, without leading zeros. */
static void emit_big(struct emit *emit, int64_t value)
{
	uint8_t big[BIG_HEAD + 8] = { ETF_SMALL_BIG, 0, value < 0 };
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	for (; rest; rest >>= 8)
		big[BIG_HEAD + big[1]++] = (uint8_t)rest;
	emit_raw(emit, big, BIG_HEAD + (size_t)big[1]);
}

void emit_int(struct emit *emit, int64_t value)
{
	const uint8_t small[2] = { ETF_SMALL_INTEGER, (uint8_t)value };

	if (value >= 0 && value <= UINT8_MAX)
		emit_raw(emit, small, sizeof small);
	else if (value >= INT32_MIN && value <= INT32_MAX)
		add_head(emit, ETF_INTEGER, (uint32_t)value);
	else
		emit_big(emit, value);
}

void emit_binary_head(struct emit *emit, size_t size)
{
	if (size > UINT32_MAX && emit->error == 0)
		emit->error = -E2BIG;
	add_head(emit, ETF_BINARY, (uint32_t)size);
}

void emit_binary(struct emit *emit, const void *data, size_t size)
{
	emit_binary_head(emit, size);
	emit_raw(emit, data, size);
}

void *emit_space(struct emit *emit, size_t max)
{
	void *at;

	emit_binary_head(emit, 0);
	if (emit->error < 0)
		return NULL;
	at = buf_reserve(emit->buf, max);
	if (!at)
		emit->error = -E2BIG;
	return at;
}

void emit_space_end(struct emit *emit, size_t size)
{
	struct buf *buf = emit->buf;

	put_u32(buf_at(buf) + buf_size(buf) - 4, (uint32_t)size);
	buf_grew(buf, size);
}

void emit_text(struct emit *emit, const char *text)
{
	emit_binary(emit, text, strlen(text));
}

void emit_bool(struct emit *emit, int value)
{
	emit_atom(emit, value ? "true" : "false");
}

void emit_float(struct emit *emit, double value)
{
	uint8_t bytes[9] = { ETF_NEW_FLOAT };
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	put_u32(bytes + 1, (uint32_t)(bits >> 32));
	put_u32(bytes + 5, (uint32_t)bits);
	emit_raw(emit, bytes, sizeof bytes);
}

void emit_failed(struct emit *emit, int64_t ref, const char *reason, const char *detail)
{
	emit_tuple(emit, 4);
	emit_atom(emit, "failed");
	emit_int(emit, ref);
	emit_atom(emit, reason);
	emit_text(emit, detail);
}
