/*
 * What a plan may say and a run of one command does not do.
 *
 * A setting that is read, checked and shown and then does nothing is a promise that nobody
 * keeps, so each one is in this table until it works: `policy check` and `policy explain` say
 * it, and result.json lists it under no_effect. What would make a run weaker than it reads is
 * refused instead; walls and tiers that a build lacks are refused by the choice of a wall.
 */
#include "plan/plan.h"

#include "base/str.h"

static bool has_idle(const struct plan *plan)
{
	return plan->limits.idle_ms != 0 && plan->limits.idle_ms != PLAN_UNLIMITED;
}

/* Walls that are an engine's containers carry it out. */
static bool names_engine(const struct plan *plan)
{
	return str_is(plan->backend, "docker") || str_is(plan->backend, "podman");
}

static bool has_image(const struct plan *plan)
{
	return plan->image && !names_engine(plan);
}

static bool has_rootless(const struct plan *plan)
{
	return plan->rootless_required && !names_engine(plan);
}

static bool has_hosts(const struct plan *plan)
{
	return plan->network == NETWORK_ALLOW;
}

/* `any` finds one of the two. */
static bool has_network(const struct plan *plan)
{
	return plan->network == NETWORK_ENGINE && !names_engine(plan) &&
	       !str_is(plan->backend, "any");
}

/* The other gates are programs of the host's, and work everywhere. */
static bool has_functions(const struct plan *plan)
{
	for (size_t i = 0; i < plan->gate_count; i++)
		if (!plan->gates[i].argv && !plan->gates[i].is_answered)
			return true;
	return false;
}

static const struct plan_gap gaps[] = {
	{ "network.mode", "there is no filtering proxy", true, has_hosts },
	{ "network.mode", "only the walls docker and podman have an engine's network", true,
	  has_network },
	{ "limits.idle",
	  "it counts the time between calls, of sandboxes that stay; a run is one call", false,
	  has_idle },
	{ "container.image",
	  "only the walls docker and podman run an image: elsewhere programs come from this "
	  "machine's root",
	  false, has_image },
	{ "container.rootless", "only the walls docker and podman have a container engine", false,
	  has_rootless },
	{ "gates",
	  "one without a command is a function of the program that opens a sandbox, and a run has "
	  "none",
	  false, has_functions },
};

const struct plan_gap *plan_gap_next(const struct plan *plan, size_t *at)
{
	while (*at < ARRAY_SIZE(gaps)) {
		const struct plan_gap *gap = &gaps[(*at)++];

		if (gap->is_set(plan))
			return gap;
	}
	return NULL;
}
