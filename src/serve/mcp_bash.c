/*
 * Bash: a command, waited for or in the background
 *
 * Output of both streams is shown as it came, its first and last part where it is long. While the
 * command runs, a client that asked for progress hears of it at least each second: it is that
 * which keeps a client's own clock from running out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/str.h"
#include "serve/mcp_text.h"
#include "serve/mcp_tool.h"

enum { TICK_MS = 1000, LINE_BYTES = 200, TAG_BYTES = 32 };

struct watching {
	struct mcp_call *call;
	struct mcp_ends ends;
	uint64_t began_ms, told_ms;
	int timer_fd;
	char line[LINE_BYTES]; /* what was written last */
	size_t line_size;
};

/* ---- while it runs -------------------------------------------------------------------------- */

static void tell_progress(struct watching *watching)
{
	json_t *token = watching->call->job->token;
	uint64_t now_ms = clock_now_ms();
	_cleanup_buf_ struct buf line = { 0 };
	json_t *params;

	if (!token || now_ms - watching->told_ms < TICK_MS / 2)
		return;
	watching->told_ms = now_ms;
	params = json_pack("{s:O, s:f}", "progressToken", token, "progress",
			   (double)(now_ms - watching->began_ms) / 1000);
	buf_init(&line, 4 * LINE_BYTES);
	escape_add(&line, watching->line, watching->line_size, false);
	if (buf_size(&line) > 0)
		json_object_set_new(params, "message", mcp_string(buf_at(&line), buf_size(&line)));
	mcp_rpc_notify(watching->call->mcp, "notifications/progress", params);
}

static bool ends_line(char byte)
{
	return byte == '\n' || byte == '\r';
}

/* The last line that holds something, for people who watch; a bar that grows is one with CRs. */
static void keep_line(struct watching *watching, const char *bytes, size_t size)
{
	size_t start;

	while (size > 0 && ends_line(bytes[size - 1]))
		size--;
	if (size == 0)
		return;
	start = size;
	while (start > 0 && !ends_line(bytes[start - 1]))
		start--;
	bytes += start;
	size = size - start < LINE_BYTES ? size - start : LINE_BYTES;
	watching->line_size = size - mcp_text_torn(bytes, size);
	memcpy(watching->line, bytes, watching->line_size);
}

static int on_output(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct watching *watching = data;

	(void)stream;
	keep_line(watching, bytes, size);
	tell_progress(watching);
	return mcp_ends_add(&watching->ends, bytes, size) < 0;
}

static int on_tick(void *data)
{
	struct watching *watching = data;
	uint64_t ignored;

	if (read(watching->timer_fd, &ignored, sizeof ignored) > 0)
		tell_progress(watching);
	return 0;
}

static int on_violation(void *data, const csn_violation *violation)
{
	struct watching *watching = data;

	if (!violation->expected)
		mcp_log(watching->call->mcp, MCP_WARNING,
			json_pack("{s:o, s:o, s:o}", "event",
				  mcp_string(violation->event, strlen(violation->event)), "say",
				  mcp_string(violation->say ? violation->say : "",
					     violation->say ? strlen(violation->say) : 0),
				  "sandbox", json_string(watching->call->facts.id)));
	return 0;
}

static void start_ticking(struct watching *watching, csn_exec_request *request)
{
	const struct itimerspec each = { .it_value.tv_sec = TICK_MS / 1000,
					 .it_interval.tv_sec = TICK_MS / 1000 };

	if (!watching->call->job->token)
		return;
	watching->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (watching->timer_fd < 0 || timerfd_settime(watching->timer_fd, 0, &each, NULL) < 0)
		return;
	request->on_ready = on_tick;
	request->ready_fd = watching->timer_fd;
}

/* ---- what is said of it --------------------------------------------------------------------- */

/* Each violation, once: what was denied, what is allowed instead. */
static void say_violations(struct mcp_call *call, const csn_exec_result *result)
{
	json_t *list = json_array();

	for (size_t i = 0; i < result->violation_count; i++) {
		const csn_violation *v = &result->violations[i];

		if (v->expected || !v->say)
			continue;
		json_array_append_new(list, mcp_string(v->say, strlen(v->say)));
		if (v->count > 1)
			mcp_note(call, "Denied %" PRIu64 " times: %s", v->count, v->say);
		else
			mcp_note(call, "Denied: %s", v->say);
	}
	mcp_give(call, "violations", list);
}

/* Never in the command's own text, where it could say the same of itself. */
static void say_end(struct mcp_call *call, const csn_exec_result *result)
{
	if (result->reason == CSN_REASON_EXITED && result->exit_code == 0)
		return;
	if (result->exit_code >= 0)
		mcp_note(call, "(exit code: %d)", result->exit_code);
	else if (result->clock)
		mcp_note(call, "(timeout: %s after %.1f s; what it wrote is above)",
			 result->text ? result->text : "it was killed",
			 (double)result->wall_us / 1e6);
	else if (result->text)
		mcp_note(call, "(%s: %s)", result->reason_name, result->text);
	else
		mcp_note(call, "(ended by signal %d: %s)", result->signal, result->reason_name);
	call->is_error =
		result->reason != CSN_REASON_EXITED && result->reason != CSN_REASON_SIGNALED;
}

static int say_result(struct mcp_call *call, struct watching *watching,
		      const csn_exec_result *result)
{
	_cleanup_buf_ struct buf text = { 0 };
	uint64_t cut;
	int r;

	buf_init(&text, MCP_TEXT_BYTES + 1024);
	r = mcp_ends_take(&watching->ends, &text, &cut);
	if (r < 0)
		return mcp_fail(call, CSN_ENOMEM, "there is no memory for the output");
	mcp_give_bytes(call, "output", buf_at(&text), buf_size(&text));
	if (buf_size(&text) == 0 && result->exit_code == 0)
		buf_add_text(&text, "(no output)");
	if (buf_size(&text) > 0)
		mcp_text(call, buf_at(&text), buf_size(&text));
	say_end(call, result);
	say_violations(call, result);
	mcp_give_text(call, "reason", result->reason_name);
	mcp_give_int(call, "wall_ms", result->wall_us / 1000);
	if (result->exit_code >= 0)
		mcp_give_int(call, "exit_code", (uint64_t)result->exit_code);
	if (result->signal > 0)
		mcp_give_int(call, "signal", (uint64_t)result->signal);
	if (result->text)
		mcp_give_text(call, "why", result->text);
	if (cut + result->output_cut_bytes > 0)
		mcp_give_int(call, "omitted_bytes", cut + result->output_cut_bytes);
	return 0;
}

/* ---- both kinds ----------------------------------------------------------------------------- */

static int run_background(struct mcp_call *call, csn_exec_request *request)
{
	csn_exec_result *result;
	char own[TAG_BYTES];
	int r;

	snprintf(own, sizeof own, "bash-%" PRIu64, request->call.id);
	request->detach = true;
	if (!request->tag)
		request->tag = own;
	r = csn_exec(call->sandbox, request, &result, &call->err);
	if (r < 0)
		return r;
	if (result->reason != CSN_REASON_DETACHED) {
		r = mcp_fail(call, result->error ? result->error : CSN_EIO, "%s",
			     result->text ? result->text : "the command did not start");
		csn_free(result);
		return r;
	}
	mcp_say(call,
		"Runs in the background as \"%s\" (pid %d). Logs shows its output, Kill ends it.",
		request->tag, result->pid);
	mcp_give_text(call, "output", "");
	mcp_give_text(call, "reason", result->reason_name);
	mcp_give_text(call, "tag", request->tag);
	mcp_give(call, "violations", json_array());
	csn_free(result);
	return 0;
}

static int run_foreground(struct mcp_call *call, csn_exec_request *request)
{
	struct watching watching = { .call = call, .began_ms = clock_now_ms(), .timer_fd = -1 };
	csn_exec_result *result;
	int r;

	mcp_ends_init(&watching.ends, MCP_TEXT_BYTES);
	request->on_output = on_output;
	request->on_violation = on_violation;
	request->data = &watching;
	start_ticking(&watching, request);
	r = csn_exec(call->sandbox, request, &result, &call->err);
	if (r == 0) {
		r = say_result(call, &watching, result);
		csn_free(result);
	}
	fd_close(watching.timer_fd);
	mcp_ends_done(&watching.ends);
	return r;
}

int mcp_bash(struct mcp_call *call)
{
	uint32_t timeout_ms = (uint32_t)mcp_arg_int(call, "timeout", 0) * 1000;
	csn_exec_request request = { .command = mcp_arg(call, "command"),
				     .cwd = mcp_arg(call, "cwd"),
				     .tag = mcp_arg(call, "tag") };

	if (mcp_arg_is(call, "run_in_background")) {
		request.call = mcp_call_id(call, 0);
		return run_background(call, &request);
	}
	request.call = mcp_call_id(call, timeout_ms);
	return run_foreground(call, &request);
}
