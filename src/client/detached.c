/* Commands that outlive their call: listed, read again, waited for, ended; found by their tags. */
#include "client/call.h"
#include "client/kept.h"
#include "client/result.h"

static int no_memory(void *result, csn_error *err)
{
	csn_free(result);
	return code_fail(err, CSN_ENOMEM, "detached", "there is no memory for the result");
}

/* ---- ps ------------------------------------------------------------------------------------- */

static int ps_result(struct call *call, csn_ps_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	const struct term *list = term_get(&reply, "commands");
	csn_ps_result *result = result_new(call, sizeof *result);
	csn_process *commands = result ? result_array(result, list, sizeof *commands) : NULL;

	if (!commands)
		return no_memory(result, err);
	for (size_t i = 0; i < list->count; i++) {
		const struct term *map = &list->items[i];

		commands[i] = (csn_process){ .tag = result_text(map, "tag"),
					     .state = result_text(map, "state"),
					     .detached = result_flag(map, "detached"),
					     .pid = result_int(map, "pid", 0),
					     .exit_code = result_int(map, "exit_code", -1),
					     .signal = result_int(map, "signal", 0),
					     .started_ms = (int64_t)result_u64(map, "started_ms"),
					     .bytes = result_u64(map, "bytes"),
					     .cut_bytes = result_u64(map, "cut") };
	}
	*result = (csn_ps_result){ commands, list->count };
	*ret_result = result;
	return 0;
}

CSN_API int csn_ps(csn_sandbox *sandbox, const csn_call *options, csn_ps_result **ret_result,
		   csn_error *err)
{
	struct emit emit;
	struct call call;
	int r = call_begin(&call, sandbox, "ps", options, err);

	if (r < 0)
		return r;
	emit = call_frame(&call, 0);
	r = call_send(&call, &emit, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r == 0)
		r = ps_result(&call, ret_result, err);
	call_end(&call);
	return r;
}

/* ---- logs ----------------------------------------------------------------------------------- */

struct reading {
	struct kept output, errors;
};

static int keep(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct reading *reading = data;

	return kept_add(stream == CSN_STDERR ? &reading->errors : &reading->output, bytes, size);
}

static int logs_result(struct call *call, const struct reading *reading,
		       csn_logs_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	csn_logs_result *result = result_new(call, sizeof *result);

	if (!result || kept_output(&reading->output, result_arena(result), &result->output) < 0 ||
	    kept_output(&reading->errors, result_arena(result), &result->errors) < 0)
		return no_memory(result, err);
	result->bytes = result_u64(&reply, "bytes");
	result->cut_bytes = result_u64(&reply, "cut");
	result->running = result_flag(&reply, "running");
	*ret_result = result;
	return 0;
}

static int logs_call(struct call *call, const csn_logs_request *request, csn_error *err)
{
	struct emit emit = call_frame(call, 1u + request->follow);
	int r;

	call_put_text(&emit, "tag", request->tag ? request->tag : "");
	call_put_true(&emit, "follow", request->follow);
	r = call_send(call, &emit, err);
	return r < 0 ? r : call_finish(call, err);
}

CSN_API int csn_logs(csn_sandbox *sandbox, const csn_logs_request *request,
		     csn_logs_result **ret_result, csn_error *err)
{
	struct reading reading;
	struct call call;
	int r = call_begin(&call, sandbox, "logs", &request->call, err);

	if (r < 0)
		return r;
	kept_init(&reading.output, request->keep_bytes);
	kept_init(&reading.errors, request->keep_bytes);
	call.sink = request->on_output ? request->on_output : keep;
	call.sink_data = request->on_output ? request->data : &reading;
	r = logs_call(&call, request, err);
	if (r == 0)
		r = logs_result(&call, &reading, ret_result, err);
	kept_done(&reading.output);
	kept_done(&reading.errors);
	call_end(&call);
	return r;
}

/* ---- wait, kill ----------------------------------------------------------------------------- */

static int wait_result(struct call *call, csn_wait_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	csn_wait_result *result = result_new(call, sizeof *result);

	if (!result)
		return no_memory(result, err);
	*result = (csn_wait_result){ .reached = result_flag(&reply, "reached"),
				     .timed_out = result_flag(&reply, "timed_out"),
				     .running = result_flag(&reply, "running"),
				     .exit_code = result_int(&reply, "exit_code", -1),
				     .signal = result_int(&reply, "signal", 0),
				     .line = result_bytes(&reply, "line") };
	*ret_result = result;
	return 0;
}

static int wait_call(struct call *call, const csn_wait_request *request, csn_error *err)
{
	uint32_t timeout_ms = call_timeout(call, &request->call);
	struct emit emit =
		call_frame(call, 1u + !!request->port + !!request->line + !!request->text +
					 request->forget + !!timeout_ms);
	int r;

	call_put_text(&emit, "tag", request->tag ? request->tag : "");
	call_put_int(&emit, "port", request->port);
	call_put_text(&emit, "line", request->line);
	call_put_text(&emit, "text", request->text);
	call_put_true(&emit, "forget", request->forget);
	call_put_int(&emit, "timeout_ms", timeout_ms);
	r = call_send(call, &emit, err);
	return r < 0 ? r : call_finish(call, err);
}

CSN_API int csn_wait(csn_sandbox *sandbox, const csn_wait_request *request,
		     csn_wait_result **ret_result, csn_error *err)
{
	struct call call;
	int r = call_begin(&call, sandbox, "wait", &request->call, err);

	if (r < 0)
		return r;
	call.more_ms = CALL_MORE_MS;
	r = wait_call(&call, request, err);
	if (r == 0)
		r = wait_result(&call, ret_result, err);
	call_end(&call);
	return r;
}

CSN_API int csn_kill(csn_sandbox *sandbox, const csn_kill_request *request, csn_error *err)
{
	struct emit emit;
	struct call call;
	int r = 0;

	if (request->signal < 0 || request->signal > 64)
		return code_fail(err, CSN_INVALID, "kill", "%d is no signal: 1 to 64",
				 request->signal);
	r = call_begin(&call, sandbox, "kill", &request->call, err);
	if (r < 0)
		return r;
	emit = call_frame(&call, 1u + !!request->signal);
	call_put_text(&emit, "tag", request->tag ? request->tag : "");
	call_put_int(&emit, "signal", (uint64_t)request->signal);
	r = call_send(&call, &emit, err);
	if (r == 0)
		r = call_finish(&call, err);
	call_end(&call);
	return r;
}
