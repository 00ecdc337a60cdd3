/*
 * What profile-compiler writes: per architecture, a table of programs, one of rules and one
 * of names. Each ends with an entry whose name is NULL. Only programs.c, rules.c and the
 * tests include this; everybody else includes os/profile.h.
 */
#pragma once

#include "os/profile.h"

#define PROFILE_NAMES_END 512

struct profile_program_entry {
	const char *name;
	struct sock_fprog program;
};

/* `count` rules sorted by nr, and behind them one more: the profile's default. */
struct profile_rules_entry {
	const char *name;
	const struct profile_rule *rules;
	size_t count;
};

extern const struct profile_program_entry profile_programs_x86_64[], profile_programs_aarch64[];
extern const struct profile_rules_entry profile_rules_x86_64[], profile_rules_aarch64[];
extern const char *const profile_names_x86_64[PROFILE_NAMES_END];
extern const char *const profile_names_aarch64[PROFILE_NAMES_END];
extern const uint32_t profile_arch_x86_64, profile_arch_aarch64; /* AUDIT_ARCH_... */

/*
 * The rule that decides a call, from the rules alone, as the program does it from BPF. NULL
 * for an x32 number; the caller has looked at the architecture.
 */
const struct profile_rule *profile_decide_in(const struct profile_rules_entry *entry,
					     const struct seccomp_data *data, bool has_x32);

#if defined __x86_64__
#define PROFILE_NATIVE(table) table##_x86_64
#define PROFILE_NATIVE_HAS_X32 true
#elif defined __aarch64__
#define PROFILE_NATIVE(table) table##_aarch64
#define PROFILE_NATIVE_HAS_X32 false
#else
#error "no syscall profiles for this architecture: add it to tools/profile-names.c"
#endif
