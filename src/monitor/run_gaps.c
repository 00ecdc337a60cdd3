/*
 * What a run did not do and could not see: the part of result.json that keeps the rest honest.
 *
 *   observed, not_observed   each kind of fact, by what this wall and this machine can tell
 *   not_observed_why         the reason of each that is missing
 *   no_effect                settings of the plan that this run did not carry out, and why
 *   protect_not_enforced     protected names that were writable after all
 *   StrictMode…              the fact of a run that never was
 *
 * A reader takes the absence of a violation for the absence of an attempt only where the kind
 * of fact is in `observed`; so each row here asks for the means, not for the wish.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "monitor/run_private.h"

/* Told by the program that is the wall, or by nobody. */
static const char *why_not_told(const struct run *run, enum fact_event event)
{
	if (plan_has((const char *const *)run->plan->command_observes, fact_event_name(event)))
		return NULL;
	if (run->backend->untold)
		return run->backend->untold;
	return run->backend->is_callers
		       ? "the program that is this wall does not tell (csn_wall.observes)"
		       : "the program of this wall does not tell (command.observes)";
}

static const char *why_no_attempts(const struct run *run)
{
	if (run->has_listener)
		return NULL;
	if (!run->is_executing || !run->backend)
		return "the command never started";
	if (run_stays(run) && !run->has_commands)
		return "no command was run";
	if (run->backend->is_runtimes)
		return "a container runtime shows the commands' calls to nobody";
	return str_is(run->backend->profile, "none")
		       ? "this wall has no syscall filter"
		       : "kernel.yama.ptrace_scope lets nobody watch the commands' calls";
}

static const char *why_no_reads(const struct run *run)
{
	const char *why = why_no_attempts(run);

	if (why || run->plan->observe_reads)
		return why;
	return "they run at full speed; observe: [reads] in the policy file shows them";
}

static const char *why_no_memory(const struct run *run)
{
	if (run->plan->limits.mem_bytes == PLAN_UNLIMITED)
		return "there is no limit to meet";
	return violations_count(&run->violations, FACT_MEMORY_LIMIT) > 0
		       ? NULL
		       : limits_why_unseen(&run->limits);
}

/* Without a view of its own a wall has no ids of its own: an ordinary user's processes count with
 * all his others, so no rlimit can be set for them. Tier local sets none. */
static bool has_process_rlimit(const struct run *run)
{
	return run->backend &&
	       (run->backend->has_view || (run->backend->tier != TIER_LOCAL && geteuid() == 0));
}

/* A controller counts what it refuses, nothing else does. */
static bool counts_forks(const struct limits *limits)
{
	return limits->has_group && cgroup_has(&limits->group, CGROUP_PIDS) &&
	       limits->usage.pids_refused != CGROUP_UNKNOWN;
}

static const char *why_no_processes(const struct run *run)
{
	if (run->plan->limits.processes == PLAN_UNLIMITED)
		return "there is no limit to meet";
	if (!run->is_executing)
		return "the command never started";
	if (counts_forks(&run->limits) ||
	    violations_count(&run->violations, FACT_PROCESS_LIMIT) > 0)
		return NULL;
	return has_process_rlimit(run)
		       ? "limits.processes is an rlimit here; a refused fork leaves no trace"
		       : "limits.processes is only looked at here, every 50 ms; a short burst "
			 "leaves no trace";
}

static const char *why_no_scratch(const struct run *run)
{
	if (run->backend && run->backend->is_runtimes)
		return "the runtime mounts scratch, and its free space is not looked at";
	if (!run->backend || !run->backend->has_view)
		return "scratch is a folder of the host's here, without a size";
	return run->plan->limits.scratch_bytes == PLAN_UNLIMITED ? "there is no limit to meet"
								 : NULL;
}

static const char *always(const struct run *run)
{
	(void)run;
	return NULL;
}

static const struct {
	enum fact_event event;
	const char *(*why_not)(const struct run *run); /* NULL: observed */
} kinds[] = {
	{ FACT_TIMEOUT, always },
	{ FACT_OUTPUT_LIMIT, always },
	{ FACT_SCRATCH_LIMIT, why_no_scratch },
	{ FACT_NETWORK_ACCESS, why_no_attempts },
	{ FACT_FILESYSTEM_WRITE, why_no_attempts },
	{ FACT_SYSCALL, why_no_attempts },
	{ FACT_MEMORY_LIMIT, why_no_memory },
	{ FACT_PROCESS_LIMIT, why_no_processes },
	{ FACT_FILESYSTEM_READ, why_no_reads },
};

static void put_observed(const struct run *run, json_t *result)
{
	json_t *observed = json_array(), *not_observed = json_array(), *reasons = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *name = fact_event_name(kinds[i].event);
		bool is_told = run_is_apart(run) && kinds[i].why_not != always;
		const char *why =
			is_told ? why_not_told(run, kinds[i].event) : kinds[i].why_not(run);

		json_array_append_new(why ? not_observed : observed, json_string(name));
		if (why)
			json_object_set_new(reasons, name, json_string(why));
	}
	json_object_set_new(result, "observed", observed);
	json_object_set_new(result, "not_observed", not_observed);
	json_object_set_new(result, "not_observed_why", reasons);
}

/* Did file or flag set it? What nobody asked for is missed by nobody. */
static bool is_said(const struct plan *plan, const char *key)
{
	for (size_t i = 0; i < plan->note_count; i++)
		if (str_is(plan->notes[i].what, key))
			return true;
	return false;
}

static void add_gap(json_t *list, const char *key, const char *why)
{
	json_array_append_new(list, json_pack("{s:s, s:s}", "key", key, "why", why));
}

/* Keys that need a view of the wall's own, and those that need a wall. */
static void add_view_gaps(const struct run *run, json_t *list)
{
	static const struct {
		const char *key;
		bool needs_view;
	} keys[] = {
		{ "workspace.at", true },    { "scratch.at", true },
		{ "scratch.size", true },    { "workspace.mode", false },
		{ "workspace.hide", false }, { "workspace.protect", false },
		{ "mounts", false },         { "network.mode", false },
	};
	bool is_local = run->backend && run->backend->tier == TIER_LOCAL;
	char why[96];

	if (!run->backend || run->backend->has_view)
		return;
	if (is_local)
		snprintf(why, sizeof why, "tier local has no wall");
	else
		snprintf(why, sizeof why, "the %s wall shows the host's own paths",
			 run->backend->name);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if ((is_local || keys[i].needs_view) && is_said(run->plan, keys[i].key))
			add_gap(list, keys[i].key, why);
	if (geteuid() == 0 && !is_local && run->plan->workspace.access == ACCESS_RW)
		add_gap(list, "workspace.mode",
			"started by root the command has a uid of its own and writes only what "
			"everybody may");
}

/* What somebody asked for and the program's author does not promise. */
static void add_declared_gaps(const struct run *run, json_t *list)
{
	static const struct {
		const char *key;
		uint64_t features; /* any of them; 0: none there could be */
	} keys[] = {
		{ "workspace.hide", FEATURE_FS_HIDE },
		{ "workspace.protect", FEATURE_FS_PROTECT },
		{ "workspace.mode", FEATURE_FS_WRITE },
		{ "workspace.path", 0 },
		{ "mounts", 0 },
		{ "scratch.at", 0 },
		{ "scratch.size", FEATURE_SCRATCH },
		{ "network.mode", FEATURE_NET_NONE | FEATURE_NET_LOOPBACK },
		{ "limits.memory", FEATURE_MEMORY },
		{ "limits.processes", FEATURE_PROCESSES },
		{ "limits.cpus", FEATURE_CPU },
	};
	static const char elsewhere[] = "what stands where is the business of the wall's program";
	char why[64];

	snprintf(why, sizeof why, "%s.enforces does not promise it", run->backend->declared_in);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (is_said(run->plan, keys[i].key) && !(run->report.enforces & keys[i].features))
			add_gap(list, keys[i].key, keys[i].features ? why : elsewhere);
}

static bool has_variable(const struct run *run, const char *start)
{
	for (char **item = run->env; *item; item++)
		if (str_starts(*item, start))
			return true;
	return false;
}

/* One that stays has calls, and time between them; a container has an engine. */
static bool is_carried_out(const struct run *run, const struct plan_gap *gap)
{
	if (run->backend && run->backend->runs_images && str_starts(gap->key, "container."))
		return true;
	return run_stays(run) && str_is(gap->key, "limits.idle");
}

json_t *run_no_effect(const struct run *run)
{
	json_t *list = json_array();
	const struct plan_gap *gap;
	size_t at = 0;

	while ((gap = plan_gap_next(run->plan, &at)))
		if (!gap->is_refused && !is_carried_out(run, gap))
			add_gap(list, gap->key, gap->why);
	if (run->plan->git_identity && run->env && !has_variable(run, "GIT_AUTHOR_EMAIL="))
		add_gap(list, "env.git_identity",
			"git's configuration names no address for you: git config --global "
			"user.email");
	if (run_is_declared(run))
		add_declared_gaps(run, list);
	else
		add_view_gaps(run, list);
	return list;
}

/* The same, and what could not be known before a command ran. */
static json_t *no_effect(const struct run *run)
{
	json_t *list = run_no_effect(run);

	if (run->plan->observe_reads && run->is_executing && why_no_attempts(run))
		add_gap(list, "observe", why_no_attempts(run));
	if (run->plan->network == NETWORK_LOOPBACK && run->is_executing && run->backend->has_view &&
	    !run->has_listener && !str_is(run->backend->profile, "command-alone-inner"))
		add_gap(list, "network.mode", "connect is refused where its address is not seen");
	return list;
}

/* Names that could not be covered; all of them where the wall covers none. */
json_t *run_not_protected(const struct run *run)
{
	const struct plan_workspace *workspace = &run->plan->workspace;
	const char *const *names = run->protect.not_enforced;
	bool has_none = run_is_declared(run) ? !(run->report.enforces & FEATURE_FS_PROTECT)
					     : run->backend && !run->backend->has_view;
	json_t *list = json_array();

	if (has_none && workspace->host && workspace->access == ACCESS_RW)
		names = (const char *const *)workspace->protect;
	for (; names && *names; names++)
		json_array_append_new(list, redact_text(NULL, *names, strlen(*names)));
	return list;
}

static void replace_text(json_t *object, const char *key, const char *old, const char *now)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (text && str_is(text, old))
		json_object_set_new(object, key, json_string(now));
}

static void put_means(const struct run *run, json_t *means)
{
	static const struct {
		const char *name;
		uint64_t feature;
	} rows[] = {
		{ "memory", FEATURE_MEMORY },
		{ "processes", FEATURE_PROCESSES },
		{ "cpus", FEATURE_CPU },
		{ "scratch", FEATURE_SCRATCH },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		json_object_set_new(means, rows[i].name,
				    json_string(run->report.enforces & rows[i].feature
							? run->backend->means
							: "none"));
}

/*
 * The means as limits_means() names them suppose a wall with a view and ids of its own. Without,
 * scratch has no size, processes may have no rlimit, and no wall means no affinity.
 */
static void correct_means(const struct run *run, json_t *result)
{
	json_t *means = json_object_get(json_object_get(result, "limits"), "means");
	bool is_local = run->backend && run->backend->tier == TIER_LOCAL;

	if (run_is_apart(run))
		put_means(run, means);
	if (!run->backend || run->backend->has_view)
		return;
	json_object_set_new(means, "scratch", json_string("none"));
	if (!has_process_rlimit(run))
		replace_text(means, "processes", "rlimit", "sampled");
	if (is_local)
		replace_text(means, "cpus", "affinity", "none");
}

void run_note_strict(struct run *run, const struct csn_error *err)
{
	bool is_required = str_starts(err->text, "StrictModeRequired: ");
	const char *text = strchr(err->text, ' ');
	struct fact fact;

	if (!is_required && !str_starts(err->text, "StrictModeUnavailable: "))
		return;
	fact_init(&fact, is_required ? FACT_STRICT_REQUIRED : FACT_STRICT_UNAVAILABLE,
		  SOURCE_MONITOR);
	/* The sentence of the refusal up to its advice, which `say` gives too. */
	fact_text(fact.detail.text, sizeof fact.detail.text, text + 1, strcspn(text + 1, ";"));
	fact_print(fact.rule, sizeof fact.rule, "%s", "tier");
	for (size_t i = 0; i < run->plan->note_count; i++)
		if (str_is(run->plan->notes[i].what, "tier"))
			fact_print(fact.rule, sizeof fact.rule, "tier: %s by %s",
				   run->plan->notes[i].now, run->plan->notes[i].where);
	violations_add(&run->violations, &fact);
}

void run_gaps(const struct run *run, json_t *result)
{
	correct_means(run, result);
	if ((run->backend && run->backend->tier == TIER_LOCAL) ||
	    (run_is_declared(run) && !(run->report.enforces & FEATURE_FS_HIDE)))
		json_object_set_new(result, "hidden", json_array());
	put_observed(run, result);
	json_object_set_new(result, "no_effect", no_effect(run));
	json_object_set_new(result, "protect_not_enforced", run_not_protected(run));
}
