/*
 * monitor - an agent's stream of frames from and to its monitor
 *
 * Nothing here waits: what the stream does not take stays in agent->out. What is decoded goes to
 * agent_handle(); frames out are begun with agent_frame().
 */
#pragma once

#include "agent/agent.h"

/* Nothing has come and nothing waits. */
void monitor_init(struct agent *agent);

/* Reads once, or as many pieces of a write's input as are there, and handles whole frames. 0, or a
 * negative errno: the stream has ended or is broken. */
int monitor_read(struct agent *agent);

/* Writes what the stream takes; asks for EPOLLOUT only while something is left. 0 or -errno. */
int monitor_flush(struct agent *agent);
