/* What a sandbox is and uses, now. */
#include "client/stats.h"

#include "client/result.h"

/* Null is CSN_NONE. */
static uint64_t number_of(const struct term *map, const char *key)
{
	const struct term *value = term_get(map, key);

	return value && value->type == TERM_INT ? (uint64_t)value->integer : CSN_NONE;
}

static const char *text_of(const struct term *map, const char *key)
{
	const char *text = result_text(map, key);

	return text && *text ? text : NULL;
}

csn_stats_result *stats_result(struct call *call)
{
	struct term reply = call->reply;
	csn_stats_result *result = result_new(call, sizeof *result);

	if (!result)
		return NULL;
	*result = (csn_stats_result){
		.sandbox_id = result_text(&reply, "sandbox_id"),
		.tier = result_text(&reply, "tier"),
		.backend = result_text(&reply, "backend"),
		.workspace = text_of(&reply, "workspace"),
		.mode = result_text(&reply, "mode"),
		.started_ms = (int64_t)result_u64(&reply, "started_ms"),
		.commands = result_u64(&reply, "commands"),
		.idle_ms = result_u64(&reply, "idle_ms"),
		.idle_limit_ms = number_of(&reply, "idle_limit_ms"),
		.means = result_text(&reply, "means"),
		.mem_bytes = number_of(&reply, "mem_bytes"),
		.mem_limit = number_of(&reply, "mem_limit"),
		.processes = number_of(&reply, "processes"),
		.processes_limit = number_of(&reply, "processes_limit"),
		.cpu_us = number_of(&reply, "cpu_us"),
		.scratch_bytes = number_of(&reply, "scratch_bytes"),
		.scratch_limit = number_of(&reply, "scratch_limit"),
	};
	return result;
}

CSN_API int csn_stats(csn_sandbox *sandbox, const csn_call *options, csn_stats_result **ret_result,
		      csn_error *err)
{
	csn_stats_result *result;
	struct emit emit;
	struct call call;
	int r = call_begin(&call, sandbox, "stats", options, err);

	if (r < 0)
		return r;
	emit = call_frame(&call, 0);
	r = call_send(&call, &emit, err);
	if (r == 0)
		r = call_finish(&call, err);
	result = r == 0 ? stats_result(&call) : NULL;
	if (r == 0 && !result)
		r = code_fail(err, CSN_ENOMEM, "stats", "there is no memory for the result");
	if (result)
		*ret_result = result;
	call_end(&call);
	return r;
}
