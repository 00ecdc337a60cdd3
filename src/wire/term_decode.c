/*
 * Bytes to terms; see term.h. The bytes may come from code that wants to break us.
 *
 * Each tag is a row of a table: who decodes it and how wide its size field is, or why it
 * is refused. A count is believed only when that many bytes and that many terms are
 * left, and only then memory is taken; depth counts down in the decoder, so recursion
 * ends where the limit says. One value gets one form (see term.h).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "wire/etf.h"
#include "wire/term.h"

enum {
	ATOM_MAX = 255,      /* characters */
	REFERENCE_WORDS = 5, /* most that Erlang makes */
	OLD_FLOAT = 31,      /* bytes of text, padded with zeros */
};

const struct term_limits term_limits = { .size = 16 << 20, .depth = 64, .count = 262144 };

struct decoder {
	struct arena *arena;
	const uint8_t *start, *at, *end;
	unsigned depth;  /* levels left */
	size_t count;    /* terms left */
	bool is_lasting; /* binaries stay where they are */
	struct csn_error *err;
};

struct kind {
	int (*decode)(struct decoder *d, const struct kind *kind, struct term *ret);
	unsigned width;  /* bytes of the size field, or of what follows a node name */
	const char *why; /* of a refusal */
};

static int decode_term(struct decoder *d, struct term *ret);

static int refuse(struct decoder *d, const char *why)
{
	return csn_fail(d->err, -EBADMSG, "wire", "a term is refused at byte %zu: %s",
			(size_t)(d->at - d->start), why);
}

static int no_memory(struct decoder *d)
{
	return csn_fail(d->err, -ENOMEM, "wire", "a term needs more memory than it is given");
}

static size_t bytes_left(const struct decoder *d)
{
	return (size_t)(d->end - d->at);
}

static int take(struct decoder *d, uint64_t size, const uint8_t **ret)
{
	if (size > bytes_left(d))
		return refuse(d, "it is cut short");
	*ret = d->at;
	d->at += size;
	return 0;
}

static int take_uint(struct decoder *d, unsigned width, uint64_t *ret)
{
	const uint8_t *at = NULL;
	uint64_t value = 0;
	int r = take(d, width, &at);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < width; i++)
		value = value << 8 | at[i];
	*ret = value;
	return 0;
}

/* Takes a size field and that many bytes after it. */
static int take_sized(struct decoder *d, unsigned width, const uint8_t **ret, size_t *ret_size)
{
	uint64_t size = 0;
	int r = take_uint(d, width, &size);

	if (r == 0)
		r = take(d, size, ret);
	if (r == 0)
		*ret_size = (size_t)size;
	return r;
}

static int keep_bytes(struct decoder *d, enum term_type type, const void *data, size_t size,
		      struct term *ret)
{
	char *copy = arena_copy(d->arena, data, size);

	if (!copy)
		return no_memory(d);
	*ret = (struct term){ .type = type, .bytes = { (const uint8_t *)copy, size } };
	return 0;
}

/* Room for `count` terms, each of which takes a byte of input or more. */
static int claim_terms(struct decoder *d, uint64_t count, struct term **ret)
{
	struct term *items = NULL;

	if (count > bytes_left(d))
		return refuse(d, "it announces more elements than there are bytes");
	if (count > d->count)
		return refuse(d, "count: it has too many elements");
	items = arena_array(d->arena, (size_t)count, sizeof *items);
	if (!items)
		return no_memory(d);
	d->count -= (size_t)count;
	*ret = items;
	return 0;
}

/* Claims and decodes the elements of a container, one level down. */
static int decode_items(struct decoder *d, uint64_t count, struct term **ret)
{
	struct term *items = NULL;
	int r;

	if (count && d->depth == 0)
		return refuse(d, "depth: it is nested too deeply");
	r = claim_terms(d, count, &items);
	for (uint64_t i = 0; r == 0 && i < count; i++) {
		d->depth--;
		r = decode_term(d, &items[i]);
		d->depth++;
	}
	if (r == 0)
		*ret = items;
	return r;
}

static int decode_refused(struct decoder *d, const struct kind *kind, struct term *ret)
{
	(void)ret;
	return refuse(d, kind->why);
}

static int decode_integer(struct decoder *d, const struct kind *kind, struct term *ret)
{
	uint64_t value;
	int r = take_uint(d, kind->width, &value);

	if (r < 0)
		return r;
	*ret = (struct term){ .type = TERM_INT,
			      .integer = kind->width == 4 ? (int32_t)value : (int64_t)value };
	return 0;
}

/* Does the magnitude fit? INT64_MIN has one more than INT64_MAX. */
static bool is_int64(const uint8_t *digits, size_t size, bool is_negative, int64_t *ret)
{
	uint64_t value = 0;

	if (size > 8)
		return false;
	while (size--)
		value = value << 8 | digits[size];
	if (value > (uint64_t)INT64_MAX + is_negative)
		return false;
	*ret = (int64_t)(is_negative ? 0 - value : value);
	return true;
}

static int decode_big(struct decoder *d, const struct kind *kind, struct term *ret)
{
	const uint8_t *at = NULL;
	uint64_t size = 0;
	int64_t small;
	int r = take_uint(d, kind->width, &size);

	if (r == 0)
		r = take(d, size + 1, &at);
	if (r < 0)
		return r;
	if (at[0] > 1)
		return refuse(d, "the sign of an integer is neither 0 nor 1");
	while (size && at[size] == 0) /* leading zeros, at the end */
		size--;
	if (!is_int64(at + 1, (size_t)size, at[0], &small))
		return keep_bytes(d, TERM_BIGINT, at, (size_t)size + 1, ret);
	*ret = (struct term){ .type = TERM_INT, .integer = small };
	return 0;
}

static int keep_float(struct decoder *d, double value, struct term *ret)
{
	if (!isfinite(value))
		return refuse(d, "a float is not a finite number");
	*ret = (struct term){ .type = TERM_FLOAT, .real = value };
	return 0;
}

static int decode_float(struct decoder *d, const struct kind *kind, struct term *ret)
{
	uint64_t bits;
	double value;
	int r = take_uint(d, kind->width, &bits);

	if (r < 0)
		return r;
	memcpy(&value, &bits, sizeof value);
	return keep_float(d, value, ret);
}

/* Text as printf("%.20e") makes it; strtod alone would take "nan", "0x1p3" and blanks. */
static int decode_old_float(struct decoder *d, const struct kind *kind, struct term *ret)
{
	char text[OLD_FLOAT + 1] = "", *end;
	const uint8_t *at = NULL;
	double value;
	int r = take(d, kind->width, &at);

	if (r < 0)
		return r;
	memcpy(text, at, OLD_FLOAT);
	value = strtod(text, &end);
	if (end == text || *end || text[strspn(text, "0123456789+-.e")])
		return refuse(d, "the text of a float is none");
	return keep_float(d, value, ret);
}

static size_t utf8_characters(const uint8_t *data, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += (data[i] & 0xc0) != 0x80;
	return count;
}

static int decode_atom(struct decoder *d, const struct kind *kind, struct term *ret)
{
	const uint8_t *at = NULL;
	size_t size = 0;
	int r = take_sized(d, kind->width, &at, &size);

	if (r < 0)
		return r;
	if (utf8_characters(at, size) > ATOM_MAX)
		return refuse(d, "an atom is too long");
	if (!str_is_utf8(at, size))
		return refuse(d, "an atom is not UTF-8");
	return keep_bytes(d, TERM_ATOM, at, size, ret);
}

static int decode_latin1_atom(struct decoder *d, const struct kind *kind, struct term *ret)
{
	uint8_t text[2 * ATOM_MAX];
	const uint8_t *at = NULL;
	size_t size = 0, used = 0;
	int r = take_sized(d, kind->width, &at, &size);

	if (r < 0)
		return r;
	if (size > ATOM_MAX)
		return refuse(d, "an atom is too long");
	for (size_t i = 0; i < size; i++) {
		if (at[i] == 0)
			return refuse(d, "an atom has a zero byte");
		if (at[i] >= 0x80)
			text[used++] = (uint8_t)(0xc0 | at[i] >> 6);
		text[used++] = at[i] < 0x80 ? at[i] : (uint8_t)(0x80 | (at[i] & 0x3f));
	}
	return keep_bytes(d, TERM_ATOM, text, used, ret);
}

static int decode_binary(struct decoder *d, const struct kind *kind, struct term *ret)
{
	const uint8_t *at = NULL;
	size_t size = 0;
	int r = take_sized(d, kind->width, &at, &size);

	if (r < 0 || !d->is_lasting)
		return r < 0 ? r : keep_bytes(d, TERM_BINARY, at, size, ret);
	*ret = (struct term){ .type = TERM_BINARY, .bytes = { at, size } };
	return 0;
}

static int decode_bits(struct decoder *d, const struct kind *kind, struct term *ret)
{
	const uint8_t *at = NULL, *bits = NULL;
	uint64_t size = 0;
	uint8_t *last;
	int r = take_uint(d, kind->width, &size);

	if (r == 0)
		r = take(d, 1, &bits);
	if (r == 0)
		r = take(d, size, &at);
	if (r < 0)
		return r;
	if (size == 0 || *bits == 0 || *bits > 8)
		return refuse(d, "a bit string has an impossible last byte");
	r = keep_bytes(d, *bits == 8 ? TERM_BINARY : TERM_BITS, at, (size_t)size, ret);
	if (r == 0 && *bits < 8) {
		last = (uint8_t *)ret->bytes.data + size - 1;
		*last = (uint8_t)(*last & 0xff << (8 - *bits)); /* the rest is no value */
		ret->bits = *bits;
	}
	return r;
}

static int decode_tuple(struct decoder *d, const struct kind *kind, struct term *ret)
{
	struct term *items = NULL;
	uint64_t count;
	int r = take_uint(d, kind->width, &count);

	if (r == 0)
		r = decode_items(d, count, &items);
	if (r == 0)
		*ret = (struct term){ .type = TERM_TUPLE, .items = items, .count = (size_t)count };
	return r;
}

static int decode_nil(struct decoder *d, const struct kind *kind, struct term *ret)
{
	(void)d;
	(void)kind;
	*ret = (struct term){ .type = TERM_LIST };
	return 0;
}

static int decode_string(struct decoder *d, const struct kind *kind, struct term *ret)
{
	struct term *items = NULL;
	uint64_t count;
	int r = take_uint(d, kind->width, &count);

	if (r == 0)
		r = claim_terms(d, count, &items);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < count; i++)
		items[i] = (struct term){ .type = TERM_INT, .integer = *d->at++ };
	*ret = (struct term){ .type = TERM_LIST, .items = items, .count = (size_t)count };
	return 0;
}

static int decode_list(struct decoder *d, const struct kind *kind, struct term *ret)
{
	struct term *items = NULL;
	const struct term *tail;
	uint64_t count;
	int r = take_uint(d, kind->width, &count);

	if (r == 0)
		r = decode_items(d, count + 1, &items);
	if (r < 0)
		return r;
	tail = &items[count];
	*ret = (struct term){ .type = TERM_LIST, .items = items, .count = (size_t)count };
	if (tail->type == TERM_LIST && tail->count == 0)
		return 0;
	if (count == 0 || tail->type == TERM_LIST || tail->type == TERM_IMPROPER)
		return refuse(d, "the tail of a list is a list");
	ret->type = TERM_IMPROPER;
	ret->count++;
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	return term_compare(*(const struct term *const *)a, *(const struct term *const *)b);
}

/* Sorts the keys, so that equal ones are neighbours: a flood of keys costs n log n. */
static int sort_keys(struct decoder *d, struct term *map)
{
	size_t pairs = map->count / 2;
	const struct term **keys = arena_array(d->arena, pairs, sizeof(const struct term *));

	if (!keys)
		return no_memory(d);
	for (size_t i = 0; i < pairs; i++)
		keys[i] = &map->items[2 * i];
	qsort(keys, pairs, sizeof *keys, compare_keys);
	for (size_t i = 1; i < pairs; i++) {
		if (term_compare(keys[i - 1], keys[i]) == 0)
			return refuse(d, "a map has the same key twice");
	}
	map->sorted = keys;
	return 0;
}

static int decode_map(struct decoder *d, const struct kind *kind, struct term *ret)
{
	struct term *items = NULL;
	uint64_t pairs;
	int r = take_uint(d, kind->width, &pairs);

	if (r == 0)
		r = decode_items(d, 2 * pairs, &items);
	if (r < 0)
		return r;
	*ret = (struct term){ .type = TERM_MAP, .items = items, .count = (size_t)(2 * pairs) };
	return sort_keys(d, ret);
}

/* The node name of a pid, port or reference, then `size` bytes; kept with its tag. */
static int decode_node(struct decoder *d, const uint8_t *tag, size_t size, struct term *ret)
{
	const uint8_t *rest = NULL;
	struct term node;
	int r = 0;

	switch (d->at < d->end ? *d->at : 0) {
	case ETF_ATOM:
	case ETF_SMALL_ATOM:
	case ETF_ATOM_UTF8:
	case ETF_SMALL_ATOM_UTF8:
		r = decode_term(d, &node);
		break;
	default:
		r = refuse(d, "a node name is no atom");
	}
	if (r == 0)
		r = take(d, size, &rest);
	if (r == 0)
		r = keep_bytes(d, TERM_OPAQUE, tag, (size_t)(d->at - tag), ret);
	return r;
}

static int decode_opaque(struct decoder *d, const struct kind *kind, struct term *ret)
{
	return decode_node(d, d->at - 1, kind->width, ret);
}

static int decode_reference(struct decoder *d, const struct kind *kind, struct term *ret)
{
	const uint8_t *tag = d->at - 1;
	uint64_t words;
	int r = take_uint(d, 2, &words);

	if (r < 0)
		return r;
	if (words == 0 || words > REFERENCE_WORDS)
		return refuse(d, "a reference has an impossible length");
	return decode_node(d, tag, kind->width + 4 * (size_t)words, ret);
}

static const struct kind kinds[256] = {
	[ETF_SMALL_INTEGER] = { decode_integer, 1 },
	[ETF_INTEGER] = { decode_integer, 4 },
	[ETF_SMALL_BIG] = { decode_big, 1 },
	[ETF_LARGE_BIG] = { decode_big, 4 },
	[ETF_FLOAT] = { decode_old_float, OLD_FLOAT },
	[ETF_NEW_FLOAT] = { decode_float, 8 },
	[ETF_ATOM] = { decode_latin1_atom, 2 },
	[ETF_SMALL_ATOM] = { decode_latin1_atom, 1 },
	[ETF_ATOM_UTF8] = { decode_atom, 2 },
	[ETF_SMALL_ATOM_UTF8] = { decode_atom, 1 },
	[ETF_BINARY] = { decode_binary, 4 },
	[ETF_BIT_BINARY] = { decode_bits, 4 },
	[ETF_SMALL_TUPLE] = { decode_tuple, 1 },
	[ETF_LARGE_TUPLE] = { decode_tuple, 4 },
	[ETF_NIL] = { decode_nil, 0 },
	[ETF_STRING] = { decode_string, 2 },
	[ETF_LIST] = { decode_list, 4 },
	[ETF_MAP] = { decode_map, 4 },
	[ETF_PID] = { decode_opaque, 9 },
	[ETF_NEW_PID] = { decode_opaque, 12 },
	[ETF_PORT] = { decode_opaque, 5 },
	[ETF_NEW_PORT] = { decode_opaque, 8 },
	[ETF_V4_PORT] = { decode_opaque, 12 },
	[ETF_REFERENCE] = { decode_opaque, 5 },
	[ETF_NEW_REFERENCE] = { decode_reference, 1 },
	[ETF_NEWER_REFERENCE] = { decode_reference, 4 },
	/* would run the peer's code or inflate without bound; would need state across terms */
	[ETF_NEW_FUN] = { decode_refused, 0, "it is a function" },
	[ETF_FUN] = { decode_refused, 0, "it is a function" },
	[ETF_EXPORT] = { decode_refused, 0, "it is a function" },
	[ETF_COMPRESSED] = { decode_refused, 0, "it is a compressed term" },
	[ETF_DIST_HEADER] = { decode_refused, 0, "it has a distribution header" },
	[ETF_DIST_FRAGMENT] = { decode_refused, 0, "it has a distribution header" },
	[ETF_ATOM_CACHE] = { decode_refused, 0, "it refers to an atom cache" },
	[ETF_LOCAL] = { decode_refused, 0, "it is a local term" },
};

static int decode_term(struct decoder *d, struct term *ret)
{
	const struct kind *kind;
	uint64_t tag;
	int r = take_uint(d, 1, &tag);

	if (r < 0)
		return r;
	kind = &kinds[tag];
	return kind->decode ? kind->decode(d, kind, ret) : refuse(d, "its tag is unknown");
}

int term_decode(struct arena *arena, struct term_input input, const struct term_limits *limits,
		struct term *ret_term, struct csn_error *err)
{
	struct decoder d = { .arena = arena,
			     .start = input.data,
			     .at = input.data,
			     .is_lasting = input.is_lasting,
			     .err = err };
	struct term term;
	uint64_t version;
	int r;

	if (input.size > limits->size)
		return refuse(&d, "size: it is too large");
	if (limits->count == 0)
		return refuse(&d, "count: it has too many elements");
	d.end = d.start + input.size;
	d.depth = limits->depth;
	d.count = limits->count - 1;
	r = take_uint(&d, 1, &version);
	if (r < 0)
		return r;
	if (version != ETF_VERSION)
		return refuse(&d, "its version is not 131");
	r = decode_term(&d, &term);
	if (r < 0)
		return r;
	if (bytes_left(&d))
		return refuse(&d, "trailing bytes");
	*ret_term = term;
	return 0;
}
