/*
 * gate_client - caisson-gate: the end of a gate's call that a command starts
 *
 *   caisson-gate NAME [JSON | -]        NAME [JSON | -], by a link of that name
 *
 * The agent's own program, executed inside by one of these names (gates.h). Arguments are a JSON
 * object, `{}` without; `-` reads it. The answer is on standard output, status 0; or the gate's
 * sentence on standard error, status 1; 2: nothing was asked.
 */
#pragma once

#include <stdbool.h>

/* Was this program executed as the client? By the path that the kernel was given, which for the
 * agent is a descriptor's or its own file's. */
bool gate_client_is_meant(void);

/* The whole program; returns its status. */
int gate_client_main(int argc, char **argv);
