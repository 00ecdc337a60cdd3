/*
 * The life of a sandbox that stays, and its clocks; see stay.h. Nothing in here blocks.
 */
#include "monitor/stay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/stay_eval.h"
#include "monitor/stay_private.h"

void stay_up(struct stay *stay)
{
	struct run *run = &stay->run;
	struct csn_error fine = { 0 };

	stay->is_up = run->is_ready = run->is_executing = true;
	run->phase_us[PHASE_READY] = run_elapsed_us(run, clock_now_us());
	limits_watch(&run->limits, run->wall.pid, run->scratch_dir[0] ? run->scratch_dir : NULL);
	stay->heard_ms = clock_now_ms();
	if (stay->setup->port)
		stay_port_open(stay);
	else if (stay->setup->owner_fd >= 0)
		stay_client_own(stay, stay_client_add(stay, stay->setup->owner_fd));
	stay->setup->tell(stay->setup->data, &fine);
	stay_clients_turn(stay); /* greeted; what they ask for is read after this */
	run_log_up(run);
}

/* ---- facts about the sandbox as a whole
 * ---------------------------------------------------------- */

/* A limit of all commands together: each that runs is told. */
static void share_facts(struct stay *stay, size_t from)
{
	stay->is_sharing = true;
	for (size_t i = from; i < stay->run.violations.count; i++) {
		const struct fact *fact = &stay->run.violations.facts[i];

		for (size_t c = 0; c < stay->calls_end; c++) {
			struct stay_exec *exec = stay->calls[c].exec;

			if (exec)
				violations_add(&exec->violations, fact);
		}
	}
	stay->is_sharing = false;
}

static void end_execs(struct stay *stay, enum ending ending)
{
	for (size_t i = 0; i < stay->calls_end; i++)
		if (stay->calls[i].exec)
			stay_exec_end(stay, &stay->calls[i], ending, false);
}

static bool has_exec(const struct stay *stay)
{
	for (size_t i = 0; i < stay->calls_end; i++)
		if (stay->calls[i].exec)
			return true;
	return stay_has_detached(stay);
}

/* Only while something runs: a sandbox that waits costs no processor time. */
static uint64_t look_at_limits(struct stay *stay, uint64_t now_ms)
{
	struct run *run = &stay->run;
	size_t before = run->violations.count;

	if (!stay->is_up || !has_exec(stay))
		return CLOCK_NEVER;
	if (limits_tick(&run->limits, run->wall.pid, now_ms, &run->violations) == LIMITS_MEMORY)
		end_execs(stay, END_MEMORY);
	share_facts(stay, before);
	return run->limits.next_tick_ms;
}

void stay_oom(struct stay *stay)
{
	struct run *run = &stay->run;
	struct cgroup_usage usage;

	cgroup_oom_ack(run->limits.oom_fd);
	if (cgroup_read(&run->limits.group, &usage) < 0 || usage.oom_kills == CGROUP_UNKNOWN ||
	    usage.oom_kills <= stay->oom_kills)
		return;
	stay->oom_kills = usage.oom_kills;
	end_execs(stay, END_MEMORY);
}

/* ---- clocks
 * -------------------------------------------------------------------------------------- */

uint64_t stay_idle_limit_ms(const struct stay *stay)
{
	uint64_t ms = stay->run.plan->limits.idle_ms;

	return ms ? ms : PLAN_UNLIMITED;
}

/* A file verb whose time is up is answered now; what the agent says later is dropped. */
static void end_late(struct stay *stay, struct stay_call *call)
{
	stay_call_cancel(stay, call);
	if (call->client)
		stay_refuse(call->client, call->client_ref, "etimedout",
			    "the call was not done in time");
	stay_call_forget(call);
}

static uint64_t look_at_calls(struct stay *stay, uint64_t now_ms)
{
	uint64_t next = CLOCK_NEVER;

	for (size_t i = 0; i < stay->calls_end; i++) {
		struct stay_call *call = &stay->calls[i];
		uint64_t at = call->end_at_ms;

		if (!call->ref)
			continue;
		if (call->exec)
			at = stay_exec_clock(stay, call, now_ms);
		else if (at <= now_ms)
			end_late(stay, call);
		next = at < next ? at : next;
	}
	return next;
}

/* Does a client wait for an answer: of an exec, of a `wait` for a detached one? Who sits at a
 * terminal does not wait: he is heard when he types, and when something is shown to him. */
static bool has_waiting(const struct stay *stay)
{
	for (size_t i = 0; i < stay->calls_end; i++) {
		const struct stay_call *call = &stay->calls[i];

		if (call->client && !stay_call_is_quiet(call) &&
		    !(call->exec && call->exec->has_tty))
			return true;
	}
	return false;
}

uint64_t stay_idle_ms(const struct stay *stay)
{
	return has_waiting(stay) ? 0 : clock_now_ms() - stay->heard_ms;
}

/* How long the sandbox itself may be silent, or may take to start. */
static uint64_t look_at_life(struct stay *stay, uint64_t now_ms)
{
	struct run *run = &stay->run;
	uint64_t limit = stay->is_up ? stay_idle_limit_ms(stay) : run->plan->limits.startup_ms;
	uint64_t from = stay->is_up ? stay->heard_ms : run->started_us / 1000;
	uint64_t at = limit == PLAN_UNLIMITED ? CLOCK_NEVER : from + limit;

	if (stay->is_up && has_waiting(stay))
		return CLOCK_NEVER; /* who waits for an answer is not silent */
	if (at > now_ms)
		return at;
	run->clock = stay->is_up ? "idle" : "startup";
	run->ending = END_TIMEOUT;
	stay->is_over = true;
	return CLOCK_NEVER;
}

static int look_at_clocks(struct stay *stay)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t next = look_at_calls(stay, now_ms), other = look_at_limits(stay, now_ms);

	next = other < next ? other : next;
	other = look_at_life(stay, now_ms);
	next = other < next ? other : next;
	other = stay_eval_clock(stay, now_ms);
	next = other < next ? other : next;
	other = gates_clock(stay->run.gates, now_ms);
	next = other < next ? other : next;
	other = forwards_clock(stay->run.forwards, now_ms);
	next = other < next ? other : next;
	if (next == CLOCK_NEVER)
		return -1;
	return next <= now_ms ? 0 : next - now_ms > 60000 ? 60000 : (int)(next - now_ms);
}

/* ---- from the start to the end
 * ------------------------------------------------------------------- */

/* One about the sandbox as a whole; a command's own is on record when it comes here. */
static void on_fact(const struct fact *fact, void *data)
{
	struct stay *stay = data;

	if (!stay->is_sharing)
		run_log_violation(fact, &stay->run);
}

static struct stay *stay_new(const struct stay_setup *setup)
{
	struct stay *stay = calloc(1, sizeof *stay);

	if (!stay)
		return NULL;
	stay->setup = setup;
	run_init(&stay->run, &setup->run);
	stay->run.violations.on_new = on_fact;
	stay->run.violations.data = stay;
	return stay;
}

/* It was not ready, and no step of the start failed. */
static void say_why_not(struct run *run)
{
	if (run->ending == END_TIMEOUT)
		csn_fail(&run->error, -ETIMEDOUT, "startup",
			 "the sandbox was not ready within %llu ms: limits.startup gives it longer",
			 (unsigned long long)run->plan->limits.startup_ms);
	else
		csn_fail(&run->error, -EPIPE, "startup",
			 "the sandbox was ended before it was ready");
}

/* Somebody asked for it, or the wall went by itself. */
static void settle(struct stay *stay)
{
	struct run *run = &stay->run;

	if (run->ending == END_NONE && stay->is_over)
		run->ending = END_CANCELLED;
	if (run->ending == END_NONE && stay->is_up)
		run->ending = END_LOST;
	if (!stay->is_up && !run->error.code)
		say_why_not(run);
}

static void end_exec(struct stay_exec *exec)
{
	if (exec)
		stay_exec_over(exec, exec->stay->is_over ? END_CANCELLED : END_LOST);
}

/* What was under way. */
static void end_calls(struct stay *stay)
{
	for (size_t i = 0; i < stay->calls_end; i++) {
		end_exec(stay->calls[i].exec);
		if (stay->calls[i].ref)
			stay_call_free(&stay->calls[i]);
	}
	for (size_t i = 0; i < stay->detached_end; i++) {
		end_exec(stay->detached[i]);
		stay_exec_free(stay->detached[i]);
	}
}

/* Who waits is told when nothing inside runs any more, and nothing of ours stands in his folders.
 * The record, the groups and the kernel's taking down of mounts need not be waited for: they are
 * ours to finish, and the cleaner's if we die. */
static bool take_leave(struct stay *stay)
{
	struct run *run = &stay->run;

	if (!stay->is_up || stay->setup->port) /* a port's client gets the account itself */
		return false;
	run_over(run);
	if (run->protect.placeholder_count > 0) {
		run->mounts_fd = fd_close(run->mounts_fd);
		protect_clean(&run->protect, 0);
	}
	stay_clients_done(stay, NULL);
	return true;
}

/* From a start, which went as `started` says, to the account; frees it. */
static int live(struct stay *stay, int started, struct run_outcome *ret_outcome)
{
	const struct stay_setup *setup = stay->setup;
	bool has_left;
	int r;

	gates_on_fork(stay->run.gates, stay_forget, stay);
	if (started >= 0 && stay_mount_init(stay) >= 0)
		stay_loop(stay, look_at_clocks);
	else
		stay->run.ending = END_START_FAILED;
	settle(stay);
	end_calls(stay);
	stay_eval_done(stay);
	has_left = take_leave(stay);
	r = run_account(&stay->run, ret_outcome);
	if (!stay->is_up) {
		setup->tell(setup->data, &ret_outcome->error);
		if (setup->owner_fd >= 0 && !setup->port) /* to be told why */
			stay_client_add(stay, setup->owner_fd);
	}
	if (!has_left)
		stay_clients_done(stay, ret_outcome);
	free(stay);
	return r;
}

int stay_execute(const struct stay_setup *setup, struct run_outcome *ret_outcome)
{
	struct stay *stay = stay_new(setup);

	return stay ? live(stay, run_begin(&stay->run), ret_outcome) : -ENOMEM;
}

/* ---- prepared ahead -------------------------------------------------------------------------- */

struct stay *stay_prepare(const struct stay_setup *setup, struct csn_error *err)
{
	struct stay *stay;

	if (setup->run.plan->workspace.access == ACCESS_COW) {
		csn_fail(err, -ENOTSUP, "pool",
			 "a copy-on-write workspace cannot be lent to a prepared sandbox: use ro "
			 "or rw, or start such sandboxes without a pool");
		return NULL;
	}
	if (setup->run.plan->gate_count > 0 || setup->run.plan->forwards[0]) {
		csn_fail(err, -ENOTSUP, "pool",
			 "a prepared sandbox has no gates and forwards, and the policy names some: "
			 "start such sandboxes without a pool");
		return NULL;
	}
	stay = stay_new(setup);
	if (!stay) {
		csn_fail(err, -ENOMEM, "pool", "out of memory");
		return NULL;
	}
	if (run_prepare_ahead(&stay->run) >= 0)
		return stay;
	*err = stay->run.error;
	if (!err->code)
		csn_fail(err, -EIO, "pool", "cannot prepare a sandbox");
	stay_discard(stay);
	return NULL;
}

int stay_prepared_fd(const struct stay *stay)
{
	return stay->run.wall.pidfd;
}

static bool has_same_limits(const struct plan_limits *a, const struct plan_limits *b)
{
	return a->mem_bytes == b->mem_bytes && a->processes == b->processes &&
	       a->cpu_milli == b->cpu_milli && a->scratch_bytes == b->scratch_bytes;
}

/* What the wall was made from, and nobody can change any more. */
const char *stay_differs(const struct stay *stay, const struct stay_setup *setup)
{
	const struct plan *a = stay->setup->run.plan, *b = setup->run.plan;
	const char *root = setup->run.run_root, *own = stay->setup->run.run_root;
	const struct {
		const char *what;
		bool is_same;
	} questions[] = {
		{ "policy file", str_is(a->policy_sha256, b->policy_sha256) },
		{ "tier", a->tier == b->tier },
		{ "approval, which a prepared sandbox cannot have", !b->needs_approval },
		{ "workspace.mode", b->workspace.access != ACCESS_COW },
		{ "wall", str_is(a->backend, b->backend) &&
				  !(b->required & ~(a->required | stay->run.report.enforces)) },
		{ "network", a->network == b->network },
		{ "limits", has_same_limits(&a->limits, &b->limits) },
		{ "limits_mode", a->limits_mode == b->limits_mode },
		{ "scratch space", str_is(a->scratch_at, b->scratch_at) },
		{ "gates", b->gate_count == 0 },
		{ "forwards", !b->forwards[0] },
		{ "image", !a->image && !b->image },
		{ "mount_roots", plan_lends_late(a) == plan_lends_late(b) },
		{ "place of the workspace or a mount", stay->run.backend->has_places(a, b) },
		{ "run root", !root == !own && (!root || str_is(root, own)) },
		{ "workspace, which holds the run root",
		  !b->workspace.host ||
			  !path_is_beneath(setup->run.hidden_root, b->workspace.host) },
		{ "workspace, which holds the sockets of sandboxes",
		  !b->workspace.host || !setup->run.hidden_place ||
			  !path_is_beneath(setup->run.hidden_place, b->workspace.host) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		if (!questions[i].is_same)
			return questions[i].what;
	return NULL;
}

int stay_take(struct stay *stay, const struct stay_setup *setup, struct run_outcome *ret_outcome)
{
	stay->setup = setup;
	return live(stay, run_begin_ahead(&stay->run, &setup->run), ret_outcome);
}

void stay_discard(struct stay *stay)
{
	run_discard(&stay->run);
	free(stay);
}
