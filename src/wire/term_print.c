/*
 * Terms as Erlang would write them; see term.h. The values come from behind a wall and
 * the text goes to logs and terminals, so everything but printable ASCII is escaped, and
 * the work ends when the text is full.
 */
#include "wire/term.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct printer {
	char *text;
	size_t used, size; /* used < size always, one byte is for the NUL */
};

static void print(struct printer *p, const struct term *term, unsigned depth);

static bool is_full(const struct printer *p)
{
	return p->used + 1 >= p->size;
}

__attribute__((format(printf, 2, 3))) static void put(struct printer *p, const char *format, ...)
{
	size_t room = p->size - p->used;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(p->text + p->used, room, format, args);
	va_end(args);
	if (n > 0)
		p->used += (size_t)n < room ? (size_t)n : room - 1;
}

/* One character of UTF-8 that the decoder has checked; hand-built terms are cut at `size`. */
static size_t put_character(struct printer *p, const uint8_t *at, size_t size, char quote)
{
	uint32_t code = at[0];
	size_t length = 1;

	if (code >= 0xc0) {
		length = code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4;
		length = length < size ? length : size;
		code &= 0x7fu >> length;
		for (size_t i = 1; i < length; i++)
			code = code << 6 | (at[i] & 0x3fu);
	}
	if (code == (uint8_t)quote || code == '\\')
		put(p, "\\%c", (int)code);
	else if (code >= ' ' && code < 0x7f)
		put(p, "%c", (int)code);
	else
		put(p, "\\x{%" PRIx32 "}", code);
	return length;
}

static bool is_plain_atom(const uint8_t *data, size_t size)
{
	if (size == 0 || data[0] < 'a' || data[0] > 'z')
		return false;
	for (size_t i = 1; i < size; i++) {
		if (!data[i] || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_@",
					data[i]))
			return false;
	}
	return true;
}

static void print_atom(struct printer *p, const struct term *term)
{
	const uint8_t *data = term->bytes.data;
	size_t size = term->bytes.size;
	const char *quote = is_plain_atom(data, size) ? "" : "'";

	put(p, "%s", quote);
	for (size_t i = 0; i < size && !is_full(p);)
		i += put_character(p, data + i, size - i, '\'');
	put(p, "%s", quote);
}

static bool is_printable(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (data[i] != '\n' && data[i] != '\t' && (data[i] < ' ' || data[i] >= 0x7f))
			return false;
	}
	return size > 0;
}

static void print_bytes(struct printer *p, const struct term *term)
{
	const uint8_t *data = term->bytes.data;
	size_t size = term->bytes.size;
	size_t seen = size < p->size ? size : p->size; /* no more will be printed */
	bool is_text = term->type == TERM_BINARY && is_printable(data, seen);

	put(p, is_text ? "<<\"" : "<<");
	for (size_t i = 0; i < size && !is_full(p); i++) {
		if (is_text)
			put_character(p, data + i, 1, '"');
		else if (term->type == TERM_BITS && i + 1 == size)
			put(p, "%s%d:%d", i ? "," : "", data[i] >> (8 - term->bits), term->bits);
		else
			put(p, "%s%d", i ? "," : "", data[i]);
	}
	put(p, is_text ? "\">>" : ">>");
}

/* In base 16, which needs no division. */
static void print_bigint(struct printer *p, const struct term *term)
{
	put(p, "%s16#", term->bytes.data[0] ? "-" : "");
	for (size_t i = term->bytes.size - 1; i > 0 && !is_full(p); i--)
		put(p, i + 1 == term->bytes.size ? "%X" : "%02X", term->bytes.data[i]);
}

/* The fewest digits that read back as the same number, always with a point. */
static void print_float(struct printer *p, double value)
{
	char text[40], *exponent;
	int whole;

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	exponent = strpbrk(text, "e");
	whole = exponent ? (int)(exponent - text) : (int)strlen(text);
	if (strchr(text, '.'))
		put(p, "%s", text);
	else
		put(p, "%.*s.0%s", whole, text, text + whole);
}

static void print_items(struct printer *p, const struct term *term, unsigned depth)
{
	const char *between = ",";

	if (depth == 0) {
		put(p, "...");
		return;
	}
	for (size_t i = 0; i < term->count && !is_full(p); i++) {
		if (term->type == TERM_MAP && i % 2)
			between = "=>";
		else if (term->type == TERM_IMPROPER && i + 1 == term->count)
			between = "|";
		else
			between = ",";
		put(p, "%s", i ? between : "");
		print(p, &term->items[i], depth - 1);
	}
}

static void print_container(struct printer *p, const struct term *term, unsigned depth)
{
	bool is_list = term->type == TERM_LIST || term->type == TERM_IMPROPER;

	put(p, "%s", is_list ? "[" : term->type == TERM_MAP ? "#{" : "{");
	print_items(p, term, depth);
	put(p, is_list ? "]" : "}");
}

static void print(struct printer *p, const struct term *term, unsigned depth)
{
	switch (term->type) {
	case TERM_INT:
		put(p, "%" PRId64, term->integer);
		break;
	case TERM_BIGINT:
		print_bigint(p, term);
		break;
	case TERM_FLOAT:
		print_float(p, term->real);
		break;
	case TERM_ATOM:
		print_atom(p, term);
		break;
	case TERM_BINARY:
	case TERM_BITS:
		print_bytes(p, term);
		break;
	case TERM_OPAQUE:
		put(p, "<opaque>");
		break;
	case TERM_TUPLE:
	case TERM_LIST:
	case TERM_IMPROPER:
	case TERM_MAP:
		print_container(p, term, depth);
		break;
	}
}

void term_print(const struct term *term, char *ret_text, size_t size)
{
	struct printer printer = { .text = ret_text, .size = size };

	if (size == 0)
		return;
	ret_text[0] = 0;
	print(&printer, term, term_limits.depth);
	if (is_full(&printer) && size > 3)
		memcpy(ret_text + size - 4, "...", 4);
}
