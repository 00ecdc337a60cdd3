/*
 * http_fields - what a request's body may hold, as a table: how it is decoded, and how it is told
 *
 * The same lines fill a struct of caisson.h and make the schema in the OpenAPI document. A text is
 * a JSON string, or {"base64": "..."} for bytes that are no UTF-8: what an answer gave can be sent
 * back. Unknown keys and wrong types are refused by name.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/arena.h"
#include "caisson.h"

enum field_kind {
	FIELD_TEXT,  /* const char *, no NUL inside */
	FIELD_BYTES, /* const void * at `offset`, size_t at `size_offset` */
	FIELD_TEXTS, /* const char *const *, ends with NULL */
	FIELD_PAIRS, /* an object as "KEY=VALUE" texts, ends with NULL */
	FIELD_BOOL,
	FIELD_U16,
	FIELD_U32,
	FIELD_U64,
	FIELD_SIZE,
	FIELD_INT,
	FIELD_SKIP, /* not decoded by the table */
	FIELD_KINDS,
};

struct field {
	const char *name; /* NULL ends a table */
	enum field_kind kind;
	size_t offset, size_offset;
	uint64_t max; /* of a number; most entries of a list, 0: 4096 */
	bool is_required;
	const char *what; /* half a sentence */
};

/* Fills the zeroed struct at `into` from an object; texts are in the arena. 0, or -CSN_INVALID with
 * a sentence that names the key, or -CSN_ENOMEM. */
int fields_take(const struct field *fields, const json_t *object, struct arena *arena, void *into,
		csn_error *err);

/* The object's schema (JSON Schema 2020-12). A new value. */
json_t *fields_schema(const struct field *fields);
