/*
 * seccomp_list - the syscall profile in the form that container engines take
 *
 * OCI's linux.seccomp, which is also what docker and podman take as --security-opt seccomp=FILE.
 * Made from the same text as the filters that agent and commands load themselves
 * (profiles/command-alone*.profile). A list by name alone: it is the outer ring. What a line makes
 * depend on arguments passes here and is decided by the command's own filter, inside.
 */
#pragma once

#include <jansson.h>

/* A new object, of the profile of that name; NULL: out of memory. */
json_t *seccomp_list(const char *profile);
