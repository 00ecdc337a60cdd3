/*
 * The account of a run: result.json (schema caisson.result/1) and the events of the audit log.
 * Texts from inside were made valid UTF-8 where they became facts; here data becomes JSON.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/errno_name.h"
#include "base/str.h"
#include "launch/launch.h"
#include "monitor/approval.h"
#include "monitor/run_private.h"
#include "os/landlock.h"

static const char *const phase_names[PHASE_COUNT] = {
	[PHASE_PREPARED] = "prepared_us", [PHASE_CLONED] = "cloned_us", [PHASE_READY] = "ready_us",
	[PHASE_EXEC] = "exec_us",         [PHASE_END] = "end_us",
};

static json_t *texts(const char *const *list)
{
	json_t *array = json_array();

	for (; list && *list; list++)
		json_array_append_new(array, redact_text(NULL, *list, strlen(*list)));
	return array;
}

static json_t *command_json(const struct run_setup *setup)
{
	if (setup->text)
		return json_pack("[s, s, o]", "sh", "-c",
				 redact_text(NULL, setup->text, strlen(setup->text)));
	return texts(setup->argv);
}

static json_t *features_json(uint64_t bits)
{
	json_t *array = json_array();

	for (unsigned bit = 0; bit < FEATURE_COUNT; bit++)
		if (bits >> bit & 1)
			json_array_append_new(array, json_string(plan_feature_name(bit)));
	return array;
}

static json_t *mounts_json(const struct plan *plan)
{
	json_t *array = json_array();

	if (plan->workspace.host)
		json_array_append_new(
			array, json_pack("{s:s, s:s, s:s, s:b}", "host", plan->workspace.host, "at",
					 plan->workspace.at, "mode",
					 plan_access_name(plan->workspace.access), "workspace", 1));
	for (size_t i = 0; i < plan->mount_count; i++)
		json_array_append_new(array,
				      json_pack("{s:s, s:s, s:s}", "host", plan->mounts[i].host,
						"at", plan->mounts[i].at, "mode",
						plan_access_name(plan->mounts[i].access)));
	return array;
}

static json_t *limit_json(uint64_t value)
{
	return value == PLAN_UNLIMITED ? json_null() : json_integer((json_int_t)value);
}

static json_t *limits_json(const struct run *run)
{
	const struct plan_limits *l = &run->plan->limits;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "command_ms",
			 limit_json(l->command_ms), "budget_ms", limit_json(l->budget_ms),
			 "startup_ms", limit_json(l->startup_ms), "idle_ms", limit_json(l->idle_ms),
			 "cpu_milli", limit_json(l->cpu_milli), "mem_bytes",
			 limit_json(l->mem_bytes), "processes", limit_json(l->processes),
			 "output_bytes", limit_json(l->output_bytes), "open_files",
			 limit_json(l->open_files), "scratch_bytes", limit_json(l->scratch_bytes),
			 "means", limits_means(&run->limits));
}

static json_t *number_or_null(bool has, json_int_t value)
{
	return has ? json_integer(value) : json_null();
}

static json_t *termination_json(const struct run *run)
{
	int signal = run->signal ? run->signal : run->end_signal;
	bool has_code = run->exit_code >= 0 && run->ending != END_START_FAILED;

	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "reason", ending_name(run->ending), "clock",
			 run->clock ? json_string(run->clock) : json_null(), "exit_code",
			 number_or_null(has_code, run->exit_code), "signal",
			 number_or_null(signal > 0, signal), "signal_name",
			 signal > 0 ? json_string(ending_signal_name(signal)) : json_null());
}

static json_t *usage_json(const struct run *run)
{
	/* A sandbox that stays executes nothing of its own: its time is that since it was ready. */
	uint64_t start = run->phase_us[run_stays(run) ? PHASE_READY : PHASE_EXEC];
	uint64_t end = run->phase_us[PHASE_END];

	return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:s}", "wall_ms",
			 start && end > start ? (double)(end - start) / 1000.0 : 0.0, "cpu_ms",
			 (double)run->cpu_us / 1000.0, "mem_peak_bytes",
			 (json_int_t)limits_peak(&run->limits, run->max_rss), "stdout_bytes",
			 (json_int_t)run->out.total, "stderr_bytes", (json_int_t)run->err.total,
			 "output_cut_bytes",
			 (json_int_t)(sink_cut(&run->out) + sink_cut(&run->err)), "scope",
			 run->is_replied ? "command" : "sandbox");
}

static json_t *timings_json(const struct run *run)
{
	json_t *object = json_object();

	for (int i = 0; i < PHASE_COUNT; i++)
		if (run->phase_us[i])
			json_object_set_new(object, phase_names[i],
					    json_integer((json_int_t)run->phase_us[i]));
	return object;
}

static json_t *host_json(void)
{
	struct utsname name;

	uname(&name);
	return json_pack("{s:s, s:s, s:i, s:s}", "kernel", name.release, "arch", name.machine,
			 "landlock_abi", landlock_abi(), "caisson", CAISSON_VERSION);
}

static json_t *container_json(const struct run *run)
{
	const struct wall_container *container = &run->wall.container;

	if (!container->version[0])
		return json_null();
	return json_pack("{s:s, s:s, s:s, s:s, s:b}", "engine", run->backend->name, "version",
			 container->version, "image", container->image, "digest", container->digest,
			 "rootless", container->is_rootless);
}

static json_t *text_or_null(const char *text)
{
	return text && *text ? redact_text(NULL, text, strlen(text)) : json_null();
}

static json_t *policy_json(const struct plan *plan)
{
	bool is_known = plan->policy_is_modified >= 0 && plan->policy_commit;

	return json_pack("{s:o, s:o, s:b, s:o, s:o}", "path", text_or_null(plan->policy_path),
			 "sha256", text_or_null(plan->policy_sha256), "trusted",
			 plan->policy_is_trusted, "commit", text_or_null(plan->policy_commit),
			 "modified",
			 is_known ? json_boolean(plan->policy_is_modified) : json_null());
}

static json_t *error_json(const struct csn_error *err)
{
	return json_pack("{s:s, s:s, s:o}", "code", error_name(err), "stage", err->stage, "text",
			 redact_text(NULL, err->text, strlen(err->text)));
}

void run_state_layer(const struct run *run, json_t *state)
{
	const struct plan *plan = run->plan;

	if (!plan->workspace.host || plan->workspace.access != ACCESS_COW)
		return;
	json_object_set_new(state, "cow",
			    json_pack("{s:s, s:o, s:o, s:o}", "workspace", plan->workspace.host,
				      "protect",
				      texts((const char *const *)plan->workspace.protect), "hide",
				      texts((const char *const *)plan->workspace.hide), "policy",
				      text_or_null(plan->policy_path)));
}

json_t *run_result(struct run *run)
{
	const struct plan *plan = run->plan;
	const char *backend = run->backend ? run->backend->runtime : "none";
	char runtime[64], started[CLOCK_TEXT];
	json_t *result, *redacted;

	snprintf(runtime, sizeof runtime, "%s/%s", plan_tier_name(plan->tier), backend);
	clock_format(run->started_wall_ms, started);
	result = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "schema", "caisson.result/1",
			   "run_id", run->sandbox_id, "sandbox_id", run->sandbox_id, "started",
			   started, "tier", plan_tier_name(plan->tier), "backend", backend,
			   "runtime", runtime);
	if (!result)
		return NULL;
	json_object_set_new(result, "command", command_json(run->setup));
	if (run->setup->sandbox)
		json_object_set_new(result, "sandbox", json_string(run->setup->sandbox));
	json_object_set_new(result, "cwd", json_string(run->cwd ? run->cwd : ""));
	json_object_set_new(result, "termination", termination_json(run));
	json_object_set_new(result, "usage", usage_json(run));
	json_object_set_new(result, "violations", violations_json(&run->violations, run->redactor));
	json_object_set_new(result, "enforced", features_json(run_enforces(run)));
	json_object_set_new(result, "limits", limits_json(run));
	json_object_set_new(result, "mounts", mounts_json(plan));
	json_object_set_new(result, "hide", texts((const char *const *)plan->workspace.hide));
	json_object_set_new(result, "hidden", texts(run->hidden));
	json_object_set_new(result, "protect", texts((const char *const *)plan->workspace.protect));
	run_gaps(run, result);
	json_object_set_new(result, "toolchains", texts(run->toolchains));
	json_object_set_new(result, "network", json_string(plan_network_name(plan->network)));
	json_object_set_new(result, "forwards", forwards_json(run->forwards));
	json_object_set_new(result, "policy", policy_json(plan));
	json_object_set_new(result, "approval",
			    run->setup->approval ? approval_json(run->setup->approval)
						 : json_null());
	json_object_set_new(result, "env_passed", texts(run->passed));
	json_object_set_new(result, "host", host_json());
	json_object_set_new(result, "container", container_json(run));
	json_object_set_new(result, "timings", timings_json(run));
	json_object_set_new(result, "log_incomplete",
			    json_boolean(run->record.chain.is_incomplete));
	json_object_set_new(result, "error",
			    run->error.code ? error_json(&run->error) : json_null());
	redacted = redact_json(run->redactor, result);
	json_decref(result);
	return redacted;
}

/* ---- events -------------------------------------------------------------------------------- */

static void log_notes(struct run *run)
{
	for (size_t i = 0; i < run->plan->note_count; i++) {
		const struct plan_note *note = &run->plan->notes[i];

		chain_add(&run->record.chain, note->loosens ? EVENT_POLICY_OVERRIDE : EVENT_GRANT,
			  json_pack("{s:s, s:s, s:s, s:s, s:s}", "what", note->what, "old",
				    note->old, "now", note->now, "where", note->where, "digest",
				    run->plan->policy_sha256));
	}
}

/* What start and exit both say: behind what it ran and what it was lent. */
static json_t *terms_json(const struct run *run)
{
	const struct plan *plan = run->plan;

	return json_pack("{s:s, s:s, s:o, s:o, s:s, s:o, s:s, s:o}", "tier",
			 plan_tier_name(plan->tier), "runtime",
			 run->backend ? run->backend->runtime : "none", "image",
			 text_or_null(plan->image), "mounts", mounts_json(plan), "network",
			 plan_network_name(plan->network), "forwards",
			 texts((const char *const *)plan->forwards), "permission_mode",
			 run->setup->owner      ? run->setup->owner->permission_mode
			 : plan->needs_approval ? "approval"
						: "none",
			 "env_passed", texts(run->passed));
}

static void log_terms(struct run *run, enum audit_event event, json_t *more)
{
	json_t *payload = terms_json(run);

	if (payload && more)
		json_object_update(payload, more);
	json_decref(more);
	chain_add(&run->record.chain, event, payload);
}

void run_log_start(struct run *run)
{
	run->is_told = true;
	log_notes(run);
	log_terms(run, EVENT_RUN_STARTED,
		  json_pack("{s:s, s:s, s:o, s:o, s:o}", "run_id",
			    run->setup->owner ? run->record.run_id : run->sandbox_id, "backend",
			    run->backend ? run->backend->name : "none", "command",
			    command_json(run->setup), "limits", limits_json(run), "policy_sha256",
			    text_or_null(run->plan->policy_sha256)));
	if (run->setup->approval)
		chain_add(&run->record.chain, EVENT_APPROVED, approval_json(run->setup->approval));
}

static void log_step(struct run *run, const struct launch_step *step)
{
	chain_add(&run->record.chain, EVENT_LOCKDOWN_STEP,
		  json_pack("{s:s, s:s}", "step", step->name, "why", step->why));
}

void run_log_lockdown(struct run *run)
{
	const struct launch_step *step = run->backend->steps;

	for (; step && step->name; step++)
		if (!run->is_ahead || !str_is(step->name, launch_ahead_step.name))
			log_step(run, step);
	if (run->is_ahead)
		log_step(run, &launch_ahead_step);
}

void run_log_exec(struct run *run)
{
	run->is_exec_told = true;
	chain_add(&run->record.chain, EVENT_EXEC_STARTED,
		  json_pack("{s:o, s:s, s:o}", "command", command_json(run->setup), "cwd", run->cwd,
			    "tags", texts(run->setup->tags)));
}

void run_log_violation(const struct fact *fact, void *data)
{
	struct run *run = data;

	chain_add(&run->record.chain, EVENT_VIOLATION, fact_json(fact, run->redactor));
}

void run_log_end(struct run *run)
{
	/* A start may fail when the record is open already: it has a beginning all the same. */
	if (!run->is_told)
		run_log_start(run);
	if (run->is_exec_told)
		chain_add(&run->record.chain, EVENT_EXEC_ENDED,
			  json_pack("{s:o, s:o}", "termination", termination_json(run), "usage",
				    usage_json(run)));
	log_terms(run, EVENT_RUN_EXITED,
		  json_pack("{s:o, s:i, s:o}", "termination", termination_json(run), "status",
			    run_status(run), "forwarded", forwards_json(run->forwards)));
}
