/* What the answer to an exec says; see exec.h. The keys are those of exec_result in
 * wire/messages.c. */
#include <sys/wait.h>

#include "agent/exec.h"
#include "base/errno_name.h"

static void emit_number_or_null(struct emit *emit, const char *key, bool has, int64_t value)
{
	emit_atom(emit, key);
	if (has)
		emit_int(emit, value);
	else
		emit_atom(emit, "null");
}

void exec_emit_status(struct emit *emit, const struct exec *exec)
{
	bool has_status = exec->is_reaped && !exec->is_lost;
	bool is_exit = has_status && WIFEXITED(exec->status) && !exec->is_failed;

	emit_number_or_null(emit, "exit_code", is_exit, WEXITSTATUS(exec->status));
	emit_number_or_null(emit, "signal", has_status && WIFSIGNALED(exec->status),
			    WTERMSIG(exec->status));
}

static int64_t microseconds(const struct timeval *tv)
{
	return (int64_t)tv->tv_sec * 1000000 + tv->tv_usec;
}

static void emit_usage(struct emit *emit, const struct rusage *usage)
{
	emit_atom(emit, "user_us");
	emit_int(emit, microseconds(&usage->ru_utime));
	emit_atom(emit, "system_us");
	emit_int(emit, microseconds(&usage->ru_stime));
	emit_atom(emit, "max_rss_bytes");
	emit_int(emit, (int64_t)usage->ru_maxrss * 1024);
}

/* A detached one that runs: its end is told by `ps` and `wait`. */
static void reply_detached(struct agent *agent, const struct exec *exec)
{
	static const struct rusage none;
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, exec->ref);
	emit_map(&emit, 7);
	emit_atom(&emit, "exit_code");
	emit_atom(&emit, "null");
	emit_atom(&emit, "signal");
	emit_atom(&emit, "null");
	emit_usage(&emit, &none);
	emit_atom(&emit, "detached");
	emit_bool(&emit, true);
	emit_atom(&emit, "pid");
	emit_int(&emit, exec->pid);
	agent_send(agent, &emit);
}

static void reply_end(struct agent *agent, const struct exec *exec)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, exec->ref);
	emit_map(&emit, (exec->is_failed ? 7u : 5u) + exec->is_late);
	exec_emit_status(&emit, exec);
	emit_usage(&emit, &exec->usage);
	if (exec->is_late) {
		emit_atom(&emit, "timed_out");
		emit_bool(&emit, true);
	}
	if (exec->is_failed) {
		emit_atom(&emit, "error");
		emit_atom(&emit, errno_name(exec->error));
		emit_atom(&emit, "stage");
		emit_text(&emit, exec->stage);
	}
	agent_send(agent, &emit);
}

void exec_tell_end(struct agent *agent, const struct exec *exec)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 2);
	emit_atom(&emit, "fact");
	emit_map(&emit, 9);
	emit_atom(&emit, "event");
	emit_atom(&emit, "ended");
	emit_atom(&emit, "ref");
	emit_int(&emit, exec->ref);
	exec_emit_status(&emit, exec);
	emit_usage(&emit, &exec->usage);
	emit_atom(&emit, "bytes");
	emit_int(&emit, (int64_t)exec->ring.total);
	emit_atom(&emit, "lost");
	emit_bool(&emit, exec->is_lost);
	agent_send(agent, &emit);
}

void exec_reply(struct agent *agent, const struct exec *exec)
{
	if (exec->is_lost)
		agent_fail(agent, exec->ref, "lost",
			   "the command's keeper died before it; what was left of it was killed");
	else if (exec->is_detached && !exec->is_failed)
		reply_detached(agent, exec);
	else
		reply_end(agent, exec);
}
