/*
 * A sandbox's control groups: made, entered, removed.
 *
 * Everything is relative to descriptors of `caisson` and of the groups in it, so that it works
 * in any mount namespace, after ids were dropped, and in a cleaner that only has a copy of the
 * struct. On the way of a launch: three or four mkdirs and as many writes.
 */
#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/cgroup_file.h"

enum {
	PARENT_EXTRA = 64 << 20, /* the agent's share above the commands' memory limit */
	CPU_PERIOD_US = 100000,
	CPU_QUOTA_MIN_US = 1000, /* the kernel's least */
	OWN_PROCESSES = 4096,    /* of a delegated group, moved into the leaf */
	TRIES = 16,              /* against others that make and remove `caisson` */
};

static const char *const side_names[CGROUP_SIDES] = { "agent", "cmd" };

/* Only memory needs the agent apart; elsewhere on v1 caisson/ID is the commands' group. */
static bool has_sides(const struct cgroup *cg, int controller)
{
	return cg->layout == CGROUP_V2 || controller == CGROUP_MEMORY;
}

/* v2 has one hierarchy for all controllers: its descriptors are in the first row. */
static int row_of(const struct cgroup *cg, int controller)
{
	return cg->layout == CGROUP_V2 ? 0 : controller;
}

void cgroup_init(struct cgroup *cg)
{
	memset(cg, 0, sizeof *cg);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		cg->base_fd[i] = cg->top_fd[i] = -1;
		for (int side = 0; side < CGROUP_SIDES; side++)
			cg->side_fd[i][side] = cg->enter_fd[i][side] = -1;
	}
}

void cgroup_done(struct cgroup *cg)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		cg->base_fd[i] = fd_close(cg->base_fd[i]);
		cg->top_fd[i] = fd_close(cg->top_fd[i]);
		for (int side = 0; side < CGROUP_SIDES; side++) {
			cg->side_fd[i][side] = fd_close(cg->side_fd[i][side]);
			cg->enter_fd[i][side] = fd_close(cg->enter_fd[i][side]);
		}
	}
	cgroup_init(cg);
}

bool cgroup_has(const struct cgroup *cg, enum cgroup_controller controller)
{
	return cg->has[controller];
}

static int open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Writes "+memory +pids": the controllers that children of the directory may use. */
static int hand_down(const struct cgroup_probe *probe, int dir_fd)
{
	char have[CGROUP_TEXT], text[64] = "";
	size_t n = 0;

	if (cgroup_file_read(dir_fd, "cgroup.subtree_control", have, sizeof have) < 0)
		have[0] = 0;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (probe->has[i] && !cgroup_text_has(have, cgroup_controller_names[i]))
			n += (size_t)snprintf(text + n, sizeof text - n, "%s+%s", n ? " " : "",
					      cgroup_controller_names[i]);
	return n ? cgroup_file_write(dir_fd, "cgroup.subtree_control", text) : 0;
}

/*
 * A delegated group has processes: ours. They go to a leaf beside `caisson`, because v2 hands
 * controllers down only from groups without processes.
 */
static int empty_into_leaf(int parent_fd)
{
	char pids[CGROUP_TEXT], *at, *pid;
	_cleanup_fd_ int leaf = -1;

	if (mkdirat(parent_fd, CGROUP_LEAF, 0755) < 0 && errno != EEXIST)
		return -errno;
	leaf = open_dir(parent_fd, CGROUP_LEAF);
	if (leaf < 0)
		return leaf;
	for (int i = 0; i < OWN_PROCESSES; i++) {
		int n = cgroup_file_read(parent_fd, "cgroup.procs", pids, sizeof pids);

		if (n <= 0)
			return n;
		at = pids;
		pid = strsep(&at, "\n");
		if (str_is(pid, "0")) /* one that our pid namespace does not show cannot be moved */
			return -EBUSY;
		n = cgroup_file_write(leaf, "cgroup.procs", pid);
		if (n < 0 && n != -ESRCH)
			return n;
	}
	return -EBUSY;
}

/* Again when somebody else was started in the group meanwhile: the kernel says -EBUSY. */
static int open_parent(const struct cgroup_probe *probe, int parent_fd)
{
	int r = -EBUSY;

	if (!probe->needs_leaf)
		return hand_down(probe, parent_fd);
	for (int i = 0; i < TRIES && r == -EBUSY; i++) {
		r = empty_into_leaf(parent_fd);
		if (r == 0)
			r = hand_down(probe, parent_fd);
	}
	return r;
}

/* Makes `caisson` itself, which the last sandbox to go has taken away. */
static int make_base(const struct cgroup_probe *probe, const char *base, bool is_v2)
{
	char parent[CGROUP_PATH];
	_cleanup_fd_ int parent_fd = -1, base_fd = -1;
	int r;

	snprintf(parent, sizeof parent, "%.*s", (int)(strlen(base) - strlen("/caisson")), base);
	parent_fd = open_dir(AT_FDCWD, parent);
	if (parent_fd < 0)
		return parent_fd;
	if (mkdirat(parent_fd, "caisson", 0755) < 0 && errno != EEXIST)
		return -errno;
	base_fd = open_dir(parent_fd, "caisson");
	if (base_fd < 0)
		return base_fd;
	if (!is_v2) {
		/* Kernels before 5.11 ask for it; elsewhere it reads 1 or is no such file. */
		cgroup_file_write(base_fd, "memory.use_hierarchy", "1");
		return 0;
	}
	r = open_parent(probe, parent_fd);
	return r == 0 ? hand_down(probe, base_fd) : r;
}

/* How a folder answers that was removed under us. */
static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

/* Opens `caisson` and makes caisson/ID in it; again if the last sandbox just took it away. */
static int make_top(const struct cgroup_probe *probe, struct cgroup *cg, int row)
{
	const char *base = probe->base[row];
	int r = 0;

	for (int i = 0; i < TRIES; i++) {
		r = open_dir(AT_FDCWD, base);
		if (r >= 0) {
			cg->base_fd[row] = r;
			if (mkdirat(r, cg->id, 0755) == 0)
				return (cg->top_fd[row] = open_dir(r, cg->id));
			r = -errno; /* -EEXIST: not ours, so not ours to remove */
			cg->base_fd[row] = fd_close(cg->base_fd[row]);
		}
		if (!is_gone(r))
			return r;
		r = make_base(probe, base, cg->layout == CGROUP_V2);
		if (r < 0 && !is_gone(r))
			return r;
	}
	return -EBUSY;
}

static int make_side(struct cgroup *cg, int row, enum cgroup_side side)
{
	const char *door = cg->layout == CGROUP_V2 ? "cgroup.procs" : "tasks";
	int fd, top = cg->top_fd[row];

	if (has_sides(cg, row)) {
		if (mkdirat(top, side_names[side], 0755) < 0)
			return -errno;
		fd = open_dir(top, side_names[side]);
	} else {
		fd = open_dir(top, ".");
	}
	if (fd < 0)
		return fd;
	cg->side_fd[row][side] = fd;
	fd = openat(fd, door, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	cg->enter_fd[row][side] = fd;
	return 0;
}

static int make_row(const struct cgroup_probe *probe, struct cgroup *cg, int row)
{
	int r = make_top(probe, cg, row);

	if (r < 0)
		return r;
	if (cg->layout == CGROUP_V2) {
		r = hand_down(probe, cg->top_fd[row]);
		if (r == -ENOENT) /* `caisson` was left half made */
			r = make_base(probe, probe->base[row], true);
		if (r == 0)
			r = hand_down(probe, cg->top_fd[row]);
		if (r < 0)
			return r;
	}
	if (has_sides(cg, row)) {
		r = make_side(cg, row, CGROUP_AGENT);
		if (r < 0)
			return r;
	}
	return make_side(cg, row, CGROUP_CMD);
}

/* With swap the limit is one on both; where swap is not counted, it is not used. */
static int limit_memory(const struct cgroup *cg, int fd, uint64_t bytes)
{
	int r;

	if (cg->layout == CGROUP_V2) {
		r = cgroup_file_write_u64(fd, "memory.max", bytes, "max");
		if (r < 0 || bytes == CGROUP_UNLIMITED)
			return r;
		r = cgroup_file_write(fd, "memory.swap.max", "0");
		return r == -ENOENT ? 0 : r; /* this kernel does not count swap */
	}
	r = cgroup_file_write_u64(fd, "memory.limit_in_bytes", bytes, "-1");
	if (r < 0 || bytes == CGROUP_UNLIMITED)
		return r;
	r = cgroup_file_write_u64(fd, "memory.memsw.limit_in_bytes", bytes, "-1");
	return r == -ENOENT ? cgroup_file_write(fd, "memory.swappiness", "0") : r;
}

static int set_memory(const struct cgroup *cg, const struct cgroup_limits *limits)
{
	int row = row_of(cg, CGROUP_MEMORY), r;
	uint64_t bytes = limits->mem_bytes;

	if (bytes >= CGROUP_UNLIMITED - PARENT_EXTRA)
		return 0;
	r = limit_memory(cg, cg->top_fd[row], bytes + PARENT_EXTRA);
	return r < 0 ? r : limit_memory(cg, cg->side_fd[row][CGROUP_CMD], bytes);
}

static int set_pids(const struct cgroup *cg, const struct cgroup_limits *limits)
{
	int fd = cg->side_fd[row_of(cg, CGROUP_PIDS)][CGROUP_CMD];

	if (limits->processes == CGROUP_UNLIMITED)
		return 0;
	return cgroup_file_write_u64(fd, "pids.max", limits->processes, "max");
}

static int set_cpu(const struct cgroup *cg, const struct cgroup_limits *limits)
{
	int fd = cg->side_fd[row_of(cg, CGROUP_CPU)][CGROUP_CMD];
	uint64_t quota;
	char text[48];

	if (limits->cpu_milli == CGROUP_UNLIMITED)
		return 0;
	if (limits->cpu_milli > 1000 * 1024 * UINT64_C(1024))
		return -ERANGE;
	quota = limits->cpu_milli * (CPU_PERIOD_US / 1000);
	if (quota < CPU_QUOTA_MIN_US)
		quota = CPU_QUOTA_MIN_US;
	if (cg->layout == CGROUP_V1) /* its period is 100 ms unless somebody wrote another */
		return cgroup_file_write_u64(fd, "cpu.cfs_quota_us", quota, "-1");
	snprintf(text, sizeof text, "%llu %d", (unsigned long long)quota, CPU_PERIOD_US);
	return cgroup_file_write(fd, "cpu.max", text);
}

static int (*const setters[])(const struct cgroup *, const struct cgroup_limits *) = {
	[CGROUP_MEMORY] = set_memory,
	[CGROUP_PIDS] = set_pids,
	[CGROUP_CPU] = set_cpu,
};

/* A v1 quota that nobody asked for is not worth a group of its own. */
static bool is_wanted(const struct cgroup_probe *probe, const struct cgroup_limits *limits,
		      int controller)
{
	if (!probe->has[controller])
		return false;
	return controller != CGROUP_CPU || limits->cpu_milli != CGROUP_UNLIMITED;
}

static int make_all(const struct cgroup_probe *probe, const struct cgroup_limits *limits,
		    struct cgroup *cg, struct csn_error *err)
{
	int r;

	if (cg->layout == CGROUP_V2) {
		r = make_row(probe, cg, 0);
		if (r < 0)
			return csn_fail(err, r, "cgroup", "cannot make group %s/%s: %s",
					probe->base[0], cg->id, strerror(-r));
	}
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (!is_wanted(probe, limits, i))
			continue;
		r = cg->layout == CGROUP_V1 ? make_row(probe, cg, i) : 0;
		if (r < 0)
			return csn_fail(err, r, "cgroup", "cannot make group %s/%s: %s",
					probe->base[i], cg->id, strerror(-r));
		r = setters[i](cg, limits);
		if (r < 0)
			return csn_fail(err, r, "cgroup", "cannot set the limit of %s in %s/%s: %s",
					cgroup_controller_names[i], probe->base[i], cg->id,
					strerror(-r));
		cg->has[i] = true;
	}
	return 0;
}

int cgroup_create(const struct cgroup_probe *probe, const char *id,
		  const struct cgroup_limits *limits, struct cgroup *ret_cg, struct csn_error *err)
{
	struct cgroup cg;
	int r;

	cgroup_init(&cg);
	if (!cgroup_id_is_valid(id))
		return csn_fail(err, -EINVAL, "cgroup", "\"%.32s\" cannot name a control group",
				id);
	if (probe->layout == CGROUP_NONE || (probe->layout == CGROUP_V2 && !probe->base[0][0]))
		return csn_fail(err, -ENOTSUP, "cgroup", "%s", probe->reason[0]);
	cg.layout = probe->layout;
	memcpy(cg.id, id, strlen(id) + 1);
	r = make_all(probe, limits, &cg, err);
	if (r < 0) {
		cgroup_remove(&cg, 100);
		cgroup_done(&cg);
		return r;
	}
	*ret_cg = cg;
	return 0;
}

/* To clone into a group one must be able to write its door and that of the common ancestor. */
int cgroup_grant(const struct cgroup *cg, uid_t kernel_uid)
{
	if (cg->layout != CGROUP_V2)
		return 0;
	if (fchownat(cg->top_fd[0], "cgroup.procs", kernel_uid, (gid_t)-1, 0) < 0 ||
	    fchownat(cg->side_fd[0][CGROUP_CMD], "cgroup.procs", kernel_uid, (gid_t)-1, 0) < 0)
		return -errno;
	return 0;
}

/*
 * "0" to v1's `tasks` is the one attachment for which the kernel (5.5 and later) takes no lock
 * on forks: a thread that moves itself cannot exec or exit meanwhile. With `cgroup.procs`, or
 * with a number, it takes that lock and waits 6-14 ms for a grace period if it was idle.
 */
int cgroup_enter(const struct cgroup *cg, enum cgroup_side side)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (cg->enter_fd[i][side] >= 0 && write(cg->enter_fd[i][side], "0", 1) < 0)
			return -errno;
	return 0;
}

size_t cgroup_enter_fds(const struct cgroup *cg, enum cgroup_side side,
			int ret_fds[CGROUP_CONTROLLERS])
{
	size_t count = 0;

	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (cg->enter_fd[i][side] >= 0)
			ret_fds[count++] = cg->enter_fd[i][side];
	return count;
}

int cgroup_clone_fd(const struct cgroup *cg, enum cgroup_side side)
{
	return cg->layout == CGROUP_V2 ? cg->side_fd[0][side] : -1;
}

int cgroup_attach(const struct cgroup *cg, enum cgroup_side side, pid_t pid)
{
	int r;

	if (pid <= 0)
		return -EINVAL;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (cg->side_fd[i][side] < 0)
			continue;
		r = cgroup_file_write_u64(cg->side_fd[i][side], "cgroup.procs", (uint64_t)pid, "");
		if (r < 0)
			return r;
	}
	return 0;
}

static int remove_dir(int dir_fd, const char *path, uint64_t deadline_ms)
{
	struct timespec pause = { .tv_nsec = 200000 };

	for (;;) {
		if (unlinkat(dir_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY || clock_now_ms() >= deadline_ms)
			return -errno;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 5000000)
			pause.tv_nsec *= 2;
	}
}

static int remove_row(const struct cgroup *cg, int row, uint64_t deadline_ms)
{
	char path[CGROUP_ID + 16];
	int r;

	for (int side = 0; side < CGROUP_SIDES && has_sides(cg, row); side++) {
		snprintf(path, sizeof path, "%s/%s", cg->id, side_names[side]);
		r = remove_dir(cg->base_fd[row], path, deadline_ms);
		if (r < 0)
			return r;
	}
	r = remove_dir(cg->base_fd[row], cg->id, deadline_ms);
	if (r == 0) /* the last one to go takes `caisson` along; EBUSY: it was not the last */
		unlinkat(cg->base_fd[row], "../caisson", AT_REMOVEDIR);
	return r;
}

int cgroup_remove(const struct cgroup *cg, uint64_t timeout_ms)
{
	uint64_t deadline_ms = clock_now_ms() + timeout_ms;
	int r = 0, worst = 0;

	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (cg->base_fd[i] < 0)
			continue;
		r = remove_row(cg, i, deadline_ms);
		worst = r < 0 ? r : worst;
	}
	return worst;
}
