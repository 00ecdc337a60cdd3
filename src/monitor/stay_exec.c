/*
 * What an exec needs beyond its frame. The client says what to run; environment, limits, profile
 * and deadline are the plan's. Each has its own listener, its own list of facts, its own end, and
 * its reply is an account: why it ended, what it used, what it tried.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "monitor/stay_private.h"
#include "os/terminal.h"

/* ---- the call ------------------------------------------------------------------------------- */

/* What goes through as the client wrote it; `image` is no key of his, but of a code session. */
static const char *const passed_keys[] = { "argv", "command", "cwd",    "stdin", "tty",
					   "rows", "cols",    "detach", "tag",   "image" };

static bool is_true(const struct term *map, const char *key)
{
	const struct term *term = term_get(map, key);

	return term && term_is_atom(term, "true");
}

static bool has_name(const struct term *env, const char *item)
{
	size_t n = strcspn(item, "=");

	for (size_t i = 0; env && i < env->count / 2; i++) {
		const struct term *name = &env->items[2 * i];

		if (name->bytes.size == n && memcmp(name->bytes.data, item, n) == 0)
			return true;
	}
	return false;
}

/* The sandbox's environment, and over it what this call sets. On a terminal a program wants to know
 * of which kind it is. */
static void emit_env(struct emit *emit, char *const *own, const struct term *env, bool has_tty)
{
	uint32_t count = env ? (uint32_t)env->count / 2 : 0;
	bool has_kind = !has_tty || has_name(env, "TERM");

	for (char *const *item = own; *item; item++) {
		count += !has_name(env, *item);
		has_kind |= str_starts(*item, "TERM=");
	}
	emit_map(emit, count + !has_kind);
	if (!has_kind) {
		emit_text(emit, "TERM");
		emit_text(emit, "xterm-256color");
	}
	for (char *const *item = own; *item; item++) {
		size_t n = strcspn(*item, "=");

		if (has_name(env, *item))
			continue;
		emit_binary(emit, *item, n);
		emit_text(emit, *item + n + 1);
	}
	for (size_t i = 0; env && i < env->count; i++)
		emit_term(emit, &env->items[i]);
}

static int queue(struct stay *stay, const struct stay_call *call, const struct term *map)
{
	struct emit emit = channel_frame(&stay->run.channel);
	uint32_t count = 2;

	for (size_t i = 0; i < ARRAY_SIZE(passed_keys); i++)
		count += term_get(map, passed_keys[i]) != NULL;
	emit_tuple(&emit, 4);
	emit_atom(&emit, "call");
	emit_int(&emit, call->ref);
	emit_atom(&emit, "exec");
	emit_map(&emit, count);
	for (size_t i = 0; i < ARRAY_SIZE(passed_keys); i++) {
		const struct term *value = term_get(map, passed_keys[i]);

		if (!value)
			continue;
		emit_atom(&emit, passed_keys[i]);
		emit_term(&emit, value);
	}
	emit_atom(&emit, "env");
	emit_env(&emit, stay->run.env, term_get(map, "env"), is_true(map, "tty"));
	run_emit_limits(&emit, &stay->run.plan->limits);
	return channel_send(&stay->run.channel, &emit);
}

static bool is_name(const struct term *name, const char *text)
{
	return name->bytes.size == strlen(text) &&
	       memcmp(name->bytes.data, text, name->bytes.size) == 0;
}

/* What a call's variables hold is as secret as what the sandbox was given. */
static void know_secrets(struct stay *stay, const struct term *env)
{
	char name[256], value[4096];

	for (size_t i = 0; env && i < env->count / 2; i++) {
		const struct term *n = &env->items[2 * i], *v = &env->items[2 * i + 1];

		if (n->bytes.size >= sizeof name || v->bytes.size >= sizeof value ||
		    is_name(n, "TERM"))
			continue;
		snprintf(name, sizeof name, "%.*s", (int)n->bytes.size,
			 (const char *)n->bytes.data);
		snprintf(value, sizeof value, "%.*s", (int)v->bytes.size,
			 (const char *)v->bytes.data);
		redactor_add(stay->run.redactor, name, value);
	}
}

/* The shorter of the call's own and the plan's, which has none for who sits at a terminal. */
static uint64_t command_ms(const struct stay *stay, const struct term *map)
{
	const struct term *term = term_get(map, "timeout_ms");
	uint64_t limit = is_true(map, "tty") ? PLAN_UNLIMITED : stay->run.plan->limits.command_ms;

	if (!term || term->integer == 0 || (uint64_t)term->integer > limit)
		return limit;
	return (uint64_t)term->integer;
}

/* What is left of the time that all commands have together, where a policy gives one. */
static uint64_t budget_left_ms(const struct stay *stay)
{
	uint64_t budget = stay->run.plan->limits.budget_ms, spent = stay->spent_us / 1000;

	if (budget == PLAN_UNLIMITED)
		return PLAN_UNLIMITED;
	return spent < budget ? budget - spent : 0;
}

static int fail_spent(struct csn_error *err)
{
	return csn_fail(err, -ETIMEDOUT, "budget",
			"the time that all commands of this sandbox have together (limits.budget) "
			"is spent; end it and start another");
}

int stay_exec_left(const struct stay *stay, uint64_t *ret_ms, struct csn_error *err)
{
	uint64_t command = stay->run.plan->limits.command_ms, left = budget_left_ms(stay);

	*ret_ms = left < command ? left : command;
	return left == 0 ? fail_spent(err) : 0;
}

/* Which clock ends it, and when. */
static int set_clock(struct stay_exec *exec, const struct term *map, struct csn_error *err)
{
	uint64_t left_ms =
		exec->has_tty || exec->is_evaluator ? PLAN_UNLIMITED : budget_left_ms(exec->stay);

	if (left_ms == 0)
		return fail_spent(err);
	exec->limit_ms = exec->is_evaluator ? PLAN_UNLIMITED : command_ms(exec->stay, map);
	exec->clock_name = "command";
	if (left_ms < exec->limit_ms) {
		exec->limit_ms = left_ms;
		exec->clock_name = "budget";
	}
	exec->call->end_at_ms =
		exec->limit_ms == PLAN_UNLIMITED ? CLOCK_NEVER : clock_now_ms() + exec->limit_ms;
	return 0;
}

/* What concerns all commands is on record already. */
static void on_fact(const struct fact *fact, void *data)
{
	struct stay_exec *exec = data;

	if (!exec->stay->is_sharing)
		run_log_violation(fact, &exec->stay->run);
	stay_tell_fact(exec, fact);
}

/* May a call set these? What a policy file passes on is whatever the caller's is, at each call; and
 * the kind of a terminal is whoever's sits at it. */
static bool may_set(const struct plan *plan, const struct term *map)
{
	const struct term *env = term_get(map, "env");

	for (size_t i = 0; plan->policy_path && !plan->env_any && env && i < env->count / 2; i++) {
		const struct term *name = &env->items[2 * i];
		const char **at = plan->env_pass;

		while (at && *at && !is_name(name, *at))
			at++;
		if ((!at || !*at) && !(is_true(map, "tty") && is_name(name, "TERM")))
			return false;
	}
	return true;
}

/* Before the call, so that the agent finds it there. */
static int lend_terminal(const struct stay_exec *exec, struct csn_error *err)
{
	int fd = exec->stay->run.wall.terminals;
	int r = exec->has_tty && fd >= 0 ? terminal_send(fd, exec->ref) : 0;

	return r < 0 ? csn_fail(err, r, "terminal", "cannot make a terminal: %s", strerror(-r)) : 0;
}

int stay_exec_start(struct stay *stay, struct stay_call *call, const struct term *map,
		    struct csn_error *err)
{
	const struct term *env = term_get(map, "env");
	struct stay_exec *exec;
	int r;

	if (!may_set(stay->run.plan, map))
		return csn_fail(err, -EPERM, "env",
				"the policy file in force, %s, says what the environment is: add "
				"the name to its env.pass or env.set",
				stay->run.plan->policy_path);
	r = stay_check_strict(stay, map, err);
	if (r < 0)
		return r;
	exec = calloc(1, sizeof *exec);
	if (!exec)
		return -ENOMEM;
	call->exec = exec;
	exec->stay = stay;
	exec->call = call;
	exec->ref = call->ref;
	exec->started_us = clock_now_us();
	exec->kill_at_ms = CLOCK_NEVER;
	exec->has_tty = is_true(map, "tty");
	exec->is_evaluator = call->eval != NULL;
	violations_init(&exec->violations, stay->run.plan, on_fact, exec);
	r = set_clock(exec, map, err);
	if (r < 0)
		return r;
	know_secrets(stay, env);
	stay_text_keep(exec, map);
	r = lend_terminal(exec, err);
	if (r < 0)
		return r;
	r = queue(stay, call, map);
	if (r < 0)
		return r;
	stay->run.has_commands = true;
	stay_log_started(stay, call, map);
	return r;
}

void stay_exec_free(struct stay_exec *exec)
{
	if (!exec)
		return;
	notify_free(exec->notify);
	violations_done(&exec->violations);
	stay_text_done(exec);
	free(exec);
}

/* ---- its listener
 * -------------------------------------------------------------------------------- */

/* The announcer may be dead: by a cancel, or by a command beside it that kills whatever it may.
 * Then there is nothing to take, or nobody to answer; only an agent that lies is a loss. */
static bool is_of_dead(struct stay *stay, int r, int64_t ref)
{
	if (r < 0)
		return r == -ESRCH || r == -EBADF;
	return ref > 0 && ref <= stay->last_ref && !stay_call_find(stay, ref);
}

void stay_exec_take_listener(struct stay *stay)
{
	struct notify_setup setup;
	struct stay_call *call;
	int listener = -1;
	int64_t ref = 0;
	int r = run_fetch_listener(&stay->run, &listener, &ref);

	if (r == -EPIPE)
		return;
	if (is_of_dead(stay, r, ref)) {
		fd_close(listener);
		stay->run.error = (struct csn_error){ 0 };
		return;
	}
	call = stay_call_find(stay, ref);
	if (r >= 0 && (!call || !call->exec || call->exec->has_listener)) {
		fd_close(listener);
		r = csn_fail(&stay->run.error, -EBADMSG, "notify",
			     "a listener was announced out of turn");
	}
	if (r >= 0) {
		setup = run_notify_setup(&stay->run, &call->exec->violations);
		call->exec->has_listener = stay->run.has_listener = true;
		r = notify_new(listener, &setup, &call->exec->notify, &stay->run.error);
	}
	/* The answer names the call: one that died meanwhile is not taken for the next. */
	if (r < 0 || write(stay->run.wall.listeners, &ref, sizeof ref) != sizeof ref)
		run_lose(&stay->run);
}

void stay_exec_notified(struct stay *stay, struct stay_call *call)
{
	enum notify_state state = notify_handle(call->exec->notify);

	if (state == NOTIFY_END)
		stay_exec_end(stay, call, END_VIOLATION, false);
	if (state == NOTIFY_CLOSED) {
		notify_free(call->exec->notify);
		call->exec->notify = NULL;
	}
}

/* ---- detached ------------------------------------------------------------------------------ */

/* Its call is answered; what it tries is still explained, and its end is recorded. */
static int detach(struct stay *stay, struct stay_call *call, struct csn_error *err)
{
	for (size_t i = 0; i < STAY_DETACHED; i++)
		if (!stay->detached[i]) {
			stay->detached[i] = call->exec;
			if (i >= stay->detached_end)
				stay->detached_end = i + 1;
			call->exec->call = NULL;
			call->exec = NULL;
			return 0;
		}
	return csn_fail(err, -EBADMSG, "wire", "the agent detached more than %d commands",
			STAY_DETACHED);
}

bool stay_has_detached(const struct stay *stay)
{
	for (size_t i = 0; i < stay->detached_end; i++)
		if (stay->detached[i])
			return true;
	return false;
}

void stay_detached_notified(struct stay *stay, size_t i)
{
	enum notify_state state = notify_handle(stay->detached[i]->notify);

	if (state == NOTIFY_END)
		stay->is_over = true; /* on_violation: kill, and no call to end by itself */
	if (state != NOTIFY_CLOSED)
		return;
	notify_free(stay->detached[i]->notify);
	stay->detached[i]->notify = NULL;
}

/* Number `key` of the agent's map, 0 if it is none. */
static uint64_t number_of(const struct term *map, const char *key)
{
	const struct term *term = term_get(map, key);

	return term && term->type == TERM_INT ? (uint64_t)term->integer : 0;
}

static enum ending ending_of(const struct stay_exec *exec, const struct term *map)
{
	const struct term *signal = term_get(map, "signal");

	if (exec->ending != END_NONE)
		return exec->ending;
	if (term_get(map, "error"))
		return END_START_FAILED;
	if (is_true(map, "lost"))
		return END_LOST;
	return signal && signal->type == TERM_INT ? END_SIGNALED : END_EXITED;
}

/* Its facts become those of the sandbox, whose own it had been told. */
static void hand_up_facts(const struct stay_exec *exec)
{
	struct violations *all = &exec->stay->run.violations;

	exec->stay->is_sharing = true;
	for (size_t i = 0; i < exec->violations.count; i++) {
		const struct fact *fact = &exec->violations.facts[i];

		if (fact->event != FACT_MEMORY_LIMIT && fact->event != FACT_PROCESS_LIMIT &&
		    fact->event != FACT_SCRATCH_LIMIT)
			violations_add(all, fact);
	}
	for (unsigned event = 0; event < FACT_EVENT_COUNT; event++)
		all->others[event] += exec->violations.others[event];
	exec->stay->is_sharing = false;
}

/* What is open becomes a fact; how it ended is recorded. `map` is the agent's, NULL: it did not
 * say. */
static void close_account(struct stay_exec *exec, const struct term *map)
{
	notify_free(exec->notify);
	exec->notify = NULL;
	hand_up_facts(exec);
	exec->wall_us = clock_now_us() - exec->started_us;
	if (exec->call && !exec->has_tty && !exec->is_evaluator)
		exec->stay->spent_us += exec->wall_us;
	if (map)
		exec->ending = ending_of(exec, map);
	stay_log_ended(exec, map);
}

int stay_detached_ended(struct stay *stay, const struct term *map, struct csn_error *err)
{
	const struct term *event = term_get(map, "event");

	if (frame_check_map(frame_ended, map, err) < 0)
		return -EBADMSG;
	if (!term_is_atom(event, "ended"))
		return csn_fail(err, -EBADMSG, "wire", "the agent sent a fact that is none");
	for (size_t i = 0; i < stay->detached_end; i++) {
		struct stay_exec *exec = stay->detached[i];

		if (!exec || exec->ref != (int64_t)number_of(map, "ref"))
			continue;
		exec->bytes[0] = number_of(map, "bytes");
		close_account(exec, map);
		stay_exec_free(exec);
		stay->detached[i] = NULL;
		return 0;
	}
	return csn_fail(err, -EBADMSG, "wire", "a command ended that was not detached");
}

void stay_exec_over(struct stay_exec *exec, enum ending ending)
{
	if (exec->ending == END_NONE)
		exec->ending = ending;
	close_account(exec, NULL);
}

/* ---- its end
 * ------------------------------------------------------------------------------------- */

void stay_exec_end(struct stay *stay, struct stay_call *call, enum ending ending, bool is_soft)
{
	struct stay_exec *exec = call->exec;

	if (exec->ending == END_NONE)
		exec->ending = ending;
	call->end_at_ms = CLOCK_NEVER;
	if (!is_soft) {
		exec->kill_at_ms = CLOCK_NEVER;
		stay_call_cancel(stay, call);
	} else if (exec->kill_at_ms == CLOCK_NEVER) {
		stay_call_signal(stay, call, SIGTERM);
		exec->kill_at_ms = clock_now_ms() + KILL_AFTER_MS;
	}
}

uint64_t stay_exec_clock(struct stay *stay, struct stay_call *call, uint64_t now_ms)
{
	struct stay_exec *exec = call->exec;

	if (exec->kill_at_ms <= now_ms)
		stay_exec_end(stay, call, exec->ending, false);
	if (call->end_at_ms <= now_ms && exec->ending == END_NONE) {
		struct fact fact;

		exec->clock = exec->clock_name;
		fact_timeout(&fact, exec->clock, exec->limit_ms);
		if (exec->has_tty || (str_is(exec->clock, "command") &&
				      exec->limit_ms < stay->run.plan->limits.command_ms))
			fact_print(fact.rule, sizeof fact.rule, "timeout: %llums",
				   (unsigned long long)exec->limit_ms);
		violations_add(&exec->violations, &fact);
		stay_exec_end(stay, call, END_TIMEOUT, true);
	}
	return call->end_at_ms < exec->kill_at_ms ? call->end_at_ms : exec->kill_at_ms;
}

size_t stay_exec_take(struct stay *stay, struct stay_call *call, int stream, size_t size)
{
	struct stay_exec *exec = call->exec;
	uint64_t cap = stay->run.plan->limits.output_bytes;
	uint64_t before = exec->bytes[0] + exec->bytes[1];
	uint64_t room = before < cap ? cap - before : 0;
	struct fact fact;

	exec->bytes[stream] += size;
	if (size <= room)
		return size;
	if (exec->ending == END_NONE) {
		fact_output_limit(&fact, cap);
		violations_add(&exec->violations, &fact);
		stay_exec_end(stay, call, END_OUTPUT, false);
	}
	exec->cut_bytes += size - room;
	return (size_t)room;
}

int stay_exec_reply(struct stay *stay, struct stay_call *call, const struct term *map,
		    struct csn_error *err)
{
	if (is_true(map, "detached")) {
		stay_tell_account(call, map);
		return detach(stay, call, err);
	}
	/* The kernel's word that memory ran out may come after that of the death. */
	if (number_of(map, "signal") == SIGKILL && stay->run.limits.oom_fd >= 0)
		stay_oom(stay);
	close_account(call->exec, map);
	stay_tell_account(call, map);
	return 0;
}
