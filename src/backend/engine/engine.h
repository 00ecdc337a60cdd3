/*
 * engine - the walls docker and podman: a container of an installed engine, hardened
 *
 * A thin launcher around the engine's own command line. The agent is the container's first process
 * and speaks frames on its standard streams, so a command costs what it costs behind any wall; the
 * engine is asked for the start and for nothing else. docs/decisions/containers.md
 */
#pragma once

#include "backend/backend.h"
#include "base/removed.h"

extern const struct backend docker_backend, podman_backend;

/* Removes the caller's containers whose monitors are gone, each told as "container".
 * For `caisson gc`. */
void engine_sweep(const struct removed *removed);
