/*
 * What the kernel counted in a sandbox's groups, and descriptors that wake the monitor.
 *
 * These counters are the facts behind MemoryLimitViolation and ProcessLimitViolation. Out of
 * memory is watched for the whole sandbox: when the limit above both groups was reached, the
 * agent may be the one that died, and the reason is memory all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/cgroup.h"
#include "os/cgroup_file.h"

/* Where each counter stands. `key`: NULL if the file is one number. */
struct counter {
	const char *name;
	const char *key;
};

struct counters {
	struct counter mem, mem_peak, cpu, pids, pids_peak, refused;
	uint64_t cpu_per_us;
};

static const struct counters v1_counters = {
	.mem = { "memory.usage_in_bytes", NULL },
	.mem_peak = { "memory.max_usage_in_bytes", NULL },
	.cpu = { "cpuacct.usage", NULL },
	.pids = { "pids.current", NULL },
	.pids_peak = { "pids.peak", NULL },
	.refused = { "pids.events", "max" },
	.cpu_per_us = 1000,
};

static const struct counters v2_counters = {
	.mem = { "memory.current", NULL },
	.mem_peak = { "memory.peak", NULL },
	.cpu = { "cpu.stat", "usage_usec" },
	.pids = { "pids.current", NULL },
	.pids_peak = { "pids.peak", NULL },
	.refused = { "pids.events", "max" },
	.cpu_per_us = 1,
};

static uint64_t count(int dir_fd, const struct counter *counter)
{
	if (dir_fd < 0)
		return CGROUP_UNKNOWN;
	if (!counter->key)
		return cgroup_file_u64(dir_fd, counter->name);
	return cgroup_file_key(dir_fd, counter->name, counter->key);
}

static int dir_of(const struct cgroup *cg, int controller)
{
	return cg->side_fd[cg->layout == CGROUP_V2 ? 0 : controller][CGROUP_CMD];
}

/* Of the group that a container runtime makes in ours, by the sandbox's id. */
static uint64_t count_inner(const struct cgroup *cg, int dir_fd, const char *file, const char *key)
{
	char name[CGROUP_ID + 32];
	uint64_t inner;

	snprintf(name, sizeof name, "%s/%s", cg->id, file);
	inner = dir_fd < 0 ? CGROUP_UNKNOWN : cgroup_file_key(dir_fd, name, key);
	return inner == CGROUP_UNKNOWN ? 0 : inner;
}

/* v1, and from Linux 6.11 on by default: counted where a fork was refused, whoever's limit it was.
 */
static uint64_t count_refused(const struct cgroup *cg, int dir_fd, const struct counter *counter)
{
	uint64_t refused = count(dir_fd, counter);

	return refused == CGROUP_UNKNOWN
		       ? refused
		       : refused + count_inner(cg, dir_fd, counter->name, counter->key);
}

/* v2 counts a group's descendants too, v1 does not. */
static uint64_t count_oom(const struct cgroup *cg)
{
	uint64_t agent, cmd;

	if (!cgroup_has(cg, CGROUP_MEMORY))
		return CGROUP_UNKNOWN;
	if (cg->layout == CGROUP_V2)
		return cgroup_file_key(cg->top_fd[0], "memory.events", "oom_kill");
	agent = cgroup_file_key(cg->side_fd[CGROUP_MEMORY][CGROUP_AGENT], "memory.oom_control",
				"oom_kill");
	cmd = cgroup_file_key(cg->side_fd[CGROUP_MEMORY][CGROUP_CMD], "memory.oom_control",
			      "oom_kill");
	if (agent == CGROUP_UNKNOWN || cmd == CGROUP_UNKNOWN)
		return CGROUP_UNKNOWN;
	return agent + cmd +
	       count_inner(cg, cg->side_fd[CGROUP_MEMORY][CGROUP_CMD], "memory.oom_control",
			   "oom_kill");
}

int cgroup_read(const struct cgroup *cg, struct cgroup_usage *ret_usage)
{
	const struct counters *c = cg->layout == CGROUP_V2 ? &v2_counters : &v1_counters;
	uint64_t cpu;

	if (cg->layout == CGROUP_NONE)
		return -ENOTSUP;
	cpu = count(dir_of(cg, CGROUP_CPU), &c->cpu);
	*ret_usage = (struct cgroup_usage){
		.mem_bytes = count(dir_of(cg, CGROUP_MEMORY), &c->mem),
		.mem_peak_bytes = count(dir_of(cg, CGROUP_MEMORY), &c->mem_peak),
		.cpu_us = cpu == CGROUP_UNKNOWN ? cpu : cpu / c->cpu_per_us,
		.oom_kills = count_oom(cg),
		.pids = count(dir_of(cg, CGROUP_PIDS), &c->pids),
		.pids_peak = count(dir_of(cg, CGROUP_PIDS), &c->pids_peak),
		.pids_refused = count_refused(cg, dir_of(cg, CGROUP_PIDS), &c->refused),
	};
	return 0;
}

/* An events file reports a change since it was last read through this descriptor. */
static int open_events(int dir_fd, const char *name, int *ret_fd, short *ret_events)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	cgroup_oom_ack(fd);
	*ret_fd = fd;
	*ret_events = POLLPRI;
	return 0;
}

static int open_oom_v1(int dir_fd, int *ret_fd, short *ret_events)
{
	_cleanup_fd_ int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), control = -1;
	char text[32];
	int r;

	if (event < 0)
		return -errno;
	control = openat(dir_fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	if (control < 0)
		return -errno;
	snprintf(text, sizeof text, "%d %d", event, control);
	r = cgroup_file_write(dir_fd, "cgroup.event_control", text);
	if (r < 0)
		return r;
	*ret_fd = fd_take(&event);
	*ret_events = POLLIN;
	return 0;
}

int cgroup_oom_fd(const struct cgroup *cg, int *ret_fd, short *ret_events)
{
	if (!cgroup_has(cg, CGROUP_MEMORY))
		return -ENOTSUP;
	if (cg->layout == CGROUP_V2)
		return open_events(cg->top_fd[0], "memory.events", ret_fd, ret_events);
	/* Running out above both groups is announced to the groups below too. */
	return open_oom_v1(cg->side_fd[CGROUP_MEMORY][CGROUP_CMD], ret_fd, ret_events);
}

int cgroup_pids_fd(const struct cgroup *cg, int *ret_fd, short *ret_events)
{
	if (!cgroup_has(cg, CGROUP_PIDS) || cg->layout == CGROUP_V1)
		return -ENOTSUP;
	return open_events(dir_of(cg, CGROUP_PIDS), "pids.events", ret_fd, ret_events);
}

bool cgroup_oom_ack(int fd)
{
	char text[CGROUP_TEXT];

	lseek(fd, 0, SEEK_SET); /* an eventfd refuses, and needs none */
	return read(fd, text, sizeof text) > 0;
}
