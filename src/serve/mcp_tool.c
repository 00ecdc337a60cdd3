/* See mcp_tool.h: a job from its arguments to its answer. */
#include "serve/mcp_tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/str.h"
#include "serve/mcp_schema.h"
#include "serve/mcp_text.h"

enum { NOTE_BYTES = 4096 };

/* ---- what a function says ------------------------------------------------------------------- */

static void add_content(struct mcp_call *call, json_t *text)
{
	json_array_append_new(call->content, json_pack("{s:s, s:o}", "type", "text", "text", text));
}

void mcp_text(struct mcp_call *call, const void *bytes, size_t size)
{
	add_content(call, mcp_string(bytes, size));
}

/* One line, whatever names stand in it: a name could hold what looks like another sentence. */
static void add_sentence(struct buf *buf, const char *format, va_list list)
{
	char piece[1024];
	size_t size;

	vsnprintf(piece, sizeof piece, format, list);
	size = strlen(piece);
	escape_add(buf, piece, size - mcp_text_torn(piece, size), false);
}

void mcp_say(struct mcp_call *call, const char *format, ...)
{
	_cleanup_buf_ struct buf text = { 0 };
	va_list list;

	buf_init(&text, NOTE_BYTES);
	va_start(list, format);
	add_sentence(&text, format, list);
	va_end(list);
	mcp_text(call, buf_at(&text), buf_size(&text));
}

void mcp_note(struct mcp_call *call, const char *format, ...)
{
	va_list list;

	if (buf_size(&call->note) > 0)
		buf_add_byte(&call->note, '\n');
	va_start(list, format);
	add_sentence(&call->note, format, list);
	va_end(list);
}

void mcp_give(struct mcp_call *call, const char *name, json_t *value)
{
	json_object_set_new(call->structured, name, value);
}

void mcp_give_bytes(struct mcp_call *call, const char *name, const void *bytes, size_t size)
{
	mcp_give(call, name, mcp_string(bytes, size));
}

void mcp_give_text(struct mcp_call *call, const char *name, const char *text)
{
	mcp_give_bytes(call, name, text, strlen(text));
}

void mcp_give_int(struct mcp_call *call, const char *name, uint64_t value)
{
	mcp_give(call, name, json_integer((json_int_t)(value & INT64_MAX)));
}

void mcp_give_bool(struct mcp_call *call, const char *name, bool value)
{
	mcp_give(call, name, json_boolean(value));
}

int mcp_fail(struct mcp_call *call, int code, const char *format, ...)
{
	va_list list;

	call->err.code = code;
	va_start(list, format);
	vsnprintf(call->err.text, sizeof call->err.text, format, list);
	va_end(list);
	return -code;
}

/* ---- arguments ------------------------------------------------------------------------------ */

const char *mcp_arg(const struct mcp_call *call, const char *name)
{
	return json_string_value(json_object_get(call->job->args, name));
}

size_t mcp_arg_size(const struct mcp_call *call, const char *name)
{
	return json_string_length(json_object_get(call->job->args, name));
}

int64_t mcp_arg_int(const struct mcp_call *call, const char *name, int64_t other)
{
	const json_t *value = json_object_get(call->job->args, name);

	return json_is_integer(value) ? json_integer_value(value) : other;
}

bool mcp_arg_is(const struct mcp_call *call, const char *name)
{
	return json_is_true(json_object_get(call->job->args, name));
}

csn_call mcp_call_id(struct mcp_call *call, uint32_t timeout_ms)
{
	return (csn_call){ .id = mcp_job_call(&call->mcp->jobs, call->job, call->sandbox),
			   .timeout_ms = timeout_ms };
}

/* ---- the table ------------------------------------------------------------------------------ */

bool mcp_tool_is_shown(const struct mcp_config *config, const struct mcp_tool *tool)
{
	if (tool->hints & MCP_IS_COMMIT && !config->may_commit)
		return false;
	return !config->is_read_only || tool->hints & MCP_FOR_READERS;
}

const struct mcp_tool *mcp_tool_find(const struct mcp_config *config, const char *name)
{
	for (const struct mcp_tool *tool = mcp_tools; tool->name; tool++)
		if (str_is(tool->name, name) && mcp_tool_is_shown(config, tool))
			return tool;
	return NULL;
}

json_t *mcp_tool_describe(const struct mcp_tool *tool)
{
	json_t *hints = json_pack("{s:s, s:b, s:b, s:b, s:b}", "title", tool->title, "readOnlyHint",
				  (tool->hints & MCP_READS) != 0, "destructiveHint",
				  (tool->hints & MCP_DESTROYS) != 0, "idempotentHint",
				  (tool->hints & MCP_IDEMPOTENT) != 0, "openWorldHint", 0);

	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "name", tool->name, "title", tool->title,
			 "description", tool->text, "inputSchema", mcp_schema_of(tool->takes),
			 "outputSchema", mcp_schema_of(tool->gives), "annotations", hints);
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Once for each sandbox: where changes go. */
static void introduce(struct mcp_call *call)
{
	const struct mcp_box_facts *facts = &call->facts;
	const char *at = call->mcp->config->at ? call->mcp->config->at : "the workspace";

	if (!facts->is_new)
		return;
	if (facts->is_next)
		mcp_note(call, "The sandbox before was lost; this is a new one, without what the "
			       "other had changed.");
	if (!str_is(facts->mode, "cow"))
		return;
	mcp_note(call,
		 "%s is a copy-on-write view of %s: changes stay in a copy and the original is "
		 "untouched. Diff shows them.",
		 at, facts->workspace);
	if (call->mcp->config->may_commit)
		mcp_note(call, "Commit writes them to the original.");
	if (*facts->id)
		mcp_note(call, "A person applies them with: caisson runs commit %s", facts->id);
}

/* What a model needs to find the right path after a wrong one. */
static void explain_places(struct mcp_call *call)
{
	const char *path = mcp_arg(call, "path"), *at = call->mcp->config->at;
	size_t length = strlen(call->facts.workspace);

	path = path ? path : mcp_arg(call, "cwd");
	if (!path || !at)
		return;
	if (length > 1 && strncmp(path, call->facts.workspace, length) == 0 &&
	    (path[length] == '/' || path[length] == 0) && !str_is(at, call->facts.workspace)) {
		mcp_note(call, "That is a path of the host; in here it is %s%.500s.", at,
			 path + length);
		return;
	}
	mcp_note(call,
		 "Paths are the sandbox's own: the workspace is %s, relative paths begin there, "
		 "and /tmp is scratch. Nothing else of the host is visible but its programs.",
		 at);
}

static bool is_about_paths(int code)
{
	return code == CSN_ENOENT || code == CSN_EINVAL || code == CSN_EACCES ||
	       code == CSN_ENOTDIR || code == CSN_EROFS || code == CSN_EPERM;
}

/* A failure as a result: the model reads it, and can do better. */
static void take_failure(struct mcp_call *call, int code)
{
	json_array_clear(call->content);
	json_decref(call->structured);
	call->structured = NULL;
	buf_clear(&call->note);
	call->is_error = true;
	mcp_say(call, "%s: %s (%s)", call->job->tool->name,
		*call->err.text ? call->err.text : "it failed", csn_code_name(code));
	if (is_about_paths(code))
		explain_places(call);
	if (code == CSN_LOST && *call->facts.id)
		mcp_note(call,
			 "The next call starts a new sandbox. What this one changed is kept: "
			 "caisson "
			 "runs diff %s",
			 call->facts.id);
}

static json_t *result_of(struct mcp_call *call)
{
	json_t *result;

	introduce(call);
	if (buf_size(&call->note) > 0) {
		json_t *note = mcp_string(buf_at(&call->note), buf_size(&call->note));

		if (call->structured)
			json_object_set(call->structured, "note", note);
		add_content(call, note);
	}
	result = json_pack("{s:O, s:b}", "content", call->content, "isError", call->is_error);
	if (call->structured)
		json_object_set(result, "structuredContent", call->structured);
	return result;
}

static int run(struct mcp_call *call)
{
	char why[400];
	int r;

	if (mcp_schema_check(call->job->tool->takes, call->job->args, why, sizeof why) < 0)
		return mcp_fail(call, CSN_INVALID, "%s", why);
	r = mcp_box_take(&call->mcp->box, &call->sandbox, &call->facts, &call->err);
	if (r < 0)
		return r;
	r = call->job->tool->run(call);
	mcp_job_call(&call->mcp->jobs, call->job, NULL);
	mcp_box_give(&call->mcp->box, r == -CSN_LOST);
	return r;
}

void mcp_tool_work(struct mcp *mcp, struct mcp_job *job)
{
	struct mcp_call call = {
		.mcp = mcp, .job = job, .content = json_array(), .structured = json_object()
	};
	int r = 0;

	buf_init(&call.note, NOTE_BYTES);
	if (!mcp_job_is_cancelled(&mcp->jobs, job))
		r = run(&call);
	if (r < 0)
		take_failure(&call, -r);
	/* Who cancelled does not wait: an answer would be one to nothing. */
	if (mcp_job_may_answer(&mcp->jobs, job))
		mcp_rpc_answer(mcp, job->id, result_of(&call));
	json_decref(call.content);
	json_decref(call.structured);
	buf_done(&call.note);
}
