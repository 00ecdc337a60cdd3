/*
 * What a sandbox is and uses, now. Counters are those of the commands' group where there is one;
 * else the tree is sampled, as limits.c does, and the answer says so.
 */
#include "base/clock.h"
#include "monitor/stay_verbs.h"

static bool scratch_now(const struct limits *limits, struct sample_scratch *ret_scratch)
{
	return limits->is_scratch_sized && limits->scratch_fd >= 0 &&
	       sample_scratch(limits->scratch_fd, ret_scratch) == 0;
}

struct use {
	const char *means; /* cgroup, sampled; none: what runs is not ours to look at */
	uint64_t mem_bytes, processes, cpu_us;
};

/* Scratch is memory, too. */
static void count_tree(const struct run *run, struct use *use)
{
	struct sample_scratch scratch;
	struct sample_tree tree;

	use->means = "sampled";
	if (sample_tree(run->wall.pid, run->plan->limits.mem_bytes, NULL, &tree) < 0)
		return;
	use->mem_bytes = tree.mem_bytes;
	if (scratch_now(&run->limits, &scratch))
		use->mem_bytes += scratch.size_bytes - scratch.free_bytes;
	use->processes = tree.processes;
}

static struct use look(const struct run *run)
{
	struct use use = { "cgroup", CGROUP_UNKNOWN, CGROUP_UNKNOWN, CGROUP_UNKNOWN };
	struct cgroup_usage usage;

	if (run->limits.is_elsewhere) {
		use.means = "none";
		return use;
	}
	if (!run->limits.has_group || cgroup_read(&run->limits.group, &usage) < 0 ||
	    usage.mem_bytes == CGROUP_UNKNOWN) {
		count_tree(run, &use);
		return use;
	}
	use.mem_bytes = usage.mem_bytes;
	use.cpu_us = usage.cpu_us;
	use.processes = usage.pids;
	return use;
}

static void put_text(struct emit *emit, const char *key, const char *text)
{
	emit_atom(emit, key);
	emit_text(emit, text);
}

/* A number or null. */
static void put_number(struct emit *emit, const char *key, uint64_t value)
{
	emit_atom(emit, key);
	if (value == CGROUP_UNKNOWN || value == PLAN_UNLIMITED)
		emit_atom(emit, "null");
	else
		emit_int(emit, (int64_t)value);
}

static void put_scratch(struct emit *emit, const struct limits *limits)
{
	struct sample_scratch scratch;
	bool is_known = scratch_now(limits, &scratch);

	put_number(emit, "scratch_bytes",
		   is_known ? scratch.size_bytes - scratch.free_bytes : CGROUP_UNKNOWN);
	put_number(emit, "scratch_limit", is_known ? scratch.size_bytes : CGROUP_UNKNOWN);
}

/* Those whose call runs, and detached ones while a process of theirs lives. */
static uint64_t count_commands(const struct stay *stay)
{
	uint64_t count = 0;

	for (size_t i = 0; i < stay->calls_end; i++)
		count += stay->calls[i].exec != NULL;
	for (size_t i = 0; i < stay->detached_end; i++)
		count += stay->detached[i] != NULL;
	return count;
}

int stay_stats(struct worker *worker, const struct term *map, struct csn_error *err)
{
	const struct stay *stay = worker->data;
	const struct run *run = worker->run;
	const struct plan *plan = run->plan;
	struct use use = look(run);
	struct emit emit = worker_reply(worker, 17);

	(void)map;
	(void)err;
	put_text(&emit, "sandbox_id", run->sandbox_id);
	put_text(&emit, "tier", plan_tier_name(plan->tier));
	put_text(&emit, "backend", run->backend->name);
	put_text(&emit, "workspace", plan->workspace.host ? plan->workspace.host : "");
	put_text(&emit, "mode", plan_access_name(plan->workspace.access));
	put_number(&emit, "started_ms", (uint64_t)run->started_wall_ms);
	put_number(&emit, "commands", count_commands(stay));
	put_number(&emit, "idle_ms", stay_idle_ms(stay));
	put_number(&emit, "idle_limit_ms", stay_idle_limit_ms(stay));
	put_text(&emit, "means", use.means);
	put_number(&emit, "mem_bytes", use.mem_bytes);
	put_number(&emit, "mem_limit", plan->limits.mem_bytes);
	put_number(&emit, "processes", use.processes);
	put_number(&emit, "processes_limit", plan->limits.processes);
	put_number(&emit, "cpu_us", use.cpu_us);
	put_scratch(&emit, &run->limits);
	return worker_send(worker, &emit);
}
