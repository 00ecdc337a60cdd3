/* Commands by name: what runs, what is kept of those that ended, `ps` and `kill`; see
 * commands.h. */
#include "agent/commands.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/errno_name.h"
#include "base/str.h"

enum {
	LOOK_MS = 60000,
	ENDED_BYTES = 16 << 20 /* of ended ones' output: the agent has 64 MiB beside the commands */
};

/* ---- finding --------------------------------------------------------------------------------- */

static bool has_tag(const struct exec *exec, const char *tag)
{
	return exec && exec->tag && str_is(exec->tag, tag);
}

bool commands_has_tag(const struct agent *agent, const char *tag)
{
	for (int i = 0; i < AGENT_CALLS; i++)
		if (has_tag(agent->execs[i], tag))
			return true;
	return false;
}

static void forget_at(struct agent *agent, unsigned at)
{
	exec_free(agent, agent->ended[at]);
	agent->ended_count--;
	memmove(&agent->ended[at], &agent->ended[at + 1],
		(agent->ended_count - at) * sizeof(struct exec *));
}

void commands_forget_tag(struct agent *agent, const char *tag)
{
	for (unsigned i = agent->ended_count; tag && i > 0; i--)
		if (has_tag(agent->ended[i - 1], tag))
			forget_at(agent, i - 1);
}

void commands_forget(struct agent *agent, uint64_t id)
{
	for (unsigned i = agent->ended_count; i > 0; i--)
		if (agent->ended[i - 1]->id == id)
			forget_at(agent, i - 1);
}

static size_t ended_bytes(const struct agent *agent)
{
	size_t sum = 0;

	for (unsigned i = 0; i < agent->ended_count; i++)
		sum += ring_bytes(&agent->ended[i]->ring);
	return sum;
}

void commands_keep(struct agent *agent, struct exec *exec)
{
	streams_done(&exec->streams);
	if (agent->ended_count == AGENT_ENDED)
		forget_at(agent, 0);
	agent->ended[agent->ended_count++] = exec;
	while (ended_bytes(agent) > ENDED_BYTES)
		forget_at(agent, 0);
	agent->has_news = true;
}

void commands_done(struct agent *agent)
{
	while (agent->ended_count > 0)
		forget_at(agent, agent->ended_count - 1);
}

/* The first of both lists that `is` accepts: the living, then the ended, the newest first. */
static struct exec *find(const struct agent *agent,
			 bool (*is)(const struct exec *exec, const void *what), const void *what)
{
	for (int i = 0; i < AGENT_CALLS; i++)
		if (agent->execs[i] && is(agent->execs[i], what))
			return agent->execs[i];
	for (unsigned i = agent->ended_count; i > 0; i--)
		if (is(agent->ended[i - 1], what))
			return agent->ended[i - 1];
	return NULL;
}

static bool is_id(const struct exec *exec, const void *what)
{
	return exec->id == *(const uint64_t *)what;
}

static bool is_ref(const struct exec *exec, const void *what)
{
	return exec->ref == *(const int64_t *)what;
}

static bool is_tag(const struct exec *exec, const void *what)
{
	const struct term *tag = what;

	return exec->tag && strlen(exec->tag) == tag->bytes.size &&
	       memcmp(exec->tag, tag->bytes.data, tag->bytes.size) == 0;
}

struct exec *commands_by_id(const struct agent *agent, uint64_t id)
{
	return find(agent, is_id, &id);
}

struct exec *commands_named(struct agent *agent, const struct call *call)
{
	const struct term *tag = term_get(call->map, "tag"), *ref = term_get(call->map, "ref");
	struct exec *exec;

	if (!tag == !ref) {
		agent_fail(agent, call->ref, "einval", "the call needs tag or ref, one of them");
		return NULL;
	}
	exec = tag ? find(agent, is_tag, tag) : find(agent, is_ref, &ref->integer);
	if (!exec)
		agent_fail(agent, call->ref, "enoent",
			   "no command is known by that name; ps lists them");
	return exec;
}

bool commands_is_over(const struct agent *agent, const struct exec *exec)
{
	return agent->execs[exec->slot] != exec;
}

/* ---- those who follow ------------------------------------------------------------------------ */

int commands_wake(struct agent *agent, uint64_t now_ms)
{
	uint64_t next_ms = CLOCK_NEVER;

	for (int i = 0; i < AGENT_CALLS; i++) {
		struct job *job = agent->jobs[i];

		if (!job || (job->type != &logs_type && job->type != &wait_type))
			continue;
		if (agent->has_news)
			job->waits = false;
		if (job->type != &wait_type || !job->waits)
			continue;
		if (wait_next_ms(job) <= now_ms)
			job->waits = false;
		else if (wait_next_ms(job) < next_ms)
			next_ms = wait_next_ms(job);
	}
	agent->has_news = false;
	if (next_ms == CLOCK_NEVER)
		return -1;
	return next_ms - now_ms < LOOK_MS ? (int)(next_ms - now_ms) : LOOK_MS;
}

/* ---- ps -------------------------------------------------------------------------------------- */

static const char *state_of(const struct agent *agent, const struct exec *exec)
{
	if (commands_is_over(agent, exec))
		return exec->is_lost ? "lost" : "ended";
	if (exec->is_queued || exec->failure_fd >= 0)
		return "starting";
	return exec->is_reaped ? "ending" : "running";
}

static void emit_one(const struct agent *agent, struct emit *emit, const struct exec *exec)
{
	emit_map(emit, exec->tag ? 10 : 9);
	emit_atom(emit, "ref");
	emit_int(emit, exec->ref);
	if (exec->tag) {
		emit_atom(emit, "tag");
		emit_text(emit, exec->tag);
	}
	emit_atom(emit, "state");
	emit_atom(emit, state_of(agent, exec));
	emit_atom(emit, "detached");
	emit_bool(emit, exec->is_detached);
	emit_atom(emit, "pid");
	if (exec->pid > 0)
		emit_int(emit, exec->pid);
	else
		emit_atom(emit, "null");
	exec_emit_status(emit, exec);
	emit_atom(emit, "started_ms");
	emit_int(emit, exec->started_wall_ms);
	emit_atom(emit, "bytes");
	emit_int(emit, (int64_t)exec->ring.total);
	emit_atom(emit, "cut");
	emit_int(emit, (int64_t)exec->ring.cut);
}

void ps_start(struct agent *agent, const struct call *call)
{
	uint32_t count = agent->ended_count;
	struct emit emit = agent_frame(agent);

	for (int i = 0; i < AGENT_CALLS; i++)
		count += agent->execs[i] != NULL;
	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, call->ref);
	emit_map(&emit, 1);
	emit_atom(&emit, "commands");
	emit_list(&emit, count);
	for (unsigned i = 0; i < agent->ended_count; i++)
		emit_one(agent, &emit, agent->ended[i]);
	for (int i = 0; i < AGENT_CALLS; i++)
		if (agent->execs[i])
			emit_one(agent, &emit, agent->execs[i]);
	emit_nil(&emit);
	agent_send(agent, &emit);
}

/* ---- kill ------------------------------------------------------------------------------------ */

void kill_start(struct agent *agent, const struct call *call)
{
	const struct term *number = term_get(call->map, "signal");
	struct exec *exec = commands_named(agent, call);
	struct emit emit;

	if (!exec)
		return;
	if (commands_is_over(agent, exec) || exec->is_reaped) {
		agent_fail(agent, call->ref, "esrch", "the command has ended");
		return;
	}
	if (number)
		exec_signal(agent, exec, (int)number->integer);
	else
		exec_end(agent, exec);
	emit = agent_frame(agent);
	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, call->ref);
	emit_map(&emit, 0);
	agent_send(agent, &emit);
}
