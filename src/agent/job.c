/* Jobs: kept, stepped in turn, ended; see job.h. */
#include "agent/job.h"

#include <stdlib.h>

#include "base/errno_name.h"

enum { BACKLOG = 4 << 20 }; /* queued output above which nobody is asked for more */

struct job *job_find(struct agent *agent, int64_t ref)
{
	for (int i = 0; i < AGENT_CALLS; i++)
		if (agent->jobs[i] && agent->jobs[i]->ref == ref)
			return agent->jobs[i];
	return NULL;
}

void *job_new(struct agent *agent, const struct call *call, const struct job_type *type,
	      size_t size)
{
	struct job *job = NULL;
	unsigned slot = 0;

	while (slot < AGENT_CALLS && agent->jobs[slot])
		slot++;
	if (slot < AGENT_CALLS)
		job = calloc(1, size);
	if (!job) {
		agent_fail(agent, call->ref, slot < AGENT_CALLS ? "enomem" : "eagain",
			   slot < AGENT_CALLS ? "the agent has no memory"
					      : "too many calls at once");
		return NULL;
	}
	job->type = type;
	job->verb = call->verb;
	job->ref = call->ref;
	job->order = agent->job_order++;
	job->slot = slot;
	job->window = AGENT_WINDOW;
	agent->jobs[slot] = job;
	return job;
}

static void job_free(struct agent *agent, struct job *job)
{
	agent->jobs[job->slot] = NULL;
	if (job->type->done)
		job->type->done(job);
	free(job);
}

static void go_on(struct agent *agent, struct job *job, enum job_state state)
{
	job->waits = state == JOB_WAITS;
	if (state == JOB_OVER)
		job_free(agent, job);
}

void job_window(struct job *job, int64_t bytes)
{
	job->window += bytes;
	if (job->window > AGENT_WINDOW)
		job->window = AGENT_WINDOW;
	job->waits = false;
}

void job_input(struct agent *agent, struct job *job, const struct term *bytes, bool is_end)
{
	if (job->type->input)
		go_on(agent, job, job->type->input(agent, job, bytes, is_end));
}

void job_fail(struct agent *agent, struct job *job, const struct csn_error *err)
{
	agent_fail(agent, job->ref, errno_name(err->code), err->text);
	job_free(agent, job);
}

void job_cancel(struct agent *agent, struct job *job)
{
	agent_fail(agent, job->ref, "cancelled", "the caller cancelled this call");
	job_free(agent, job);
}

/* So many of a verb are worked on together; the oldest first. */
static bool has_turn(const struct agent *agent, const struct job *job)
{
	unsigned older = 0;

	for (int i = 0; i < AGENT_CALLS; i++)
		if (agent->jobs[i] && agent->jobs[i]->verb == job->verb &&
		    agent->jobs[i]->order < job->order)
			older++;
	return older < job->verb->at_once;
}

bool jobs_step(struct agent *agent)
{
	bool has_more = false;

	for (int i = 0; i < AGENT_CALLS; i++) {
		struct job *job = agent->jobs[i];

		if (buf_size(&agent->out) > BACKLOG)
			return false; /* what wakes us is room in the stream */
		if (!job || job->waits || !has_turn(agent, job))
			continue;
		go_on(agent, job, job->type->step(agent, job));
		has_more = true;
	}
	return has_more;
}

void jobs_done(struct agent *agent)
{
	for (int i = 0; i < AGENT_CALLS; i++)
		if (agent->jobs[i])
			job_free(agent, agent->jobs[i]);
}
