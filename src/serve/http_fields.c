/* Bodies by table; see http_fields.h. */
#include "serve/http_fields.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "client/code.h"

enum { ENTRIES_MAX = 4096 };

/* Up to here a double is the number that was written. */
#define EXACT_MAX 9007199254740992.0

struct taking {
	const struct field *field;
	struct arena *arena;
	uint8_t *into;
	csn_error *err;
};

static int refuse(const struct taking *t, const char *expected)
{
	return code_fail(t->err, CSN_INVALID, "body", "%s: expected %s", t->field->name, expected);
}

static int no_memory(const struct taking *t)
{
	return code_fail(t->err, CSN_ENOMEM, "body", "out of memory");
}

static void *place(const struct taking *t, size_t offset)
{
	return t->into + offset;
}

/* A whole number, as JSON Schema has it: 3.0 is one. */
static bool take_whole(const json_t *value, json_int_t *ret_number)
{
	double real = json_real_value(value);

	*ret_number = json_integer_value(value);
	if (json_is_integer(value))
		return true;
	if (!json_is_real(value) || real < -EXACT_MAX || real > EXACT_MAX)
		return false;
	*ret_number = (json_int_t)real;
	return (double)*ret_number == real;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* 0 to 63, or -1. */
static int sextet(char letter)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = letter ? strchr(letters, letter) : NULL;

	return at ? (int)(at - letters) : -1;
}

/* RFC 4648, section 4, with padding and nothing else between. */
static int decode_base64(const struct taking *t, const char *text, const char **ret_data,
			 size_t *ret_size)
{
	size_t length = strlen(text), size = 0, padding;
	char *data = arena_alloc(t->arena, length / 4 * 3 + 1);
	uint32_t bits = 0;

	if (!data)
		return no_memory(t);
	padding =
		length && text[length - 1] == '=' ? 1 + (length > 1 && text[length - 2] == '=') : 0;
	for (size_t i = 0; i < length; i++) {
		int six = i < length - padding ? sextet(text[i]) : 0;

		if (length % 4 || six < 0)
			return refuse(t, "base64 with its padding");
		bits = bits << 6 | (uint32_t)six;
		if (i % 4 != 3)
			continue;
		data[size++] = (char)(bits >> 16);
		data[size++] = (char)(bits >> 8);
		data[size++] = (char)bits;
	}
	*ret_data = data;
	*ret_size = size - padding;
	data[*ret_size] = 0;
	return 0;
}

static int take_bytes(const struct taking *t, const json_t *value, const char **ret_data,
		      size_t *ret_size)
{
	const json_t *coded = json_object_get(value, "base64");

	if (json_is_string(coded) && json_object_size(value) == 1)
		return decode_base64(t, json_string_value(coded), ret_data, ret_size);
	if (!json_is_string(value))
		return refuse(t, "a text, or {\"base64\": \"...\"}");
	*ret_size = json_string_length(value);
	*ret_data = arena_copy(t->arena, json_string_value(value), *ret_size);
	return *ret_data ? 0 : no_memory(t);
}

/* What becomes a C string: a NUL inside would cut it, and mean another path. */
static int take_word(const struct taking *t, const json_t *value, const char **ret_text)
{
	size_t size = 0;
	int r = take_bytes(t, value, ret_text, &size);

	return r == 0 && memchr(*ret_text, 0, size) ? refuse(t, "a text without a NUL") : r;
}

static int take_text(const struct taking *t, const json_t *value)
{
	return take_word(t, value, place(t, t->field->offset));
}

static int take_data(const struct taking *t, const json_t *value)
{
	return take_bytes(t, value, place(t, t->field->offset), place(t, t->field->size_offset));
}

/* An array for `count` texts and a NULL. */
static const char **list_of(const struct taking *t, size_t count, int *ret_code)
{
	const char **list = NULL;
	size_t most = t->field->max ? t->field->max : ENTRIES_MAX;

	*ret_code = count > most ? code_fail(t->err, CSN_INVALID, "body",
					     "%s: %zu entries, expected at most %zu",
					     t->field->name, count, most)
				 : 0;
	if (*ret_code == 0) {
		list = arena_array(t->arena, count + 1, sizeof *list);
		*ret_code = list ? 0 : no_memory(t);
	}
	return list;
}

static int take_texts(const struct taking *t, const json_t *value)
{
	size_t count = json_array_size(value);
	const char **list;
	int r;

	if (!json_is_array(value))
		return refuse(t, "a list of texts");
	list = list_of(t, count, &r);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = take_word(t, json_array_get(value, i), &list[i]);
	if (r == 0)
		memcpy(place(t, t->field->offset), &list, sizeof list);
	return r;
}

static int take_pair(const struct taking *t, const char *key, const json_t *value,
		     const char **ret_pair)
{
	const char *text = "";
	json_int_t number;
	int r = 0;

	if (!*key || strchr(key, '='))
		return refuse(t, "names without a '='");
	if (take_whole(value, &number))
		*ret_pair = arena_printf(t->arena, "%s=%lld", key, (long long)number);
	else if ((r = take_word(t, value, &text)) == 0)
		*ret_pair = arena_printf(t->arena, "%s=%s", key, text);
	return r < 0 ? r : *ret_pair ? 0 : no_memory(t);
}

static int take_pairs(const struct taking *t, const json_t *value)
{
	const char **list, *key;
	json_t *item;
	size_t i = 0;
	int r;

	if (!json_is_object(value))
		return refuse(t, "an object of texts");
	list = list_of(t, json_object_size(value), &r);
	json_object_foreach((json_t *)(uintptr_t)value, key, item)
		if (r == 0)
			r = take_pair(t, key, item, &list[i++]);
	if (r == 0)
		memcpy(place(t, t->field->offset), &list, sizeof list);
	return r;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int take_bool(const struct taking *t, const json_t *value)
{
	if (!json_is_boolean(value))
		return refuse(t, "true or false");
	*(bool *)place(t, t->field->offset) = json_is_true(value);
	return 0;
}

static const uint64_t most_of[FIELD_KINDS] = {
	[FIELD_U16] = UINT16_MAX, [FIELD_U32] = UINT32_MAX, [FIELD_U64] = INT64_MAX,
	[FIELD_SIZE] = INT64_MAX, [FIELD_INT] = INT32_MAX,
};

static int take_number(const struct taking *t, const json_t *value)
{
	uint64_t most = t->field->max ? t->field->max : most_of[t->field->kind];
	json_int_t number;
	void *to = place(t, t->field->offset);

	if (!take_whole(value, &number) || number < 0 || (uint64_t)number > most)
		return code_fail(t->err, CSN_INVALID, "body",
				 "%s: expected a whole number, at most %llu", t->field->name,
				 (unsigned long long)most);
	if (t->field->kind == FIELD_U16)
		*(uint16_t *)to = (uint16_t)number;
	else if (t->field->kind == FIELD_U32)
		*(uint32_t *)to = (uint32_t)number;
	else if (t->field->kind == FIELD_INT)
		*(int *)to = (int)number;
	else if (t->field->kind == FIELD_SIZE)
		*(size_t *)to = (size_t)number;
	else
		*(uint64_t *)to = (uint64_t)number;
	return 0;
}

static int skip(const struct taking *t, const json_t *value)
{
	(void)t;
	(void)value;
	return 0;
}

static int (*const takes[FIELD_KINDS])(const struct taking *t, const json_t *value) = {
	[FIELD_TEXT] = take_text,   [FIELD_BYTES] = take_data, [FIELD_TEXTS] = take_texts,
	[FIELD_PAIRS] = take_pairs, [FIELD_BOOL] = take_bool,  [FIELD_U16] = take_number,
	[FIELD_U32] = take_number,  [FIELD_U64] = take_number, [FIELD_SIZE] = take_number,
	[FIELD_INT] = take_number,  [FIELD_SKIP] = skip,
};

static const struct field *find(const struct field *fields, const char *name)
{
	for (; fields->name; fields++)
		if (str_is(fields->name, name))
			return fields;
	return NULL;
}

/* null is as if the key were not there: also where it has to be. */
static bool is_absent(const json_t *value)
{
	return !value || json_is_null(value);
}

int fields_take(const struct field *fields, const json_t *object, struct arena *arena, void *into,
		csn_error *err)
{
	struct taking t = { .arena = arena, .into = into, .err = err };
	const char *key;
	json_t *value;
	int r = 0;

	json_object_foreach((json_t *)(uintptr_t)object, key, value) {
		t.field = find(fields, key);
		if (!t.field)
			return code_fail(err, CSN_INVALID, "body",
					 "there is no key \"%.60s\" here; /v1/openapi.json lists "
					 "them",
					 key);
		r = json_is_null(value) ? 0 : takes[t.field->kind](&t, value);
		if (r < 0)
			return r;
	}
	for (; fields->name; fields++)
		if (fields->is_required && is_absent(json_object_get(object, fields->name)))
			return code_fail(err, CSN_INVALID, "body", "%s is missing: %s",
					 fields->name, fields->what);
	return 0;
}

/* ---- the schema ------------------------------------------------------------------------------ */

static json_t *list_schema(const struct field *field)
{
	return json_pack("{s:s, s:I, s:{s:s}}", "type", "array", "maxItems",
			 (json_int_t)(field->max ? field->max : ENTRIES_MAX), "items", "$ref",
			 "#/components/schemas/Text");
}

static json_t *field_schema(const struct field *field)
{
	json_t *schema;

	if (field->kind == FIELD_TEXT || field->kind == FIELD_BYTES)
		schema = json_pack("{s:s}", "$ref", "#/components/schemas/Text");
	else if (field->kind == FIELD_TEXTS)
		schema = list_schema(field);
	else if (field->kind == FIELD_PAIRS)
		schema = json_pack("{s:s, s:{s:[{s:s}, {s:s}]}}", "type", "object",
				   "additionalProperties", "anyOf", "$ref",
				   "#/components/schemas/Text", "type", "integer");
	else if (field->kind == FIELD_BOOL)
		schema = json_pack("{s:s}", "type", "boolean");
	else
		schema = json_pack("{s:s, s:i, s:I}", "type", "integer", "minimum", 0, "maximum",
				   (json_int_t)(field->max ? field->max : most_of[field->kind]));
	if (!field->is_required)
		schema = json_pack("{s:[o, {s:s}]}", "anyOf", schema, "type", "null");
	if (schema)
		json_object_set_new(schema, "description", json_string(field->what));
	return schema;
}

json_t *fields_schema(const struct field *fields)
{
	json_t *properties = json_object(), *required = json_array();

	for (; fields->name; fields++) {
		json_object_set_new(properties, fields->name, field_schema(fields));
		if (fields->is_required)
			json_array_append_new(required, json_string(fields->name));
	}
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties,
			 "required", required, "additionalProperties", 0);
}
