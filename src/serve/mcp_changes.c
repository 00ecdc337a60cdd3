/*
 * Diff and Commit: what the sandbox changed in its copy, and keeping it
 *
 * Commit takes no paths. A path that is named is written even where it makes other programs run
 * something (.git/hooks): to name one is a person's to do, with `caisson runs commit`.
 */
#include <inttypes.h>
#include <string.h>

#include "base/escape.h"
#include "serve/mcp_text.h"
#include "serve/mcp_tool.h"

enum { CHANGES = 500 };

static json_t *list_of(const csn_change *changes, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count && i < CHANGES; i++) {
		json_t *entry = json_pack("{s:o, s:s}", "path",
					  mcp_string(changes[i].path, strlen(changes[i].path)),
					  "change", changes[i].change);

		if (changes[i].reason)
			json_object_set_new(
				entry, "reason",
				mcp_string(changes[i].reason, strlen(changes[i].reason)));
		json_array_append_new(list, entry);
	}
	return list;
}

static void add_list(struct buf *text, const csn_change *changes, size_t count)
{
	for (size_t i = 0; i < count && i < CHANGES; i++) {
		const char *path = changes[i].path, *reason = changes[i].reason;

		/* A character that is escaped is up to four times as long. */
		if (buf_room(text) < 4 * (strlen(path) + (reason ? strlen(reason) : 0)) + 32)
			return;
		buf_printf(text, "%s ", changes[i].change);
		escape_add(text, path, strlen(path), false);
		if (reason) {
			buf_add_text(text, ": ");
			escape_add(text, reason, strlen(reason), false);
		}
		buf_add_byte(text, '\n');
	}
}

/* NULL-terminated, borrowed from the arguments; NULL: all. */
static const char **paths_of(const struct mcp_call *call, const char *ret_paths[65])
{
	const json_t *list = json_object_get(call->job->args, "paths");
	size_t count = json_array_size(list);

	if (count == 0)
		return NULL;
	for (size_t i = 0; i < count && i < 64; i++)
		ret_paths[i] = json_string_value(json_array_get(list, i));
	ret_paths[count < 64 ? count : 64] = NULL;
	return ret_paths;
}

int mcp_diff(struct mcp_call *call)
{
	const char *paths[65];
	csn_changes_request request = { .call = mcp_call_id(call, 0),
					.paths = paths_of(call, paths),
					.names_only = mcp_arg_is(call, "names_only"),
					.keep_bytes = MCP_TEXT_BYTES };
	csn_diff_result *result;
	int r = csn_diff(call->sandbox, &request, &result, &call->err);

	if (r < 0)
		return r;
	if (result->text.size > 0)
		mcp_text(call, result->text.data, result->text.size);
	if (result->text.cut_bytes > 0)
		mcp_note(call,
			 "[%" PRIu64
			 " bytes from the middle of the patch are left out; give paths]",
			 result->text.cut_bytes);
	if (result->count == 0)
		mcp_note(call, "Nothing was changed.");
	else
		mcp_note(call, "Changes: %zu%s", result->count,
			 result->truncated ? ", and more that are not shown" : "");
	mcp_give(call, "changes", list_of(result->changes, result->count));
	mcp_give_bytes(call, "patch", result->text.data ? result->text.data : "",
		       result->text.size);
	mcp_give_bool(call, "truncated",
		      result->truncated || result->text.cut_bytes > 0 || result->count > CHANGES);
	csn_free(result);
	return 0;
}

int mcp_commit(struct mcp_call *call)
{
	csn_changes_request request = { .call = mcp_call_id(call, 0),
					.dry_run = mcp_arg_is(call, "dry_run") };
	_cleanup_buf_ struct buf text = { 0 };
	csn_commit_result *result;
	int r = csn_commit(call->sandbox, &request, &result, &call->err);

	if (r < 0)
		return r;
	buf_init(&text, MCP_TEXT_BYTES);
	buf_printf(&text, request.dry_run ? "Would write %zu changes.\n" : "Wrote %zu changes.\n",
		   result->applied_count);
	add_list(&text, result->applied, result->applied_count);
	if (result->left_count > 0)
		buf_printf(&text, "Left out %zu:\n", result->left_count);
	add_list(&text, result->left, result->left_count);
	mcp_text(call, buf_at(&text), buf_size(&text));
	if (result->left_count > 0 && *call->facts.id)
		mcp_note(call,
			 "A person who wants what was left out names it: caisson runs commit %s "
			 "PATH",
			 call->facts.id);
	mcp_give(call, "applied", list_of(result->applied, result->applied_count));
	mcp_give(call, "left", list_of(result->left, result->left_count));
	csn_free(result);
	return 0;
}
