/*
 * Two ways to the verdict of a call: its BPF run step by step, and its rules read. They
 * share the parser of the profile's text and nothing else, so a mistake of the emitter
 * shows as a difference.
 */
#include "interpret.h"

#include <errno.h>
#include <string.h>

static const struct profile_arch arches[PROFILE_ARCHES] = {
	{ "x86_64", 0xc000003e, true, profile_programs_x86_64, profile_rules_x86_64,
	  profile_names_x86_64 },
	{ "aarch64", 0xc00000b7, false, profile_programs_aarch64, profile_rules_aarch64,
	  profile_names_aarch64 },
};

const struct profile_arch *profile_arch_at(unsigned index)
{
	return index < PROFILE_ARCHES ? &arches[index] : NULL;
}

static bool jump_is_taken(const struct sock_filter *insn, uint32_t value)
{
	switch (BPF_OP(insn->code)) {
	case BPF_JEQ:
		return value == insn->k;
	case BPF_JGE:
		return value >= insn->k;
	case BPF_JGT:
		return value > insn->k;
	default:
		return (value & insn->k) != 0;
	}
}

uint32_t profile_interpret(const struct sock_fprog *program, const struct seccomp_data *data,
			   unsigned *ret_steps)
{
	uint32_t value = 0;
	unsigned steps = 0;

	for (size_t pc = 0; pc < program->len; pc++) {
		const struct sock_filter *insn = &program->filter[pc];

		steps++;
		switch (BPF_CLASS(insn->code)) {
		case BPF_LD:
			if (insn->k > sizeof *data - 4 || insn->k % 4 != 0)
				return INTERPRET_BROKEN;
			memcpy(&value, (const char *)data + insn->k, 4);
			break;
		case BPF_ALU:
			value &= insn->k;
			break;
		case BPF_JMP:
			if (insn->code == (BPF_JMP | BPF_JA))
				pc += insn->k;
			else
				pc += jump_is_taken(insn, value) ? insn->jt : insn->jf;
			break;
		case BPF_RET:
			if (ret_steps)
				*ret_steps = steps;
			return insn->k;
		default:
			return INTERPRET_BROKEN;
		}
	}
	return INTERPRET_BROKEN;
}

uint32_t profile_expected(const struct profile_arch *arch, const char *profile,
			  const struct seccomp_data *data)
{
	const struct profile_rules_entry *entry = arch->rules;
	const struct profile_rule *rule = NULL;
	bool has_listener = strcmp(profile, "base") != 0 && !strstr(profile, "-alone");

	while (entry->name && strcmp(entry->name, profile) != 0)
		entry++;
	if (!entry->name)
		return INTERPRET_BROKEN;
	if (data->arch == arch->audit_arch)
		rule = profile_decide_in(entry, data, arch->has_x32);
	if (!rule)
		return SECCOMP_RET_ERRNO | ENOSYS;
	if (rule->verdict == PROFILE_ALLOW)
		return SECCOMP_RET_ALLOW;
	if (rule->verdict == PROFILE_WATCH || (rule->verdict == PROFILE_DENY && has_listener))
		return SECCOMP_RET_USER_NOTIF;
	return SECCOMP_RET_ERRNO | (uint32_t)rule->error;
}
