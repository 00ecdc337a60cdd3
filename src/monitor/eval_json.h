/*
 * eval_json - values of evaluated code as JSON
 *
 * What crossed is plain already. Bytes that are no UTF-8 become U+FFFD, a zero byte in a key the
 * text \u0000, keys that are no text are printed, atoms but null, true and false are strings. Of
 * two keys that are the same then the later one counts.
 */
#pragma once

#include <jansson.h>

#include "medium/builtin.h"
#include "wire/term.h"

/* A text, as above; NULL: out of memory. */
json_t *eval_json_bytes(const uint8_t *data, size_t size);

/* A value; NULL: out of memory. */
json_t *eval_json(const struct term *term);

/* The same as text for free(), of at most `max` bytes; NULL: out of memory, or larger. */
char *eval_json_text(const struct term *term, size_t max);

/*
 * What a gate was called with, as one object: a list of values in the order of `params`, or
 * one map of names. -EINVAL with a sentence; -ENOMEM.
 */
int eval_json_args(const struct term *args, const char *const *params, json_t **ret_args,
		   struct csn_error *err);
