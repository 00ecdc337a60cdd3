/*
 * gate_schema - what arguments of a gate may be: a small part of JSON Schema
 *
 * `type` (object, array, string, integer, number, boolean, null), `properties`, `required`,
 * `additionalProperties` (true or false), `items` (one schema), `enum`, `minimum`, `maximum`,
 * `minLength`, `maxLength`, `maxItems`; `description` and `title` say nothing. Any other word is
 * refused when the schema is read: one that nobody checks would read like a promise.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

/* Reads the text of a schema, for json_decref(). 0; -EINVAL with a sentence. */
int gate_schema_read(const char *text, json_t **ret_schema, struct csn_error *err);

/* Is `value` what it asks for? 0; -EINVAL with a sentence that names the place in it. A NULL schema
 * asks for nothing. */
int gate_schema_check(const json_t *schema, const json_t *value, struct csn_error *err);
