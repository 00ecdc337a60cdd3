/*
 * yama - kernel.yama.ptrace_scope: who may take another process's descriptors
 *
 * The monitor takes a command's seccomp listener by pidfd_getfd(), for which the kernel asks
 * Yama as for ptrace: 1 permits descendants, which commands are; 2 only CAP_SYS_PTRACE towards
 * the process; 3 nobody, root included, until the machine starts anew.
 */
#pragma once

#include <stdbool.h>

/* The switch's value, or -1 where there is no Yama (or no readable /proc/sys). */
int yama_scope(void);

/* May we take descriptors of processes that descend from us? `is_owner`: they live in a user
 * namespace that we made, in which we have every capability. */
bool yama_permits(bool is_owner);
