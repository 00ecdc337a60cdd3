/*
 * Another program takes our place; see handover.h. It lies where agent_file.c looks for all that is
 * installed with us.
 */
#include "cli/handover.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/words.h"
#include "monitor/agent_file.h"

int handover_find(const char *name, const char *when, struct handover *ret_handover,
		  struct csn_error *err)
{
	struct handover *made = ret_handover;
	ssize_t n = readlink("/proc/self/exe", made->self, sizeof made->self - 1);
	char folder[PATH_MAX];

	if (n <= 0)
		return csn_fail(err, -ENOENT, name, "/proc is not there");
	made->self[n] = 0;
	if (!agent_file_folder(name, folder))
		return csn_fail(err, -ENOENT, name,
				"%s is missing: it lies in libexec/caisson after make install, or "
				"in the build folder%s%s",
				name, when ? "; it is built where " : "", when ? when : "");
	made->name = name;
	snprintf(made->program, sizeof made->program, "%s/%s", folder, name);
	return 0;
}

int handover_to(const struct handover *handover, struct words *words, struct csn_error *err)
{
	int r = words_end(words, handover->name, err);

	if (r < 0)
		return r;
	execv(handover->program, (char *const *)(uintptr_t)words->at);
	return csn_fail(err, -errno, handover->name, "cannot start %s: %m", handover->program);
}
