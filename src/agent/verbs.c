/* The table of verbs and the one way through it; see verbs.h. */
#include "agent/verbs.h"

#include "agent/commands.h"
#include "agent/exec.h"
#include "agent/files.h"
#include "agent/job.h"
#include "agent/search.h"
#include "base/str.h"
#include "wire/frame.h"

enum {
	SMALL = 16 << 10,   /* paths and numbers */
	PIECE = 96 << 10,   /* and one piece of content */
	LARGE = 2304 << 10, /* and two texts of an edit */
	COMMAND = 5 << 20,
};

static void start_exec(struct agent *agent, const struct call *call)
{
	exec_start(agent, call->ref, call->map);
}

static const struct verb verbs[] = {
	{ "exec", AGENT_CALLS, COMMAND, start_exec },
	{ "ps", AGENT_CALLS, SMALL, ps_start },
	{ "logs", AGENT_CALLS, SMALL, logs_start },
	{ "wait", AGENT_CALLS, SMALL, wait_start },
	{ "kill", AGENT_CALLS, SMALL, kill_start },
	{ "read", AGENT_CALLS, SMALL, read_start },
	{ "write", AGENT_CALLS, PIECE, write_start },
	{ "edit", 2, LARGE, edit_start }, /* each holds a file in memory */
	{ "stat", AGENT_CALLS, SMALL, stat_start },
	{ "list", 4, SMALL, list_start }, /* each holds up to 10,000 names */
	{ "remove", 16, SMALL, remove_start },
	{ "move", AGENT_CALLS, SMALL, move_start },
	{ "glob", AGENT_SEARCHES, SMALL, search_glob, search_is_there },
	{ "grep", AGENT_SEARCHES, SMALL, search_grep, search_is_there },
};

static bool is_there(const struct agent *agent, const struct verb *verb)
{
	return !verb->is_there || verb->is_there(agent);
}

void verbs_list(const struct agent *agent, struct emit *emit)
{
	uint32_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		count += is_there(agent, &verbs[i]);
	emit_list(emit, count);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (is_there(agent, &verbs[i]))
			emit_atom(emit, verbs[i].name);
	emit_nil(emit);
}

static const struct verb *find(const struct term *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (term_is_atom(name, verbs[i].name))
			return &verbs[i];
	return NULL;
}

void verbs_call(struct agent *agent, const struct term *items, size_t size)
{
	struct call call = { items[1].integer, find(&items[2]), &items[3] };
	const struct frame_verb *shape = frame_find_verb(&items[2]);
	struct csn_error err = { 0 };

	if (!call.verb || !shape || !is_there(agent, call.verb))
		agent_fail(agent, call.ref, "not_supported", "this agent does not have that verb");
	else if (exec_find(agent, call.ref) || job_find(agent, call.ref) ||
		 search_find(agent, call.ref))
		agent_fail(agent, call.ref, "invalid", "this Ref is in use");
	else if (size > call.verb->max_bytes)
		agent_fail(agent, call.ref, "invalid", "this frame is too long for its verb");
	else if (frame_check_map(shape->args, call.map, &err) < 0)
		agent_fail(agent, call.ref, "invalid", err.text);
	else
		call.verb->start(agent, &call);
}
