/* The programs of this architecture by name. Apart from the rules, for the agent's size. */
#include "tables.h"

#include <string.h>

const struct sock_fprog *profile_program(const char *name)
{
	const struct profile_program_entry *entry = PROFILE_NATIVE(profile_programs);

	for (; entry->name; entry++)
		if (strcmp(entry->name, name) == 0)
			return &entry->program;
	return NULL;
}
