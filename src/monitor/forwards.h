/*
 * forwards - connections from inside to the endpoints of the host's that the plan names
 *
 *   agent ── {forward_open, Ref, N} {forward_data, …} ──▶ forwards ── connect ──▶ the N-th endpoint
 *
 * One for each sandbox whose plan has any. Which endpoint it is was said by flag or policy; from
 * inside comes its number, and bytes, which nobody here reads. A connection that fails is a fact on
 * record and the end of that connection inside, and no failure of the sandbox.
 *
 * Nothing here blocks or grows: each connection has a window either way (FRAME_FORWARD_WINDOW). The
 * agent may send as much as the endpoint has taken; the endpoint is read as far as the agent took
 * it, and while the stream to the agent is not full.
 *
 * Trust: the agent may lie. A number that is none, a Ref that was used, more than a window: a fault
 * of the protocol, that ends the sandbox. More connections than there may be are answered `full`.
 * A socket's path is walked anew for each connection without following a link, with the rights of
 * who started the sandbox, and sockets that make their user root on the host are refused.
 */
#pragma once

#include <poll.h>

#include <jansson.h>

#include "audit/audit.h"
#include "monitor/channel.h"
#include "plan/plan.h"
#include "wire/term.h"

enum { FORWARDS_LINKS = FRAME_FORWARD_LINKS };

struct forwards;

struct forwards_setup {
	const struct plan *plan; /* borrowed, like the others */
	struct channel *agent;
	struct chain *chain;
};

/* 0 and a new one, or NULL where the plan has none; a negative errno with a sentence, when an
 * endpoint is not there. */
int forwards_new(const struct forwards_setup *setup, struct forwards **ret_forwards,
		 struct csn_error *err);

/* Ends what is under way, on record. NULL is fine. */
void forwards_stop(struct forwards *forwards);

/* NULL is fine. */
void forwards_free(struct forwards *forwards);

/* A {forward_…} of the agent's, by its index. 0, or -EBADMSG with a sentence. */
int forwards_frame(struct forwards *forwards, int index, const struct term *items,
		   struct csn_error *err);

/* Is it one of those? */
static inline bool forwards_are_meant(int index)
{
	return index >= FRAME_FORWARD_OPEN && index <= FRAME_FORWARD_CLOSE_OUT;
}

/* Puts what it waits for in `fds`, at most FORWARDS_LINKS: how many. NULL: 0. */
size_t forwards_watch(const struct forwards *forwards, struct pollfd *fds);

/* One of those is ready. */
void forwards_ready(struct forwards *forwards, const struct pollfd *fd);

/* Tries again where an endpoint was busy; returns when to look again, CLOCK_NEVER. NULL is fine. */
uint64_t forwards_clock(struct forwards *forwards, uint64_t now_ms);

/* What went through each, for results and the log: a new array; of NULL an empty one. */
json_t *forwards_json(const struct forwards *forwards);
