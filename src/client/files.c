/*
 * Verbs on files. Each is the same five lines: begin, the request as a map, finish, the reply as a
 * struct, end. What the request may be is checked on the other side, which names the key.
 */
#include <errno.h>
#include <string.h>

#include "client/call.h"
#include "client/result.h"

enum { READ_MAX = 64 << 20 };

static int no_memory(csn_error *err, const char *stage)
{
	return code_fail(err, CSN_ENOMEM, stage, "there is no memory for the result");
}

/* ---- read ----------------------------------------------------------------------------------- */

struct reading {
	struct buf content;
	bool is_too_long;
	bool is_full; /* there was no memory */
};

static int keep_content(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct reading *reading = data;
	int r = buf_add(&reading->content, bytes, size);

	(void)stream;
	reading->is_too_long = r == -E2BIG;
	reading->is_full = r == -ENOMEM;
	return r;
}

static int send_read(struct call *call, const csn_read_request *request, csn_error *err)
{
	struct emit emit = call_frame(call, 1u + !!request->offset + !!request->length);

	call_put_text(&emit, "path", request->path ? request->path : "");
	call_put_int(&emit, "offset", request->offset);
	call_put_int(&emit, "length", request->length);
	return call_send(call, &emit, err);
}

/* What came in the reply itself goes the way of what came before it. */
static int take_rest(struct call *call, csn_error *err)
{
	csn_bytes bytes = result_bytes(&call->reply, "bytes");

	if (bytes.size > 0 && call->sink(call->sink_data, CSN_STDOUT, bytes.data, bytes.size) != 0)
		return code_fail(err, CSN_CANCELLED, "read", "the callback wanted no more");
	return 0;
}

static int read_result(struct call *call, const struct reading *reading, csn_bytes **ret_bytes,
		       csn_error *err)
{
	size_t size = buf_size(&reading->content);
	csn_bytes *result = result_new(call, sizeof *result);
	char *data = result ? arena_alloc(result_arena(result), size + 1) : NULL;

	if (!data) {
		csn_free(result);
		return no_memory(err, "read");
	}
	if (size > 0)
		memcpy(data, buf_at(&reading->content), size);
	*result = (csn_bytes){ data, size };
	*ret_bytes = result;
	return 0;
}

static int read_call(struct call *call, const csn_read_request *request, struct reading *reading,
		     csn_error *err)
{
	int r;

	call->sink = request->on_output ? request->on_output : keep_content;
	call->sink_data = request->on_output ? request->data : reading;
	r = send_read(call, request, err);
	if (r == 0)
		r = call_finish(call, err);
	if (r == 0)
		r = take_rest(call, err);
	if (reading->is_too_long)
		r = code_fail(err, CSN_EFBIG, "read",
			      "%s is longer than %zu bytes: read a part of it, or with on_output",
			      request->path, reading->content.max);
	else if (reading->is_full)
		r = no_memory(err, "read");
	return r;
}

CSN_API int csn_read(csn_sandbox *sandbox, const csn_read_request *request, csn_bytes **ret_bytes,
		     csn_error *err)
{
	struct reading reading = { 0 };
	struct call call;
	int r = call_begin(&call, sandbox, "read", &request->call, err);

	if (r < 0)
		return r;
	buf_init(&reading.content,
		 request->length && request->length < SIZE_MAX / 2 ? request->length : READ_MAX);
	r = read_call(&call, request, &reading, err);
	if (r == 0)
		r = read_result(&call, &reading, ret_bytes, err);
	buf_done(&reading.content);
	call_end(&call);
	return r;
}

/* ---- write, edit ---------------------------------------------------------------------------- */

struct memory {
	const char *at;
	size_t left;
};

static ptrdiff_t from_memory(void *data, void *ret_bytes, size_t size)
{
	struct memory *memory = data;
	size_t n = memory->left < size ? memory->left : size;

	if (n > 0)
		memcpy(ret_bytes, memory->at, n);
	memory->at += n;
	memory->left -= n;
	return (ptrdiff_t)n;
}

static int send_write(struct call *call, const csn_write_request *request, csn_error *err)
{
	bool is_small = !call->input;
	struct emit emit = call_frame(call, 2u + !!request->mode);

	call_put_text(&emit, "path", request->path ? request->path : "");
	call_put_int(&emit, "mode", request->mode);
	call_put_true(&emit, "stdin", !is_small);
	if (is_small) {
		emit_atom(&emit, "bytes");
		emit_binary(&emit, request->bytes ? request->bytes : "",
			    request->bytes ? request->size : 0);
	}
	return call_send(call, &emit, err);
}

CSN_API int csn_write(csn_sandbox *sandbox, const csn_write_request *request, csn_error *err)
{
	struct memory memory = { request->bytes, request->bytes ? request->size : 0 };
	struct call call;
	int r = call_begin(&call, sandbox, "write", &request->call, err);

	if (r < 0)
		return r;
	if (request->on_input) {
		call.input = request->on_input;
		call.input_data = request->data;
	} else if (memory.left > FRAME_PIECE) {
		call.input = from_memory;
		call.input_data = &memory;
	}
	r = send_write(&call, request, err);
	if (r == 0)
		r = call_finish(&call, err);
	call_end(&call);
	return r;
}

static void put_bytes(struct emit *emit, const char *key, const void *bytes, size_t size)
{
	emit_atom(emit, key);
	if (bytes)
		emit_binary(emit, bytes, size > 0 ? size : strlen(bytes));
	else
		emit_text(emit, "");
}

static int edit_result(struct call *call, csn_edit_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	csn_edit_result *result = result_new(call, sizeof *result);

	if (!result)
		return no_memory(err, "edit");
	result->occurrences = result_u64(&reply, "occurrences");
	result->content = result_bytes(&reply, "content");
	*ret_result = result;
	return 0;
}

CSN_API int csn_edit(csn_sandbox *sandbox, const csn_edit_request *request,
		     csn_edit_result **ret_result, csn_error *err)
{
	struct emit emit;
	struct call call;
	int r = call_begin(&call, sandbox, "edit", &request->call, err);

	if (r < 0)
		return r;
	emit = call_frame(&call, 3);
	call_put_text(&emit, "path", request->path ? request->path : "");
	put_bytes(&emit, "old", request->old_text, request->old_size);
	put_bytes(&emit, "new", request->new_text, request->new_size);
	r = call_send(&call, &emit, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r == 0)
		r = edit_result(&call, ret_result, err);
	call_end(&call);
	return r;
}

/* ---- stat, list, remove, move --------------------------------------------------------------- */

/* A verb on one path, up to its reply. After 0, call_end() is the caller's. */
static int path_call(struct call *call, const csn_path_request *request, csn_error *err)
{
	struct emit emit = call_frame(call, 1u + request->recursive);
	int r;

	call_put_text(&emit, "path", request->path ? request->path : "");
	call_put_true(&emit, "recursive", request->recursive);
	r = call_send(call, &emit, err);
	return r < 0 ? r : call_finish(call, err);
}

static int stat_result(struct call *call, csn_stat_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	csn_stat_result *result = result_new(call, sizeof *result);

	if (!result)
		return no_memory(err, "stat");
	result->type = result_text(&reply, "type");
	result->size = result_u64(&reply, "size");
	result->mode = (uint16_t)result_u64(&reply, "mode");
	result->mtime_ms = (int64_t)result_u64(&reply, "mtime_ms");
	result->target = result_text(&reply, "target");
	*ret_result = result;
	return 0;
}

CSN_API int csn_stat(csn_sandbox *sandbox, const csn_path_request *request,
		     csn_stat_result **ret_result, csn_error *err)
{
	csn_path_request plain = *request;
	struct call call;
	int r = call_begin(&call, sandbox, "stat", &request->call, err);

	if (r < 0)
		return r;
	plain.recursive = false;
	r = path_call(&call, &plain, err);
	if (r == 0)
		r = stat_result(&call, ret_result, err);
	call_end(&call);
	return r;
}

static int list_result(struct call *call, csn_list_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	const struct term *list = term_get(&reply, "entries");
	csn_list_result *result = result_new(call, sizeof *result);
	csn_entry *entries = result ? result_array(result, list, sizeof *entries) : NULL;

	if (!entries) {
		csn_free(result);
		return no_memory(err, "list");
	}
	for (size_t i = 0; i < list->count; i++)
		entries[i] = (csn_entry){ result_text(&list->items[i], "name"),
					  result_text(&list->items[i], "type"),
					  result_u64(&list->items[i], "size") };
	*result = (csn_list_result){ entries, list->count, result_flag(&reply, "truncated") };
	*ret_result = result;
	return 0;
}

CSN_API int csn_list(csn_sandbox *sandbox, const csn_path_request *request,
		     csn_list_result **ret_result, csn_error *err)
{
	csn_path_request plain = *request;
	struct call call;
	int r = call_begin(&call, sandbox, "list", &request->call, err);

	if (r < 0)
		return r;
	plain.recursive = false;
	r = path_call(&call, &plain, err);
	if (r == 0)
		r = list_result(&call, ret_result, err);
	call_end(&call);
	return r;
}

CSN_API int csn_remove(csn_sandbox *sandbox, const csn_path_request *request, csn_error *err)
{
	struct call call;
	int r = call_begin(&call, sandbox, "remove", &request->call, err);

	if (r < 0)
		return r;
	r = path_call(&call, request, err);
	call_end(&call);
	return r;
}

CSN_API int csn_move(csn_sandbox *sandbox, const csn_move_request *request, csn_error *err)
{
	struct emit emit;
	struct call call;
	int r = call_begin(&call, sandbox, "move", &request->call, err);

	if (r < 0)
		return r;
	emit = call_frame(&call, 2);
	call_put_text(&emit, "path", request->path ? request->path : "");
	call_put_text(&emit, "to", request->to ? request->to : "");
	r = call_send(&call, &emit, err);
	if (r == 0)
		r = call_finish(&call, err);
	call_end(&call);
	return r;
}
