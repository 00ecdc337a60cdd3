/*
 * filter - loading seccomp programs
 */
#pragma once

#include <linux/filter.h>

/* Loads a program for good. Needs no_new_privs. 0 or -errno. */
int filter_load(const struct sock_fprog *program);

/*
 * Loads a program with a listener and returns the listener's descriptor (O_CLOEXEC) or
 * -errno. Calls that wait for the listener can only be interrupted by a fatal signal, once
 * it has received them (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19): without that, a
 * program with a 1 ms timer never finishes such a call.
 */
int filter_load_listener(const struct sock_fprog *program);
