/*
 * `logs`: what is left of a detached command's output, and, with `follow`, what comes. A job that
 * reads the ring with a place of its own, under its own window: a slow reader loses what the ring
 * loses, and nobody waits for him.
 */
#include "agent/commands.h"

enum { PIECES = 4 }; /* of a record each, a step */

struct logs {
	struct job job;
	uint64_t id;
	struct ring_place place;
	uint64_t sent;
	bool follows;
};

static enum job_state reply(struct agent *agent, const struct logs *logs, const struct exec *exec)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, logs->job.ref);
	emit_map(&emit, 3);
	emit_atom(&emit, "bytes");
	emit_int(&emit, (int64_t)logs->sent);
	emit_atom(&emit, "cut");
	emit_int(&emit, (int64_t)(exec->ring.total - logs->sent));
	emit_atom(&emit, "running");
	emit_bool(&emit, !commands_is_over(agent, exec));
	agent_send(agent, &emit);
	return JOB_OVER;
}

static enum job_state step(struct agent *agent, struct job *job)
{
	struct logs *logs = (struct logs *)job;
	const struct exec *exec = commands_by_id(agent, logs->id);
	char data[RING_RECORD];

	if (!exec) {
		agent_fail(agent, job->ref, "enoent", "the command was forgotten meanwhile");
		return JOB_OVER;
	}
	for (int i = 0; i < PIECES; i++) {
		size_t want =
			(uint64_t)job->window < sizeof data ? (size_t)job->window : sizeof data;
		unsigned stream;
		size_t n;

		if (job->window <= 0)
			return JOB_WAITS;
		n = ring_read(&exec->ring, &logs->place, &stream, data, want);
		if (n == 0 && logs->follows && !commands_is_over(agent, exec))
			return JOB_WAITS;
		if (n == 0)
			return reply(agent, logs, exec);
		streams_send(agent, job->ref, (enum streams_output)stream, data, n);
		logs->sent += n;
		job->window -= (int64_t)n;
	}
	return JOB_AGAIN;
}

const struct job_type logs_type = { .step = step };

void logs_start(struct agent *agent, const struct call *call)
{
	const struct term *follow = term_get(call->map, "follow");
	struct exec *exec = commands_named(agent, call);
	struct logs *logs;

	if (!exec)
		return;
	if (!exec->is_detached) {
		agent_fail(agent, call->ref, "einval", "its output goes to its own call");
		return;
	}
	logs = job_new(agent, call, &logs_type, sizeof *logs);
	if (!logs)
		return;
	logs->id = exec->id;
	logs->follows = follow && term_is_atom(follow, "true");
}
