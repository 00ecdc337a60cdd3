/*
 * session - a code session, as the parent of its evaluator sees it
 *
 *   idle ── session_eval ──▶ starting ── ready ──▶ evaluating ⇄ at a gate
 *     ▲                          │                     │
 *     │ stop, timeout, fault, exit; the binding stays  ▼
 *     └────────────────────────────────────────────── waiting ── session_eval ──▶ evaluating
 *
 * A pure machine: bytes of the evaluator come in by session_input(), bytes for it are taken from
 * session_out(), the time is an argument, everything else is asked of a host. It never blocks and
 * opens nothing. Every eval has one answer.
 *
 * Everything that the evaluator sends is hostile. A frame is looked at before it is decoded: is its
 * name known, may it come now, may it be so long. One that is malformed or out of turn ends that
 * evaluator, and the eval with it. The session itself goes on: the next eval starts a fresh
 * evaluator with the binding of the last answer that came. It is over after `done`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "medium/session_frames.h"
#include "wire/emit.h"
#include "wire/term.h"

enum {
	SESSION_TIMEOUT_MS = 30000,     /* of an eval, unless it says another */
	SESSION_START_MS = 5000,        /* at least, for the evaluator to be ready */
	SESSION_CODE_BYTES = 1 << 20,   /* an evaluator may take less */
	SESSION_OUTPUT_BYTES = 1 << 20, /* that an answer may carry */
	SESSION_NEWS = 1024,            /* frames of an eval that ask for nothing */
};

#define SESSION_TIMED_OUT "port code evaluation timed out"

/* What an eval came to. Terms and bytes are borrowed, for the call. */
struct session_answer {
	int64_t ref;
	bool is_done;               /* the session is over, with this value */
	const struct term *value;   /* NULL: it failed, and `reason` says why */
	struct term reason, output; /* binaries */
};

struct session_host {
	/* Starts an evaluator. 0, or -errno with a sentence. */
	int (*start)(void *data, struct csn_error *err);
	/* Ends it and everything it started; nothing of it comes in any more. */
	void (*stop)(void *data);
	/* The code asks for a gate: answered, at any time, by session_observe(). Name and arguments
	 * are borrowed, for the call. */
	void (*gate)(void *data, const struct term *name, const struct term *args);
	/* Must not free the session; it may begin the next eval. */
	void (*answer)(void *data, const struct session_answer *answer);
	/* Emits the Env of an eval: a map. */
	void (*emit_env)(void *data, struct emit *emit);
	void *data;
};

struct session_order {
	int64_t ref;
	const void *code;
	size_t size;
	uint64_t timeout_ms; /* 0: SESSION_TIMEOUT_MS */
};

struct session;

/* NULL: out of memory. `host` is copied. */
struct session *session_new(const struct session_host *host);
/* Says nothing to anybody, and stops nothing. NULL is fine. */
void session_free(struct session *session);

/* Begins an eval. 0; -EBUSY: one runs; -ESTALE: the session is over; -EINVAL, -E2BIG, -ENOMEM;
 * with a sentence. What fails later is the answer. */
int session_eval(struct session *session, const struct session_order *order, uint64_t now_ms,
		 struct csn_error *err);
/* Ends the eval, if there is one, for that reason; its evaluator is stopped. */
void session_cancel(struct session *session, const char *reason);

/* What its evaluator wrote. */
void session_input(struct session *session, const void *bytes, size_t size, uint64_t now_ms);
/* It is gone by itself, for that reason. */
void session_exited(struct session *session, const char *reason);
/* What is to be written to it: who wrote some consumes that. */
struct buf *session_out(struct session *session);
/* What the gate said: its result, for the code. */
void session_observe(struct session *session, const char *gate, const struct term *result,
		     bool is_error);

/* Carries out what is due; when to ask again, UINT64_MAX: not before something happens. */
uint64_t session_clock(struct session *session, uint64_t now_ms);

/* Is an eval under way? Is there an evaluator? */
bool session_is_busy(const struct session *session);
bool session_is_up(const struct session *session);
