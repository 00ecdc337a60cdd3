/*
 * cgroup - control groups of one sandbox: limits, counters, killing
 *
 * A sandbox with id ID gets, in each controller's hierarchy, beneath the group the caller
 * himself is in (so his own limits stay in force):
 *
 *	caisson/ID		memory: slightly above the limit, for everything
 *	caisson/ID/agent	the agent and our helpers: no limit of their own
 *	caisson/ID/cmd		commands: the limits on memory, processes and processor
 *
 * Two groups because scratch pages stay charged after their writer died: in one group the
 * next victim of the kernel's killer would be the agent. On v1 the hierarchies of pids and
 * cpu need no such care; there caisson/ID itself holds the commands, and agents stay out.
 *
 * The cheap way in (docs/limits.md has the numbers; the dear one costs 6-14 ms after idling):
 *	v1  the process moves *itself*, single-threaded: cgroup_enter(), or "0" written to the
 *	    descriptors of cgroup_enter_fds() when it cannot call us (they pass by SCM_RIGHTS or
 *	    fork; permission is that of whoever opened them, so ids may be dropped before);
 *	v2  clone3() with CLONE_INTO_CGROUP and cgroup_clone_fd().
 * cgroup_attach() of another process is for foreign walls, never for the hot path.
 *
 * Life: cgroup_probe, cgroup_create, enter ..., cgroup_kill, cgroup_remove, cgroup_done.
 * `struct cgroup` is plain: a forked cleaner may kill and remove with its copy after the
 * owner was SIGKILLed; nothing here allocates, except cgroup_probe and cgroup_sweep (directory
 * streams). Calls return 0 or a negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { CGROUP_PATH = 512, CGROUP_ID = 64, CGROUP_REASON = 256 };

enum cgroup_layout { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };
enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };
enum cgroup_side { CGROUP_AGENT, CGROUP_CMD, CGROUP_SIDES };

/* No limit, or a counter that this kernel does not keep. */
#define CGROUP_UNLIMITED UINT64_MAX
#define CGROUP_UNKNOWN UINT64_MAX

/* What can be used here. `reason` is "" for a usable controller, else cause and way out. */
struct cgroup_probe {
	enum cgroup_layout layout;
	bool has[CGROUP_CONTROLLERS];
	bool needs_leaf;       /* v2: our own group must first be emptied into a leaf */
	bool manager_may_help; /* no group is ours, and there is somebody to ask for one */
	char base[CGROUP_CONTROLLERS][CGROUP_PATH]; /* host path of `.../caisson`; v2: all equal */
	char reason[CGROUP_CONTROLLERS][CGROUP_REASON];
};

struct cgroup_limits {
	uint64_t mem_bytes; /* memory and swap together */
	uint64_t processes; /* tasks: processes and threads */
	uint64_t cpu_milli; /* 1000: one processor */
};

/* Counters of the commands' group; CGROUP_UNKNOWN where there is none. */
struct cgroup_usage {
	uint64_t mem_bytes;
	uint64_t mem_peak_bytes;
	uint64_t cpu_us; /* v1: only where cpuacct is mounted together with cpu */
	uint64_t oom_kills;
	uint64_t pids;
	uint64_t pids_peak;
	uint64_t pids_refused; /* forks that the limit refused */
};

/* The groups of one sandbox. Owns its descriptors, all O_CLOEXEC, -1: none. */
struct cgroup {
	enum cgroup_layout layout;
	bool has[CGROUP_CONTROLLERS];
	char id[CGROUP_ID];
	int base_fd[CGROUP_CONTROLLERS]; /* directory `caisson`; v2: the first one only */
	int top_fd[CGROUP_CONTROLLERS];  /* directory `caisson/ID` */
	int side_fd[CGROUP_CONTROLLERS][CGROUP_SIDES];  /* directories; v2: the first row only */
	int enter_fd[CGROUP_CONTROLLERS][CGROUP_SIDES]; /* v1 `tasks`, v2 `cgroup.procs`, for "0" */
};

#define _cleanup_cgroup_ __attribute__((cleanup(cgroup_done)))

/* For tests: where the probe reads what the kernel says about us. */
struct cgroup_sources {
	const char *mountinfo;   /* /proc/self/mountinfo */
	const char *self_cgroup; /* /proc/self/cgroup */
	bool is_scope;           /* v2: our own group is ours alone and is not left */
};

/*
 * Looks for controllers this process may use; never fails, never changes anything. v1 and
 * hybrid: a controller counts where it is mounted. v2: the nearest group that can hand
 * controllers to its children and that we may write; groups with a limit of their own and
 * delegated ones are not left.
 */
void cgroup_probe(struct cgroup_probe *ret_probe);
void cgroup_probe_from(const struct cgroup_sources *sources, struct cgroup_probe *ret_probe);

/*
 * On a systemd machine a user's groups come from his manager: where the probe says that it may
 * help, has it move this process into a delegated scope, and probes again. Up to a second;
 * whatever goes wrong, the probe stays as it was. -ENOTSUP: there is nobody to ask.
 */
int cgroup_ask_manager(struct cgroup_probe *probe);

/* A cgroup that owns nothing: cgroup_done(), _kill() and _remove() of it do nothing. */
void cgroup_init(struct cgroup *cg);

/*
 * Makes the groups and sets the limits. A controller that the probe lacks is left out, and a
 * limit of CGROUP_UNLIMITED whose counters nobody needs leaves out pids and cpu. `id`: letters,
 * digits, '-', '_'. Nothing stays behind on failure. -EEXIST: id in use.
 */
int cgroup_create(const struct cgroup_probe *probe, const char *id,
		  const struct cgroup_limits *limits, struct cgroup *ret_cg, struct csn_error *err);

/* v2: lets the kernel uid behind the sandbox clone into `cmd`; the default is the caller. */
int cgroup_grant(const struct cgroup *cg, uid_t kernel_uid);

/* Does this sandbox have that controller's group? */
bool cgroup_has(const struct cgroup *cg, enum cgroup_controller controller);

/* Moves the calling process, which must have one thread. Safe between fork and exec. */
int cgroup_enter(const struct cgroup *cg, enum cgroup_side side);

/*
 * The descriptors to which a process writes "0" to move itself, borrowed; returns how many.
 * Whoever gets them can move processes it sees into these groups and do nothing else.
 */
size_t cgroup_enter_fds(const struct cgroup *cg, enum cgroup_side side,
			int ret_fds[CGROUP_CONTROLLERS]);

/* v2: the directory for CLONE_INTO_CGROUP, borrowed; -1 on v1. */
int cgroup_clone_fd(const struct cgroup *cg, enum cgroup_side side);

/* Moves another process with all its threads. Slow: it waits for an RCU grace period. */
int cgroup_attach(const struct cgroup *cg, enum cgroup_side side, pid_t pid);

/*
 * A descriptor, owned by the caller, that becomes ready when memory ran out in the commands'
 * group: *ret_events is what to poll for (v1: an eventfd, POLLIN; v2: POLLPRI). After it fired,
 * cgroup_oom_ack() and then cgroup_read() tell how many died. -ENOTSUP without the controller.
 */
int cgroup_oom_fd(const struct cgroup *cg, int *ret_fd, short *ret_events);

/* Makes it wait for the next time. Did it say anything (v1)? */
bool cgroup_oom_ack(int fd);

/*
 * The same for refused forks, acknowledged by the same call. v2 only: v1 counts them but wakes
 * nobody (tried on 6.18), so there -ENOTSUP, and the caller reads the counter at his ticks.
 */
int cgroup_pids_fd(const struct cgroup *cg, int *ret_fd, short *ret_events);

/* Reads the counters. 0 even if some are unknown. */
int cgroup_read(const struct cgroup *cg, struct cgroup_usage *ret_usage);

/*
 * Kills every process in the groups, agent included, until none is left or the deadline is
 * over: -ETIMEDOUT. v2 cgroup.kill; v1 by pidfd after asking twice, so that a number that was
 * reused is never killed. The caller must not be in them.
 */
int cgroup_kill(const struct cgroup *cg, uint64_t timeout_ms);
int cgroup_kill_side(const struct cgroup *cg, enum cgroup_side side, uint64_t timeout_ms);

/* Removes the groups; waits while dying processes keep them busy. -EBUSY after the deadline. */
int cgroup_remove(const struct cgroup *cg, uint64_t timeout_ms);

/* Closes the descriptors; the groups stay. */
void cgroup_done(struct cgroup *cg);

/*
 * Kills and removes groups whose owner is gone: `is_alive` gets the id. Bounded: at most 1024
 * groups a call. Returns how many were removed.
 */
int cgroup_sweep(const struct cgroup_probe *probe, bool (*is_alive)(const char *id, void *data),
		 void *data);
