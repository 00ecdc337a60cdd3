/*
 * bind - what is lent to a sandbox that was prepared ahead and waits
 *
 * Its first process stands in its root, without privilege, before it takes Landlock's rules on;
 * nothing has run in there. A helper enters its namespaces, mounts what would have been mounted at
 * a start, with the same code, and ends. Then the process is sent the rules for it, and goes on.
 */
#pragma once

#include "backend/backend.h"

/* backend.bind and backend.has_places of the process wall. */
int bind_lend(const struct plan *plan, const struct backend_start *how, struct wall *wall,
	      struct csn_error *err);
/* See above. */
bool bind_has_places(const struct plan *waiting, const struct plan *plan);
