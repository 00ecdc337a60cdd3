/* How the plan's limits are held on this machine; see limits.h. */
#include "monitor/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

static const struct {
	const char *name;
	enum cgroup_controller controller;
	const char *otherwise;
	uint64_t feature;
} means[] = {
	{ "memory", CGROUP_MEMORY, "sampled", FEATURE_MEMORY },
	{ "processes", CGROUP_PIDS, "rlimit", FEATURE_PROCESSES },
	{ "cpus", CGROUP_CPU, "affinity", FEATURE_CPU },
};

static uint64_t wanted(const struct plan *plan, enum cgroup_controller controller)
{
	const uint64_t values[] = { [CGROUP_MEMORY] = plan->limits.mem_bytes,
				    [CGROUP_PIDS] = plan->limits.processes,
				    [CGROUP_CPU] = plan->limits.cpu_milli };

	return values[controller];
}

static int check_hard(const struct limits *limits, const struct cgroup_probe *probe,
		      struct csn_error *err)
{
	if (limits->plan->limits_mode != LIMITS_HARD)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(means); i++) {
		enum cgroup_controller controller = means[i].controller;

		if (wanted(limits->plan, controller) != PLAN_UNLIMITED &&
		    !(limits->has_group && cgroup_has(&limits->group, controller)))
			return csn_fail(err, -ENOTSUP, "limits",
					"limits_mode is hard and the limit on %s cannot be held by "
					"a controller here: %s. In the policy: limits_mode: best",
					means[i].name, probe->reason[controller]);
	}
	return 0;
}

/*
 * Whoever owns groups holds a shared lock on their folders: one that can be locked exclusively
 * belongs to nobody, or to a cleaner that removes it too. The id begins with the time of its
 * making; a group this young may not be locked yet.
 */
enum {
	YOUNG_MS = 10000,
	STAMP_SIZE = CLOCK_STAMP - 1,
	LOCK_TRIES = 100,
	LOCK_PAUSE_US = 1000,
	SUSPECTS = 1024,
	LOOK_AGAIN_US = 500000,
};

static bool is_locked(const struct cgroup_probe *probe, const char *id)
{
	char path[CGROUP_PATH + 80];
	bool is_free = false;

	for (int i = 0; i < CGROUP_CONTROLLERS && !is_free; i++) {
		_cleanup_fd_ int fd = -1;

		if (!probe->has[i])
			continue;
		snprintf(path, sizeof path, "%s/%s", probe->base[i], id);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		is_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
	}
	return !is_free;
}

static bool is_alive(const char *id, void *data)
{
	char grown[CLOCK_STAMP];

	clock_stamp(clock_wall_ms() - YOUNG_MS, grown);
	return strlen(id) < STAMP_SIZE || strncmp(id, grown, STAMP_SIZE) > 0 || is_locked(data, id);
}

static bool has_any(const struct cgroup *group)
{
	bool any = false;

	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		any |= cgroup_has(group, i);
	return any;
}

/* A sweeper that tries it holds it for an instant. */
static void lock_group(int fd)
{
	for (int i = 0; i < LOCK_TRIES && flock(fd, LOCK_SH | LOCK_NB) < 0; i++)
		usleep(LOCK_PAUSE_US);
}

/* Every controller's folder, because a sweeper may look at any of them first. */
static void lock_groups(const struct cgroup *group)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (group->top_fd[i] >= 0)
			lock_group(group->top_fd[i]);
}

/* A hierarchy may be mounted and nothing in it ours. */
static bool is_usable(const struct cgroup_probe *probe)
{
	bool any = false;

	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		any |= probe->has[i];
	return any && probe->layout != CGROUP_NONE;
}

const struct cgroup_probe *limits_look(struct limits *limits, const struct plan *plan)
{
	*limits = (struct limits){ .plan = plan, .oom_fd = -1, .scratch_fd = -1 };
	cgroup_init(&limits->group);
	cgroup_probe(&limits->probe);
	cgroup_ask_manager(&limits->probe); /* where it cannot help, the probe stands */
	return is_usable(&limits->probe) ? &limits->probe : NULL;
}

int limits_open(struct limits *limits, const char *id, struct csn_error *err)
{
	const struct plan_limits *plan = &limits->plan->limits;
	struct cgroup_limits wants = { .mem_bytes = plan->mem_bytes,
				       .processes = plan->processes,
				       .cpu_milli = plan->cpu_milli };
	struct cgroup_probe *probe = &limits->probe;

	if (wants.processes != CGROUP_UNLIMITED)
		wants.processes += limits->own_tasks;
	/* A group that cannot be made (no right, no space) leaves the other means. */
	limits->has_group =
		is_usable(probe) && cgroup_create(probe, id, &wants, &limits->group, NULL) >= 0;
	limits->has_group &= has_any(&limits->group);
	if (limits->has_group)
		lock_groups(&limits->group);
	if (is_usable(probe))
		cgroup_sweep(probe, is_alive, probe);
	if (limits->has_group &&
	    cgroup_oom_fd(&limits->group, &limits->oom_fd, &limits->oom_events) < 0)
		limits->oom_fd = -1;
	return check_hard(limits, probe, err);
}

static bool is_another(const char *id, void *data)
{
	return !str_is(id, data);
}

static bool is_left(const struct cgroup_probe *probe, const char *id)
{
	char path[CGROUP_PATH + CGROUP_ID + 2];
	bool is_found = false;
	struct stat st;

	for (int i = 0; i < CGROUP_CONTROLLERS && !is_found; i++) {
		snprintf(path, sizeof path, "%s/%s", probe->base[i], id);
		is_found = probe->has[i] && lstat(path, &st) == 0;
	}
	return is_found;
}

void limits_remove(const struct cgroup_probe *probe, const char *id, uint64_t timeout_ms)
{
	uint64_t deadline_ms = clock_now_ms() + timeout_ms;
	char name[CGROUP_ID];

	snprintf(name, sizeof name, "%s", id);
	do /* waits by itself while dying processes keep a group busy */
		cgroup_sweep(probe, is_another, name);
	while (is_left(probe, id) && clock_now_ms() < deadline_ms);
	/* The last one to go takes `caisson` along; its owner may have died before he made more. */
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (probe->has[i])
			rmdir(probe->base[i]);
}

/* Groups whose owner seems to be dead. */
struct suspects {
	const struct cgroup_probe *probe;
	char (*ids)[CGROUP_ID];
	size_t count;
};

static bool is_suspected(const struct suspects *suspects, const char *id)
{
	for (size_t i = 0; i < suspects->count; i++)
		if (str_is(suspects->ids[i], id))
			return true;
	return false;
}

/* The first look removes nothing: one without a lock may be about to be locked. */
static bool suspect(const char *id, void *data)
{
	struct suspects *suspects = data;

	if (suspects->count < SUSPECTS && strlen(id) >= STAMP_SIZE && strlen(id) < CGROUP_ID &&
	    !is_suspected(suspects, id) && !is_locked(suspects->probe, id))
		snprintf(suspects->ids[suspects->count++], CGROUP_ID, "%s", id);
	return true;
}

static bool is_innocent(const char *id, void *data)
{
	const struct suspects *suspects = data;

	return !is_suspected(suspects, id) || is_locked(suspects->probe, id);
}

void limits_sweep(const struct removed *removed)
{
	struct cgroup_probe probe;
	struct suspects suspects = { .probe = &probe };

	cgroup_probe(&probe);
	suspects.ids = calloc(SUSPECTS, sizeof *suspects.ids);
	if (is_usable(&probe) && suspects.ids)
		cgroup_sweep(&probe, suspect, &suspects);
	if (suspects.count > 0) {
		usleep(LOOK_AGAIN_US);
		cgroup_sweep(&probe, is_innocent, &suspects);
	}
	for (size_t i = 0; i < suspects.count; i++)
		if (!is_left(&probe, suspects.ids[i]))
			removed_tell(removed, "group", suspects.ids[i]);
	for (int i = 0; i < CGROUP_CONTROLLERS && suspects.count > 0; i++)
		if (probe.has[i])
			rmdir(probe.base[i]);
	free(suspects.ids);
}

int limits_clone_fd(const struct limits *limits)
{
	return limits->has_group ? cgroup_clone_fd(&limits->group, CGROUP_AGENT) : -1;
}

void limits_enter_fds(const struct limits *limits, int ret_agent[3], int ret_cmd[3])
{
	for (int i = 0; i < 3; i++)
		ret_agent[i] = ret_cmd[i] = -1;
	if (!limits->has_group)
		return;
	if (limits_clone_fd(limits) < 0)
		cgroup_enter_fds(&limits->group, CGROUP_AGENT, ret_agent);
	cgroup_enter_fds(&limits->group, CGROUP_CMD, ret_cmd);
}

static bool has(const struct limits *limits, enum cgroup_controller controller)
{
	return limits->has_group && cgroup_has(&limits->group, controller);
}

uint64_t limits_data_bytes(const struct limits *limits)
{
	return has(limits, CGROUP_MEMORY) ? PLAN_UNLIMITED : limits->plan->limits.mem_bytes;
}

void limits_watch(struct limits *limits, pid_t pid, const char *scratch_dir)
{
	char path[64];
	struct stat st;

	if (limits->is_elsewhere || limits->own_tasks > 0)
		return;
	snprintf(path, sizeof path, "/proc/%d/root/dev/shm", (int)pid);
	limits->is_scratch_sized = !scratch_dir;
	limits->files.has_ipc = !scratch_dir; /* a view of its own comes with namespaces */
	limits->scratch_fd =
		open(scratch_dir ? scratch_dir : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (limits->is_scratch_sized && fstat(limits->scratch_fd, &st) == 0)
		limits->files.apart_dev = st.st_dev;
}

/* What a number of bytes is: the kernel's own account is certain, our looks are not. */
static const char by_kernel[] = "peak", by_sample[] = "sampled",
		  by_peak[] = "sampled peak of one process";

static void add_memory_fact(const struct limits *limits, struct violations *violations,
			    uint64_t peak, const char *how)
{
	bool is_certain = how == by_kernel;
	struct fact fact;
	char limit[32], used[32];

	fact_init(&fact, FACT_MEMORY_LIMIT, is_certain ? SOURCE_CGROUP : SOURCE_MONITOR);
	fact.is_certain = is_certain;
	str_format_size(limits->plan->limits.mem_bytes, limit, sizeof limit);
	str_format_size(peak, used, sizeof used);
	fact_print(fact.rule, sizeof fact.rule, "limits.memory");
	fact_print(fact.detail.text, sizeof fact.detail.text, "limit %s, %s %s", limit, how, used);
	violations_add(violations, &fact);
}

static void look_at_scratch(struct limits *limits, struct violations *violations)
{
	struct sample_scratch scratch;
	struct fact fact;

	if (!limits->is_scratch_sized || sample_scratch(limits->scratch_fd, &scratch) < 0)
		return;
	if (!scratch.is_full || limits->was_scratch_full)
		return;
	limits->was_scratch_full = true;
	fact_init(&fact, FACT_SCRATCH_LIMIT, SOURCE_MONITOR);
	fact.is_certain = false;
	fact_print(fact.rule, sizeof fact.rule, "scratch.size");
	fact_print(fact.detail.text, sizeof fact.detail.text,
		   "scratch is full: no free %s, sampled",
		   scratch.free_bytes == 0 ? "space" : "inodes");
	violations_add(violations, &fact);
}

/* Files on a tmpfs are memory too, and in no process's count. */
static uint64_t scratch_in_use(const struct limits *limits)
{
	struct sample_scratch scratch;

	if (!limits->is_scratch_sized || sample_scratch(limits->scratch_fd, &scratch) < 0)
		return 0;
	return scratch.size_bytes - scratch.free_bytes;
}

/* Two looks in a row must agree before anybody is killed for one. */
static enum limits_state judge_memory(struct limits *limits, const struct sample_tree *tree,
				      struct violations *violations)
{
	uint64_t limit = limits->plan->limits.mem_bytes;

	if (tree->mem_bytes > limits->sampled_peak)
		limits->sampled_peak = tree->mem_bytes;
	limits->over_count = tree->mem_bytes > limit ? limits->over_count + 1 : 0;
	if (limits->over_count < 2)
		return LIMITS_FINE;
	add_memory_fact(limits, violations, tree->mem_bytes, by_sample);
	return LIMITS_MEMORY;
}

static void add_process_fact(const struct limits *limits, struct violations *violations,
			     uint64_t refused)
{
	struct fact fact;

	fact_init(&fact, FACT_PROCESS_LIMIT, SOURCE_CGROUP);
	fact.count = refused;
	fact_print(fact.rule, sizeof fact.rule, "limits.processes");
	fact_print(fact.detail.text, sizeof fact.detail.text, "limit %llu, %llu forks refused",
		   (unsigned long long)limits->plan->limits.processes, (unsigned long long)refused);
	violations_add(violations, &fact);
}

/* An rlimit refuses forks and tells nobody: a full tree is all that can be seen of it. One of the
 * tree is the command's reaper, which is ours. */
static void judge_processes(struct limits *limits, const struct sample_tree *tree,
			    struct violations *violations)
{
	struct fact fact;

	if (tree->threads > limits->task_peak)
		limits->task_peak = tree->threads;
	if (tree->threads <= limits->plan->limits.processes ||
	    violations_count(violations, FACT_PROCESS_LIMIT) > 0)
		return;
	fact_init(&fact, FACT_PROCESS_LIMIT, SOURCE_MONITOR);
	fact.is_certain = false;
	fact_print(fact.rule, sizeof fact.rule, "limits.processes");
	fact_print(fact.detail.text, sizeof fact.detail.text, "limit %llu, sampled %u",
		   (unsigned long long)limits->plan->limits.processes, tree->threads - 1);
	violations_add(violations, &fact);
}

/* What no controller holds or counts. */
static enum limits_state look_at_tree(struct limits *limits, pid_t pid,
				      struct violations *violations)
{
	bool has_memory = has(limits, CGROUP_MEMORY), has_pids = has(limits, CGROUP_PIDS);
	uint64_t limit = limits->plan->limits.mem_bytes, scratch = 0;
	struct sample_tree tree;
	int r;

	if (has_memory && has_pids)
		return LIMITS_FINE;
	if (!has_memory)
		scratch = scratch_in_use(limits);
	limits->files.apart_bytes = scratch;
	if (has_memory)
		r = sample_tree(pid, UINT64_MAX, NULL, &tree);
	else
		r = sample_tree(pid, limit > scratch ? limit - scratch : 0, &limits->files, &tree);
	if (r < 0)
		return LIMITS_FINE;
	tree.mem_bytes += scratch;
	limits->was_cut |= tree.is_cut;
	if (!has_pids)
		judge_processes(limits, &tree, violations);
	return has_memory ? LIMITS_FINE : judge_memory(limits, &tree, violations);
}

/* The kernel counts refused forks and wakes nobody: asked only where a refusal ends the run. */
static void look_at_processes(struct limits *limits, struct violations *violations)
{
	struct cgroup_usage usage;

	if (limits->plan->on_violation != REACT_KILL || !has(limits, CGROUP_PIDS) ||
	    cgroup_read(&limits->group, &usage) < 0)
		return;
	if (usage.pids_refused != CGROUP_UNKNOWN && usage.pids_refused > 0)
		add_process_fact(limits, violations, usage.pids_refused);
}

enum limits_state limits_tick(struct limits *limits, pid_t pid, uint64_t now_ms,
			      struct violations *violations)
{
	if (limits->is_elsewhere)
		limits->next_tick_ms = CLOCK_NEVER;
	if (now_ms < limits->next_tick_ms)
		return LIMITS_FINE;
	limits->next_tick_ms = now_ms + LIMITS_TICK_MS;
	look_at_scratch(limits, violations);
	look_at_processes(limits, violations);
	return look_at_tree(limits, pid, violations);
}

/*
 * One process that reached the limit between two looks, as its parent learned when it was reaped.
 * It ended by itself and tells so: a fact, and no other end of the run.
 */
static void judge_peak(const struct limits *limits, uint64_t max_rss, struct violations *violations)
{
	uint64_t limit = limits->plan->limits.mem_bytes;

	if (limit != PLAN_UNLIMITED && max_rss >= limit &&
	    violations_count(violations, FACT_MEMORY_LIMIT) == 0)
		add_memory_fact(limits, violations, max_rss, by_peak);
}

bool limits_saw_oom(struct limits *limits)
{
	struct cgroup_usage usage;

	if (!limits->has_group || cgroup_read(&limits->group, &usage) < 0)
		return limits->oom_seen > 0;
	if (usage.oom_kills != CGROUP_UNKNOWN && usage.oom_kills > limits->oom_seen)
		limits->oom_seen = usage.oom_kills;
	if (usage.pids_refused != CGROUP_UNKNOWN && usage.pids_refused > limits->refused_seen)
		limits->refused_seen = usage.pids_refused;
	return limits->oom_seen > 0;
}

void limits_judge_kill(struct limits *limits)
{
	if (limits->oom_fd >= 0 && limits->oom_events == POLLIN)
		limits->was_oom_told |= cgroup_oom_ack(limits->oom_fd);
	if (limits->was_oom_told && limits->oom_seen == 0)
		limits->oom_seen = 1;
}

enum limits_state limits_finish(struct limits *limits, uint64_t max_rss,
				struct violations *violations)
{
	struct cgroup_usage *usage = &limits->usage;

	look_at_scratch(limits, violations);
	if (!limits->is_elsewhere && !has(limits, CGROUP_MEMORY))
		judge_peak(limits, max_rss, violations);
	if (!limits->has_group || cgroup_read(&limits->group, usage) < 0)
		return LIMITS_FINE;
	limits_saw_oom(limits);
	if (limits->refused_seen > 0 && violations_count(violations, FACT_PROCESS_LIMIT) == 0)
		add_process_fact(limits, violations, limits->refused_seen);
	if (limits->oom_seen == 0)
		return LIMITS_FINE;
	add_memory_fact(limits, violations, usage->mem_peak_bytes, by_kernel);
	return LIMITS_MEMORY;
}

const struct cgroup *limits_group(const struct limits *limits)
{
	return limits->has_group ? &limits->group : NULL;
}

void limits_close(struct limits *limits)
{
	limits->oom_fd = fd_close(limits->oom_fd);
	limits->scratch_fd = fd_close(limits->scratch_fd);
	if (limits->has_group)
		cgroup_done(&limits->group);
	limits->has_group = false;
}

uint64_t limits_peak(const struct limits *limits, uint64_t max_rss)
{
	if (limits->usage.mem_peak_bytes && limits->usage.mem_peak_bytes != CGROUP_UNKNOWN)
		return limits->usage.mem_peak_bytes;
	return limits->sampled_peak > max_rss ? limits->sampled_peak : max_rss;
}

bool limits_forecast(const struct cgroup_probe *probe, size_t i,
		     struct limits_forecast *ret_forecast)
{
	bool is_held;

	if (i >= ARRAY_SIZE(means))
		return false;
	is_held = probe->has[means[i].controller];
	*ret_forecast =
		(struct limits_forecast){ means[i].name, is_held ? "cgroup" : means[i].otherwise,
					  is_held ? means[i].feature : 0 };
	return true;
}

const char *limits_why_unseen(const struct limits *limits)
{
	if (has(limits, CGROUP_MEMORY))
		return NULL;
	if (limits->files.was_blind)
		return "no controller held it, and the look at files in memory was refused or got "
		       "no answer";
	if (limits->was_cut)
		return "no controller held it, and there were more processes or descriptors than "
		       "a look goes through";
	if (limits->files.is_sysv_refused)
		return "no controller held it, and System V segments cannot be counted on this "
		       "machine";
	return NULL;
}

json_t *limits_means(const struct limits *limits)
{
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(means); i++)
		json_object_set_new(object, means[i].name,
				    json_string(has(limits, means[i].controller)
							? "cgroup"
							: means[i].otherwise));
	json_object_set_new(object, "scratch", json_string("tmpfs"));
	json_object_set_new(object, "output", json_string("counter"));
	return object;
}

uint64_t limits_enforces(const struct limits *limits)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(means); i++)
		bits |= has(limits, means[i].controller) ? means[i].feature : 0;
	return bits;
}
