/*
 * Names of what a plan is made of, one table per enum: as in policy files, JSON and messages.
 * Aliases of tiers come from the vocabularies that other systems use for the same walls.
 */
#include "plan/plan.h"

#include <assert.h>
#include <errno.h>
#include <strings.h>

#include "base/str.h"

static const char *const tier_names[TIER_COUNT] = { "local",    "virtual",  "auto",
						    "balanced", "assisted", "strict" };
static const char *const access_names[] = { "ro", "rw", "cow" };
static const char *const network_names[] = { "none", "loopback", "allow", "engine" };
static const char *const mode_names[] = { "best", "hard" };
static const char *const reaction_names[] = { "record", "kill" };
static const char *const feature_names[FEATURE_COUNT] = {
	"fs-view",      "fs-write", "fs-hide",   "fs-protect", "fs-cow",   "net-none",
	"net-loopback", "pids",     "syscalls",  "privilege",  "identity", "time",
	"output",       "memory",   "processes", "cpu",        "scratch",
};

static const struct alias {
	const char *name;
	enum plan_tier tier;
	bool approval;
} aliases[] = {
	{ "HumanApprove", TIER_ASSISTED, true },
	{ "human-approve", TIER_ASSISTED, true },
	{ "ManualOnly", TIER_STRICT, true },
	{ "manual-only", TIER_STRICT, true },
};

const char *plan_tier_name(enum plan_tier tier)
{
	assert((unsigned)tier < TIER_COUNT);
	return tier_names[tier];
}

const char *plan_access_name(enum plan_access access)
{
	assert((unsigned)access < ARRAY_SIZE(access_names));
	return access_names[access];
}

const char *plan_network_name(enum plan_network network)
{
	assert((unsigned)network < ARRAY_SIZE(network_names));
	return network_names[network];
}

const char *plan_mode_name(enum plan_mode mode)
{
	assert((unsigned)mode < ARRAY_SIZE(mode_names));
	return mode_names[mode];
}

const char *plan_reaction_name(enum plan_reaction reaction)
{
	assert((unsigned)reaction < ARRAY_SIZE(reaction_names));
	return reaction_names[reaction];
}

const char *plan_feature_name(unsigned bit)
{
	assert(bit < FEATURE_COUNT);
	return feature_names[bit];
}

uint64_t plan_features(const char *const *names)
{
	uint64_t bits = 0;

	for (unsigned bit = 0; bit < FEATURE_COUNT; bit++)
		if (plan_has(names, feature_names[bit]))
			bits |= UINT64_C(1) << bit;
	return bits;
}

int plan_tier_parse(const char *name, enum plan_tier *ret_tier, bool *ret_approval)
{
	struct alias found = { NULL, TIER_COUNT, false };

	for (unsigned i = 0; i < TIER_COUNT; i++)
		if (strcasecmp(name, tier_names[i]) == 0)
			found.tier = (enum plan_tier)i;
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (strcasecmp(name, aliases[i].name) == 0)
			found = aliases[i];
	if (found.tier == TIER_COUNT)
		return -EINVAL;
	*ret_tier = found.tier;
	if (ret_approval)
		*ret_approval = found.approval;
	return 0;
}

int plan_access_parse(const char *name, enum plan_access *ret_access)
{
	for (unsigned i = 0; i < ARRAY_SIZE(access_names); i++) {
		if (str_is(name, access_names[i])) {
			*ret_access = (enum plan_access)i;
			return 0;
		}
	}
	return -EINVAL;
}

int plan_network_parse(const char *name, enum plan_network *ret_network)
{
	for (unsigned i = 0; i < ARRAY_SIZE(network_names); i++) {
		if (str_is(name, network_names[i])) {
			*ret_network = (enum plan_network)i;
			return 0;
		}
	}
	return -EINVAL;
}
