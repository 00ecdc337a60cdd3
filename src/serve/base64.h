/* base64 - bytes as text (RFC 4648) */
#pragma once

#include <stddef.h>

/* The caller's, to free(); NULL without memory. */
char *base64_text(const void *bytes, size_t size);
