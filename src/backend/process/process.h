/*
 * process - the wall of namespaces, Landlock and seccomp: the embedded default
 */
#pragma once

#include "backend/backend.h"
#include "launch/launch.h"

extern const struct backend process_backend;

/* Adds the limits that this wall has beside channels_limit(). */
void process_limit(const struct plan *plan, const struct backend_start *how, struct launch *launch);

/* Cheap enough for every start: reads switches, makes no namespace. */
void process_probe(struct backend_report *ret_report);
