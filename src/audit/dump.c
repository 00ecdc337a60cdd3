/*
 * JSON to text. json_dumps() ignores a failed allocation while it writes a key and returns
 * text that is no JSON; into a buffer of ours it cannot fail half-way. And it prints all numbers
 * with as many digits: for the shortest that read back the same they are printed once more.
 */
#include "audit/dump.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DUMP_FIRST = 1024, DUMP_TRIES = 3, REAL_DIGITS = 15, REAL_MOST = 17, REAL_TEXT = 48 };

int dump_json(json_t *value, size_t flags, char **ret_text, size_t *ret_size)
{
	size_t room = DUMP_FIRST;
	char *text = NULL, *more;

	/* 1.076 instead of 1.0760000000000001 where people read it: what we write are milliseconds
	 * to a thousandth. The canonical form keeps all digits, since records of today are checked
	 * by it for ever. */
	if (!(flags & JSON_COMPACT))
		flags |= JSON_REAL_PRECISION(REAL_DIGITS);
	for (int i = 0; i < DUMP_TRIES; i++) {
		size_t size;

		more = realloc(text, room + 1);
		if (!more)
			break;
		text = more;
		size = json_dumpb(value, text, room, flags | JSON_ENCODE_ANY);
		if (size == 0) {
			free(text);
			return -EILSEQ;
		}
		if (size <= room) {
			text[size] = 0;
			*ret_text = text;
			*ret_size = size;
			return 0;
		}
		room = size;
	}
	free(text);
	return -ENOMEM;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* As jansson has it: a point or an exponent, and no '+' or zero in front of that. */
static void as_json(char *text)
{
	char *exponent = strchr(text, 'e'), *digits;

	if (!exponent) {
		if (!strchr(text, '.'))
			memcpy(text + strlen(text), ".0", sizeof ".0");
		return;
	}
	exponent += exponent[1] == '-' ? 2 : 1;
	digits = exponent + strspn(exponent, "+0");
	memmove(exponent, digits, strlen(digits) + 1);
}

/* The number `text` of `size` bytes, shorter; how long it is then. One that cannot be, as it is. */
static size_t shorten_one(char *text, size_t size)
{
	char old[REAL_TEXT], shorter[REAL_TEXT];
	double value;

	if (size < REAL_DIGITS || size >= sizeof old)
		return size;
	memcpy(old, text, size);
	old[size] = 0;
	if (!strpbrk(old, ".e"))
		return size; /* an integer: it has all its digits */
	value = strtod(old, NULL);
	for (int digits = REAL_DIGITS; digits < REAL_MOST; digits++) {
		snprintf(shorter, sizeof shorter - sizeof ".0", "%.*g", digits, value);
		as_json(shorter);
		if (strtod(shorter, NULL) == value && strlen(shorter) < size) {
			memcpy(text, shorter, strlen(shorter));
			return strlen(shorter);
		}
	}
	return size;
}

/* Bytes of the string that begins at `text`, with its quotes. */
static size_t string_size(const char *text)
{
	size_t size = 1;

	while (text[size] && text[size] != '"')
		size += text[size] == '\\' && text[size + 1] ? 2 : 1;
	return size + (text[size] == '"');
}

void dump_shorten(char *text, size_t *size)
{
	char *to = text;

	for (char *at = text; *at;) {
		bool is_number = *at == '-' || (*at >= '0' && *at <= '9');
		size_t part = *at == '"'  ? string_size(at)
			      : is_number ? strspn(at, "0123456789+-.eE")
					  : strcspn(at, "\"-0123456789");
		size_t left = is_number ? shorten_one(at, part) : part;

		if (to != at)
			memmove(to, at, left);
		to += left;
		at += part;
	}
	*to = 0;
	*size = (size_t)(to - text);
}

int dump_short(json_t *value, char **ret_text, size_t *ret_size)
{
	int r = dump_json(value, DUMP_CANONICAL, ret_text, ret_size);

	if (r == 0)
		dump_shorten(*ret_text, ret_size);
	return r;
}
