/*
 * Schemas of gates; see gate_schema.h. The schema comes from a trusted file or the program that
 * opened the sandbox, the value from code inside: what is said of it is cut and escaped. Both are
 * walked to a bounded depth.
 */
#include "monitor/gate_schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { DEPTH_MAX = 16, PLACE_SIZE = 128, SHOWN_SIZE = 48 };

struct check {
	struct csn_error *err;
	char place[PLACE_SIZE]; /* "items[2].name" */
	int depth;
};

/* ---- types ----------------------------------------------------------------------------------- */

static bool is_number(const json_t *value)
{
	return json_is_number(value);
}

static bool is_object(const json_t *value)
{
	return json_is_object(value);
}

static bool is_array(const json_t *value)
{
	return json_is_array(value);
}

static bool is_string(const json_t *value)
{
	return json_is_string(value);
}

static bool is_integer(const json_t *value)
{
	return json_is_integer(value);
}

static bool is_boolean(const json_t *value)
{
	return json_is_boolean(value);
}

static bool is_null(const json_t *value)
{
	return json_is_null(value);
}

static bool is_anything(const json_t *value)
{
	return value != NULL;
}

static bool is_bound(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 0;
}

static const struct type {
	const char *name;
	bool (*is)(const json_t *value);
} types[] = {
	{ "object", is_object }, { "array", is_array },     { "string", is_string },
	{ "number", is_number }, { "integer", is_integer }, { "boolean", is_boolean },
	{ "null", is_null },
};

static const struct type *find_type(const json_t *name)
{
	for (size_t i = 0; json_is_string(name) && i < ARRAY_SIZE(types); i++)
		if (str_is(types[i].name, json_string_value(name)))
			return &types[i];
	return NULL;
}

static bool is_type(const json_t *value)
{
	return find_type(value) != NULL;
}

static bool is_names(const json_t *value)
{
	const json_t *name;
	size_t i;

	json_array_foreach(value, i, name)
		if (!json_is_string(name))
			return false;
	return json_is_array(value);
}

/* ---- the schema ------------------------------------------------------------------------------ */

static const struct {
	const char *word;
	bool (*is)(const json_t *value);
	const char *expected;
} words[] = {
	{ "type", is_type, "object, array, string, integer, number, boolean or null" },
	{ "properties", is_object, "a map of NAME: schema" },
	{ "required", is_names, "a list of names" },
	{ "additionalProperties", is_boolean, "true or false" },
	{ "items", is_object, "a schema" },
	{ "enum", is_array, "a list of values" },
	{ "minimum", is_number, "a number" },
	{ "maximum", is_number, "a number" },
	{ "minLength", is_bound, "a number of characters" },
	{ "maxLength", is_bound, "a number of characters" },
	{ "maxItems", is_bound, "a number of items" },
	{ "description", is_anything, "text" },
	{ "title", is_anything, "text" },
};

static int check_word(const char *word, const json_t *value, struct csn_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!str_is(words[i].word, word))
			continue;
		return words[i].is(value)
			       ? 0
			       : csn_fail(err, -EINVAL, "gates", "its schema's %s is not %s", word,
					  words[i].expected);
	}
	return csn_fail(err, -EINVAL, "gates",
			"its schema says %.40s, which is not checked here: leave it out (docs/"
			"gates.md lists the words)",
			word);
}

/* Depth: the schema's author is trusted with the depth of his file, 16, or of JSON's reader. */
static int check_schema(const json_t *schema, int depth, struct csn_error *err)
{
	const json_t *value, *part;
	const char *word, *name;
	int r = 0;

	if (!json_is_object(schema) || depth > DEPTH_MAX)
		return csn_fail(err, -EINVAL, "gates",
				"its schema has a part that is no map, or too deep");
	json_object_foreach((json_t *)schema, word, value) {
		r = check_word(word, value, err);
		if (r >= 0 && str_is(word, "items"))
			r = check_schema(value, depth + 1, err);
		if (r < 0)
			return r;
	}
	json_object_foreach(json_object_get(schema, "properties"), name, part) {
		r = check_schema(part, depth + 1, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int gate_schema_read(const char *text, json_t **ret_schema, struct csn_error *err)
{
	json_t *schema = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	int r = schema ? check_schema(schema, 0, err)
		       : csn_fail(err, -EINVAL, "gates", "its schema is no JSON object");

	if (r < 0) {
		json_decref(schema);
		return r;
	}
	*ret_schema = schema;
	return 0;
}

/* ---- a value --------------------------------------------------------------------------------- */

static int check_value(struct check *check, const json_t *schema, const json_t *value);

static int refuse(struct check *check, const char *what, const char *more)
{
	return csn_fail(check->err, -EINVAL, "gates", "%s %s%s",
			check->place[0] ? check->place : "the arguments", what, more);
}

/* Goes to a part of the value, and back: returns where its name begins. */
static size_t enter(struct check *check, const char *name, size_t index)
{
	size_t length = strlen(check->place), room = sizeof check->place - length;
	char shown[SHOWN_SIZE];

	if (!name) {
		snprintf(check->place + length, room, "[%zu]", index);
		return length;
	}
	str_escape(name, false, shown, sizeof shown);
	snprintf(check->place + length, room, "%s%s", length ? "." : "", shown);
	return length;
}

static int check_part(struct check *check, const json_t *schema, const json_t *value, size_t back)
{
	int r = check_value(check, schema, value);

	if (r >= 0)
		check->place[back] = 0;
	return r;
}

static int check_required(struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i, name)
		if (!json_object_get(value, json_string_value(name))) {
			enter(check, json_string_value(name), 0);
			return refuse(check, "is missing", "");
		}
	return 0;
}

static int check_object(struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *properties = json_object_get(schema, "properties"), *part;
	bool is_closed = json_is_false(json_object_get(schema, "additionalProperties"));
	int r = check_required(check, schema, value);
	const char *name;

	if (r < 0)
		return r;
	json_object_foreach((json_t *)value, name, part) {
		const json_t *own = json_object_get(properties, name);
		size_t back = enter(check, name, 0);

		if (!own && is_closed)
			return refuse(check, "is nothing that this gate knows", "");
		r = check_part(check, own, part, back);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_array(struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *most = json_object_get(schema, "maxItems"), *part;
	size_t i;

	if (most && json_array_size(value) > (size_t)json_integer_value(most))
		return refuse(check, "has too many items", "");
	json_array_foreach(value, i, part) {
		size_t back = enter(check, NULL, i);
		int r = check_part(check, json_object_get(schema, "items"), part, back);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Of UTF-8, which is all that JSON's reader lets through. */
static json_int_t count_characters(const char *text)
{
	json_int_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xC0) != 0x80;
	return count;
}

static int check_string(struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *least = json_object_get(schema, "minLength");
	const json_t *most = json_object_get(schema, "maxLength");
	json_int_t length = count_characters(json_string_value(value));

	if (most && length > json_integer_value(most))
		return refuse(check, "is too long", "");
	if (least && length < json_integer_value(least))
		return refuse(check, "is too short", "");
	return 0;
}

static int order(double a, double b)
{
	return (a > b) - (a < b);
}

/* A double holds no integer beyond 2^53 exactly, so the integer is not made one. */
static int order_mixed(json_int_t integer, double real)
{
	static const double end = 9223372036854775808.0; /* 2^63: beyond every integer */
	json_int_t whole;

	if (real >= end || real < -end)
		return real > 0 ? -1 : 1;
	whole = (json_int_t)real;
	if (integer != whole)
		return integer > whole ? 1 : -1;
	return order(0, real - (double)whole);
}

/* Below 0: `a` is less; above: more. */
static int order_numbers(const json_t *a, const json_t *b)
{
	json_int_t x = json_integer_value(a), y = json_integer_value(b);

	if (json_is_integer(a) && json_is_integer(b))
		return (x > y) - (x < y);
	if (json_is_integer(a))
		return order_mixed(x, json_real_value(b));
	if (json_is_integer(b))
		return -order_mixed(y, json_real_value(a));
	return order(json_real_value(a), json_real_value(b));
}

static int refuse_range(struct check *check, const char *what, const json_t *bound)
{
	char text[64];

	if (json_is_integer(bound))
		snprintf(text, sizeof text, "%s %" JSON_INTEGER_FORMAT, what,
			 json_integer_value(bound));
	else
		snprintf(text, sizeof text, "%s %.17g", what, json_real_value(bound));
	return refuse(check, "is out of range: ", text);
}

static int check_number(struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *least = json_object_get(schema, "minimum");
	const json_t *most = json_object_get(schema, "maximum");

	if (most && order_numbers(value, most) > 0)
		return refuse_range(check, "at most", most);
	if (least && order_numbers(value, least) < 0)
		return refuse_range(check, "at least", least);
	return 0;
}

static int check_type(struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *name = json_object_get(schema, "type");
	const struct type *type = find_type(name);

	return type && !type->is(value) ? refuse(check, "is not of type ", type->name) : 0;
}

static int check_enum(struct check *check, const json_t *schema, const json_t *value)
{
	const json_t *list = json_object_get(schema, "enum"), *one;
	size_t i;

	if (!list)
		return 0;
	json_array_foreach(list, i, one)
		if (json_equal(one, value))
			return 0;
	return refuse(check, "is none of the values that this gate takes", "");
}

static int check_value(struct check *check, const json_t *schema, const json_t *value)
{
	int r;

	if (!schema)
		return 0;
	if (check->depth >= DEPTH_MAX)
		return refuse(check, "is too deep", "");
	check->depth++;
	r = check_type(check, schema, value);
	if (r >= 0)
		r = check_enum(check, schema, value);
	if (r >= 0 && json_is_object(value))
		r = check_object(check, schema, value);
	else if (r >= 0 && json_is_array(value))
		r = check_array(check, schema, value);
	else if (r >= 0 && json_is_string(value))
		r = check_string(check, schema, value);
	else if (r >= 0 && json_is_number(value))
		r = check_number(check, schema, value);
	check->depth--;
	return r;
}

int gate_schema_check(const json_t *schema, const json_t *value, struct csn_error *err)
{
	struct check check = { .err = err };

	return check_value(&check, schema, value);
}
