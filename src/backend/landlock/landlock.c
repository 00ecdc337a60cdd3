/*
 * The wall without namespaces; see landlock.h.
 *
 * Hidden files: Landlock grants and never takes away, so where a folder holds one, its other
 * entries are granted one by one and the folder itself may only be listed.
 */
#include "backend/landlock/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/channels.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "os/sys.h"
#include "os/yama.h"

enum { ARENA_QUOTA = 4 << 20, DEPTH = 64 };

static const struct {
	const char *path;
	enum landlock_grant grant;
} system_rules[] = {
	{ "/usr", LANDLOCK_READ },           { "/bin", LANDLOCK_READ },
	{ "/sbin", LANDLOCK_READ },          { "/lib", LANDLOCK_READ },
	{ "/lib32", LANDLOCK_READ },         { "/lib64", LANDLOCK_READ },
	{ "/etc", LANDLOCK_READ },           { "/proc", LANDLOCK_READ },
	{ "/dev/null", LANDLOCK_DEVICE },    { "/dev/zero", LANDLOCK_DEVICE },
	{ "/dev/full", LANDLOCK_DEVICE },    { "/dev/random", LANDLOCK_DEVICE },
	{ "/dev/urandom", LANDLOCK_DEVICE }, { "/dev/tty", LANDLOCK_DEVICE },
	{ "/dev/ptmx", LANDLOCK_DEVICE },
};

static bool landlock_shows(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(system_rules); i++)
		if (path_is_beneath(path, system_rules[i].path))
			return true;
	return false;
}

struct granting {
	struct launch *launch;
	struct arena *arena;
	const char *workspace;
	const char *const *hidden;
	int result;
};

/* Names in the workspace, and what the policy decided to lend. Untrusted code may have made links
 * to the caller's own files of them since. tests/escape/symlinks_out.py,
 * tests/cli/test_cli_mounts.py */
static void grant_plain(struct granting *g, const char *path, enum landlock_grant what)
{
	if (g->result >= 0)
		g->result = path ? launch_allow_plain(g->launch, path, what) : -ENOMEM;
}

static void grant(struct granting *g, const char *path, enum landlock_grant what)
{
	if (g->result >= 0)
		g->result = path ? launch_allow(g->launch, path, what) : -ENOMEM;
}

/* Is `path` hidden itself (1), or does it hold something hidden (2)? */
static int hides(const struct granting *g, const char *path)
{
	const char *tail;
	int state = 0;

	if (!g->workspace || !g->hidden || !g->hidden[0])
		return 0;
	if (!path_is_beneath(path, g->workspace))
		return path_is_beneath(g->workspace, path) ? 2 : 0;
	tail = path_tail(path, g->workspace);
	for (const char *const *hidden = g->hidden; *hidden; hidden++) {
		if (str_is(*hidden, tail))
			return 1;
		if (*tail == 0 || path_is_beneath(*hidden, tail))
			state = 2;
	}
	return state;
}

static void grant_around(struct granting *g, const char *path, enum landlock_grant what, int depth)
{
	DIR *dir = depth < DEPTH ? opendir(path) : NULL;
	struct dirent *entry;

	grant_plain(g, path, LANDLOCK_LIST);
	while (dir && g->result >= 0 && (entry = readdir(dir))) {
		const char *child;
		int state;

		if (str_is(entry->d_name, ".") || str_is(entry->d_name, ".."))
			continue;
		child = arena_printf(g->arena, "%s/%s", path, entry->d_name);
		state = child ? hides(g, child) : 0;
		if (state == 2)
			grant_around(g, child, what, depth + 1);
		else if (state == 0)
			grant_plain(g, child, what);
	}
	if (dir)
		closedir(dir);
}

/* All of it, or what lies around the hidden files in it; one that is lent by its own name is
 * meant. */
static void grant_lent(struct granting *g, const char *path, enum landlock_grant what)
{
	if (hides(g, path) == 2)
		grant_around(g, path, what, 0);
	else
		grant_plain(g, path, what);
}

static int add_rules(const struct plan *plan, const struct backend_start *how, struct arena *arena,
		     struct launch *launch, struct csn_error *err)
{
	struct granting g = { launch, arena, plan->workspace.host, how->hidden, 0 };
	enum landlock_grant what =
		plan->workspace.access == ACCESS_RW ? LANDLOCK_KEEP : LANDLOCK_READ;

	for (size_t i = 0; i < ARRAY_SIZE(system_rules); i++)
		grant(&g, system_rules[i].path, system_rules[i].grant);
	for (const char *const *path = how->toolchains; path && *path; path++)
		grant(&g, *path, LANDLOCK_READ);
	if (plan->workspace.host)
		grant_lent(&g, plan->workspace.host, what);
	for (size_t i = 0; i < plan->mount_count; i++)
		grant_lent(&g, plan->mounts[i].host,
			   plan->mounts[i].access == ACCESS_RW ? LANDLOCK_KEEP : LANDLOCK_READ);
	grant(&g, how->scratch_dir, LANDLOCK_SCRATCH);
	return g.result < 0 ? csn_fail(err, g.result, "landlock",
				       "too many files around the hidden ones: at most %d rules",
				       LAUNCH_RULES)
			    : 0;
}

static int make_way_for_terminals(struct wall *wall, int *ret_fd)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	wall->terminals = pair[0];
	*ret_fd = pair[1];
	return 0;
}

static int fork_child(const struct plan *plan, const struct backend_start *how,
		      struct launch *launch, struct wall *wall, struct csn_error *err)
{
	struct channels channels = CHANNELS_NONE;
	_cleanup_fd_ int terminals = -1;
	int r = channels_make(&channels, wall, yama_permits(false));

	if (r >= 0 && how->stays)
		r = make_way_for_terminals(wall, &terminals);
	if (r < 0) {
		channels_done(&channels);
		return csn_fail(err, r, "start", "cannot make channels to the sandbox");
	}
	channels_fill(&channels, plan, how, launch);
	launch->terminals_fd = terminals;
	launch->landlock_tcp = true;
	launch->private_uid = geteuid() == 0 ? wall->kernel_uid : 0;
	if (launch->private_uid && plan->limits.processes != PLAN_UNLIMITED)
		launch_limit(launch, RLIMIT_NPROC, plan->limits.processes + how->own_processes);
	wall->pid = sys_clone(0, &wall->pidfd, how->clone_group);
	if (wall->pid == 0) {
		close(wall->life);
		launch_run(launch, launch_landlock_steps);
	}
	channels_done(&channels);
	return wall->pid < 0 ? csn_fail(err, wall->pid, "start", "cannot fork") : 0;
}

static int landlock_start(const struct plan *plan, const struct backend_start *how,
			  struct wall *ret_wall, struct csn_error *err)
{
	_cleanup_arena_ struct arena arena;
	struct launch *launch = launch_new();
	struct wall wall = WALL_NONE;
	int r = launch ? 0 : -ENOMEM;

	arena_init(&arena, ARENA_QUOTA);
	wall.kernel_uid = geteuid() == 0 ? backend_private_uid() : geteuid();
	if (r >= 0)
		r = add_rules(plan, how, &arena, launch, err);
	if (r >= 0)
		r = fork_child(plan, how, launch, &wall, err);
	free(launch);
	if (r < 0)
		wall_done(&wall);
	else
		*ret_wall = wall;
	return r;
}

static void landlock_probe(struct backend_report *ret_report)
{
	int abi = landlock_abi();

	*ret_report = (struct backend_report){ .is_usable = abi >= LANDLOCK_ABI_FILES };
	if (!ret_report->is_usable) {
		snprintf(ret_report->cause, sizeof ret_report->cause,
			 "this kernel has no Landlock, or it is switched off");
		snprintf(ret_report->fix, sizeof ret_report->fix,
			 "Linux 5.13 and later have it; add landlock to the kernel's lsm= list");
		return;
	}
	ret_report->enforces = FEATURE_FS_WRITE | FEATURE_FS_HIDE | FEATURE_NET_NONE |
			       FEATURE_SYSCALLS | FEATURE_PRIVILEGE | FEATURE_IDENTITY |
			       FEATURE_TIME | FEATURE_OUTPUT;
	snprintf(ret_report->weaker, sizeof ret_report->weaker,
		 "paths are the host's, names, sizes and times of files, /etc and the process list "
		 "are visible, scratch has no size, no copy-on-write, no protected names%s",
		 abi >= LANDLOCK_ABI_SCOPE
			 ? ""
			 : "; before Linux 6.12 (Landlock ABI 6) signals reach other processes "
			   "of the same user, and a command can end its own run as lost");
	channels_weaken(ret_report, false,
			"what programs try is not observed, connect and changes of rights, owners, "
			"times and attributes are refused");
}

const struct backend landlock_backend = {
	.name = "landlock",
	.tier = TIER_AUTO,
	.runtime = "landlock",
	.profile = "landlock",
	.steps = launch_landlock_steps,
	.shows = landlock_shows,
	.probe = landlock_probe,
	.start = landlock_start,
};
