/*
 * Which tiers can be had here, and how to get the others
 *
 * Everything comes from the table of walls and what they found when asked, so that a wall which is
 * added to a build shows by itself. Only for a tier that no wall of the build reaches is there a
 * word of our own.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/doctor.h"
#include "cli/out.h"

enum { COLUMN = 12, NAME = 8, LIST_MAX = 256, TEXT_MAX = 1024 };

/* In the order of enum plan_tier. */
static const struct {
	const char *technology; /* what holds such a sandbox */
	const char *missing;    /* what to do where no wall of this build reaches it */
} tiers[TIER_COUNT] = {
	[TIER_LOCAL] = { "no wall at all: a trusted policy file has to name it", "" },
	[TIER_VIRTUAL] = { "the shell's files in memory; until it is built, any stronger wall",
			   "" },
	[TIER_AUTO] = { "a system call filter and process isolation", "" },
	[TIER_BALANCED] = { "namespaces or a container, hardened",
			    "allow user namespaces, or start caisson as root" },
	[TIER_ASSISTED] = { "an application kernel (gVisor); with a person's yes: human-approve",
			    "no wall of this build reaches it: describe a program that does as "
			    "`backend: command` in a policy file" },
	[TIER_STRICT] = { "a virtual machine of its own (KVM); with a person's yes: manual-only",
			  "no wall of this build reaches it, microVMs are planned: describe a "
			  "program that does as `backend: command` in a policy file" },
};

struct tier_walls {
	char usable[LIST_MAX];
	char named[LIST_MAX];   /* that only a name gets */
	char missing[TEXT_MAX]; /* "gvisor: CAUSE. FIX" */
};

/* "a" or ", a": a name that does not fit any more is left out whole. */
static void add(char *list, size_t size, const char *between, const char *text)
{
	size_t n = strlen(list);

	if (n + strlen(between) + strlen(text) < size)
		snprintf(list + n, size - n, "%s%s", n ? between : "", text);
}

/* Does it reach the tier, and `any` leaves it out? */
static bool is_by_name(const struct backend *wall, enum plan_tier tier)
{
	return wall->is_named_only && tier > TIER_LOCAL && wall->tier >= tier;
}

static void look_at(enum plan_tier tier, const struct backend_report *reports,
		    struct tier_walls *ret_walls)
{
	char text[TEXT_MAX];

	*ret_walls = (struct tier_walls){ "", "", "" };
	for (size_t i = 0; backends[i] && i < DOCTOR_MAX_WALLS; i++) {
		if (is_by_name(backends[i], tier) && reports[i].is_usable)
			add(ret_walls->named, LIST_MAX, ", ", backends[i]->name);
		if (!backend_serves(backends[i], tier))
			continue;
		if (reports[i].is_usable) {
			add(ret_walls->usable, LIST_MAX, ", ", backends[i]->name);
			continue;
		}
		snprintf(text, sizeof text, "%s: %s%s%s", backends[i]->name, reports[i].cause,
			 *reports[i].fix ? "; " : "", reports[i].fix);
		add(ret_walls->missing, TEXT_MAX, ". ", text);
	}
	if (!*ret_walls->usable && !*ret_walls->missing)
		add(ret_walls->missing, TEXT_MAX, "", tiers[tier].missing);
}

static void tell(const char *label, const char *text)
{
	char start[32];

	snprintf(start, sizeof start, "%s: ", label);
	out_tell(stdout, &(struct out_told){
				 .label = start, .text = text, .indent = COLUMN, .hang = COLUMN });
}

void doctor_print_tiers(const struct cli *cli, const struct backend_report *reports)
{
	struct tier_walls walls;

	printf("%-4s%-*s %s\n", "ok", NAME, "tier", "walls that it gets here");
	for (int tier = 0; tier < TIER_COUNT; tier++) {
		look_at((enum plan_tier)tier, reports, &walls);
		printf("%s%s%s %-*s %s\n",
		       out_color(cli, stdout, *walls.usable ? OUT_GREEN : OUT_RED),
		       *walls.usable ? "yes" : "no ", out_plain(cli, stdout), NAME,
		       plan_tier_name((enum plan_tier)tier), *walls.usable ? walls.usable : "none");
		if (*walls.named)
			tell("by name", walls.named);
		if (cli->options.verbose)
			tell("is", tiers[tier].technology);
		if (!*walls.usable || (cli->options.verbose && *walls.missing))
			tell("to get", walls.missing);
	}
}

json_t *doctor_tiers_json(const struct backend_report *reports)
{
	json_t *list = json_array();
	struct tier_walls walls;

	for (int tier = 0; tier < TIER_COUNT; tier++) {
		json_t *names = json_array(), *named = json_array();

		look_at((enum plan_tier)tier, reports, &walls);
		for (size_t i = 0; backends[i] && i < DOCTOR_MAX_WALLS; i++) {
			json_t *name = json_string(backends[i]->name);

			if (reports[i].is_usable &&
			    backend_serves(backends[i], (enum plan_tier)tier))
				json_array_append(names, name);
			if (reports[i].is_usable && is_by_name(backends[i], (enum plan_tier)tier))
				json_array_append(named, name);
			json_decref(name);
		}
		json_array_append_new(list,
				      json_pack("{s:s, s:b, s:o, s:o, s:s, s:s}", "tier",
						plan_tier_name((enum plan_tier)tier), "usable",
						*walls.usable != 0, "walls", names, "by_name",
						named, "technology", tiers[tier].technology, "fix",
						walls.missing));
	}
	return list;
}
