/* See eval_json.h. Recursion goes as deep as a term may be nested, which its decoder bounds. */
#include "monitor/eval_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { KEY_TEXT = 256, TEXT_BYTES = 24 << 20 };

/* Bytes of the character at `at`; 0: it is none. */
static size_t character(const uint8_t *at, size_t room)
{
	size_t size = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;

	return size <= room && str_is_utf8(at, size) ? size : 0;
}

json_t *eval_json_bytes(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf clean;
	json_t *text = json_stringn(size ? (const char *)data : "", size);

	buf_init(&clean, TEXT_BYTES);
	if (text)
		return text;
	for (size_t i = 0; i < size;) {
		size_t n = character(data + i, size - i);

		if (n ? buf_add(&clean, data + i, n) < 0 : buf_add(&clean, "\357\277\275", 3) < 0)
			return NULL;
		i += n ? n : 1;
	}
	return json_stringn((const char *)buf_at(&clean), buf_size(&clean));
}

static json_t *list_json(const struct term *term)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < term->count; i++)
		if (json_array_append_new(list, eval_json(&term->items[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* JSON readers, ours among them, refuse a zero byte in a key or end the key there: `path\0x` would
 * be `path` to whoever reads it. It becomes the text \u0000. */
static int add_key(struct buf *key, const json_t *text)
{
	const char *at = json_string_value(text);
	size_t size = json_string_length(text);
	int r = 0;

	for (size_t i = 0; i < size && r >= 0; i++)
		r = at[i] ? buf_add_byte(key, (uint8_t)at[i]) : buf_add_text(key, "\\u0000");
	return r < 0 ? r : buf_add_byte(key, 0);
}

static json_t *key_text(const struct term *key)
{
	char printed[KEY_TEXT];

	if (key->type == TERM_BINARY || key->type == TERM_ATOM)
		return eval_json_bytes(key->bytes.data, key->bytes.size);
	term_print(key, printed, sizeof printed);
	return eval_json_bytes((const uint8_t *)printed, strlen(printed));
}

static int set_pair(json_t *object, const struct term *key, json_t *value)
{
	_cleanup_buf_ struct buf clean;
	json_t *text = key_text(key);
	int r;

	buf_init(&clean, TEXT_BYTES);
	r = text ? add_key(&clean, text) : -1;
	if (r >= 0)
		r = json_object_set(object, (const char *)buf_at(&clean), value);
	json_decref(text);
	json_decref(value);
	return r;
}

static json_t *map_json(const struct term *term)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i + 1 < term->count; i += 2)
		if (set_pair(object, &term->items[i], eval_json(&term->items[i + 1])) < 0) {
			json_decref(object);
			return NULL;
		}
	return object;
}

static json_t *atom_json(const struct term *term)
{
	if (term_is_atom(term, "nil") || term_is_atom(term, "null"))
		return json_null();
	if (term_is_atom(term, "true") || term_is_atom(term, "false"))
		return json_boolean(term_is_atom(term, "true"));
	return eval_json_bytes(term->bytes.data, term->bytes.size);
}

json_t *eval_json(const struct term *term)
{
	char printed[KEY_TEXT];

	switch (term->type) {
	case TERM_INT:
		return json_integer(term->integer);
	case TERM_FLOAT:
		return json_real(term->real);
	case TERM_ATOM:
		return atom_json(term);
	case TERM_BINARY:
		return eval_json_bytes(term->bytes.data, term->bytes.size);
	case TERM_LIST:
	case TERM_TUPLE:
		return list_json(term);
	case TERM_MAP:
		return map_json(term);
	default:
		term_print(term, printed, sizeof printed);
		return eval_json_bytes((const uint8_t *)printed, strlen(printed));
	}
}

char *eval_json_text(const struct term *term, size_t max)
{
	json_t *value = eval_json(term);
	char *text =
		value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

	json_decref(value);
	if (text && strlen(text) > max) {
		free(text);
		return NULL;
	}
	return text;
}

int eval_json_args(const struct term *args, const char *const *params, json_t **ret_args,
		   struct csn_error *err)
{
	bool is_list = args->type == TERM_LIST;
	const struct term *only = is_list && args->count == 1 ? &args->items[0] : args;
	json_t *object;

	if (only->type == TERM_MAP) {
		object = eval_json(only);
		*ret_args = object;
		return object ? 0 : csn_fail(err, -ENOMEM, "gates", "out of memory");
	}
	if (!is_list)
		return csn_fail(err, -EINVAL, "gates",
				"the arguments are neither a list nor a map");
	object = json_object();
	for (size_t i = 0; object && i < args->count; i++) {
		if (!params || !params[i]) {
			json_decref(object);
			return csn_fail(err, -EINVAL, "gates",
					params ? "too many arguments"
					       : "this gate takes one table, of its arguments' "
						 "names and values");
		}
		if (args->items[i].type != TERM_ATOM || !term_is_atom(&args->items[i], "nil"))
			json_object_set_new(object, params[i], eval_json(&args->items[i]));
	}
	*ret_args = object;
	return object ? 0 : csn_fail(err, -ENOMEM, "gates", "out of memory");
}
