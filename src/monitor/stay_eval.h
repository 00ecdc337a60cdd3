/*
 * stay_eval - code sessions of a sandbox that stays
 *
 *   client ── {call, Ref, eval, …} ──▶ stay_eval ── session ── frames ──▶ exec: an evaluator
 *          ◀── {reply, Ref, …} ──────      │   ▲                          behind the wall
 *                                          ▼   │ its result
 *                                     stay_gate.c: a verb of the agent's, or gates.c
 *
 * The verb `eval`. A session is found by medium and name; its evaluator is a command of the
 * sandbox as any other, under the same limits, filter and listener, but without the command's
 * clock: each eval has its own. The program is sent along with its exec, so that nothing inside
 * can change it.
 */
#pragma once

#include "medium/builtin.h"
#include "medium/media.h"
#include "medium/session.h"
#include "monitor/eval_json.h"
#include "monitor/stay_verbs.h"

enum { STAY_EVAL_NAME = 256, STAY_EVAL_GATE = 80 };

struct stay_eval {
	struct stay *stay;
	char name[STAY_EVAL_NAME];
	const struct medium *medium;
	struct session *session;
	struct stay_call *call;    /* of a client, who waits for the eval; NULL: none */
	uint64_t started_us;       /* of the eval under way; 0: none */
	struct stay_call *process; /* the exec of its evaluator; NULL: none */
	/* The gate that its code waits for. */
	char gate[STAY_EVAL_GATE];
	const struct builtin *builtin; /* NULL: one of the policy's, or none */
	struct stay_call *verb;        /* of the agent's, that answers it; NULL: none */
	json_t *args;
	int64_t gate_id; /* on record */
	uint64_t gate_started_us;
	struct buf bytes; /* of a file */
	uint64_t credit_ms, credited_at_ms;
};

/* Why this sandbox has no code sessions; NULL: it has. */
const char *stay_eval_missing(const struct stay *stay);
/* Begins a client's eval. 0, or -errno with a sentence. */
int stay_eval_start(struct stay *stay, struct stay_call *call, const struct term *map,
		    struct csn_error *err);
/* He takes it back, or is gone: the call is free afterwards. */
void stay_eval_cancel(struct stay *stay, struct stay_call *call);
/* Bytes for evaluators, and the clocks of evals; when to look again, CLOCK_NEVER. */
uint64_t stay_eval_clock(struct stay *stay, uint64_t now_ms);
/* Takes everything back; what they started ends with the sandbox. */
void stay_eval_done(struct stay *stay);

/* The agent's frames about a call of a session's (call->eval): output, the reply, or why not. */
void stay_eval_data(struct stay_call *call, const struct term *items, size_t size);
void stay_eval_reply(struct stay_call *call, const struct term *map);
void stay_eval_failed(struct stay_call *call, const struct term *detail);

/* ---- stay_gate.c ---- */

/* For session_host: what an eval may call, and one call. */
void stay_gate_env(void *data, struct emit *emit);
void stay_gate_call(void *data, const struct term *name, const struct term *args);
/* The agent's verb for it: more of a file, its end, its failure. */
void stay_gate_data(struct stay_eval *eval, const struct term *items, size_t size);
void stay_gate_reply(struct stay_eval *eval, const struct term *map);
void stay_gate_failed(struct stay_eval *eval, const struct term *detail);
/* Nobody waits for it any more. */
void stay_gate_drop(struct stay_eval *eval);
