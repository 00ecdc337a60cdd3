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

/*
 * The canonical form with each number as the shortest text that reads back the same, as chains are
 * written: 0.0042 and not 0.0041999999999999997. Results as above.
 */
int dump_short(json_t *value, char **ret_text, size_t *ret_size);

/* The same of a text that dump_json() made in canonical form, in place; *size becomes its new one.
 */
void dump_shorten(char *text, size_t *size);
