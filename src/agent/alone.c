/*
 * The lockdown of an agent without a launcher; see alone.h. A table of steps in order, like those
 * of src/launch/launch.c, because a step that fails must end it here as well.
 */
#include "agent/alone.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/agent_fds.h"
#include "os/filter.h"
#include "os/privs.h"
#include "os/profile.h"
#include "os/sys.h"

/* Beside us, as installed and as in the build folder. None: no glob, no grep. */
static int open_search(void)
{
	static const char *const places[] = { "caisson-search", "../search/caisson-search" };
	char self[PATH_MAX], path[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	int fd = -1;

	if (n <= 0)
		return -1;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof path, "%s/%s", self, places[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	return fd;
}

static int arrange_fds(void)
{
	int fd;

	if (sys_close_from(AGENT_FD_LISTENERS) < 0)
		return -EIO;
	for (fd = AGENT_FD_LISTENERS; fd < AGENT_FD_END; fd++)
		if (open("/dev/null", O_RDWR) != fd)
			return -EMFILE;
	fd = open_search(); /* the next number is its own */
	return fd < 0 || fd == AGENT_FD_SEARCH ? 0 : -EMFILE;
}

/* 1, not 0: for 0 a pipe in core_pattern is started all the same. */
static int no_core(void)
{
	struct rlimit core;

	if (getrlimit(RLIMIT_CORE, &core) < 0)
		return -errno;
	core.rlim_max = core.rlim_max < 1 ? core.rlim_max : 1;
	core.rlim_cur = core.rlim_max;
	return setrlimit(RLIMIT_CORE, &core) < 0 ? -errno : 0;
}

static int go_to_root(void)
{
	umask(022);
	return chdir("/") < 0 ? -errno : 0;
}

static int filter_base(void)
{
	const struct sock_fprog *program = profile_program("base");

	return program ? filter_load(program) : -ENOENT;
}

static const struct {
	const char *name;
	int (*run)(void);
} steps[] = {
	{ "descriptors", arrange_fds },      { "core", no_core },
	{ "bounding", privs_drop_bounding }, { "caps", privs_drop_caps },
	{ "no-new-privs", privs_no_new },    { "workdir", go_to_root },
	{ "base-filter", filter_base },
};

int alone_prepare(const char *home)
{
	int r = 0;

	if (home)
		mkdir(home, 0755); /* a program that needs one says so itself */

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(steps); i++) {
		r = steps[i].run();
		if (r < 0)
			dprintf(STDERR_FILENO, "caisson-agent: %s: %s\n", steps[i].name,
				strerror(-r));
	}
	return r;
}
