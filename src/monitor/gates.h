/*
 * gates - what code inside may ask the host for by name, and who answers
 *
 *   agent ── {gate_call, Ref, Name, Args} ──▶ gates ──▶ a worker: a program of the host's
 *         ◀── {gate_result, Ref, Map} ─────    │  └───▶ who opened the sandbox: a function of his
 *                                              ▼
 *                                              the record: GateCalled
 *
 * One for each sandbox whose plan has gates. Whatever the call is, it is answered: with the gate's
 * result, or with a sentence and `is_error`; a call that fails is a value for the code that made it
 * and no failure of the sandbox. Nothing here blocks: a call is a place in a table and a
 * descriptor in the poll loop.
 *
 * Trust: name and arguments are untrusted code's. They are bounded by the frame's table, read as a
 * JSON object, held against the gate's schema, and only then given to the gate. At most GATES_CALLS
 * run at once, each gate as often a minute as its policy says; of refused calls so many are on
 * record a minute that a flood cannot fill it.
 */
#pragma once

#include <jansson.h>
#include <poll.h>

#include "audit/audit.h"
#include "monitor/channel.h"
#include "plan/plan.h"
#include "wire/term.h"

enum { GATES_CALLS = 16 };

struct gates;
struct run;

struct gates_setup {
	const struct run *run; /* borrowed: its plan, redactor and chain */
	struct channel *agent; /* answers go here */
	struct chain *chain;
};

/* 0 and a new one, or NULL where the plan has none; -EINVAL for a schema that is none, -ENOMEM,
 * with a sentence. */
int gates_new(const struct gates_setup *setup, struct gates **ret_gates, struct csn_error *err);

/* Ends what is under way. NULL is fine. */
void gates_free(struct gates *gates);

/* In a forked process: closes what is the monitor's alone. */
void gates_forget(struct gates *gates);

/* What a worker of a gate closes besides, in its own process: gates_new() knows the wall's stream.
 */
void gates_on_fork(struct gates *gates, void (*forget)(void *data), void *data);

/* {gate_call, …} of the agent's. 0, also when it is refused; -EBADMSG with a sentence for a Ref
 * that is under way. */
int gates_call(struct gates *gates, const struct term *items, struct csn_error *err);

/*
 * The same for who asks from here: a code session. `args` is taken. `answer` is called once, maybe
 * before this returns, never after gates_drop() of its `data`; `ref` is the asker's own, 1 or more.
 * A NULL `gates` has none.
 */
struct gates_asker {
	void (*answer)(void *data, int64_t ref, const struct term *result, bool is_error);
	void *data;
	int64_t ref;
};
void gates_ask(struct gates *gates, const struct gates_asker *asker, const char *name,
	       json_t *args);
/* What is under way for him is answered to nobody. */
void gates_drop(struct gates *gates, const void *data);

/* One call of any gate, for the record. */
struct gates_note {
	const char *name;
	int64_t id;
	json_t *args; /* borrowed; NULL: not to be kept */
	bool is_error;
	const struct term *reason; /* of an error; NULL: not to be kept */
	uint64_t started_us;
};
void gates_record(const struct run *run, struct chain *chain, const struct gates_note *note);

/* Who opened the sandbox is there: functions are asked for on this stream, and answered. */
void gates_on_host(struct gates *gates, struct channel *host);

/* {gate_result, Ref, Map} of his. A Ref that nobody waits for any more is passed over. */
void gates_answered(struct gates *gates, const struct term *items);

/* Ends what takes too long there; returns when to look again, CLOCK_NEVER. NULL is fine. */
uint64_t gates_clock(struct gates *gates, uint64_t now_ms);

/* Puts what it waits for in `fds`, at most GATES_CALLS: how many. NULL: 0. */
size_t gates_watch(const struct gates *gates, struct pollfd *fds);

/* One of those is ready. */
void gates_ready(struct gates *gates, int fd);
