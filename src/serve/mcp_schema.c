/* See mcp_schema.h. */
#include "serve/mcp_schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

static const struct {
	const char *name;  /* in a schema */
	const char *words; /* in a sentence */
} types[] = {
	[MCP_STRING] = { "string", "a text" },
	[MCP_INTEGER] = { "integer", "a whole number" },
	[MCP_BOOLEAN] = { "boolean", "true or false" },
	[MCP_STRINGS] = { "array", "a list of texts" },
	[MCP_OBJECTS] = { "array", "a list" },
};

static json_t *schema_of_field(const struct mcp_field *field)
{
	json_t *schema = json_pack("{s:s}", "type", types[field->type].name);

	if (field->what)
		json_object_set_new(schema, "description", json_string(field->what));
	if (field->type == MCP_INTEGER)
		json_object_set_new(schema, "minimum", json_integer(field->min));
	if (field->max > 0)
		json_object_set_new(schema, field->type == MCP_STRING ? "maxLength" : "maximum",
				    json_integer(field->max));
	if (field->type == MCP_STRINGS)
		json_object_set_new(schema, "items", json_pack("{s:s}", "type", "string"));
	if (field->type == MCP_OBJECTS)
		json_object_set_new(schema, "items", mcp_schema_of(field->of));
	return schema;
}

json_t *mcp_schema_of(const struct mcp_field *fields)
{
	json_t *properties = json_object(), *required = json_array();
	json_t *schema = json_pack("{s:s}", "type", "object");

	for (; fields->name; fields++) {
		json_object_set_new(properties, fields->name, schema_of_field(fields));
		if (fields->is_required)
			json_array_append_new(required, json_string(fields->name));
	}
	json_object_set_new(schema, "properties", properties);
	if (json_array_size(required) > 0)
		json_object_set(schema, "required", required);
	json_object_set_new(schema, "additionalProperties", json_false());
	json_decref(required);
	return schema;
}

/* ---- arguments ------------------------------------------------------------------------------ */

static const struct mcp_field *find(const struct mcp_field *fields, const char *name)
{
	while (fields->name && !str_is(fields->name, name))
		fields++;
	return fields->name ? fields : NULL;
}

static bool are_strings(const json_t *list)
{
	size_t i;
	const json_t *item;

	json_array_foreach((json_t *)(uintptr_t)list, i, item) {
		if (!json_is_string(item) ||
		    strlen(json_string_value(item)) != json_string_length(item))
			return false;
	}
	return json_is_array(list);
}

static bool is_of_type(const struct mcp_field *field, const json_t *value)
{
	switch (field->type) {
	case MCP_STRING:
		return json_is_string(value);
	case MCP_INTEGER:
		return json_is_integer(value);
	case MCP_BOOLEAN:
		return json_is_boolean(value);
	case MCP_STRINGS:
		return are_strings(value);
	case MCP_OBJECTS:
		break;
	}
	return json_is_array(value);
}

/* Paths and patterns end at a NUL further down; only contents may hold one. */
static bool holds_nul(const struct mcp_field *field, const json_t *value)
{
	return field->type == MCP_STRING && field->max == 0 &&
	       strlen(json_string_value(value)) != json_string_length(value);
}

static int check_integer(const struct mcp_field *field, json_int_t n, char *ret_text, size_t size)
{
	if (n < field->min)
		snprintf(ret_text, size, "%s is at least %" PRId64, field->name, field->min);
	else if (field->max > 0 && n > field->max)
		snprintf(ret_text, size, "%s is at most %" PRId64, field->name, field->max);
	else
		return 0;
	return -1;
}

static int check_value(const struct mcp_field *field, const json_t *value, char *ret_text,
		       size_t size)
{
	if (!is_of_type(field, value)) {
		snprintf(ret_text, size, "%s is %s", field->name, types[field->type].words);
		return -1;
	}
	if (holds_nul(field, value)) {
		snprintf(ret_text, size, "%s holds a NUL character, which no name or command can",
			 field->name);
		return -1;
	}
	if (field->type == MCP_STRING && field->max > 0 &&
	    json_string_length(value) > (size_t)field->max) {
		snprintf(ret_text, size, "%s is longer than %" PRId64 " bytes", field->name,
			 field->max);
		return -1;
	}
	if (field->type == MCP_INTEGER)
		return check_integer(field, json_integer_value(value), ret_text, size);
	return 0;
}

static void list_names(const struct mcp_field *fields, char *ret_text, size_t size)
{
	for (; fields->name; fields++)
		snprintf(ret_text + strlen(ret_text), size - strlen(ret_text), " %s%s",
			 fields->name, fields->is_required ? "" : "?");
}

static int check_names(const struct mcp_field *fields, const json_t *args, char *ret_text,
		       size_t size)
{
	const char *name;
	const json_t *value;

	json_object_foreach((json_t *)(uintptr_t)args, name, value) {
		if (find(fields, name))
			continue;
		snprintf(ret_text, size, "there is no argument \"%.40s\"; there are:", name);
		list_names(fields, ret_text, size);
		return -1;
	}
	return 0;
}

int mcp_schema_check(const struct mcp_field *fields, const json_t *args, char *ret_text,
		     size_t size)
{
	if (args && !json_is_object(args)) {
		snprintf(ret_text, size, "the arguments are an object");
		return -1;
	}
	if (check_names(fields, args, ret_text, size) < 0)
		return -1;
	for (const struct mcp_field *field = fields; field->name; field++) {
		const json_t *value = json_object_get(args, field->name);

		if (!value || json_is_null(value)) {
			if (!field->is_required)
				continue;
			snprintf(ret_text, size, "%s is missing; the arguments are:", field->name);
			list_names(fields, ret_text, size);
			return -1;
		}
		if (check_value(field, value, ret_text, size) < 0)
			return -1;
	}
	return 0;
}
