/*
 * late - a path lent to a sandbox that runs already
 *
 *   worker ── enters the sandbox's user namespace; rootless: and copies our mounts, as its own
 *          ── clones the path, detached, with its flags          … as it is lent at a start
 *          ── enters the sandbox's mounts, attaches
 *
 * Nothing is kept for it while the sandbox runs: an ordinary user may not clone what is mounted in
 * the host's namespace, but a copy of that namespace belongs to the sandbox's user namespace, in
 * which he has the right to. docs/decisions/late-mounts.md
 */
#pragma once

#include "backend/backend.h"

/* backend.mount of the process wall. */
int late_mount(const struct wall *wall, const struct plan_mount *mount, int source_fd,
	       struct csn_error *err);
