/*
 * limits - how the plan's limits are held on this machine, and what they counted
 *
 * Each of memory, processes and CPU is held by the strongest means there is: a controller
 * (`cgroup`), else an rlimit, else sampling; which one is said per limit in the result. Under
 * limits_mode hard anything but a controller is refused.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "monitor/violations.h"
#include "base/removed.h"
#include "os/cgroup.h"
#include "os/sample.h"
#include "plan/plan.h"

enum { LIMITS_TICK_MS = 50 };

struct limits {
	bool is_elsewhere;       /* what runs may be on another machine: nothing is looked at */
	unsigned own_tasks;      /* more than the plan's, for helpers on the same account; the first
				  * process is one, and its file systems are not the sandbox's */
	const struct plan *plan; /* borrowed */
	struct cgroup_probe probe;
	struct cgroup group;
	bool has_group;
	int oom_fd; /* poll for oom_events; -1: none */
	short oom_events;
	int scratch_fd; /* O_PATH of the scratch file system, -1: none */
	uint64_t next_tick_ms;
	uint64_t sampled_peak; /* bytes, without a controller */
	uint64_t task_peak;
	unsigned over_count; /* looks in a row that were above the limit */
	struct sample_files files;
	bool was_cut; /* a tree was larger than what is looked at */
	bool is_scratch_sized;
	bool was_scratch_full;
	struct cgroup_usage usage; /* read at the end */
	uint64_t oom_seen;         /* kills, and forks refused: of a group too that a */
	uint64_t refused_seen;     /* runtime takes down with it */
	bool was_oom_told;         /* memory ran out, said at once: such a group may be gone */
};

/* Looks for controllers, changes nothing. Where groups will be made; NULL: there will be none.
 * Borrowed from `limits`. */
const struct cgroup_probe *limits_look(struct limits *limits, const struct plan *plan);

/* After that: makes the groups of sandbox `id`, and sweeps those of dead ones. -ENOTSUP with a
 * sentence when limits_mode is hard and a controller is missing. */
int limits_open(struct limits *limits, const char *id, struct csn_error *err);

/* Kills what is in the groups of `id` and removes them, by name: for who did not make them, and
 * does not know how far their owner came. Waits at most so long. */
void limits_remove(const struct cgroup_probe *probe, const char *id, uint64_t timeout_ms);

/* The same for every group that nobody owns, told by its id as "group". Young ones are not spared
 * as limits_open() does: it looks twice, half a second apart. */
void limits_sweep(const struct removed *removed);

/* Files for a process to enter (-1: none), for struct backend_start. */
void limits_enter_fds(const struct limits *limits, int ret_agent[3], int ret_cmd[3]);

/* v2: the agent's group, for CLONE_INTO_CGROUP; -1: none. Borrowed. */
int limits_clone_fd(const struct limits *limits);

/* RLIMIT_DATA for each process: PLAN_UNLIMITED where a controller holds memory. */
uint64_t limits_data_bytes(const struct limits *limits);

/*
 * The sandbox is up: `pid` is its first process. Opens its scratch file system for sampling; or
 * `scratch_dir`, a folder of the host's without a size of its own, which is not sampled.
 */
void limits_watch(struct limits *limits, pid_t pid, const char *scratch_dir);

/* What a look at counters says. */
enum limits_state { LIMITS_FINE, LIMITS_MEMORY };

/* Looks at counters and samples, adds facts; `now_ms` sets the next tick. */
enum limits_state limits_tick(struct limits *limits, pid_t pid, uint64_t now_ms,
			      struct violations *violations);

/* Reads how many were killed for memory, and how many forks refused, while what counts them is
 * there. Was anybody killed? */
bool limits_saw_oom(struct limits *limits);

/* The command died of the OOM killer's signal, and what counts its victims may have been gone when
 * it was read: takes the kernel's word that memory ran out (v1) for the count. */
void limits_judge_kill(struct limits *limits);

/* Reads final counters and adds facts about them. `max_rss` of reaped processes in bytes. */
enum limits_state limits_finish(struct limits *limits, uint64_t max_rss,
				struct violations *violations);

/* The sandbox's groups, for the cleaner; NULL: none. Borrowed. */
const struct cgroup *limits_group(const struct limits *limits);

/* Closes descriptors; the groups were removed by cleaner_clean(). */
void limits_close(struct limits *limits);

/* Why the absence of a fact about memory tells nothing: a sentence, or NULL if it does tell. */
const char *limits_why_unseen(const struct limits *limits);

/* Peak memory in bytes by the best means, and its name. */
uint64_t limits_peak(const struct limits *limits, uint64_t max_rss);

/* How a limit would be held on a machine, before anything is started. */
struct limits_forecast {
	const char *name;  /* "memory" */
	const char *means; /* "cgroup", or what there is without: "sampled" */
	uint64_t feature;  /* enum plan_feature bit that a controller adds, 0 without one */
};

/* The i-th limit that a controller can hold; false after the last. */
bool limits_forecast(const struct cgroup_probe *probe, size_t i,
		     struct limits_forecast *ret_forecast);

/* {"memory":"cgroup",…}: by which means each limit is held. A new object. */
json_t *limits_means(const struct limits *limits);

/* enum plan_feature bits that the controllers add. */
uint64_t limits_enforces(const struct limits *limits);
