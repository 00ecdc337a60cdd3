/* See mcp_image.h. Nothing is decoded: each format says its size and its end at a known place. */
#include "serve/mcp_image.h"

#include <string.h>

#include "base/str.h"

/* Do these bytes stand there? */
static bool has(const uint8_t *at, size_t size, size_t from, const char *what, size_t length)
{
	return size >= length && from <= size - length && memcmp(at + from, what, length) == 0;
}

static bool is_side(uint32_t pixels)
{
	return pixels > 0 && pixels <= MCP_IMAGE_SIDE;
}

static uint32_t big16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t big32(const uint8_t *at)
{
	return big16(at) << 16 | big16(at + 2);
}

static uint32_t little16(const uint8_t *at)
{
	return (uint32_t)at[1] << 8 | at[0];
}

/* ---- PNG ------------------------------------------------------------------------------------ */

enum { PNG_HEAD = 33, PNG_END = 12 };

static bool png_is_begun(const uint8_t *at, size_t size)
{
	return has(at, size, 0, "\x89PNG\r\n\x1a\n", 8);
}

static bool png_is_whole(const uint8_t *at, size_t size)
{
	return size >= PNG_HEAD + PNG_END && has(at, size, 12, "IHDR", 4) &&
	       is_side(big32(at + 16)) && is_side(big32(at + 20)) &&
	       has(at, size, size - 8, "IEND", 4);
}

/* ---- JPEG ----------------------------------------------------------------------------------- */

static bool jpeg_is_begun(const uint8_t *at, size_t size)
{
	return has(at, size, 0, "\xff\xd8\xff", 3);
}

/* SOF0 to SOF15, without the three of that range that are something else. */
static bool is_frame(uint8_t marker)
{
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
	       marker != 0xcc;
}

/* Segments as they follow each other, to the one that holds the size; its end is somewhere after.
 */
static bool jpeg_is_whole(const uint8_t *at, size_t size)
{
	size_t i = 2;

	while (size >= 9 && i < size - 9 && at[i] == 0xff) {
		if (is_frame(at[i + 1]))
			return is_side(big16(at + i + 5)) && is_side(big16(at + i + 7)) &&
			       memmem(at + i, size - i, "\xff\xd9", 2);
		/* 0xff may be repeated before a marker; a segment has at least its own length. */
		if (at[i + 1] == 0xff)
			i++;
		else if (big16(at + i + 2) < 2)
			return false;
		else
			i += 2 + big16(at + i + 2);
	}
	return false;
}

/* ---- GIF ------------------------------------------------------------------------------------ */

static bool gif_is_begun(const uint8_t *at, size_t size)
{
	return has(at, size, 0, "GIF87a", 6) || has(at, size, 0, "GIF89a", 6);
}

static bool gif_is_whole(const uint8_t *at, size_t size)
{
	return size > 14 && is_side(little16(at + 6)) && is_side(little16(at + 8)) &&
	       at[size - 1] == 0x3b;
}

/* ---- WebP ----------------------------------------------------------------------------------- */

static bool webp_is_begun(const uint8_t *at, size_t size)
{
	return has(at, size, 0, "RIFF", 4) && has(at, size, 8, "WEBPVP8", 7);
}

static bool webp_is_whole(const uint8_t *at, size_t size)
{
	return size >= 30 && (little16(at + 4) | little16(at + 6) << 16) <= size - 8;
}

/* ---- all ------------------------------------------------------------------------------------ */

static const struct mcp_image images[] = {
	{ "image/png", png_is_begun, png_is_whole },
	{ "image/jpeg", jpeg_is_begun, jpeg_is_whole },
	{ "image/gif", gif_is_begun, gif_is_whole },
	{ "image/webp", webp_is_begun, webp_is_whole },
};

const struct mcp_image *mcp_image_of(const void *bytes, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(images); i++)
		if (images[i].is_begun(bytes, size))
			return &images[i];
	return NULL;
}
