/*
 * A tree of terms as bytes; see term.h. For values that were decoded and go on to
 * somebody else (a Ref that is echoed, a binding that is kept): what was decoded comes
 * out as Erlang would have written it, pids and references byte for byte.
 */
#include <errno.h>
#include <string.h>

#include "wire/emit.h"
#include "wire/etf.h"
#include "wire/term.h"

static void encode(struct emit *emit, const struct term *term, unsigned depth);

static void fail(struct emit *emit)
{
	if (emit->error == 0)
		emit->error = -E2BIG;
}

static void encode_items(struct emit *emit, const struct term *term, unsigned depth)
{
	if ((term->count && depth == 0) || term->count > UINT32_MAX)
		fail(emit);
	for (size_t i = 0; i < term->count && emit->error == 0; i++)
		encode(emit, &term->items[i], depth - 1);
}

static void encode_atom(struct emit *emit, const struct term *term)
{
	size_t size = term->bytes.size;
	const uint8_t head[3] = { ETF_ATOM_UTF8, (uint8_t)(size >> 8), (uint8_t)size };
	const uint8_t small[2] = { ETF_SMALL_ATOM_UTF8, (uint8_t)size };

	if (size > UINT16_MAX)
		fail(emit);
	if (size <= UINT8_MAX)
		emit_raw(emit, small, sizeof small);
	else
		emit_raw(emit, head, sizeof head);
	emit_raw(emit, term->bytes.data, size);
}

static void encode_length(struct emit *emit, enum etf tag, size_t size)
{
	const uint8_t head[5] = { (uint8_t)tag, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
				  (uint8_t)(size >> 8), (uint8_t)size };

	if (size > UINT32_MAX)
		fail(emit);
	emit_raw(emit, head, sizeof head);
}

static void encode_bigint(struct emit *emit, const struct term *term)
{
	size_t digits = term->bytes.size - 1; /* the sign is not one */
	const uint8_t small[2] = { ETF_SMALL_BIG, (uint8_t)digits };

	if (digits <= UINT8_MAX)
		emit_raw(emit, small, sizeof small);
	else
		encode_length(emit, ETF_LARGE_BIG, digits);
	emit_raw(emit, term->bytes.data, term->bytes.size);
}

static void encode_bits(struct emit *emit, const struct term *term)
{
	encode_length(emit, ETF_BIT_BINARY, term->bytes.size);
	emit_raw(emit, &term->bits, 1);
	emit_raw(emit, term->bytes.data, term->bytes.size);
}

static bool is_bytes(const struct term *list)
{
	if (list->count == 0 || list->count > UINT16_MAX)
		return false;
	for (size_t i = 0; i < list->count; i++) {
		const struct term *item = &list->items[i];
		if (item->type != TERM_INT || item->integer < 0 || item->integer > UINT8_MAX)
			return false;
	}
	return true;
}

static void encode_string(struct emit *emit, const struct term *list)
{
	const uint8_t head[3] = { ETF_STRING, (uint8_t)(list->count >> 8), (uint8_t)list->count };
	uint8_t byte;

	emit_raw(emit, head, sizeof head);
	for (size_t i = 0; i < list->count; i++) {
		byte = (uint8_t)list->items[i].integer;
		emit_raw(emit, &byte, 1);
	}
}

static void encode_list(struct emit *emit, const struct term *list, unsigned depth)
{
	bool is_improper = list->type == TERM_IMPROPER;

	if (is_improper && list->count < 2) /* a tail of nothing: somebody built it by hand */
		fail(emit);
	if (!is_improper && is_bytes(list)) {
		encode_string(emit, list);
		return;
	}
	emit_list(emit, (uint32_t)(list->count - is_improper));
	encode_items(emit, list, depth);
	if (!is_improper)
		emit_nil(emit);
}

static void encode(struct emit *emit, const struct term *term, unsigned depth)
{
	switch (term->type) {
	case TERM_INT:
		emit_int(emit, term->integer);
		break;
	case TERM_BIGINT:
		encode_bigint(emit, term);
		break;
	case TERM_FLOAT:
		emit_float(emit, term->real);
		break;
	case TERM_ATOM:
		encode_atom(emit, term);
		break;
	case TERM_BINARY:
		emit_binary(emit, term->bytes.data, term->bytes.size);
		break;
	case TERM_BITS:
		encode_bits(emit, term);
		break;
	case TERM_OPAQUE:
		emit_raw(emit, term->bytes.data, term->bytes.size);
		break;
	case TERM_TUPLE:
		emit_tuple(emit, (uint32_t)term->count);
		encode_items(emit, term, depth);
		break;
	case TERM_MAP:
		emit_map(emit, (uint32_t)(term->count / 2));
		encode_items(emit, term, depth);
		break;
	case TERM_LIST:
	case TERM_IMPROPER:
		encode_list(emit, term, depth);
		break;
	}
}

void emit_term(struct emit *emit, const struct term *term)
{
	encode(emit, term, term_limits.depth);
}

int term_encode(struct buf *buf, const struct term *term)
{
	struct emit emit = { .buf = buf, .frame = buf_size(buf) };
	const uint8_t version = ETF_VERSION;

	emit_raw(&emit, &version, 1);
	emit_term(&emit, term);
	if (emit.error < 0)
		buf_truncate(buf, emit.frame);
	return emit.error;
}
