/*
 * The process wall: user, mount, pid, net, ipc, uts and cgroup namespaces, a root tree of
 * its own, Landlock, two seccomp filters, no privilege. Rootless, or started by root.
 *
 *   monitor (caller's ids)                        child
 *   prepare launch, mounts of root's ─ clone3 ──▶ waits for its id maps
 *   writes uid_map, gid_map ─────────── byte ───▶ walks launch_process_steps
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

#include "backend/process/tree.h"
#include "base/fd.h"
#include "launch/launch.h"
#include "os/sys.h"

#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif

/* Root's sandboxes: ids that no distribution hands out (systemd's UIDS-GIDS document lists
 * 1879048192 to 2147483647 as unused). The monitor's pid makes neighbours differ. */
enum { PRIVATE_FIRST = 1879048192, PRIVATE_COUNT = 1 << 22, ARENA_QUOTA = 1 << 20 };

static const uint64_t namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
				   CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

/* Everything of one start; released by start_done() whatever happened. */
struct start {
	struct arena arena;
	struct launch *launch;
	int userns_fd;
	int sync_write, sync_read;
	int life_read;
	int agent_side, listeners_side, failure_side;
};

static void start_done(struct start *start)
{
	if (start->launch)
		rootfs_done(&start->launch->rootfs);
	free(start->launch);
	arena_done(&start->arena);
	fd_cleanup(&start->userns_fd);
	fd_cleanup(&start->sync_write);
	fd_cleanup(&start->sync_read);
	fd_cleanup(&start->life_read);
	fd_cleanup(&start->agent_side);
	fd_cleanup(&start->listeners_side);
	fd_cleanup(&start->failure_side);
}

static int write_proc(pid_t pid, const char *name, const char *text)
{
	char path[64];
	_cleanup_fd_ int fd = -1;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int write_maps(pid_t pid, unsigned inside, uid_t uid, gid_t gid)
{
	char map[64];
	int r = 0;

	if (geteuid() != 0)
		r = write_proc(pid, "setgroups", "deny");
	if (r >= 0) {
		snprintf(map, sizeof map, "%u %u 1", inside, gid);
		r = write_proc(pid, "gid_map", map);
	}
	if (r >= 0) {
		snprintf(map, sizeof map, "%u %u 1", inside, uid);
		r = write_proc(pid, "uid_map", map);
	}
	return r;
}

/* A user namespace in which on-disk id 0 is `uid`: what root's mounts are mapped through. */
static int make_userns(uid_t uid, struct csn_error *err)
{
	int pidfd = -1, fd = -1, r;
	char path[64];
	pid_t pid = sys_clone(CLONE_NEWUSER, &pidfd, -1);

	if (pid < 0)
		return csn_fail(err, pid, "namespaces", "cannot make a user namespace");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		pause();
		_exit(0);
	}
	r = write_maps(pid, 0, uid, uid);
	if (r >= 0) {
		snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	sys_pidfd_signal(pidfd, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	fd_close(pidfd);
	return fd < 0 ? csn_fail(err, r < 0 ? r : -EIO, "ids", "cannot map ids for root's mounts")
		      : fd;
}

static int make_channels(struct start *start, struct wall *wall)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	wall->stream = pair[0];
	start->agent_side = pair[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	wall->listeners = pair[0];
	start->listeners_side = pair[1];
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	wall->failure = pair[0];
	start->failure_side = pair[1];
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	start->life_read = pair[0];
	wall->life = pair[1];
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	start->sync_read = pair[0];
	start->sync_write = pair[1];
	/* The kernel then says which process, in our pid namespace, wrote a message. */
	if (setsockopt(wall->listeners, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) < 0)
		return -errno;
	return fd_set_nonblock(wall->stream, 1);
}

static void set_limits(const struct plan *plan, const struct backend_start *how,
		       struct launch *launch)
{
	const struct plan_limits *limits = &plan->limits;

	launch_limit(launch, RLIMIT_CORE, 0);
	if (limits->open_files != PLAN_UNLIMITED)
		launch_limit(launch, RLIMIT_NOFILE, limits->open_files);
	/* Counted per user namespace and id since Linux 5.14; agent and helper are in it. */
	if (limits->processes != PLAN_UNLIMITED)
		launch_limit(launch, RLIMIT_NPROC, limits->processes + 2);
	/* RLIMIT_DATA, never RLIMIT_AS: WebAssembly reserves address space it does not use. */
	if (how->data_bytes != PLAN_UNLIMITED)
		launch_limit(launch, RLIMIT_DATA, how->data_bytes);
	if (limits->cpu_milli != PLAN_UNLIMITED)
		launch->cpu_count = (unsigned)((limits->cpu_milli + 999) / 1000);
}

static int prepare(const struct plan *plan, const struct backend_start *how, struct start *start,
		   struct wall *wall, struct csn_error *err)
{
	static char *const agent_argv[] = { (char *)"caisson-agent", NULL };
	struct launch *launch = calloc(1, sizeof *launch);
	int r;

	start->launch = launch;
	if (!launch)
		return csn_fail(err, -ENOMEM, "start", "out of memory");
	if (geteuid() == 0) {
		start->userns_fd = make_userns(wall->kernel_uid, err);
		if (start->userns_fd < 0)
			return start->userns_fd;
	}
	r = tree_plan(plan, how, start->userns_fd, &start->arena, launch, err);
	if (r < 0)
		return r;
	r = make_channels(start, wall);
	if (r < 0)
		return csn_fail(err, r, "start", "cannot make channels to the sandbox");
	set_limits(plan, how, launch);
	launch->landlock_abi = landlock_abi();
	launch->is_loopback_up = plan->network == NETWORK_LOOPBACK;
	launch->workdir = "/";
	launch->agent_argv = agent_argv;
	memcpy(launch->agent_enter, how->agent_enter, sizeof launch->agent_enter);
	memcpy(launch->cmd_enter, how->cmd_enter, sizeof launch->cmd_enter);
	launch->agent_fd = how->agent_fd;
	launch->life_fd = start->life_read;
	launch->sync_fd = start->sync_read;
	launch->stream_fd = start->agent_side;
	launch->listeners_fd = start->listeners_side;
	launch->error_fd = start->failure_side;
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

static int start_child(struct start *start, struct wall *wall, struct csn_error *err)
{
	gid_t gid = geteuid() == 0 ? (gid_t)wall->kernel_uid : getegid();
	int r;

	wall->pid = sys_clone(namespaces, &wall->pidfd, -1);
	if (wall->pid == 0) {
		close(start->sync_write);
		close(wall->life);
		launch_run(start->launch, launch_process_steps);
	}
	if (wall->pid < 0)
		return clone_failed(wall->pid, err);
	assert(wall->kernel_uid != 0);
	r = write_maps(wall->pid, LAUNCH_UID, wall->kernel_uid, gid);
	if (r < 0)
		return csn_fail(err, r, "ids", "cannot map the sandbox's ids");
	return write(start->sync_write, "m", 1) == 1
		       ? 0
		       : csn_fail(err, -EPIPE, "start", "the sandbox ended at once");
}

static int process_start(const struct plan *plan, const struct backend_start *how,
			 struct wall *ret_wall, struct csn_error *err)
{
	struct start start = { .userns_fd = -1, .sync_write = -1, .sync_read = -1,
			       .life_read = -1, .agent_side = -1, .listeners_side = -1,
			       .failure_side = -1 };
	struct wall wall = WALL_NONE;
	int r;

	arena_init(&start.arena, ARENA_QUOTA);
	wall.kernel_uid = geteuid();
	if (wall.kernel_uid == 0)
		wall.kernel_uid = PRIVATE_FIRST + (uid_t)getpid() % PRIVATE_COUNT;
	r = prepare(plan, how, &start, &wall, err);
	if (r >= 0)
		r = start_child(&start, &wall, err);
	start_done(&start);
	if (r < 0)
		wall_done(&wall);
	else
		*ret_wall = wall;
	return r;
}

const struct backend process_backend = {
	.name = "process",
	.tier = TIER_BALANCED,
	.runtime = "process",
	.probe = process_probe,
	.start = process_start,
};
