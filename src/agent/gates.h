/*
 * gates - commands that ask the host for something by its name
 *
 *   command ── caisson-gate NAME JSON ── a socket in scratch ── agent ── {gate_call, …} ── monitor
 *
 * Where `init` names gates the agent makes a folder in scratch: `gates`, a socket on which it
 * listens, and `bin`, which holds a copy of the agent itself, that under the name caisson-gate is
 * the other end (gate_client.h), and a link to it for each gate. A connection speaks the same
 * frames: {gate_call, Ref, Name, Args}, answered by {gate_result, Ref, Map}, one at a time.
 *
 * Trust: whatever runs inside may connect, write anything, or leave. Connections, what each may
 * have sent, and what one has under way are bounded; who connects last makes room by the oldest
 * that asked for nothing. What is asked for is the monitor's to judge. A call whose asker left is
 * carried out, and its answer passed over: only the host knows what it did.
 */
#pragma once

#include "agent/agent.h"

struct gates;

/* As `init` says. 0, or a negative errno: the agent goes on without, and `ready` says so. */
int gates_open(struct agent *agent, const struct term *names, const struct term *at);

/* Somebody connects; something came from the connection in this slot, or it takes more. */
void gates_knock(struct agent *agent);
void gates_ready(struct agent *agent, unsigned slot, uint32_t events);

/* {gate_result, Ref, Map} of the monitor's. */
void gates_answer(struct agent *agent, const struct term *items);

/* Closes everything. */
void gates_done(struct agent *agent);
