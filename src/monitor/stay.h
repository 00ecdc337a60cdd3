/*
 * stay - a sandbox that outlives a command: one monitor, one agent, many calls
 *
 *   client ─┐                                        ┌─ exec
 *   client ─┼─ frames, a Unix socket ── monitor ── frames ── agent ─┼─ read, write, grep …
 *   owner  ─┘   (peer: our own uid)     │            └─ detached commands
 *                                       └─ deadlines, limits, listeners, the record
 *
 * Clients speak the agent's own protocol (docs/protocol.md): {call, …} goes through after it was
 * checked and completed (environment, limits, profile, deadline), what the agent says comes back
 * under the client's Ref. Nothing blocks: a client that reads slowly holds up its own calls only.
 *
 * Ends: {stop} from a client, a signal, the owner's end of stream, silence for as long as the
 * `idle` clock, or the wall's end. All that run.c makes is then accounted for and removed.
 */
#pragma once

#include "monitor/run.h"

/* An owner who speaks through `caisson port` (docs/protocol.md): he is answered with replies to
 * what he sent as {open, Ref, …} and {close, Ref}. */
struct stay_port {
	int out_fd; /* where he reads, borrowed, non-blocking */
	int64_t open_ref;
};

struct stay_setup {
	struct run_setup run; /* without a command: argv and text NULL, descriptors -1 */
	int listen_fd;        /* a listening Unix socket, borrowed; -1: none */
	int owner_fd; /* a connected stream whose end is the sandbox's, borrowed; -1: none */
	const struct stay_port *port; /* how he speaks; NULL: as any client */
	/* Told once: err.code 0 when the agent is ready, else why there is no sandbox. */
	void (*tell)(void *data, const struct csn_error *err);
	void *data;
};

/* Until it ends. 0 when a result exists, whatever it says; a negative errno only when out of
 * memory. */
int stay_execute(const struct stay_setup *setup, struct run_outcome *ret_outcome);

/*
 * Prepared ahead, for a pool: groups and a wall that waits, made from a plan whose workspace and
 * mounts are only places. stay_take() is stay_execute() of another setup, whose plan may differ in
 * what is lent and in the monitor's own clocks; stay_differs() names the first thing in which it
 * may not (static text), NULL: it fits. A sandbox is taken once. NULL with a sentence: it cannot
 * be.
 */
struct stay;
struct stay *stay_prepare(const struct stay_setup *setup, struct csn_error *err);
/* See above. */
const char *stay_differs(const struct stay *stay, const struct stay_setup *setup);
/* Frees it; else as stay_execute(). */
int stay_take(struct stay *stay, const struct stay_setup *setup, struct run_outcome *ret_outcome);
/* Becomes readable when the wall has ended by itself; borrowed. */
int stay_prepared_fd(const struct stay *stay);
/* Takes all back, and frees it. */
void stay_discard(struct stay *stay);
