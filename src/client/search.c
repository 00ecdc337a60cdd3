/* Verbs that find things: glob and grep. The replies' own memory holds the texts. */
#include "client/call.h"
#include "client/result.h"

static int no_memory(void *result, csn_error *err)
{
	csn_free(result);
	return code_fail(err, CSN_ENOMEM, "search", "there is no memory for the result");
}

static int glob_result(struct call *call, csn_glob_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	const struct term *paths = term_get(&reply, "paths");
	csn_glob_result *result = result_new(call, sizeof *result);

	if (!result || result_texts(result, paths, &result->paths) < 0)
		return no_memory(result, err);
	result->count = paths->count;
	result->truncated = result_flag(&reply, "truncated");
	result->skipped = result_u64(&reply, "skipped");
	*ret_result = result;
	return 0;
}

CSN_API int csn_glob(csn_sandbox *sandbox, const csn_glob_request *request,
		     csn_glob_result **ret_result, csn_error *err)
{
	uint32_t timeout_ms;
	struct emit emit;
	struct call call;
	int r = call_begin(&call, sandbox, "glob", &request->call, err);

	if (r < 0)
		return r;
	call.more_ms = CALL_MORE_MS;
	timeout_ms = call_timeout(&call, &request->call);
	emit = call_frame(&call, 1u + !!request->cwd + !!request->limit + !!timeout_ms);
	call_put_text(&emit, "pattern", request->pattern ? request->pattern : "");
	call_put_text(&emit, "cwd", request->cwd);
	call_put_int(&emit, "limit", request->limit);
	call_put_int(&emit, "timeout_ms", timeout_ms);
	r = call_send(&call, &emit, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r == 0)
		r = glob_result(&call, ret_result, err);
	call_end(&call);
	return r;
}

static int grep_result(struct call *call, csn_grep_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	const struct term *list = term_get(&reply, "matches"), *binary = term_get(&reply, "binary");
	csn_grep_result *result = result_new(call, sizeof *result);
	csn_match *matches = result ? result_array(result, list, sizeof *matches) : NULL;

	if (!matches || result_texts(result, binary, &result->binary) < 0)
		return no_memory(result, err);
	for (size_t i = 0; i < list->count; i++)
		matches[i] = (csn_match){ result_text(&list->items[i], "path"),
					  result_u64(&list->items[i], "line_number"),
					  result_bytes(&list->items[i], "line"),
					  result_flag(&list->items[i], "is_context") };
	result->matches = matches;
	result->count = list->count;
	result->binary_count = binary->count;
	result->truncated = result_flag(&reply, "truncated");
	result->skipped = result_u64(&reply, "skipped");
	*ret_result = result;
	return 0;
}

static int send_grep(struct call *call, const csn_grep_request *request, csn_error *err)
{
	uint32_t timeout_ms = call_timeout(call, &request->call);
	struct emit emit =
		call_frame(call, 1u + !!request->path + !!request->glob + request->ignore_case +
					 !!request->limit + !!request->context + !!timeout_ms);

	call_put_text(&emit, "pattern", request->pattern ? request->pattern : "");
	call_put_text(&emit, "path", request->path);
	call_put_text(&emit, "glob", request->glob);
	call_put_int(&emit, "limit", request->limit);
	call_put_int(&emit, "context", request->context);
	call_put_int(&emit, "timeout_ms", timeout_ms);
	if (request->ignore_case) {
		emit_atom(&emit, "case_sensitive");
		emit_bool(&emit, false);
	}
	return call_send(call, &emit, err);
}

CSN_API int csn_grep(csn_sandbox *sandbox, const csn_grep_request *request,
		     csn_grep_result **ret_result, csn_error *err)
{
	struct call call;
	int r = call_begin(&call, sandbox, "grep", &request->call, err);

	if (r < 0)
		return r;
	call.more_ms = CALL_MORE_MS;
	r = send_grep(&call, request, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r == 0)
		r = grep_result(&call, ret_result, err);
	call_end(&call);
	return r;
}
