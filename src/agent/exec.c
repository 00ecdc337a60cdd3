/*
 * One command: queued, signalled, reaped, answered; see exec.h. What it reads and writes is in
 * streams.c. A command is over when its leader is dead and what it wrote was sent; the last
 * inherited pipe may stay open for longer than anybody wants to wait.
 *
 * A keeper that ends without its report was ended by somebody else. Its orphans are ours then, and
 * whatever is not beneath another call's keeper is killed. Where that cannot be told, or does not
 * end, the agent ends, and the wall with it.
 */
#include "agent/exec.h"

#include <errno.h>
#include <signal.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/commands.h"
#include "agent/keeper.h"
#include "agent/search.h"
#include "base/clock.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "os/sweep.h"

enum {
	ARENA_FIRST = 8 << 10, /* for the usual environment */
	ARENA_MAX = 16 << 20,
	KILL_AGAIN_MS = 100,
	KILL_AFTER_MS = 500,
	OBEY_MS = 5000, /* a keeper of a large tree on a busy machine */
	SWEEPS = 5,
	SWEEP_PAUSE_MS = 50, /* a large process dies slowly */
	STOPS = 8,           /* of one keeper: somebody means it */
	LOOK_MS = 60000
};

struct exec *exec_find(struct agent *agent, int64_t ref)
{
	for (int i = 0; i < AGENT_CALLS; i++)
		if (agent->execs[i] && !agent->execs[i]->is_answered && agent->execs[i]->ref == ref)
			return agent->execs[i];
	return NULL;
}

void exec_free(struct agent *agent, struct exec *exec)
{
	if (agent->execs[exec->slot] == exec)
		agent->execs[exec->slot] = NULL;
	streams_done(&exec->streams);
	ring_done(&exec->ring);
	fd_cleanup(&exec->failure_fd);
	fd_cleanup(&exec->keeper_fd);
	arena_done(&exec->arena);
	free(exec->tag);
	free(exec);
}

static struct exec *exec_new(struct agent *agent, int64_t ref)
{
	struct exec *exec;
	unsigned slot = 0;

	while (slot < AGENT_CALLS && agent->execs[slot])
		slot++;
	exec = slot < AGENT_CALLS ? calloc(1, sizeof *exec) : NULL;
	if (!exec)
		return NULL;
	exec->ref = ref;
	exec->id = ++agent->exec_id;
	exec->slot = slot;
	exec->failure_fd = exec->keeper_fd = -1;
	exec->kill_at_ms = exec->kill_then_ms = exec->keeper_by_ms = CLOCK_NEVER;
	exec->started_wall_ms = clock_wall_ms();
	arena_init(&exec->arena, ARENA_MAX);
	streams_init(&exec->streams, ref, slot);
	agent->execs[slot] = exec;
	return exec;
}

/* ---- starting ----------------------------------------------------------------------------- */

/* Is one between its fork and its exec, or waiting for that? */
static bool is_any_starting(const struct agent *agent)
{
	for (int i = 0; i < AGENT_CALLS; i++)
		if (agent->execs[i] &&
		    (agent->execs[i]->failure_fd >= 0 || agent->execs[i]->is_queued))
			return true;
	return false;
}

/* 64 whole ones would be all that the agent has beside the commands, src/os/cgroup.c. */
static size_t ring_size(const struct agent *agent)
{
	enum { WHOLE = 16 };
	unsigned count = 0;

	for (int i = 0; i < AGENT_CALLS; i++)
		count += agent->execs[i] && agent->execs[i]->is_detached;
	return count <= WHOLE ? RING_SIZE : RING_SMALL;
}

static int set_up(const struct agent *agent, struct exec *exec, const struct command *command)
{
	exec->is_last = command->is_last;
	exec->is_detached = command->is_detached;
	if (command->timeout_ms)
		exec->kill_at_ms = clock_now_ms() + command->timeout_ms;
	if (command->is_detached)
		exec->streams.ring = &exec->ring;
	exec->ring.size = ring_size(agent);
	if (command->tag)
		exec->tag = strdup(command->tag);
	return command->tag && !exec->tag ? -ENOMEM : 0;
}

/* Until its turn comes: the frame is gone then. */
static int queue(struct exec *exec, const struct term *map)
{
	exec->is_queued = true;
	return command_read(map, &exec->arena, &exec->command);
}

static void begin(struct agent *agent, int64_t ref, const struct term *map,
		  const struct command *command)
{
	bool must_wait = agent->may_listen && is_any_starting(agent);
	struct exec *exec = exec_new(agent, ref);
	int r;

	if (!exec) {
		agent_fail(agent, ref, "eagain", "too many calls at once");
		return;
	}
	commands_forget_tag(agent, command->tag);
	r = set_up(agent, exec, command);
	if (r >= 0)
		r = must_wait ? queue(exec, map) : exec_fork(agent, exec, command);
	if (r < 0) {
		agent_fail(agent, ref, errno_name(-r), "cannot start the command");
		exec_free(agent, exec);
	}
}

void exec_start(struct agent *agent, int64_t ref, const struct term *map)
{
	alignas(max_align_t) char first[ARENA_FIRST];
	_cleanup_arena_ struct arena arena;
	struct command command;
	int r;

	arena_init_in(&arena, ARENA_MAX, first, sizeof first);
	r = command_read(map, &arena, &command);
	if (r == -EOPNOTSUPP)
		agent_fail(agent, ref, "not_supported", "this agent lacks a key of the call");
	else if (r == -EINVAL)
		agent_fail(agent, ref, "einval",
			   "the call needs argv or command; detach goes without stdin, report and "
			   "last");
	else if (r < 0)
		agent_fail(agent, ref, errno_name(-r), "cannot read the call");
	else if (command.tag && commands_has_tag(agent, command.tag))
		agent_fail(agent, ref, "eexist", "a command with this tag runs");
	else
		begin(agent, ref, map, &command);
}

/* The oldest of the queue, when nobody is on his way. */
static void start_next(struct agent *agent)
{
	struct exec *next = NULL;
	int r;

	for (int i = 0; i < AGENT_CALLS; i++) {
		struct exec *exec = agent->execs[i];

		if (exec && exec->failure_fd >= 0)
			return;
		if (exec && exec->is_queued && (!next || exec->id < next->id))
			next = exec;
	}
	if (!next)
		return;
	next->is_queued = false;
	r = exec_fork(agent, next, &next->command);
	arena_done(&next->arena);
	if (r < 0) {
		agent_fail(agent, next->ref, errno_name(-r), "cannot start the command");
		exec_free(agent, next);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

static void reaped(struct exec *exec, int status, const struct rusage *usage)
{
	exec->is_reaped = true;
	exec->status = status;
	exec->usage = *usage;
	exec->drain_until_ms = clock_now_ms() + AGENT_DRAIN_MS;
	streams_leader_ended(&exec->streams);
}

static void take_report(struct exec *exec, const struct keeper_report *report)
{
	if (report->word == KEEPER_STARTED) {
		exec->pid = report->pid;
		return;
	}
	if (report->error) {
		exec->is_failed = true;
		exec->error = report->error;
		snprintf(exec->stage, sizeof exec->stage, "%s", "fork");
	}
	if (!exec->is_reaped)
		reaped(exec, report->status, &report->usage);
}

static void read_keeper(struct agent *agent, struct exec *exec)
{
	struct keeper_report report;
	int r = 0;

	while (exec->keeper_fd >= 0 && (r = keeper_read(exec->keeper_fd, &report)) > 0)
		take_report(exec, &report);
	if (exec->keeper_fd < 0 || (r == 0 && !exec->is_reaped))
		return;
	agent_unwatch(agent, exec->keeper_fd);
	if (r == 0 && !agent->is_stopping && idle_keep(&agent->idle, exec))
		return;
	fd_cleanup(&exec->keeper_fd);
}

static void send_early(struct agent *agent, struct exec *exec)
{
	unsigned count = exec->early_count;

	exec->early_count = 0;
	for (unsigned i = 0; i < count && !exec->is_failed; i++)
		exec_signal(agent, exec, exec->early[i]);
}

static void read_failure(struct agent *agent, struct exec *exec)
{
	struct child_failure failure;
	ssize_t n = read(exec->failure_fd, &failure, sizeof failure);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n == sizeof failure) {
		exec->is_failed = true;
		exec->error = failure.error;
		failure.stage[sizeof failure.stage - 1] = 0;
		snprintf(exec->stage, sizeof exec->stage, "%s", failure.stage);
	}
	agent_unwatch(agent, exec->failure_fd);
	fd_cleanup(&exec->failure_fd);
	if (exec->keeper_fd >= 0)
		agent_watch(agent, exec->keeper_fd, EPOLLIN,
			    (struct agent_source){ SOURCE_KEEPER, exec->slot });
	send_early(agent, exec);
	read_keeper(agent, exec);
}

void exec_ready(struct agent *agent, struct exec *exec, enum source_kind kind)
{
	if (kind == SOURCE_KEEPER)
		read_keeper(agent, exec);
	else if (kind != SOURCE_FAILURE)
		streams_ready(agent, &exec->streams, kind);
	else if (exec->failure_fd >= 0)
		read_failure(agent, exec);
}

/* Where there is no keeper the sandbox is this command's: everything goes. */
static void signal_all(struct agent *agent, struct exec *exec, int signal)
{
	if ((signal == SIGKILL || signal == SIGTERM) && agent->is_pid_1)
		kill(-1, signal);
	else if (signal == SIGKILL || signal == SIGTERM)
		sweep_signal(signal, NULL);
	else if (!exec->is_reaped)
		kill(-exec->pid, signal);
}

static void keep_early(struct exec *exec, int signal)
{
	for (unsigned i = 0; i < exec->early_count; i++)
		if (exec->early[i] == signal)
			return;
	if (signal > 0 && exec->early_count < sizeof exec->early)
		exec->early[exec->early_count++] = (uint8_t)signal;
}

void exec_resize(struct exec *exec, unsigned rows, unsigned cols)
{
	if (!exec->is_queued) {
		streams_resize(&exec->streams, rows, cols);
	} else if (rows > 0 && cols > 0) {
		exec->command.rows = rows;
		exec->command.cols = cols;
	}
}

void exec_signal(struct agent *agent, struct exec *exec, int signal)
{
	bool is_tree = signal == SIGKILL || signal == SIGTERM;

	if (exec->is_queued && is_tree) {
		agent_fail(agent, exec->ref, "cancelled", "the command had not begun");
		exec_free(agent, exec);
	} else if (exec->is_queued || (exec->early_count > 0 && !is_tree)) {
		keep_early(exec, signal);
	} else if (exec->is_last) {
		signal_all(agent, exec, signal);
	} else if (exec->keeper_fd >= 0) {
		keeper_order(exec->keeper_fd, signal, is_tree);
		if (signal == SIGKILL && exec->keeper_by_ms == CLOCK_NEVER)
			exec->keeper_by_ms = clock_now_ms() + OBEY_MS;
	}
}

void exec_cancel(struct agent *agent, struct exec *exec)
{
	if (!exec->is_queued)
		streams_drop(agent, &exec->streams);
	exec_signal(agent, exec, SIGKILL);
}

void exec_end(struct agent *agent, struct exec *exec)
{
	exec->kill_then_ms = exec->is_queued ? CLOCK_NEVER : clock_now_ms() + KILL_AFTER_MS;
	exec_signal(agent, exec, SIGTERM);
}

/* ---- keepers that end ------------------------------------------------------------------------ */

/* Everything that is no search and beneath no keeper; false: something is left, or nobody can tell
 * what is. */
static bool kill_orphans(const struct agent *agent)
{
	pid_t spared[AGENT_CALLS + AGENT_SEARCHES + IDLE_MAX + 2];
	size_t count = search_pids(agent, spared);

	count += idle_pids(&agent->idle, spared + count);
	if (agent->spare.keeper > 0)
		spared[count++] = agent->spare.keeper;
	for (int i = 0; i < AGENT_CALLS; i++) {
		if (agent->execs[i] && agent->execs[i]->is_last)
			return false;
		if (agent->execs[i] && agent->execs[i]->keeper > 0)
			spared[count++] = agent->execs[i]->keeper;
	}
	spared[count] = 0;
	for (int i = 0; i < SWEEPS; i++) {
		if (sweep_kill(spared))
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = SWEEP_PAUSE_MS * 1000000 }, NULL);
	}
	return false;
}

static void keeper_changed(struct agent *agent, struct exec *exec, int status)
{
	static const struct rusage none;

	if (WIFSTOPPED(status)) {
		kill(exec->keeper, ++exec->stops > STOPS ? SIGKILL : SIGCONT);
		return;
	}
	exec->keeper = 0;
	read_keeper(agent, exec);
	if (exec->is_reaped)
		return;
	if (!kill_orphans(agent))
		agent->is_broken = true;
	/* What we asked for was done, by whomever. */
	exec->is_lost = exec->keeper_by_ms == CLOCK_NEVER;
	reaped(exec, SIGKILL, &none);
}

bool exec_child(struct agent *agent, pid_t pid, int status, const struct rusage *usage)
{
	for (int i = 0; i < AGENT_CALLS; i++) {
		struct exec *exec = agent->execs[i];

		if (!exec || (exec->keeper != pid && !(exec->is_last && exec->pid == pid)))
			continue;
		if (!exec->is_last)
			keeper_changed(agent, exec, status);
		else if (!WIFSTOPPED(status))
			reaped(exec, status, usage);
		return true;
	}
	return false;
}

/* ---- clocks and ends ------------------------------------------------------------------------- */

/* Over: all output ended, or its time is up and what the leader wrote was sent. What it said about
 * its own failure was written before it died. */
static bool is_over(struct agent *agent, struct exec *exec, uint64_t now_ms)
{
	if (!streams_are_over(&exec->streams) &&
	    (now_ms < exec->drain_until_ms || !streams_drain(agent, &exec->streams)))
		return false;
	if (exec->failure_fd >= 0)
		read_failure(agent, exec);
	return true;
}

/* A detached one that was executed. */
static void answer_detached(struct agent *agent, struct exec *exec)
{
	if (!exec->is_detached || exec->is_answered || exec->failure_fd >= 0 || exec->pid == 0 ||
	    exec->is_failed || exec->is_lost)
		return;
	exec_reply(agent, exec);
	exec->is_answered = true;
}

static void end(struct agent *agent, struct exec *exec)
{
	agent->spare.is_wanted = !exec->is_last;
	answer_detached(agent, exec);
	if (exec->is_answered) {
		exec_tell_end(agent, exec);
		agent->execs[exec->slot] = NULL;
		commands_keep(agent, exec);
		return;
	}
	exec_reply(agent, exec);
	agent->is_stopping |= exec->is_last;
	exec_free(agent, exec);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* By itself, and not told yet, as where we were stopped meanwhile: no clock ended it. */
static bool has_ended(struct agent *agent, struct exec *exec)
{
	siginfo_t info = { 0 };

	if (!exec->is_last) {
		read_keeper(agent, exec);
		return exec->is_reaped;
	}
	return waitid(P_PID, (id_t)exec->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == exec->pid;
}

/* Kills what is late. A chain of forks that a sweep missed is caught by the next one; a keeper
 * sweeps by itself, and one that does not is killed. */
static void kill_late(struct agent *agent, struct exec *exec, uint64_t now_ms)
{
	bool is_polite_over = exec->kill_then_ms <= now_ms;

	if (exec->keeper_by_ms <= now_ms) {
		exec->keeper_by_ms = now_ms + OBEY_MS;
		if (exec->keeper > 0)
			kill(exec->keeper, SIGKILL);
	}
	if (exec->kill_at_ms > now_ms && !is_polite_over)
		return;
	if (!exec->is_late && has_ended(agent, exec))
		return; /* its signal waits for us */
	exec->is_late |= exec->kill_at_ms <= now_ms;
	exec->kill_then_ms = CLOCK_NEVER;
	exec->kill_at_ms = exec->is_last ? now_ms + KILL_AGAIN_MS : CLOCK_NEVER;
	exec_signal(agent, exec, SIGKILL);
}

/* Returns when it must be looked at next. */
static uint64_t look(struct agent *agent, struct exec *exec, uint64_t now_ms)
{
	uint64_t at_ms;

	if (exec->is_queued && exec->kill_at_ms <= now_ms) {
		agent_fail(agent, exec->ref, "etimedout", "the command had not begun");
		exec_free(agent, exec);
		return CLOCK_NEVER;
	}
	if (exec->is_reaped && is_over(agent, exec, now_ms)) {
		end(agent, exec);
		return CLOCK_NEVER;
	}
	if (exec->is_reaped)
		return now_ms < exec->drain_until_ms ? exec->drain_until_ms : CLOCK_NEVER;
	answer_detached(agent, exec);
	kill_late(agent, exec, now_ms);
	at_ms = earlier(exec->kill_at_ms, earlier(exec->kill_then_ms, exec->keeper_by_ms));
	return at_ms > now_ms ? at_ms : now_ms + KILL_AGAIN_MS;
}

int exec_finish(struct agent *agent, uint64_t now_ms)
{
	uint64_t next_ms = CLOCK_NEVER;

	for (int i = 0; i < AGENT_CALLS; i++)
		if (agent->execs[i])
			next_ms = earlier(next_ms, look(agent, agent->execs[i], now_ms));
	start_next(agent);
	if (next_ms == CLOCK_NEVER)
		return -1;
	if (next_ms <= now_ms)
		return 0;
	return next_ms - now_ms < LOOK_MS ? (int)(next_ms - now_ms) : LOOK_MS;
}
