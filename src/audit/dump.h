/* dump - a JSON value as text, or an error; never half of it */
#pragma once

#include <stddef.h>

#include <jansson.h>

enum { DUMP_CANONICAL = JSON_SORT_KEYS | JSON_COMPACT };

/*
 * The text of `value`, NUL-terminated, which the caller frees, and its size without the NUL.
 * -ENOMEM, or -EILSEQ where it holds a text that is not UTF-8.
 */
int dump_json(json_t *value, size_t flags, char **ret_text, size_t *ret_size);
