/*
 * mcp_image - is it an image that a model's service takes?
 *
 * An image stays in a conversation, and a service refuses all of one that holds an image which it
 * cannot read. So a file that only begins like one, or is cut off, is not passed on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MCP_IMAGE_SIDE = 8000 }; /* pixels that are taken */

struct mcp_image {
	const char *type;
	/* Does a file begin so? */
	bool (*is_begun)(const uint8_t *at, size_t size);
	/* Is all of it there: a size in pixels, and its end? */
	bool (*is_whole)(const uint8_t *at, size_t size);
};

/* The kind that a file with this beginning is; NULL: none. */
const struct mcp_image *mcp_image_of(const void *bytes, size_t size);
