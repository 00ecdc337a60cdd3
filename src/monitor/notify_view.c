/*
 * What a command may read where the wall shows the host's own tree.
 *
 * A wall with mounts has nothing else in view, so a missing folder tells. Behind Landlock the
 * whole tree can be named, and the rules say what of it may be opened: the wall's system
 * folders, tool chains, the workspace, mounts, scratch. The same question is asked here of the
 * path, for the record; the kernel has its own answer.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "monitor/notify_private.h"
#include "os/tracee.h"

static bool is_beneath_any(const char *name, const char *const *folders)
{
	for (; folders && *folders; folders++)
		if (path_is_beneath(name, *folders))
			return true;
	return false;
}

/* Is it in what the plan lends, or does `folder` contain something of that? */
static bool touches_plan(const struct plan *plan, const char *name, bool as_parent)
{
	const char *host = plan->workspace.host;

	if (host && (as_parent ? path_is_beneath(host, name) : path_is_beneath(name, host)))
		return true;
	for (size_t i = 0; i < plan->mount_count; i++) {
		host = plan->mounts[i].host;
		if (as_parent ? path_is_beneath(host, name) : path_is_beneath(name, host))
			return true;
	}
	return false;
}

static bool is_on_scratch(const struct call *call, const char *name)
{
	int fd = call->notify->setup.scratch_fd;
	char scratch[PATH_MAX];

	return fd >= 0 && tracee_name_of(fd, scratch, sizeof scratch) == 0 &&
	       path_is_beneath(name, scratch);
}

/* Pipes, files in memory, removed files, the command's terminal: what was open already. */
static bool is_own(const struct place *place, const char *name)
{
	struct stat st;

	return name[0] != '/' || path_is_beneath(name, "/dev/pts") ||
	       (place->exists && fstat(place->fd, &st) == 0 && st.st_nlink == 0);
}

bool view_shows(const struct call *call, const struct place *place, const char *name)
{
	const struct notify_setup *setup = &call->notify->setup;
	char folder[PATH_MAX];

	if (is_own(place, name) || (setup->shows && setup->shows(name)) ||
	    is_beneath_any(name, setup->toolchains) || touches_plan(setup->plan, name, false) ||
	    is_on_scratch(call, name))
		return true;
	if (!strchr(name + 1, '/'))
		return true; /* a folder of the root: its name tells nothing */
	/* Tools look for their files in the folders above the workspace; nothing was there. */
	return !place->exists && tracee_name_of(place->fd, folder, sizeof folder) == 0 &&
	       touches_plan(setup->plan, folder, true);
}
