/*
 * JSON to text. json_dumps() ignores a failed allocation while it writes a key and returns
 * text that is no JSON; into a buffer of ours it cannot fail half-way.
 */
#include "audit/dump.h"

#include <errno.h>
#include <stdlib.h>

enum { DUMP_FIRST = 1024, DUMP_TRIES = 3, REAL_DIGITS = 15 };

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
