/*
 * interpret - runs a filter as the kernel would, for tests and fuzzing
 *
 * Knows the instructions that seccomp accepts and profile-compiler writes, checks every
 * bound, and never runs in a product.
 */
#pragma once

#include "tables.h"

/* One architecture's tables, to walk over both. */
struct profile_arch {
	const char *name;
	uint32_t audit_arch;
	bool has_x32;
	const struct profile_program_entry *programs;
	const struct profile_rules_entry *rules;
	const char *const *names;
};

#define PROFILE_ARCHES 2

/* x86-64, then arm64. */
const struct profile_arch *profile_arch_at(unsigned index);

/* What a filter says when it is broken: no program of ours returns it. */
#define INTERPRET_BROKEN SECCOMP_RET_KILL_PROCESS

/*
 * The filter's return value. `ret_steps`, if not NULL, is how many instructions ran. A
 * program that leaves its bounds or has an unknown instruction gives INTERPRET_BROKEN.
 */
uint32_t profile_interpret(const struct sock_fprog *program, const struct seccomp_data *data,
			   unsigned *ret_steps);

/* What the rules say it should return: the other way to the same answer. */
uint32_t profile_expected(const struct profile_arch *arch, const char *profile,
			  const struct seccomp_data *data);
