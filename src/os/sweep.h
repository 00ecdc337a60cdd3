/*
 * sweep - signals to every descendant of the calling process
 *
 * For processes that must leave nothing behind where no pid namespace does it for them. The
 * caller is a child subreaper, so every orphan becomes its child and /proc shows the tree.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Sends `signal` to every descendant but those in `spared` (ends with 0; NULL: nobody) and theirs.
 * Returns how many were seen.
 */
unsigned sweep_signal(int signal, const pid_t *spared);

/*
 * SIGKILL, repeated until none is left: a chain that forks and exits faster than one reading of
 * /proc is caught by the next. Reaps what becomes our child, but not `spared`. Bounded in rounds:
 * false: somebody is left, such as one whose end takes long.
 */
bool sweep_kill(const pid_t *spared);
