/* The verb `eval`; see eval.h. Its clock is the other side's, so that a start may take its own. */
#include "client/eval.h"

#include "client/code.h"
#include "client/result.h"

int eval_call(csn_sandbox *sandbox, const struct eval_request *request,
	      struct eval_result **ret_result, csn_error *err)
{
	struct eval_result *result;
	struct emit emit;
	struct call call;
	struct term reply;
	int r = call_begin(&call, sandbox, "eval", NULL, err);

	if (r < 0)
		return r;
	emit = call_frame(&call, 2U + !!request->session + !!request->timeout_ms);
	call_put_text(&emit, "medium", request->medium);
	call_put_text(&emit, "session", request->session);
	emit_atom(&emit, "code");
	emit_binary(&emit, request->code, request->size);
	if (request->timeout_ms)
		call_put_int(&emit, "timeout_ms", request->timeout_ms);
	r = call_send(&call, &emit, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r < 0) {
		call_end(&call);
		return r;
	}
	reply = call.reply;
	result = result_new(&call, sizeof *result);
	call_end(&call);
	if (!result)
		return code_fail(err, CSN_ENOMEM, "eval", "there is no memory for the result");
	result->value = result_bytes(&reply, "value");
	result->reason = result_bytes(&reply, "reason");
	result->output = result_bytes(&reply, "output");
	result->is_done = result_flag(&reply, "done");
	*ret_result = result;
	return 0;
}
