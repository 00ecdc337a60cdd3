/* mcp_base64 - bytes as base64 (RFC 4648), for images */
#pragma once

#include <stddef.h>

/* The caller's, to free(); NULL without memory. */
char *base64_text(const void *bytes, size_t size);
