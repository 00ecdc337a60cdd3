/*
 * landlock - the wall without namespaces: for containers, CI jobs and hosts that forbid them
 *
 * Landlock on files, signals and abstract sockets; the syscall filters, which refuse every inet
 * socket; no privilege; rlimits. The view is the host's: paths are the host's own, /proc shows
 * all processes (Landlock keeps their memory and environment closed), and what ends the sandbox
 * is the agent's sweep, not a namespace.
 */
#pragma once

#include "backend/backend.h"

extern const struct backend landlock_backend;
