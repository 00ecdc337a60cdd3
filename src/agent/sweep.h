/*
 * sweep - signals to every descendant
 */
#pragma once

#include <stdbool.h>

/*
 * Sends `signal` to everything the agent started, however it forked or changed its session.
 * As pid 1 of a namespace that is one kill(-1). Elsewhere descendants are found in /proc; with
 * SIGKILL the sweep is repeated until none is left, bounded in rounds.
 */
void sweep_all(bool is_pid_1, int signal);
