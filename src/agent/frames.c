/*
 * What each frame from the monitor does: one handler a message, in a table by the index that
 * frame_decode() found. Frames about a call that is over are ignored: they crossed its reply.
 */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>

#include "agent/exec.h"
#include "agent/forwards.h"
#include "agent/gates.h"
#include "agent/job.h"
#include "agent/search.h"
#include "agent/verbs.h"
#include "base/str.h"
#include "wire/frame.h"

enum { PROTOCOL_VERSION = 1 };

static int keep_text(const struct term *term, char *ret_text, size_t size)
{
	if (term->bytes.size >= size)
		return -ENAMETOOLONG;
	memcpy(ret_text, term->bytes.data, term->bytes.size);
	ret_text[term->bytes.size] = 0;
	return 0;
}

/* Are there gates, as asked for? Where they cannot be had `ready` is silent, and it is the
 * monitor's to judge. */
static bool open_gates(struct agent *agent, const struct term *map)
{
	const struct term *names = term_get(map, "gates"), *at = term_get(map, "gates_at");

	return names && at && gates_open(agent, names, at) >= 0;
}

/* Two keys of `ready`, where `init` asks for them. */
static void emit_forwards(struct agent *agent, struct emit *emit, const struct term *list,
			  const char *error)
{
	if (!list)
		return;
	emit_atom(emit, "forwards");
	emit_bool(emit, agent->forwards != NULL);
	emit_atom(emit, "forward_error");
	emit_text(emit, error);
}

static int on_init(struct agent *agent, const struct term *items)
{
	const struct term *profile = term_get(&items[1], "profile");
	const struct term *workspace = term_get(&items[1], "workspace");
	const struct term *listener = term_get(&items[1], "listener");
	const struct term *ahead = term_get(&items[1], "ahead");
	const struct term *forwards = term_get(&items[1], "forwards");
	char error[FORWARDS_ERROR] = "";
	bool has_gates;
	struct emit emit;

	if (agent->is_init)
		return -EBADMSG;
	agent->is_init = true;
	agent->may_listen = listener && term_is_atom(listener, "true");
	agent->spare.is_wanted = ahead && term_is_atom(ahead, "true");
	if (keep_text(profile, agent->profile, sizeof agent->profile) < 0 ||
	    keep_text(workspace, agent->workspace, sizeof agent->workspace) < 0)
		return -EBADMSG;
	roots_open(&agent->roots, agent->workspace);
	has_gates = open_gates(agent, &items[1]);
	if (forwards)
		forwards_open(agent, forwards, error);
	emit = agent_frame(agent);
	emit_tuple(&emit, 2);
	emit_atom(&emit, "ready");
	emit_map(&emit, 3u + has_gates + (forwards ? 2 : 0));
	emit_forwards(agent, &emit, forwards, error);
	if (has_gates) {
		emit_atom(&emit, "gates");
		emit_bool(&emit, true);
	}
	emit_atom(&emit, "version");
	emit_int(&emit, PROTOCOL_VERSION);
	emit_atom(&emit, "verbs");
	verbs_list(agent, &emit);
	emit_atom(&emit, "enforces");
	emit_nil(&emit);
	agent_send(agent, &emit);
	return 0;
}

static int on_data(struct agent *agent, const struct term *items)
{
	struct exec *exec = exec_find(agent, items[1].integer);
	struct job *job = exec ? NULL : job_find(agent, items[1].integer);

	if (job)
		job_input(agent, job, &items[3], items[3].type == TERM_ATOM);
	if (!exec)
		return 0;
	if (items[3].type == TERM_ATOM)
		return streams_input(agent, &exec->streams, NULL, 0, true);
	return streams_input(agent, &exec->streams, items[3].bytes.data, items[3].bytes.size,
			     false);
}

static int on_window(struct agent *agent, const struct term *items)
{
	struct exec *exec = exec_find(agent, items[1].integer);
	struct job *job = exec ? NULL : job_find(agent, items[1].integer);

	if (exec)
		streams_window(agent, &exec->streams, items[2].integer);
	else if (job)
		job_window(job, items[2].integer);
	return 0;
}

static int on_signal(struct agent *agent, const struct term *items)
{
	struct exec *exec = exec_find(agent, items[1].integer);

	if (exec)
		exec_signal(agent, exec, (int)items[2].integer);
	return 0;
}

static int on_resize(struct agent *agent, const struct term *items)
{
	struct exec *exec = exec_find(agent, items[1].integer);

	(void)agent;
	if (exec)
		exec_resize(exec, (unsigned)items[2].integer, (unsigned)items[3].integer);
	return 0;
}

static int on_cancel(struct agent *agent, const struct term *items)
{
	struct exec *exec = exec_find(agent, items[1].integer);
	struct job *job = exec ? NULL : job_find(agent, items[1].integer);
	struct search *search = exec || job ? NULL : search_find(agent, items[1].integer);

	if (exec)
		exec_cancel(agent, exec);
	else if (job)
		job_cancel(agent, job);
	else if (search)
		search_cancel(search);
	return 0;
}

static int on_gate_result(struct agent *agent, const struct term *items)
{
	gates_answer(agent, items);
	return 0;
}

static int on_forward_data(struct agent *agent, const struct term *items)
{
	return forwards_data(agent, items[1].integer, &items[2]);
}

static int on_forward_end(struct agent *agent, const struct term *items)
{
	forwards_end(agent, items[1].integer);
	return 0;
}

static int on_forward_window(struct agent *agent, const struct term *items)
{
	forwards_window(agent, items[1].integer, items[2].integer);
	return 0;
}

static int on_forward_close(struct agent *agent, const struct term *items)
{
	forwards_close(agent, items[1].integer, term_is_atom(&items[2], "closed"));
	return 0;
}

static int on_stop(struct agent *agent, const struct term *items)
{
	struct emit emit = agent_frame(agent);

	(void)items;
	emit_tuple(&emit, 2);
	emit_atom(&emit, "bye");
	emit_map(&emit, 0);
	agent_send(agent, &emit);
	agent->is_stopping = true;
	return 0;
}

static const struct {
	int (*handle)(struct agent *agent, const struct term *items);
	bool is_first; /* allowed before init */
} handlers[] = {
	[FRAME_INIT] = { on_init, true },
	[FRAME_DATA_IN] = { on_data, false },
	[FRAME_WINDOW_IN] = { on_window, false },
	[FRAME_SIGNAL] = { on_signal, false },
	[FRAME_RESIZE] = { on_resize, false },
	[FRAME_CANCEL] = { on_cancel, false },
	[FRAME_STOP] = { on_stop, true },
	[FRAME_GATE_RESULT] = { on_gate_result, false },
	[FRAME_FORWARD_DATA_IN] = { on_forward_data, false },
	[FRAME_FORWARD_END_IN] = { on_forward_end, false },
	[FRAME_FORWARD_WINDOW_IN] = { on_forward_window, false },
	[FRAME_FORWARD_CLOSE_IN] = { on_forward_close, false },
};

int agent_handle(struct agent *agent, int index, const struct term *frame, size_t size)
{
	if (index == FRAME_CALL && agent->is_init) {
		verbs_call(agent, frame->items, size);
		return 0;
	}
	if (index < 0 || (size_t)index >= ARRAY_SIZE(handlers) || !handlers[index].handle)
		return -EBADMSG;
	if (!agent->is_init && !handlers[index].is_first)
		return -EBADMSG;
	return handlers[index].handle(agent, frame->items);
}
