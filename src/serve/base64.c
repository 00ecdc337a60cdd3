/* See base64.h: three bytes are four letters, and '=' fills up the last four. */
#include "serve/base64.h"

#include <stdint.h>
#include <stdlib.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_text(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	char *text = malloc((size + 2) / 3 * 4 + 1), *to = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < size; i += 3) {
		uint32_t three = (uint32_t)at[i] << 16;

		three |= i + 1 < size ? (uint32_t)at[i + 1] << 8 : 0;
		three |= i + 2 < size ? (uint32_t)at[i + 2] : 0;
		*to++ = letters[three >> 18];
		*to++ = letters[three >> 12 & 63];
		*to++ = i + 1 < size ? letters[three >> 6 & 63] : '=';
		*to++ = i + 2 < size ? letters[three & 63] : '=';
	}
	*to = 0;
	return text;
}
