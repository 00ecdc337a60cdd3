/*
 * Who mistypes a wall wants to know which there are, and who names one that is planned which he
 * can have instead. The names are the policy's; what is usable is asked of the walls themselves.
 */
#include "cli/walls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/str.h"
#include "policy/keys.h"

enum { LIST_MAX = 160 };

/* Appends "NAME" or "NAME (NOTE)" after a comma. */
static void add_name(char *list, const char *name, const char *note)
{
	size_t n = strlen(list);

	snprintf(list + n, LIST_MAX - n, "%s%s%s%s%s", n ? ", " : "", name, *note ? " (" : "", note,
		 *note ? ")" : "");
}

/* The walls that work here, with the tier each reaches; and those of this build that do not. */
static void list_walls(char *ret_usable, char *ret_missing)
{
	ret_usable[0] = ret_missing[0] = 0;
	for (const struct backend *const *wall = backends; *wall; wall++) {
		struct backend_report report = { 0 };
		bool is_wall = (*wall)->tier != TIER_LOCAL;

		(*wall)->probe(&report);
		if (report.is_usable)
			add_name(ret_usable, (*wall)->name,
				 is_wall ? plan_tier_name((*wall)->tier) : "no wall at all");
		else
			add_name(ret_missing, (*wall)->name, "");
	}
}

/* The tiers that some wall here reaches, and those that none does. */
static void list_tiers(char *ret_usable, char *ret_missing)
{
	enum plan_tier most = TIER_LOCAL;

	ret_usable[0] = ret_missing[0] = 0;
	for (const struct backend *const *wall = backends; *wall; wall++) {
		struct backend_report report = { 0 };

		(*wall)->probe(&report);
		if (report.is_usable && (*wall)->tier > most)
			most = (*wall)->tier;
	}
	for (int tier = 0; tier < TIER_COUNT; tier++)
		add_name(tier <= (int)most && tier != TIER_VIRTUAL ? ret_usable : ret_missing,
			 plan_tier_name((enum plan_tier)tier),
			 tier == TIER_LOCAL ? "no wall at all" : "");
}

static void list_planned(char *ret_planned)
{
	ret_planned[0] = 0;
	for (const char *const *name = policy_keys[KEY_BACKEND].choices; *name; name++)
		if (!str_is(*name, "any") && !backend_find(*name))
			add_name(ret_planned, *name, "");
}

static size_t count_of(const char *const *names)
{
	size_t count = 0;

	while (names[count])
		count++;
	return count;
}

/* "; did you mean X?" or a full stop. */
static void say_near(const char *word, const char *const *names, char *ret_text, size_t size)
{
	const char *near = cli_nearest(word, names, count_of(names));

	snprintf(ret_text, size, "%s%s%s", near ? "; did you mean " : ".", near ? near : "",
		 near ? "?" : "");
}

static const char *named_by(const struct cli_options *options)
{
	return options->backend_from ? options->backend_from : "--backend";
}

void walls_take_variable(struct cli *cli)
{
	static const char variable[] = "CAISSON_BACKEND";
	const char *name = getenv(variable);

	if (!(cli->command->sets & CLI_SANDBOX_FLAGS) || cli->options.backend || !name || !*name)
		return;
	cli->options.backend = name;
	cli->options.backend_from = variable;
}

static int unknown_wall(const struct cli_options *options, struct csn_error *err)
{
	const char *name = options->backend;
	char usable[LIST_MAX], missing[LIST_MAX], planned[LIST_MAX], near[LIST_MAX];

	list_walls(usable, missing);
	list_planned(planned);
	say_near(name, policy_keys[KEY_BACKEND].choices, near, sizeof near);
	return csn_fail(err, -EINVAL, "usage",
			"%s %.40s: there is no such wall%s Usable here: any, %s%s%s. Planned: "
			"%s",
			named_by(options), name, near, usable,
			*missing ? ". Not usable here: " : "", missing, planned);
}

static int unknown_tier(const char *name, struct csn_error *err)
{
	const char *names[TIER_COUNT + 1] = { NULL };
	char usable[LIST_MAX], missing[LIST_MAX], near[LIST_MAX];

	for (int tier = 0; tier < TIER_COUNT; tier++)
		names[tier] = plan_tier_name((enum plan_tier)tier);
	list_tiers(usable, missing);
	say_near(name, names, near, sizeof near);
	return csn_fail(
		err, -EINVAL, "usage",
		"--tier %.40s: there is no such tier%s Usable here: %s. No wall here reaches: %s",
		name, near, usable, missing);
}

int walls_check_names(const struct cli_options *options, struct csn_error *err)
{
	enum plan_tier tier;
	bool approval;

	if (options->backend && !plan_has(policy_keys[KEY_BACKEND].choices, options->backend))
		return unknown_wall(options, err);
	if (options->tier && plan_tier_parse(options->tier, &tier, &approval) < 0)
		return unknown_tier(options->tier, err);
	return 0;
}

int walls_check_built(const struct cli_options *options, struct csn_error *err)
{
	char usable[LIST_MAX], missing[LIST_MAX];
	int r = walls_check_names(options, err);

	if (r < 0 || !options->backend || str_is(options->backend, "any") ||
	    backend_find(options->backend))
		return r;
	list_walls(usable, missing);
	return csn_fail(err, -ENOTSUP, "backend",
			"TierUnavailable: %s %.40s: that wall is planned and not in this "
			"build. Usable here: any, %s",
			named_by(options), options->backend, usable);
}
