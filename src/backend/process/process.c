/*
 * The process wall: user, mount, pid, net, ipc, uts, cgroup and time namespaces, a root tree of
 * its own, Landlock, two seccomp filters, no privilege. Rootless, or started by root.
 *
 *   monitor (caller's ids)                        child
 *   prepare launch, mounts of root's ─ clone3 ──▶ waits for its id maps
 *   writes uid_map, gid_map ─────────── byte ───▶ walks launch_process_steps
 *   has a net namespace made ────── netns.h ────▶ … and joins it once its root is built
 *   keeps: pidfd, stream, listeners               execveat(agent)
 *
 * Identity (docs/decisions/identity.md): inside uid 1000. Behind it the caller's own uid; for
 * root an unused one, because with kernel uid 0 and no capability a program can still write
 * /proc/sys. tests/escape/kernel_uid.py
 */
#include "backend/process/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/channels.h"
#include "backend/process/bind.h"
#include "backend/process/late.h"
#include "backend/process/netns.h"
#include "backend/process/skeleton.h"
#include "backend/process/tree.h"
#include "backend/process/userns.h"
#include "base/fd.h"
#include "launch/launch.h"
#include "os/sys.h"

#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080 /* 5.6, and only for clone3() */
#endif

enum { ARENA_QUOTA = 1 << 20 };

/* The net namespace is made beside the others: netns.h. */
static const uint64_t namespaces =
	CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

/* Everything of one start; released by start_done() whatever happened. */
struct start {
	struct arena arena;
	struct launch *launch;
	struct channels channels;
	int userns_fd;
	int sync[2];  /* the child reads, we write */
	int order[2]; /* of one that waits: the child has the first */
	int netns[2]; /* the child receives its net namespace, the helper sends it */
};

static void start_done(struct start *start)
{
	if (start->launch)
		rootfs_done(&start->launch->rootfs);
	free(start->launch);
	arena_done(&start->arena);
	fd_cleanup(&start->userns_fd);
	fd_cleanup(&start->sync[0]);
	fd_cleanup(&start->sync[1]);
	fd_cleanup(&start->order[0]);
	fd_cleanup(&start->order[1]);
	fd_cleanup(&start->netns[0]);
	fd_cleanup(&start->netns[1]);
	channels_done(&start->channels);
}

void process_limit(const struct plan *plan, const struct backend_start *how, struct launch *launch)
{
	/* Counted per user namespace and id since Linux 5.14. */
	if (plan->limits.processes != PLAN_UNLIMITED)
		launch_limit(launch, RLIMIT_NPROC, plan->limits.processes + how->own_processes);
}

static int prepare(const struct plan *plan, const struct backend_start *how, struct start *start,
		   struct wall *wall, struct csn_error *err)
{
	struct launch *launch = launch_new();
	struct tree tree;
	int r;

	start->launch = launch;
	if (!launch)
		return csn_fail(err, -ENOMEM, "start", "out of memory");
	if (geteuid() == 0) {
		start->userns_fd = userns_make(wall->kernel_uid, 0, &wall->helper, err);
		if (start->userns_fd < 0)
			return start->userns_fd;
	}
	tree = (struct tree){ plan, how, &start->arena, start->userns_fd };
	r = tree_plan(&tree, launch, err);
	if (r < 0)
		return r;
	wall->skeleton = skeleton_use(&tree, &launch->rootfs);
	r = channels_make(&start->channels, wall, true);
	if (r >= 0 && (pipe2(start->sync, O_CLOEXEC) < 0 ||
		       socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, start->netns) < 0))
		r = -errno;
	if (r < 0)
		return csn_fail(err, r, "start", "cannot make channels to the sandbox: %s",
				strerror(-r));
	channels_fill(&start->channels, plan, how, launch);
	process_limit(plan, how, launch);
	launch->is_loopback_up = plan->network == NETWORK_LOOPBACK;
	if (how->waits && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, start->order) < 0)
		return csn_fail(err, -errno, "start", "cannot make channels to the sandbox: %m");
	launch->order_fd = start->order[0];
	launch->sync_fd = start->sync[0];
	launch->netns_fd = start->netns[0];
	return 0;
}

static int clone_failed(int r, struct csn_error *err)
{
	struct backend_report report;

	process_backend.probe(&report);
	errno = -r;
	if (report.cause[0])
		return csn_fail(err, r, "namespaces", "%s. %s", report.cause, report.fix);
	return csn_fail(err, r, "namespaces",
			"cannot make namespaces (%m). If this is a container or a CI job that "
			"forbids them, the landlock wall works there: --tier auto");
}

/* Now: once it has given its rights up, nobody who is not root may look at a process that was not
 * executed in there. */
static void open_spaces(struct wall *wall)
{
	static const char *const names[] = { "user", "mnt" };
	char path[64];

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)wall->pid, names[i]);
		wall->spaces[i] = open(path, O_RDONLY | O_CLOEXEC);
	}
}

static int start_child(struct start *start, int clone_group, struct wall *wall,
		       struct csn_error *err)
{
	gid_t gid = geteuid() == 0 ? (gid_t)wall->kernel_uid : getegid();
	int r;

	wall->pid = sys_clone(namespaces | CLONE_NEWTIME, &wall->pidfd, clone_group);
	if (wall->pid == -EINVAL) /* a kernel without CONFIG_TIME_NS */
		wall->pid = sys_clone(namespaces, &wall->pidfd, clone_group);
	if (wall->pid == 0) {
		close(start->sync[1]);
		close(start->netns[1]);
		fd_cleanup(&start->order[1]);
		close(wall->life);
		launch_run(start->launch, launch_process_steps);
	}
	if (wall->pid < 0)
		return clone_failed(wall->pid, err);
	assert(wall->kernel_uid != 0);
	if (start->order[1] >= 0)
		open_spaces(wall);
	r = userns_write_maps(wall->pid, LAUNCH_UID, wall->kernel_uid, gid);
	if (r < 0)
		return csn_fail(err, r, "ids", "cannot map the sandbox's ids");
	if (write(start->sync[1], "m", 1) != 1)
		return csn_fail(err, -EPIPE, "start", "the sandbox ended at once");
	r = netns_make(wall->pidfd, start->netns[1]);
	return r < 0 ? csn_fail(err, r, "start", "cannot make one more process: %s", strerror(-r))
		     : 0;
}

static int process_start(const struct plan *plan, const struct backend_start *how,
			 struct wall *ret_wall, struct csn_error *err)
{
	struct start start = {
		.channels = CHANNELS_NONE,
		.userns_fd = -1,
		.sync = { -1, -1 },
		.order = { -1, -1 },
		.netns = { -1, -1 },
	};
	struct wall wall = WALL_NONE;
	int r;

	arena_init(&start.arena, ARENA_QUOTA);
	wall.kernel_uid = geteuid();
	if (wall.kernel_uid == 0)
		wall.kernel_uid = backend_private_uid();
	r = prepare(plan, how, &start, &wall, err);
	if (r >= 0)
		r = start_child(&start, how->clone_group, &wall, err);
	if (r >= 0 && how->waits) {
		wall.order = fd_take(&start.order[1]);
		wall.userns = fd_take(&start.userns_fd);
	}
	start_done(&start);
	if (r < 0)
		wall_done(&wall);
	else
		*ret_wall = wall;
	return r;
}

/* Containers and CI jobs forbid namespaces by a filter, which no switch in /proc tells. */
static int process_attempt(void)
{
	pid_t pid = sys_clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, NULL, -1);

	if (pid == 0)
		_exit(0);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid < 0 ? pid : 0;
}

const struct backend process_backend = {
	.name = "process",
	.tier = TIER_BALANCED,
	.runtime = "process",
	.profile = "command",
	.steps = launch_process_steps,
	.has_view = true,
	.freezes_links = true,
	.is_contained = true,
	.probe = process_probe,
	.attempt = process_attempt,
	.start = process_start,
	.bind = bind_lend,
	.has_places = bind_has_places,
	.mount = late_mount,
};
