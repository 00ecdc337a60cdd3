/*
 * Answers and what is asked of a request's header; see http.h. Every answer has the same headers: a
 * page may run no script but ours, nobody may frame it, nothing is sniffed or cached.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/errno_name.h"
#include "base/str.h"
#include "serve/http.h"
#include "serve/http_routes.h"

enum { DETAIL_MAX = 1024, VALUES_MAX = 65536, QUERY_MAX = 8192 };

static const struct {
	const char *name, *value;
} headers[] = {
	{ "Cache-Control", "no-store" },
	{ "Content-Security-Policy",
	  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	  "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
	  "require-trusted-types-for 'script'; trusted-types 'none'" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Referrer-Policy", "no-referrer" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
};

void reply_response(struct request *request, unsigned status, struct MHD_Response *response)
{
	request->is_answered = true;
	request->result = MHD_NO;
	if (!response)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
		MHD_add_response_header(response, headers[i].name, headers[i].value);
	if (request->is_last)
		MHD_add_response_header(response, "Connection", "close");
	request->result = MHD_queue_response(request->connection, status, response);
	MHD_destroy_response(response);
}

static struct MHD_Response *text_response(char *text, size_t size, const char *type)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);

	if (response)
		MHD_add_response_header(response, "Content-Type", type);
	else
		free(text);
	return response;
}

void reply_json(struct request *request, unsigned status, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(value);
	if (!text) {
		reply_problem(request, 500, "enomem", "there is no memory for the answer");
		return;
	}
	reply_response(request, status, text_response(text, strlen(text), "application/json"));
}

void reply_bytes(struct request *request, const char *type, const void *data, size_t size)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		size, (void *)(uintptr_t)(size ? data : ""), MHD_RESPMEM_MUST_COPY);

	if (response)
		MHD_add_response_header(response, "Content-Type", type);
	reply_response(request, 200, response);
}

void reply_nothing(struct request *request)
{
	reply_response(
		request, 204,
		MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT));
}

/* ---- problems -------------------------------------------------------------------------------- */

/* What a client needs beside a problem of this status. */
static void add_hints(const struct request *request, unsigned status, struct MHD_Response *response)
{
	char allow[64];

	if (status == 401)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"caisson\"");
	if (status == 405) {
		routes_allowed(request->target, allow, sizeof allow);
		MHD_add_response_header(response, "Allow", *allow ? allow : "GET, HEAD");
	}
	if (status == 429 || status == 503)
		MHD_add_response_header(response, "Retry-After", "1");
}

/* `detail` may hold what came from inside a wall; of what is no UTF-8 a '?' remains. */
static void send_problem(struct request *request, unsigned status, const char *code, char *detail)
{
	char type[96];
	struct MHD_Response *response = NULL;
	char *text = NULL;
	json_t *value;

	while (!str_is_utf8(detail, strlen(detail)))
		for (char *at = detail; *at; at++)
			*at = (unsigned char)*at < 0x80 ? *at : '?';
	snprintf(type, sizeof type, "urn:caisson:problem:%s", code);
	value = json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", type, "title", code, "status",
			  (int)status, "code", code, "detail", detail);
	text = value ? json_dumps(value, JSON_COMPACT) : NULL;
	json_decref(value);
	if (text)
		response = text_response(text, strlen(text), "application/problem+json");
	if (response)
		add_hints(request, status, response);
	reply_response(request, status, response);
}

void reply_problem(struct request *request, unsigned status, const char *code, const char *format,
		   ...)
{
	char detail[DETAIL_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(detail, sizeof detail, format, args);
	va_end(args);
	send_problem(request, status, code, detail);
}

/* By the name of a code. No line: what the server cannot help. */
static const struct {
	const char *code;
	unsigned status;
} statuses[] = {
	{ "e2big", 413 },
	{ "eacces", 403 },
	{ "eagain", 503 },
	{ "ebusy", 409 },
	{ "edquot", 507 },
	{ "eexist", 409 },
	{ "efbig", 413 },
	{ "einval", 400 },
	{ "eisdir", 409 },
	{ "eloop", 409 },
	{ "emlink", 409 },
	{ "emfile", 503 },
	{ "enametoolong", 400 },
	{ "enfile", 503 },
	{ "enoent", 404 },
	{ "enomem", 503 },
	{ "enospc", 507 },
	{ "enosys", 501 },
	{ "enotdir", 409 },
	{ "enotempty", 409 },
	{ "eopnotsupp", 501 },
	{ "enotsup", 501 },
	{ "eperm", 403 },
	{ "erofs", 403 },
	{ "esrch", 409 },
	{ "estale", 409 },
	{ "etimedout", 504 },
	{ "etxtbsy", 409 },
	{ "exdev", 409 },
	{ "not_supported", 501 },
	{ "invalid", 400 },
	{ "cancelled", 409 },
	{ "lost", 410 },
	{ "invalid_regex", 400 },
	{ "invalid_pattern", 400 },
	{ "match_limit", 422 },
	{ "TierUnavailable", 422 },
	{ "StrictModeUnavailable", 422 },
	{ "StrictModeRequired", 422 },
	{ "ApprovalRequired", 403 },
	{ "ApprovalDenied", 403 },
};

static unsigned status_of(const char *code)
{
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		if (str_is(statuses[i].code, code))
			return statuses[i].status;
	return 500;
}

void reply_error(struct request *request, const csn_error *err)
{
	const char *code = csn_code_name(err->code);

	reply_problem(request, status_of(code), code, "%s", err->text);
}

void reply_failure(struct request *request, const struct csn_error *err)
{
	const char *code = errno_name(err->code);

	reply_problem(request, status_of(code), code, "%s", err->text);
}

/* ---- what was asked -------------------------------------------------------------------------- */

const char *request_header(const struct request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

bool request_accepts(const struct request *request, const char *type)
{
	const char *accept = request_header(request, "Accept");
	size_t size = strlen(type);

	while (accept && *accept) {
		accept += strspn(accept, " \t,");
		if (strncasecmp(accept, type, size) == 0 &&
		    (accept[size] == 0 || strchr(" \t,;", accept[size])))
			return true;
		accept += strcspn(accept, ",");
	}
	return false;
}

/* In a query, as forms send it, a blank is a '+'. */
static const char *decode_query(struct request *request, const char *text, size_t size)
{
	char *copy = arena_copy(&request->arena, text, size);

	for (char *at = copy; at && *at; at++)
		*at = *at == '+' ? ' ' : *at;
	return copy ? routes_decode(&request->arena, copy, size) : NULL;
}

const char *request_query(struct request *request, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = request->query; *at; at += *at == '&') {
		size_t length = strcspn(at, "&");

		if (length > size && at[size] == '=' && memcmp(at, name, size) == 0)
			return decode_query(request, at + size + 1, length - size - 1);
		at += length;
	}
	return NULL;
}

/* How many values might it have? A body of brackets alone would take fifty times its size. */
static bool is_modest(const char *text, size_t size)
{
	size_t count = 0;
	bool is_quoted = false;

	for (size_t i = 0; i < size; i++) {
		if (is_quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			is_quoted = !is_quoted;
		else if (!is_quoted && memchr(",[{:", text[i], 4))
			count++;
	}
	return count <= VALUES_MAX;
}

json_t *request_json(struct request *request)
{
	const char *text = (const char *)buf_at(&request->body);
	size_t size = buf_size(&request->body);
	json_error_t error = { .line = 1 };
	json_t *value;

	if (size == 0)
		return json_object();
	if (!is_modest(text, size)) {
		reply_problem(request, 400, "invalid", "the body has more than %d values",
			      VALUES_MAX);
		return NULL;
	}
	value = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	if (value && json_is_object(value))
		return value;
	reply_problem(request, 400, "invalid",
		      "the body is no JSON object (line %d, column %d): %.120s", error.line,
		      error.column, value ? "another kind of value" : error.text);
	json_decref(value);
	return NULL;
}
