/* Logs and Kill: commands that Bash left in the background, by their tags. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "serve/mcp_text.h"
#include "serve/mcp_tool.h"

enum { END_MS = 3000 };

struct state {
	bool is_known;
	bool is_running;
	int exit_code, signal;
};

static struct state find_state(struct mcp_call *call, const char *tag)
{
	csn_call id = mcp_call_id(call, 0);
	struct state state = { .exit_code = -1 };
	csn_ps_result *commands;

	if (csn_ps(call->sandbox, &id, &commands, NULL) < 0)
		return state;
	for (size_t i = 0; i < commands->count; i++) {
		const csn_process *process = &commands->commands[i];

		if (!process->tag || !str_is(process->tag, tag))
			continue;
		state.is_known = true;
		state.is_running =
			!str_is(process->state, "ended") && !str_is(process->state, "lost");
		state.exit_code = process->exit_code;
		state.signal = process->signal;
	}
	csn_free(commands);
	return state;
}

static void say_state(struct mcp_call *call, const char *tag, const struct state *state)
{
	mcp_give_text(call, "tag", tag);
	mcp_give_bool(call, "running", state->is_running);
	if (state->is_running) {
		mcp_note(call, "(\"%s\" is running)", tag);
	} else if (state->exit_code >= 0) {
		mcp_note(call, "(\"%s\" has ended, exit code: %d)", tag, state->exit_code);
		mcp_give_int(call, "exit_code", (uint64_t)state->exit_code);
	} else if (state->signal > 0) {
		mcp_note(call, "(\"%s\" was ended by signal %d)", tag, state->signal);
		mcp_give_int(call, "signal", (uint64_t)state->signal);
	}
}

/* Until a port is open, a line holds a text, or it has ended; at most so long. */
static int await(struct mcp_call *call, const char *tag)
{
	int64_t port = mcp_arg_int(call, "wait_for_port", 0);
	const char *text = mcp_arg(call, "wait_for_text");
	uint32_t wait_ms = (uint32_t)mcp_arg_int(call, "timeout", 0) * 1000;
	csn_wait_request request = { .tag = tag, .port = (uint16_t)port, .text = text };
	csn_wait_result *result;
	int r;

	if (wait_ms == 0 && (port > 0 || text))
		wait_ms = 30000;
	if (wait_ms == 0)
		return 0;
	request.call = mcp_call_id(call, wait_ms);
	r = csn_wait(call->sandbox, &request, &result, &call->err);
	if (r < 0)
		return r;
	if (result->reached && port > 0)
		mcp_note(call, "(port %d is open)", (int)port);
	else if (result->reached && text)
		mcp_note(call, "(the text was written)");
	else if (result->timed_out)
		mcp_note(call, "(waited %u s in vain)", wait_ms / 1000);
	csn_free(result);
	return 0;
}

static int on_output(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	(void)stream;
	return mcp_ends_add(data, bytes, size) < 0;
}

static int say_logs(struct mcp_call *call, struct mcp_ends *ends, uint64_t forgotten)
{
	_cleanup_buf_ struct buf text = { 0 };
	uint64_t cut;

	buf_init(&text, MCP_TEXT_BYTES + 1024);
	if (mcp_ends_take(ends, &text, &cut) < 0)
		return mcp_fail(call, CSN_ENOMEM, "there is no memory for the output");
	if (forgotten > 0)
		mcp_note(call, "(its first %" PRIu64 " bytes are no longer known)", forgotten);
	mcp_give_bytes(call, "output", buf_at(&text), buf_size(&text));
	mcp_text(call, buf_at(&text), buf_size(&text));
	if (cut + forgotten > 0)
		mcp_give_int(call, "omitted_bytes", cut + forgotten);
	return 0;
}

int mcp_logs(struct mcp_call *call)
{
	const char *tag = mcp_arg(call, "tag");
	csn_logs_request request = { .tag = tag, .on_output = on_output };
	csn_logs_result *result;
	struct mcp_ends ends;
	struct state state;
	int r = await(call, tag);

	if (r < 0)
		return r;
	mcp_ends_init(&ends, MCP_TEXT_BYTES);
	request.data = &ends;
	request.call = mcp_call_id(call, 0);
	r = csn_logs(call->sandbox, &request, &result, &call->err);
	if (r == 0) {
		r = say_logs(call, &ends, result->cut_bytes);
		csn_free(result);
	}
	mcp_ends_done(&ends);
	if (r < 0)
		return r;
	state = find_state(call, tag);
	say_state(call, tag, &state);
	return 0;
}

int mcp_kill(struct mcp_call *call)
{
	const char *tag = mcp_arg(call, "tag");
	csn_kill_request request = { .tag = tag,
				     .signal = (int)mcp_arg_int(call, "signal", 0),
				     .call = mcp_call_id(call, 0) };
	csn_wait_request until = { .tag = tag };
	csn_wait_result *result;
	struct state state;
	int r = csn_kill(call->sandbox, &request, &call->err);

	if (r < 0 && r != -CSN_ESRCH)
		return r;
	until.call = mcp_call_id(call, END_MS);
	if (r == 0 && csn_wait(call->sandbox, &until, &result, NULL) == 0)
		csn_free(result);
	state = find_state(call, tag);
	mcp_say(call, r < 0 ? "\"%s\" had ended before." : "Sent the signal to \"%s\".", tag);
	say_state(call, tag, &state);
	return 0;
}
