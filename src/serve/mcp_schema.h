/* mcp_schema - fields as JSON Schema, and arguments held against them */
#pragma once

#include <stddef.h>

#include <jansson.h>

#include "serve/mcp_tool.h"

/* The schema of an object with those fields. The caller's; NULL without memory. */
json_t *mcp_schema_of(const struct mcp_field *fields);

/* Are these arguments (NULL: none) what the fields say? If not, -1 and a sentence for the model. */
int mcp_schema_check(const struct mcp_field *fields, const json_t *args, char *ret_text,
		     size_t size);
