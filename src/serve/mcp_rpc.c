/*
 * JSON-RPC, and the methods of MCP that need no sandbox
 *
 * What is no message is answered with an error and changes nothing; what follows is as good as any.
 * Errors of the protocol are for the client's author. What a model did wrong is a result.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "serve/mcp.h"
#include "serve/mcp_lines.h"
#include "serve/mcp_text.h"
#include "serve/mcp_tool.h"

/* The newest first: it is offered to who asks for one that is not here. */
static const char *const versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
					"2024-10-07" };
/* The only one that has batches. */
static const char batch_version[] = "2025-03-26";

static const char *const levels[MCP_LEVELS] = { "debug", "info",     "notice", "warning",
						"error", "critical", "alert",  "emergency" };

/* ---- sending -------------------------------------------------------------------------------- */

static json_t *id_or_null(const json_t *id)
{
	return id ? json_incref((json_t *)(uintptr_t)id) : json_null();
}

void mcp_rpc_answer(struct mcp *mcp, const json_t *id, json_t *result)
{
	if (result)
		mcp_out_send(&mcp->out, json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id",
						  id_or_null(id), "result", result));
}

void mcp_rpc_error(struct mcp *mcp, const json_t *id, enum mcp_code code, const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	mcp_out_send(&mcp->out,
		     json_pack("{s:s, s:o, s:{s:i, s:o}}", "jsonrpc", "2.0", "id", id_or_null(id),
			       "error", "code", (int)code, "message",
			       mcp_string(text, strlen(text)))); /* it may be cut in a character */
}

void mcp_rpc_notify(struct mcp *mcp, const char *method, json_t *params)
{
	mcp_out_send(&mcp->out, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method,
					  "params", params));
}

void mcp_log(struct mcp *mcp, enum mcp_level level, json_t *data)
{
	if ((int)level < __atomic_load_n(&mcp->log_level, __ATOMIC_RELAXED)) {
		json_decref(data);
		return;
	}
	mcp_rpc_notify(mcp, "notifications/message",
		       json_pack("{s:s, s:s, s:o}", "level", levels[level], "logger", "caisson",
				 "data", data));
}

/* ---- methods -------------------------------------------------------------------------------- */

static const char *instructions(const struct mcp_config *config)
{
	if (config->is_read_only)
		return "Files are read in a sandbox; Sandbox says what it shows. Paths are the "
		       "sandbox's own.";
	return "Files and commands are in a sandbox: what it denies is named with what is allowed "
	       "instead, and trying again does not help. Paths are the sandbox's own; Sandbox says "
	       "what holds. Unless a note says otherwise, changes stay in a copy that Diff shows.";
}

static void on_initialize(struct mcp *mcp, const json_t *id, const json_t *params)
{
	const char *asked = json_string_value(json_object_get(params, "protocolVersion"));
	const char *version = versions[0];

	if (mcp->version) {
		mcp_rpc_error(mcp, id, MCP_INVALID_REQUEST, "initialize was called already");
		return;
	}
	if (!asked) {
		mcp_rpc_error(mcp, id, MCP_INVALID_PARAMS, "protocolVersion is missing; newest: %s",
			      version);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (str_is(versions[i], asked))
			version = versions[i];
	mcp->version = version;
	mcp_rpc_answer(mcp, id,
		       json_pack("{s:s, s:{s:{s:b}, s:{}, s:{}}, s:{s:s, s:s, s:s}, s:s}",
				 "protocolVersion", version, "capabilities", "tools", "listChanged",
				 0, "logging", "resources", "serverInfo", "name", "caisson",
				 "title", "Caisson", "version", csn_version(), "instructions",
				 instructions(mcp->config)));
}

static void on_ping(struct mcp *mcp, const json_t *id, const json_t *params)
{
	(void)params;
	mcp_rpc_answer(mcp, id, json_object());
}

static void on_set_level(struct mcp *mcp, const json_t *id, const json_t *params)
{
	const char *name = json_string_value(json_object_get(params, "level"));

	for (int i = 0; name && i < MCP_LEVELS; i++)
		if (str_is(levels[i], name)) {
			__atomic_store_n(&mcp->log_level, i, __ATOMIC_RELAXED);
			mcp_rpc_answer(mcp, id, json_object());
			return;
		}
	mcp_rpc_error(mcp, id, MCP_INVALID_PARAMS,
		      "level is one of debug, info, notice, warning, "
		      "error, critical, alert, emergency");
}

static void on_tools_list(struct mcp *mcp, const json_t *id, const json_t *params)
{
	json_t *list;

	if (json_object_get(params, "cursor")) {
		mcp_rpc_error(mcp, id, MCP_INVALID_PARAMS, "there is one page only, and no cursor");
		return;
	}
	list = json_array();
	for (const struct mcp_tool *tool = mcp_tools; tool->name; tool++)
		if (mcp_tool_is_shown(mcp->config, tool))
			json_array_append_new(list, mcp_tool_describe(tool));
	mcp_rpc_answer(mcp, id, json_pack("{s:o}", "tools", list));
}

/* Too many: the model can do something about it, so it is told. */
static void answer_busy(struct mcp *mcp, const json_t *id)
{
	char text[160];

	snprintf(text, sizeof text,
		 "busy: %d calls run and %d wait; wait for some of them, then try again",
		 MCP_WORKERS, MCP_WAITING);
	mcp_rpc_answer(mcp, id,
		       json_pack("{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text", text,
				 "isError", 1));
}

static json_t *progress_token(const json_t *params)
{
	json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");

	return json_is_string(token) || json_is_number(token) ? token : NULL;
}

static void on_tools_call(struct mcp *mcp, const json_t *id, const json_t *params)
{
	const char *name = json_string_value(json_object_get(params, "name"));
	const struct mcp_tool *tool = name ? mcp_tool_find(mcp->config, name) : NULL;
	struct mcp_job *job = tool ? calloc(1, sizeof *job) : NULL;
	enum mcp_jobs_said said;

	if (!tool) {
		mcp_rpc_error(mcp, id, MCP_INVALID_PARAMS,
			      name ? "there is no tool %.100s" : "name is missing: which tool",
			      name ? name : "");
		return;
	}
	if (!job) {
		answer_busy(mcp, id);
		return;
	}
	job->id = id_or_null(id);
	job->request = json_incref((json_t *)(uintptr_t)params);
	job->args = json_object_get(params, "arguments");
	job->token = progress_token(params);
	job->tool = tool;
	said = mcp_jobs_add(&mcp->jobs, job);
	if (said == MCP_JOB_TAKEN)
		return;
	mcp_job_free(job);
	if (said == MCP_JOB_BUSY)
		answer_busy(mcp, id);
	else
		mcp_rpc_error(mcp, id, MCP_INVALID_REQUEST, "a request with this id still runs");
}

static const struct {
	const char *name;
	void (*run)(struct mcp *mcp, const json_t *id, const json_t *params);
	bool is_early; /* may come before `initialize` */
} methods[] = {
	{ "initialize", on_initialize, true },
	{ "ping", on_ping, true },
	{ "tools/list", on_tools_list, false },
	{ "tools/call", on_tools_call, false },
	{ "logging/setLevel", on_set_level, false },
	{ "resources/list", mcp_resources_list, false },
	{ "resources/templates/list", mcp_resources_templates, false },
	{ "resources/read", mcp_resources_read, false },
};

/* ---- receiving ------------------------------------------------------------------------------ */

static void take_request(struct mcp *mcp, const json_t *id, const char *method,
			 const json_t *params)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		if (!str_is(methods[i].name, method))
			continue;
		if (mcp->version || methods[i].is_early)
			methods[i].run(mcp, id, params);
		else
			mcp_rpc_error(mcp, id, MCP_INVALID_REQUEST, "initialize comes before %s",
				      method);
		return;
	}
	mcp_rpc_error(mcp, id, MCP_NO_METHOD, "there is no method %.100s", method);
}

/* Those that are not known are none of ours: they are passed over, as JSON-RPC has it. */
static void take_notification(struct mcp *mcp, const char *method, const json_t *params)
{
	const json_t *id = json_object_get(params, "requestId");

	if (str_is(method, "notifications/cancelled") && id)
		mcp_jobs_cancel(&mcp->jobs, id);
}

static void take_message(struct mcp *mcp, const json_t *message)
{
	const json_t *id = json_object_get(message, "id");
	const json_t *params = json_object_get(message, "params");
	const json_t *method = json_object_get(message, "method");
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));
	bool is_id = json_is_string(id) || json_is_integer(id);

	if (!version || !str_is(version, "2.0"))
		mcp_rpc_error(mcp, is_id ? id : NULL, MCP_INVALID_REQUEST,
			      "a message is an object with \"jsonrpc\": \"2.0\"");
	else if (!method && is_id)
		return; /* an answer, to something that we did not ask */
	else if (!json_is_string(method))
		mcp_rpc_error(mcp, is_id ? id : NULL, MCP_INVALID_REQUEST, "method is a text");
	else if (params && !json_is_object(params))
		mcp_rpc_error(mcp, is_id ? id : NULL, MCP_INVALID_PARAMS, "params are an object");
	else if (is_id)
		take_request(mcp, id, json_string_value(method), params);
	else if (id)
		mcp_rpc_error(mcp, NULL, MCP_INVALID_REQUEST, "an id is a text or a whole number");
	else
		take_notification(mcp, json_string_value(method), params);
}

static void take_batch(struct mcp *mcp, const json_t *batch)
{
	size_t i;
	const json_t *message;

	if (!mcp->version || !str_is(mcp->version, batch_version) || json_array_size(batch) == 0) {
		mcp_rpc_error(mcp, NULL, MCP_INVALID_REQUEST,
			      "a message is an object; lists of them are not part of MCP %s",
			      mcp->version ? mcp->version : versions[0]);
		return;
	}
	/* Answers are sent as they come, a line each: a call that takes long holds up no other. */
	json_array_foreach((json_t *)(uintptr_t)batch, i, message)
		take_message(mcp, message);
}

void mcp_rpc_line(struct mcp *mcp, const char *text, size_t size)
{
	json_error_t why;
	json_t *message;

	if (strspn(text, " \t\r") >= size)
		return;
	if (!mcp_lines_is_bounded(text, size)) {
		mcp_rpc_error(mcp, NULL, MCP_INVALID_REQUEST,
			      "the message is too deep (64), or holds too many values (200000)");
		return;
	}
	message = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY,
			     &why);
	if (!message)
		mcp_rpc_error(mcp, NULL, MCP_PARSE_ERROR, "this line is no JSON: %s", why.text);
	else if (json_is_array(message))
		take_batch(mcp, message);
	else
		take_message(mcp, message);
	json_decref(message);
}
