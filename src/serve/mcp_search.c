/* Glob and Grep: a line each, with counts, cut where it gets long. */
#include <inttypes.h>
#include <string.h>

#include "base/escape.h"
#include "serve/mcp_text.h"
#include "serve/mcp_tool.h"

enum { PATHS = 500, MATCHES = 200, LINE_BYTES = 500, ESCAPED = 4 /* times as long, at most */ };

/* What was found, as far as there is room; how many lines that are. */
static void say_found(struct mcp_call *call, struct buf *text)
{
	if (buf_size(text) > 0)
		mcp_text(call, buf_at(text), buf_size(text));
}

static void say_count(struct mcp_call *call, const char *what, size_t shown, bool is_truncated)
{
	if (shown == 0)
		mcp_note(call, "%s: none", what);
	else
		mcp_note(call, "%s: %zu%s", what, shown,
			 is_truncated ? " shown; there are more: narrow the pattern, or raise limit"
				      : "");
	mcp_give_int(call, "count", shown);
	mcp_give_bool(call, "truncated", is_truncated);
}

int mcp_glob(struct mcp_call *call)
{
	csn_glob_request request = { .call = mcp_call_id(call, 0),
				     .pattern = mcp_arg(call, "pattern"),
				     .cwd = mcp_arg(call, "path"),
				     .limit = (uint32_t)mcp_arg_int(call, "limit", PATHS) };
	_cleanup_buf_ struct buf text = { 0 };
	csn_glob_result *result;
	json_t *list;
	size_t i;
	int r = csn_glob(call->sandbox, &request, &result, &call->err);

	if (r < 0)
		return r;
	list = json_array();
	buf_init(&text, MCP_TEXT_BYTES);
	for (i = 0; i < result->count; i++) {
		const char *path = result->paths[i];

		if (buf_room(&text) < ESCAPED * strlen(path) + 1)
			break;
		escape_add(&text, path, strlen(path), false);
		buf_add_byte(&text, '\n');
		json_array_append_new(list, mcp_string(path, strlen(path)));
	}
	say_found(call, &text);
	mcp_give(call, "paths", list);
	say_count(call, "Paths", i, result->truncated || i < result->count);
	csn_free(result);
	return 0;
}

/* path:line:text, and with '-' for what only stands around it, as grep(1) does. */
static bool add_match(struct buf *text, json_t *list, const csn_match *match)
{
	char mark = match->is_context ? '-' : ':';
	size_t size = match->line.size < LINE_BYTES ? match->line.size : LINE_BYTES;
	bool is_cut = size < match->line.size;
	json_t *entry;

	if (is_cut)
		size -= mcp_text_torn(match->line.data, size);
	if (buf_room(text) < ESCAPED * strlen(match->path) + size + 40)
		return false;
	escape_add(text, match->path, strlen(match->path), false);
	buf_printf(text, "%c%" PRIu64 "%c", mark, match->line_number, mark);
	buf_add(text, match->line.data, size);
	buf_add_text(text, is_cut ? "…\n" : "\n");
	entry = json_pack("{s:o, s:I, s:o}", "path", mcp_string(match->path, strlen(match->path)),
			  "line", (json_int_t)match->line_number, "text",
			  mcp_string(match->line.data, size));
	if (match->is_context)
		json_object_set_new(entry, "context", json_true());
	json_array_append_new(list, entry);
	return true;
}

static void say_matches(struct mcp_call *call, const csn_grep_result *result)
{
	_cleanup_buf_ struct buf text = { 0 };
	json_t *list = json_array();
	size_t count = 0, i;

	buf_init(&text, MCP_TEXT_BYTES);
	for (i = 0; i < result->count && add_match(&text, list, &result->matches[i]); i++)
		count += !result->matches[i].is_context;
	say_found(call, &text);
	mcp_give(call, "matches", list);
	say_count(call, "Matching lines", count, result->truncated || i < result->count);
	for (i = 0; i < result->binary_count && i < 10; i++)
		mcp_note(call, "Binary file %s matches.", result->binary[i]);
}

int mcp_grep(struct mcp_call *call)
{
	const json_t *is_exact = json_object_get(call->job->args, "case_sensitive");
	csn_grep_request request = { .call = mcp_call_id(call, 0),
				     .pattern = mcp_arg(call, "pattern"),
				     .path = mcp_arg(call, "path"),
				     .glob = mcp_arg(call, "glob"),
				     .ignore_case = json_is_false(is_exact),
				     .limit = (uint32_t)mcp_arg_int(call, "limit", MATCHES),
				     .context = (uint32_t)mcp_arg_int(call, "context", 0) };
	csn_grep_result *result;
	int r = csn_grep(call->sandbox, &request, &result, &call->err);

	if (r < 0)
		return r;
	say_matches(call, result);
	csn_free(result);
	return 0;
}
