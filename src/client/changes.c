/* What a monitor does itself: lend a path, list what a copy-on-write workspace changed, commit it.
 */
#include "client/call.h"
#include "client/kept.h"
#include "client/result.h"

CSN_API int csn_mount(csn_sandbox *sandbox, const csn_mount_request *request, csn_error *err)
{
	struct emit emit;
	struct call call;
	int r = call_begin(&call, sandbox, "mount", &request->call, err);

	if (r < 0)
		return r;
	emit = call_frame(&call, 3);
	call_put_text(&emit, "host", request->host ? request->host : "");
	call_put_text(&emit, "at", request->at ? request->at : "");
	emit_atom(&emit, "mode");
	emit_atom(&emit, request->writable ? "rw" : "ro");
	r = call_send(&call, &emit, err);
	if (r == 0)
		r = call_finish(&call, err);
	call_end(&call);
	return r;
}

static int send_request(struct call *call, const csn_changes_request *request, csn_error *err)
{
	const char *const *paths = request->paths;
	struct emit emit = call_frame(call, (uint32_t) !!paths + request->names_only +
						    request->force + request->dry_run);
	uint32_t count = 0;

	while (paths && paths[count])
		count++;
	if (paths)
		emit_atom(&emit, "paths");
	if (paths)
		emit_list(&emit, count);
	for (uint32_t i = 0; i < count; i++)
		emit_text(&emit, paths[i]);
	if (paths)
		emit_nil(&emit);
	call_put_true(&emit, "names_only", request->names_only);
	call_put_true(&emit, "force", request->force);
	call_put_true(&emit, "dry_run", request->dry_run);
	return call_send(call, &emit, err);
}

static const csn_change *read_changes(void *result, const struct term *list)
{
	csn_change *changes = result ? result_array(result, list, sizeof *changes) : NULL;

	for (size_t i = 0; changes && i < list->count; i++)
		changes[i] = (csn_change){ result_text(&list->items[i], "path"),
					   result_text(&list->items[i], "change"),
					   result_text(&list->items[i], "kind"),
					   result_u64(&list->items[i], "size"),
					   result_text(&list->items[i], "reason"),
					   (uint32_t)result_u64(&list->items[i], "mode"),
					   result_flag(&list->items[i], "guarded"),
					   result_text(&list->items[i], "other") };
	return changes;
}

static int no_memory(void *result, csn_error *err)
{
	csn_free(result);
	return code_fail(err, CSN_ENOMEM, "changes", "there is no memory for the result");
}

static int keep_text(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	(void)stream;
	return kept_add(data, bytes, size);
}

static int diff_result(struct call *call, const struct kept *text, csn_diff_result **ret_result,
		       csn_error *err)
{
	struct term reply = call->reply;
	const struct term *list = term_get(&reply, "changes");
	const struct term *names = term_get(&reply, "foreign_names");
	csn_diff_result *result = result_new(call, sizeof *result);
	const csn_change *changes = read_changes(result, list);

	if (!changes || kept_output(text, result_arena(result), &result->text) < 0)
		return no_memory(result, err);
	result->changes = changes;
	result->count = list->count;
	result->truncated = result_flag(&reply, "truncated");
	result->foreign = result_u64(&reply, "foreign");
	if (names && result_texts(result, names, &result->foreign_names) < 0)
		return no_memory(result, err);
	*ret_result = result;
	return 0;
}

CSN_API int csn_diff(csn_sandbox *sandbox, const csn_changes_request *request,
		     csn_diff_result **ret_result, csn_error *err)
{
	struct kept text;
	struct call call;
	int r = call_begin(&call, sandbox, "diff", &request->call, err);

	if (r < 0)
		return r;
	kept_init(&text, request->keep_bytes);
	call.sink = request->on_output ? request->on_output : keep_text;
	call.sink_data = request->on_output ? request->output_data : &text;
	r = send_request(&call, request, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r == 0)
		r = diff_result(&call, &text, ret_result, err);
	kept_done(&text);
	call_end(&call);
	return r;
}

static int commit_result(struct call *call, csn_commit_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	const struct term *applied = term_get(&reply, "applied"), *left = term_get(&reply, "left");
	csn_commit_result *result = result_new(call, sizeof *result);
	const csn_change *written = read_changes(result, applied);
	const csn_change *others = written ? read_changes(result, left) : NULL;

	if (!others)
		return no_memory(result, err);
	*result = (csn_commit_result){ written, applied->count, others, left->count,
				       result_flag(&reply, "truncated") };
	*ret_result = result;
	return 0;
}

CSN_API int csn_commit(csn_sandbox *sandbox, const csn_changes_request *request,
		       csn_commit_result **ret_result, csn_error *err)
{
	struct call call;
	int r = call_begin(&call, sandbox, "commit", &request->call, err);

	if (r < 0)
		return r;
	r = send_request(&call, request, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r == 0)
		r = commit_result(&call, ret_result, err);
	call_end(&call);
	return r;
}

/* ---- once more ------------------------------------------------------------------------------ */

static int send_two(struct call *call, const char *const keys[2], const char *const texts[2],
		    csn_error *err)
{
	struct emit emit = call_frame(call, (uint32_t) !!texts[0] + (uint32_t) !!texts[1]);

	for (int i = 0; i < 2; i++)
		if (texts[i])
			call_put_text(&emit, keys[i], texts[i]);
	return call_send(call, &emit, err);
}

static int copied_result(struct call *call, csn_copied **ret_copied, csn_error *err)
{
	struct term reply = call->reply;
	csn_copied *copied = result_new(call, sizeof *copied);

	if (!copied)
		return no_memory(copied, err);
	copied->entries = result_u64(&reply, "entries");
	copied->bytes = result_u64(&reply, "bytes");
	copied->torn = result_u64(&reply, "torn");
	copied->torn_name = result_text(&reply, "torn_name");
	*ret_copied = copied;
	return 0;
}

CSN_API int csn_snapshot(csn_sandbox *sandbox, const csn_snapshot_request *request,
			 csn_copied **ret_copied, csn_error *err)
{
	struct call call;
	int r = call_begin(&call, sandbox, "snapshot", &request->call, err);

	if (r < 0)
		return r;
	r = send_two(&call, (const char *const[]){ "tag", NULL },
		     (const char *const[]){ request->tag, NULL }, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r == 0)
		r = copied_result(&call, ret_copied, err);
	call_end(&call);
	return r;
}

CSN_API int csn_fork(csn_sandbox *sandbox, const csn_fork_request *request, csn_copied **ret_copied,
		     csn_error *err)
{
	struct call call;
	int r = call_begin(&call, sandbox, "fork", &request->call, err);

	if (r < 0)
		return r;
	r = send_two(&call, (const char *const[]){ "name", "tag" },
		     (const char *const[]){ request->name, request->tag }, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r == 0)
		r = copied_result(&call, ret_copied, err);
	call_end(&call);
	return r;
}
