/* Any call on either architecture: the program agrees with the rules, and high halves of
 * arguments change nothing, save for the pointer of sendto, which is all 64 bits. */
#include <string.h>

#include "interpret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct {
		uint8_t arch, profile, is_foreign, spare;
		uint32_t nr;
		uint64_t args[6];
	} in;
	struct seccomp_data call = { 0 };
	uint32_t verdict;

	if (size < sizeof in)
		return 0;
	memcpy(&in, data, sizeof in);
	const struct profile_arch *arch = profile_arch_at(in.arch % PROFILE_ARCHES);
	const struct profile_program_entry *entry = &arch->programs[in.profile % 5];
	call.nr = (int)(in.nr & 0x80000000 ? in.nr : in.nr % 512);
	call.arch = in.is_foreign ? in.nr : arch->audit_arch;
	memcpy(call.args, in.args, sizeof call.args);
	verdict = profile_interpret(&entry->program, &call, NULL);
	if (verdict != profile_expected(arch, entry->name, &call))
		__builtin_trap();
	for (int i = 0; i < 6; i++)
		if (i != 4 || (uint32_t)call.args[i] != 0)
			call.args[i] &= 0xffffffff;
	if (verdict != profile_interpret(&entry->program, &call, NULL))
		__builtin_trap();
	return 0;
}
