/*
 * runtime - the OCI runtimes that can be a wall: where they are and how they are called
 */
#pragma once

#include <limits.h>

#include "backend/backend.h"

struct runtime {
	const char *name;         /* of the program */
	const char *package;      /* how to get it, for people */
	const char *const *flags; /* before the command, NULL-terminated */
	bool makes_group;         /* insists on a control group of its own */
	bool is_shallow; /* clones a mount without those in it: what they hide would show */
	bool hides_v2;   /* refuses a hybrid layout as long as it sees the v2 tree */
};

enum runtime_wall { RUNTIME_OCI, RUNTIME_GVISOR };

/* The one to use for a wall, its path to `ret_path` (PATH_MAX bytes); NULL: none is installed. */
const struct runtime *runtime_find(enum runtime_wall wall, char *ret_path);

/* What can be had of a wall here, and why not. */
void runtime_probe(enum runtime_wall wall, struct backend_report *ret_report);
