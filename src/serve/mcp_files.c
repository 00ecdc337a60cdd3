/* Write and Edit. What is no match is explained: a model that knows where it went wrong needs one
 * more call, not five. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "serve/mcp_tool.h"

enum { LINES_TOLD = 10 };

int mcp_write(struct mcp_call *call)
{
	const char *path = mcp_arg(call, "path");
	csn_write_request request = { .call = mcp_call_id(call, 0),
				      .path = path,
				      .bytes = mcp_arg(call, "content"),
				      .size = mcp_arg_size(call, "content") };
	int r = csn_write(call->sandbox, &request, &call->err);

	if (r < 0)
		return r;
	mcp_say(call, "Wrote %zu bytes to %.500s.", request.size, path);
	mcp_give_text(call, "path", path);
	mcp_give_int(call, "bytes", request.size);
	return 0;
}

static uint64_t line_of(const char *text, const char *at)
{
	uint64_t line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

/* " at lines 3, 17, 40" of `what` in `text`; "" if it is not there. */
static void list_lines(const csn_bytes *text, const char *what, size_t size, char *ret_text,
		       size_t room)
{
	const char *from = text->data, *end = text->data ? text->data + text->size : NULL, *at;
	size_t used = 0;

	*ret_text = 0;
	for (int i = 0; from && from < end; i++) {
		at = memmem(from, (size_t)(end - from), what, size);
		if (!at || used + 32 > room)
			return;
		if (i == LINES_TOLD) {
			snprintf(ret_text + used, room - used, ", …");
			return;
		}
		used += (size_t)snprintf(ret_text + used, room - used, "%s %" PRIu64,
					 i == 0 ? " at line" : ",", line_of(text->data, at));
		from = at + size;
	}
}

/* Its first line, without what stands around it. */
static size_t first_line(const char **text, size_t size)
{
	size_t skip = strspn(*text, " \t\r\n"), length;

	if (skip >= size)
		return 0;
	*text += skip;
	length = strcspn(*text, "\n");
	while (length > 0 && strchr(" \t\r", (*text)[length - 1]))
		length--;
	return length;
}

static void explain_none(struct mcp_call *call, const csn_bytes *content, const char *old)
{
	char where[256];
	size_t length = first_line(&old, mcp_arg_size(call, "old_text"));

	list_lines(content, old, length, where, sizeof where);
	if (length > 0 && *where)
		mcp_note(call,
			 "Its first line stands%s, but indentation or what follows differs: Read "
			 "the file there and copy it exactly.",
			 where);
	else
		mcp_note(call,
			 "It has to match exactly, blanks and line ends too: Read the file again "
			 "and copy from it.");
}

static int say_edit(struct mcp_call *call, const csn_edit_result *result)
{
	const char *path = mcp_arg(call, "path"), *old = mcp_arg(call, "old_text");
	char where[256];

	mcp_give_text(call, "path", path);
	mcp_give_int(call, "occurrences", result->occurrences);
	mcp_give_bool(call, "changed", result->occurrences == 1);
	if (result->occurrences == 1) {
		list_lines(&result->content, mcp_arg(call, "new_text"),
			   mcp_arg_size(call, "new_text"), where, sizeof where);
		mcp_say(call, "Edited %.500s%s%s.", path, *where && !strchr(where, ',') ? "" : "",
			strchr(where, ',') ? "" : where);
		return 0;
	}
	call->is_error = true;
	mcp_say(call, "%" PRIu64 " occurrences of old_text in %.500s: nothing was changed.",
		result->occurrences, path);
	if (result->occurrences == 0) {
		explain_none(call, &result->content, old);
		return 0;
	}
	list_lines(&result->content, old, mcp_arg_size(call, "old_text"), where, sizeof where);
	mcp_note(call, "It has to be unique%s%s: give more of the lines around it.",
		 *where ? "; it stands" : "", where);
	return 0;
}

int mcp_edit(struct mcp_call *call)
{
	csn_edit_request request = { .call = mcp_call_id(call, 0),
				     .path = mcp_arg(call, "path"),
				     .old_text = mcp_arg(call, "old_text"),
				     .old_size = mcp_arg_size(call, "old_text"),
				     .new_text = mcp_arg(call, "new_text"),
				     .new_size = mcp_arg_size(call, "new_text") };
	csn_edit_result *result;
	int r;

	if (request.old_size == 0)
		return mcp_fail(call, CSN_INVALID,
				"old_text is empty: give what is to be replaced, or use Write");
	r = csn_edit(call->sandbox, &request, &result, &call->err);
	if (r < 0)
		return r;
	r = say_edit(call, result);
	csn_free(result);
	return r;
}
