/*
 * gates - functions of the host's that code inside asks for by name, and the thread that runs them
 *
 *   whoever reads the link ── {gate_call, …} ──▶ a queue ──▶ the thread ──▶ a function
 *                                                                 │
 *                                 socket ◀── {gate_result, …} ◀───┘
 *
 * The thread reads for all while it has nothing else to do and nobody else reads: a command that
 * was detached asks when no call is under way. All is under the link's lock but a function that
 * runs. What comes is the monitor's word, and checked as such: a gate that was not offered breaks
 * the link, a queue that is full is answered at once.
 */
#pragma once

#include "client/link.h"

struct gates;

/* Copies what the options name: 0 and NULL where there are none; -CSN_INVALID, -CSN_ENOMEM. */
int client_gates_new(const csn_options *options, struct gates **ret_gates, csn_error *err);

/* As --gate takes them, ends with NULL; NULL for NULL. Borrowed. */
const char *const *client_gates_words(const struct gates *gates);

/* Gives them to a link, before anything is read from it. NULL is fine. */
void client_gates_lend(struct gates *gates, struct csn_sandbox *link);

/* Starts the thread of a link that has gates, and nothing for another. 0 or -code. */
int client_gates_start(struct csn_sandbox *link, csn_error *err);

/* Of ones that no link was given. NULL is fine. */
void client_gates_free(struct gates *gates);
