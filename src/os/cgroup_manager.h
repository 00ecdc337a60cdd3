/*
 * cgroup_manager - asking a systemd user manager for a delegated scope
 *
 * A login session's group belongs to root, so a user cannot make groups in it. His manager can
 * move his processes into a scope beneath itself that is his to divide. It is asked over the
 * user's message bus; nothing of a bus library is needed for two calls. Shared by the
 * cgroup_*.c files only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/cgroup.h"

enum { CGROUP_MANAGER_PATH = 108, CGROUP_MANAGER_CALL = 512 };

/* The path of the bus's socket, if there is one that belongs to us. 0 or -ENOENT. */
int cgroup_manager_find(char ret_path[CGROUP_MANAGER_PATH]);

/*
 * Has `pid`, a process of ours, moved into a new delegated scope. Returns 0 once the manager took
 * the call; the move itself comes a little later. -EPROTO: it refused, -ETIMEDOUT, or an errno.
 */
int cgroup_manager_scope(const char *path, pid_t pid, uint64_t deadline_ms);

/* Probes from within such a scope: the manager of 252 does not mark it as delegated. */
void cgroup_probe_scope(struct cgroup_probe *ret_probe);

/* For tests: the call itself, as bytes. Returns its size. */
size_t cgroup_manager_call(const char *unit, pid_t pid, uint8_t ret_call[CGROUP_MANAGER_CALL]);
