/*
 * GET /v1/openapi.json: the table of routes as OpenAPI 3.1
 *
 * Bodies come from the tables of fields, answers from the table of shapes below; both are what the
 * server does, so the document cannot promise another thing. tests/serve/test_serve_openapi.py
 * compares answers with it.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "serve/http_records.h"
#include "serve/http_routes.h"

enum { WORD_MAX = 64 };

/*
 * What an answer holds: "name:type" with blanks between. A type is a JSON one, `Name` for another
 * shape, `text` for a string or base64; with `[]` a list of it, with `?` also null.
 */
static const struct {
	const char *name, *properties;
} shapes[] = {
	{ "Server", "version:string limits:object" },
	{ "Stats", "sandbox_id:text tier:text backend:text workspace:text? mode:text? means:text "
		   "started_ms:integer commands:integer idle_ms:integer idle_limit_ms:integer? "
		   "mem_bytes:integer? mem_limit:integer? processes:integer? "
		   "processes_limit:integer? cpu_us:integer? scratch_bytes:integer? "
		   "scratch_limit:integer?" },
	{ "Sandbox", "name:string state:string owner:string run_id:text? stats:Stats?" },
	{ "Sandboxes", "sandboxes:Sandbox[]" },
	{ "Output", "data:text total:integer cut_bytes:integer cut_at:integer" },
	{ "Violation", "certain:boolean expected:boolean count:integer time_ms:integer "
		       "port:integer" },
	{ "Exec", "reason:text clock:text? exit_code:integer? signal:integer? error:text? "
		  "stage:text? text:text? violations:Violation[] wall_us:integer cpu_us:integer "
		  "mem_peak_bytes:integer? scope:text? stdout_bytes:integer stderr_bytes:integer "
		  "output_cut_bytes:integer output:Output errors:Output detached:boolean" },
	{ "Read", "content:text" },
	{ "Edit", "occurrences:integer content:text?" },
	{ "Glob", "paths:text[] truncated:boolean skipped:integer" },
	{ "Match", "path:text line_number:integer line:text is_context:boolean" },
	{ "Grep", "matches:Match[] binary:text[] truncated:boolean skipped:integer" },
	{ "Stat", "type:text size:integer mode:integer mtime_ms:integer target:text?" },
	{ "Entry", "name:text type:text size:integer" },
	{ "List", "entries:Entry[] truncated:boolean" },
	{ "Done", "" },
	{ "Change", "path:text change:text kind:text? size:integer mode:integer guarded:boolean "
		    "reason:text? other:text?" },
	{ "Diff", "changes:Change[] truncated:boolean text:Output foreign:integer "
		  "foreign_names:text[]" },
	{ "Commit", "applied:Change[] left:Change[] truncated:boolean" },
	{ "Copied", "entries:integer bytes:integer torn:integer torn_name:text?" },
	{ "Command", "tag:text? state:text detached:boolean pid:integer exit_code:integer? "
		     "signal:integer? started_ms:integer bytes:integer cut_bytes:integer" },
	{ "Commands", "commands:Command[]" },
	{ "Logs", "output:Output errors:Output bytes:integer cut_bytes:integer running:boolean" },
	{ "Wait", "reached:boolean timed_out:boolean running:boolean exit_code:integer? "
		  "signal:integer? line:text?" },
	{ "Runs", "runs:Summary[]" },
	{ "Summary", "run_id:string status:string started:string" },
	{ "Run", "run_id:string status:string started:string result:object?" },
	{ "Result", "schema:string run_id:string" },
	{ "Verdict", "run_id:string good:boolean file:string line:integer reason:string" },
	{ "Problem", "type:string title:string status:integer code:string detail:string" },
};

/* ---- shapes ---------------------------------------------------------------------------------- */

static json_t *reference(const char *name)
{
	char path[WORD_MAX + 32];

	snprintf(path, sizeof path, "#/components/schemas/%s", name);
	return json_pack("{s:s}", "$ref", path);
}

/* "text", "Name", "integer" */
static json_t *plain_type(const char *type)
{
	if (str_is(type, "text"))
		return reference("Text");
	if (type[0] >= 'A' && type[0] <= 'Z')
		return reference(type);
	return json_pack("{s:s}", "type", type);
}

static json_t *type_schema(char *type)
{
	size_t size = strlen(type);
	bool is_nullable = type[size - 1] == '?';
	bool is_list;
	json_t *schema;

	if (is_nullable)
		type[--size] = 0;
	is_list = size > 2 && str_is(type + size - 2, "[]");
	if (is_list)
		type[size - 2] = 0;
	schema = plain_type(type);
	if (is_list)
		schema = json_pack("{s:s, s:o}", "type", "array", "items", schema);
	if (is_nullable)
		schema = json_pack("{s:[o, {s:s}]}", "anyOf", schema, "type", "null");
	return schema;
}

/* All that is named is there; more may be, for readers of a later version. */
static json_t *shape_schema(const char *properties)
{
	json_t *all = json_object(), *required = json_array();

	while (*properties) {
		size_t size = strcspn(properties, " ");
		char word[WORD_MAX], *colon;

		snprintf(word, sizeof word, "%.*s", (int)size, properties);
		colon = strchr(word, ':');
		*colon = 0;
		json_object_set_new(all, word, type_schema(colon + 1));
		json_array_append_new(required, json_string(word));
		properties += size;
		properties += strspn(properties, " ");
	}
	return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", all, "required",
			 required);
}

/* Bytes that are no UTF-8 go as base64: the one rule for every text. */
static json_t *text_schema(void)
{
	static const char coded[] = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";

	return json_pack("{s:[{s:s}, {s:s, s:{s:{s:s, s:s, s:s}}, s:[s], s:b}]}", "oneOf", "type",
			 "string", "type", "object", "properties", "base64", "type", "string",
			 "contentEncoding", "base64", "pattern", coded, "required", "base64",
			 "additionalProperties", 0);
}

static json_t *schemas(void)
{
	json_t *all = json_pack("{s:o}", "Text", text_schema());

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		json_object_set_new(all, shapes[i].name, shape_schema(shapes[i].properties));
	return all;
}

/* ---- routes ---------------------------------------------------------------------------------- */

static json_t *media(const char *type, json_t *schema)
{
	return json_pack("{s:{s:o}}", type, "schema", schema);
}

static void add_media(json_t *content, const char *type)
{
	json_object_set_new(content, type, json_pack("{s:{s:s}}", "schema", "type", "string"));
}

static json_t *answer_content(const struct route *route)
{
	json_t *content = json_object();

	if (route->schema)
		json_object_update_new(content,
				       media("application/json", reference(route->schema)));
	else if (route->answer == ANSWER_JSON)
		json_object_update_new(
			content, media("application/json", json_pack("{s:s}", "type", "object")));
	if (route->answer == ANSWER_BYTES)
		add_media(content, "application/octet-stream");
	/* Events have names, and each its own data: no schema of 3.1 says that. */
	if (route->answer == ANSWER_EVENTS || route->answer == ANSWER_EITHER)
		json_object_set_new(content, "text/event-stream", json_object());
	if (route->answer == ANSWER_TEXT)
		add_media(content, "text/plain");
	return content;
}

static json_t *responses(const struct route *route)
{
	json_t *worked = json_pack("{s:s}", "description", "It worked.");
	char status[16];

	if (route->answer != ANSWER_NOTHING)
		json_object_set_new(worked, "content", answer_content(route));
	snprintf(status, sizeof status, "%u", route->status ? route->status : 200);
	return json_pack("{s:o, s:{s:s, s:o}}", status, worked, "default", "description",
			 "A problem (RFC 9457).", "content",
			 media("application/problem+json", reference("Problem")));
}

/* An empty body is an object without keys. */
static json_t *request_body(const struct route *route)
{
	json_t *content = media("application/json", fields_schema(route->fields));
	bool is_required = route->body == BODY_BYTES;

	for (const struct field *field = route->fields; field->name; field++)
		is_required |= field->is_required;
	if (route->body == BODY_BYTES)
		add_media(content, "application/octet-stream");
	return json_pack("{s:b, s:o}", "required", is_required, "content", content);
}

static json_t *parameter(const char *name, const char *in, json_t *schema)
{
	return json_pack("{s:s, s:s, s:b, s:o}", "name", name, "in", in, "required",
			 str_is(in, "path"), "schema", schema);
}

/* A number from `least` to `most`; without one, a text. */
static json_t *query_schema(json_int_t least, json_int_t most)
{
	return most ? json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", least, "maximum",
				most)
		    : json_pack("{s:s, s:i}", "type", "string", "minLength", 1);
}

/* What stands in braces in the path, and what the query may hold. */
static json_t *parameters(const struct route *route)
{
	static const struct {
		const char *route, *name;
		json_int_t least, most;
	} queries[] = {
		{ "runs", "limit", 1, RECORDS_LIST_MAX },
		{ "runs", "before" },
		{ "write", "path" },
		{ "write", "mode", 0, 07777 },
		{ "events", "after", 0, INT64_MAX },
		{ "sandboxEvents", "after", 0, INT64_MAX },
	};
	json_t *list = json_array();

	for (const char *at = strchr(route->path, '{'); at; at = strchr(at + 1, '{')) {
		char name[WORD_MAX];

		snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
		json_array_append_new(
			list, parameter(name, "path", json_pack("{s:s}", "type", "string")));
	}
	for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
		if (str_is(queries[i].route, route->name))
			json_array_append_new(
				list, parameter(queries[i].name, "query",
						query_schema(queries[i].least, queries[i].most)));
	return list;
}

static json_t *operation(const struct route *route)
{
	json_t *value = json_pack("{s:s, s:s, s:o, s:o}", "operationId", route->name, "summary",
				  route->summary, "parameters", parameters(route), "responses",
				  responses(route));

	if (route->body != BODY_NONE)
		json_object_set_new(value, "requestBody", request_body(route));
	return value;
}

static json_t *paths(void)
{
	json_t *all = json_object();

	for (const struct route *route = routes; route->method; route++) {
		char method[8] = "";
		json_t *path = json_object_get(all, route->path);

		for (size_t i = 0; route->method[i] && i + 1 < sizeof method; i++)
			method[i] = (char)(route->method[i] | 0x20);
		if (!path) {
			path = json_object();
			json_object_set_new(all, route->path, path);
		}
		json_object_set_new(path, method, operation(route));
	}
	return all;
}

void openapi_show(struct request *request)
{
	reply_json(request, 200,
		   json_pack("{s:s, s:{s:s, s:s, s:s}, s:[{s:s}], s:[{s:[]}], s:o, s:{s:o, "
			     "s:{s:{s:s, s:s}}}}",
			     "openapi", "3.1.0", "info", "title", "Caisson", "version",
			     CAISSON_VERSION, "description",
			     "Sandboxes over HTTP; docs/serve.md walks through it.", "servers",
			     "url", "/", "security", "token", "paths", paths(), "components",
			     "schemas", schemas(), "securitySchemes", "token", "type", "http",
			     "scheme", "bearer"));
}

void server_show(struct request *request)
{
	const struct http_config *config = request->server->config;

	reply_json(request, 200,
		   json_pack("{s:s, s:{s:I, s:I, s:I, s:I}}", "version", CAISSON_VERSION, "limits",
			     "sandboxes", (json_int_t)config->max_sandboxes, "calls",
			     (json_int_t)config->max_calls, "body_bytes",
			     (json_int_t)config->max_body_bytes, "rate",
			     (json_int_t)config->max_rate));
}
