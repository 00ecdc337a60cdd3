/*
 * caisson doctor: every wall, usable or not and why, and the facts behind it
 *
 * Nothing is started and nothing is changed. The JSON (schema caisson.doctor/1) carries the
 * same facts as the text.
 */
#include "cli/doctor.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "backend/backend.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "monitor/limits.h"

enum { LABEL_COLUMN = 12 };

static const char *const controller_names[CGROUP_CONTROLLERS] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPU] = "cpu",
};

static const char *layout_name(enum cgroup_layout layout)
{
	static const char *const names[] = {
		[CGROUP_NONE] = "none", [CGROUP_V1] = "v1 or hybrid", [CGROUP_V2] = "v2"
	};

	return names[layout];
}

/* ---- for people ----------------------------------------------------------------------- */

static void print_detail(const char *label, const char *text)
{
	char start[64];

	snprintf(start, sizeof start, "%s: ", label);
	if (*text)
		out_tell(stdout, &(struct out_told){ .label = start,
						     .text = text,
						     .indent = LABEL_COLUMN,
						     .hang = LABEL_COLUMN });
}

static void print_features(const char *label, uint64_t bits)
{
	if (!bits)
		return;
	printf("%*s%s:", LABEL_COLUMN, "", label);
	for (unsigned bit = 0; bit < FEATURE_COUNT; bit++)
		if (bits & UINT64_C(1) << bit)
			printf(" %s", plan_feature_name(bit));
	putchar('\n');
}

/* What control groups add to every wall of this build, as far as they are the caller's. */
static uint64_t granted(const struct cgroup_probe *cgroup)
{
	struct limits_forecast limit;
	uint64_t bits = 0;

	for (size_t i = 0; limits_forecast(cgroup, i, &limit); i++)
		bits |= limit.feature;
	return bits;
}

static void print_limits(const struct cgroup_probe *cgroup)
{
	struct limits_forecast limit;

	printf("%*slimits:", LABEL_COLUMN, "");
	for (size_t i = 0; limits_forecast(cgroup, i, &limit); i++)
		printf("%s %s %s%s", i ? "," : "", limit.name,
		       str_is(limit.means, "sampled") ? "" : "by ", limit.means);
	putchar('\n');
}

static void print_wall(const struct cli *cli, const struct backend *wall,
		       const struct backend_report *report, const struct cgroup_probe *cgroup)
{
	printf("%s%s%s %-*s %s\n", out_color(cli, stdout, report->is_usable ? OUT_GREEN : OUT_RED),
	       report->is_usable ? "yes" : "no ", out_plain(cli, stdout), LABEL_COLUMN - 5,
	       wall->name, plan_tier_name(wall->tier));
	print_detail("cause", report->cause);
	print_detail("fix", report->fix);
	print_detail("weaker", report->weaker);
	if (!cli->options.verbose || !report->is_usable)
		return;
	print_features("enforces", report->enforces);
	print_features("by cgroup", granted(cgroup) & ~report->enforces);
	print_limits(cgroup);
}

static void print_cgroup(const struct cgroup_probe *cgroup)
{
	printf("%-*s%s:", LABEL_COLUMN, "cgroup", layout_name(cgroup->layout));
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		printf(" %s %s%s", controller_names[i], cgroup->has[i] ? "yes" : "no",
		       i + 1 < CGROUP_CONTROLLERS ? "," : "\n");
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (!cgroup->has[i])
			print_detail(controller_names[i], cgroup->reason[i]);
}

static void print_privileges(const struct doctor_facts *facts)
{
	char start[96];

	for (size_t i = 0; i < doctor_capability_count; i++) {
		if (!(facts->missing_capabilities & UINT64_C(1) << i))
			continue;
		snprintf(start, sizeof start, "%-*sroot lacks %s: ", LABEL_COLUMN, "privilege",
			 doctor_capabilities[i].name);
		out_tell(stdout, &(struct out_told){ .label = start,
						     .text = doctor_capabilities[i].loss,
						     .hang = LABEL_COLUMN });
	}
	if (!facts->group_count)
		return;
	printf("%-*sa sandbox of yours keeps these supplementary groups:", LABEL_COLUMN, "groups");
	for (size_t i = 0; i < facts->group_count; i++)
		printf(" %u", (unsigned)facts->groups[i]);
	putchar('\n');
	print_detail("why", "the kernel lets only a privileged program drop them; files that the "
			    "sandbox is shown and that belong to them can be read");
}

static void print_facts(const struct doctor_facts *facts)
{
	printf("%-*s%s %s\n", LABEL_COLUMN, "kernel", facts->kernel, facts->machine);
	if (facts->landlock_abi)
		printf("%-*sABI %d\n", LABEL_COLUMN, "landlock", facts->landlock_abi);
	else
		printf("%-*snone; boot with lsm=landlock,… on Linux 5.13 or later\n", LABEL_COLUMN,
		       "landlock");
	printf("%-*s%s\n", LABEL_COLUMN, "userns", facts->has_user_namespace ? "yes" : "no");
	print_detail("cause", facts->userns_cause);
	print_detail("fix", facts->userns_fix);
	print_cgroup(&facts->cgroup);
	if (facts->apparmor_restricts == 1)
		printf("%-*srestricts user namespaces to programs with a profile\n", LABEL_COLUMN,
		       "apparmor");
	if (facts->yama_scope > 0)
		printf("%-*sptrace_scope %d\n", LABEL_COLUMN, "yama", facts->yama_scope);
	print_privileges(facts);
}

/* ---- for programs --------------------------------------------------------------------- */

static json_t *features_json(uint64_t bits)
{
	json_t *list = json_array();

	for (unsigned bit = 0; bit < FEATURE_COUNT; bit++)
		if (bits & UINT64_C(1) << bit)
			json_array_append_new(list, json_string(plan_feature_name(bit)));
	return list;
}

static json_t *limits_json(const struct cgroup_probe *cgroup)
{
	json_t *object = json_object();
	struct limits_forecast limit;

	for (size_t i = 0; limits_forecast(cgroup, i, &limit); i++)
		json_object_set_new(object, limit.name, json_string(limit.means));
	return object;
}

static json_t *wall_json(const struct backend *wall, const struct backend_report *report,
			 const struct cgroup_probe *cgroup)
{
	uint64_t more = report->is_usable ? granted(cgroup) & ~report->enforces : 0;

	return json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:s, s:s, s:s}", "name", wall->name,
			 "tier", plan_tier_name(wall->tier), "runtime", wall->runtime, "usable",
			 report->is_usable, "enforces", features_json(report->enforces),
			 "enforces_by_cgroup", features_json(more), "limits",
			 report->is_usable ? limits_json(cgroup) : json_object(), "cause",
			 report->cause, "fix", report->fix, "weaker", report->weaker);
}

static json_t *cgroup_json(const struct cgroup_probe *cgroup)
{
	json_t *controllers = json_object();

	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		json_object_set_new(controllers, controller_names[i],
				    json_pack("{s:b, s:s}", "usable", cgroup->has[i], "reason",
					      cgroup->has[i] ? "" : cgroup->reason[i]));
	return json_pack("{s:s, s:o}", "layout",
			 cgroup->layout == CGROUP_V2   ? "v2"
			 : cgroup->layout == CGROUP_V1 ? "v1"
						       : "none",
			 "controllers", controllers);
}

static json_t *privileges_json(const struct doctor_facts *facts, json_t *object)
{
	json_t *groups = json_array(), *missing = json_array();

	for (size_t i = 0; i < facts->group_count; i++)
		json_array_append_new(groups, json_integer(facts->groups[i]));
	for (size_t i = 0; i < doctor_capability_count; i++)
		if (facts->missing_capabilities & UINT64_C(1) << i)
			json_array_append_new(missing, json_string(doctor_capabilities[i].name));
	json_object_set_new(object, "kept_groups", groups);
	json_object_set_new(object, "missing_capabilities", missing);
	return object;
}

static json_t *facts_json(const struct doctor_facts *facts, json_t *walls)
{
	json_t *object = json_pack(
		"{s:s, s:s, s:s, s:s, s:I, s:i, s:{s:b, s:s, s:s}, s:o, s:o, s:o, s:o}", "schema",
		"caisson.doctor/1", "version", CAISSON_VERSION, "kernel", facts->kernel, "machine",
		facts->machine, "uid", (json_int_t)facts->uid, "landlock_abi", facts->landlock_abi,
		"user_namespaces", "usable", facts->has_user_namespace, "cause",
		facts->userns_cause, "fix", facts->userns_fix, "cgroup",
		cgroup_json(&facts->cgroup), "apparmor_restricts_userns",
		facts->apparmor_restricts < 0 ? json_null()
					      : json_boolean(facts->apparmor_restricts),
		"yama_ptrace_scope",
		facts->yama_scope < 0 ? json_null() : json_integer(facts->yama_scope), "walls",
		walls);

	return privileges_json(facts, object);
}

int cli_doctor(struct cli *cli)
{
	struct backend_report reports[DOCTOR_MAX_WALLS];
	struct doctor_facts facts;
	json_t *walls = json_array();
	bool has_wall = false;

	doctor_look(&facts);
	if (!cli->options.json && !cli->options.quiet)
		printf("%-4s%-*s %s\n", "ok", LABEL_COLUMN - 5, "wall", "tier that it reaches");
	for (size_t i = 0; backends[i] && i < DOCTOR_MAX_WALLS; i++) {
		struct backend_report *report = &reports[i];

		*report = (struct backend_report){ 0 };
		backends[i]->probe(report);
		has_wall |= report->is_usable && backends[i]->tier > TIER_LOCAL;
		if (cli->options.json)
			json_array_append_new(walls, wall_json(backends[i], report, &facts.cgroup));
		else if (!cli->options.quiet)
			print_wall(cli, backends[i], report, &facts.cgroup);
	}
	if (cli->options.json) {
		json_t *all = facts_json(&facts, walls);

		json_object_set_new(all, "tiers", doctor_tiers_json(reports));
		out_json(all);
	} else {
		json_decref(walls);
		if (!cli->options.quiet) {
			putchar('\n');
			doctor_print_tiers(cli, reports);
			putchar('\n');
			print_facts(&facts);
		}
	}
	return has_wall ? CLI_OK : CLI_FAILED;
}
