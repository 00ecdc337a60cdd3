/*
 * profile - syscall profiles: what was compiled from profiles/ at build time
 *
 * profiles/NAME.profile is text, a syscall and a reason on each line; tools/build turns it
 * into one BPF program per architecture and one table of rules. The agent loads programs,
 * the monitor reads rules; neither links libseccomp.
 *
 * Verdicts: `allow`; `watch` (allowed by the filter, but shown to the monitor first, which
 * lets it continue or answers in its place); `deny` (an errno and a fact: notified, answered
 * with the errno); `quiet` (an errno without a fact). In the base profile, which has no
 * listener, `deny` is an errno.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum profile_verdict { PROFILE_ALLOW, PROFILE_WATCH, PROFILE_DENY, PROFILE_QUIET };

/*
 * One claim about one argument. `is`: the low 32 bits under `mask` are one of `values`;
 * `has`: any bit of `mask` is set; `null`: all 64 bits are zero. Only `null` looks at the
 * high half: the kernel drops it for ints and flags, so a compare of it could be dodged.
 */
enum profile_test_kind { PROFILE_IS, PROFILE_HAS, PROFILE_NULL };

#define PROFILE_VALUES_MAX 12

struct profile_test {
	unsigned char arg; /* 0 to 5 */
	enum profile_test_kind kind;
	bool is_negated;
	uint32_t mask;
	unsigned value_count;
	uint32_t values[PROFILE_VALUES_MAX];
};

struct profile_rule {
	const char *name; /* of the syscall */
	int nr;           /* on this architecture */
	enum profile_verdict verdict;
	int error;                        /* the errno answered to deny and quiet, else 0 */
	const char *when;                 /* the condition as written, "" if none */
	const struct profile_test *tests; /* the same: all must hold */
	unsigned test_count;
	const char *reason; /* from the profile's text */
};

/* Profiles: "base" (the agent's own, loaded once), "command" (process wall), "command-reads" (the
 * same with every open watched), "landlock" and "landlock-reads" (no namespaces: inet sockets are
 * denied), "command-alone" and "landlock-alone" (the same where nobody can take the listener),
 * "command-alone-inner" (on a kernel of its own), "command-alone-net" (on a network that is lent).
 */

/* The BPF program of a profile for this architecture, NULL for an unknown name. Static memory. */
const struct sock_fprog *profile_program(const char *name);

/* Its rules, sorted by nr; several rules of one syscall stand in the order of the text. */
const struct profile_rule *profile_rules(const char *name, size_t *ret_count);

/* The first rule of syscall `nr` whose verdict is not ALLOW, or NULL: syscalls that are named
 * nowhere. */
const struct profile_rule *profile_rule_of(const char *name, int nr);

/*
 * The rule that decides a call with these arguments, as the filter did: the first of the
 * syscall whose condition holds, else the profile's default, whose `nr` is -1. NULL for an
 * unknown name, another architecture's call, or an x32 number: those are ENOSYS, quietly.
 */
const struct profile_rule *profile_decide(const char *name, const struct seccomp_data *data);

/* The name of syscall number `nr` on this architecture, also of ones that no profile names; NULL if
 * unknown. */
const char *profile_syscall_name(int nr);
