/*
 * process - the wall of namespaces, Landlock and seccomp: the embedded default
 */
#pragma once

#include "backend/backend.h"

extern const struct backend process_backend;

/* Cheap enough for every start: reads switches, makes no namespace. */
void process_probe(struct backend_report *ret_report);
