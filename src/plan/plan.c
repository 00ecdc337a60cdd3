/*
 * The built-in defaults, and what a plan demands of a wall.
 *
 * Two tables are the whole of it: limits per tier (measured use of builds and test suites,
 * rounded up) and features per tier. A wall that lacks one bit of `required` is refused by
 * the monitor, so a bit that is missing here is a promise nobody checks.
 */
#include "plan/plan.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"

/* Strings of one plan: bounded lists of bounded texts, with room to spare. */
enum { PLAN_QUOTA = 16 << 20 };

#define MIB(n) ((uint64_t)(n) << 20)

static const struct plan_limits common_limits = {
	.command_ms = 45000,
	.budget_ms = 180000,
	.startup_ms = 10000,
	.idle_ms = 0,
	.cpu_milli = 2000,
	.mem_bytes = MIB(1024),
	.processes = 256,
	.output_bytes = MIB(10),
	.open_files = 1024,
	.scratch_bytes = MIB(512),
};

/* A virtual machine boots and pages slower, and has a kernel of its own to feed. */
static const struct plan_limits strict_limits = {
	.command_ms = 60000,
	.budget_ms = 240000,
	.startup_ms = 10000,
	.idle_ms = 0,
	.cpu_milli = 2000,
	.mem_bytes = MIB(1536),
	.processes = 128,
	.output_bytes = MIB(10),
	.open_files = 1024,
	.scratch_bytes = MIB(512),
};

static const char *const default_hide[] = { ".env", ".env.*", "*.pem", NULL };
static const char *const default_protect[] = { ".git/hooks", ".git/config", ".envrc", ".vscode",
					       NULL };
static const char *const default_pass[] = { "LANG", "TERM", "NO_COLOR", "COLORTERM", "TZ", NULL };
static const char *const no_names[] = { NULL };

enum {
	ALWAYS = FEATURE_TIME | FEATURE_OUTPUT,
	SEALED =
		ALWAYS | FEATURE_FS_WRITE | FEATURE_SYSCALLS | FEATURE_PRIVILEGE | FEATURE_IDENTITY,
	OWN_VIEW = SEALED | FEATURE_FS_VIEW | FEATURE_PIDS,
};

/* `auto` is met by a wall without namespaces, which shares the host's view and says so. */
static const uint64_t tier_features[TIER_COUNT] = {
	[TIER_LOCAL] = ALWAYS,      [TIER_VIRTUAL] = OWN_VIEW,  [TIER_AUTO] = SEALED,
	[TIER_BALANCED] = OWN_VIEW, [TIER_ASSISTED] = OWN_VIEW, [TIER_STRICT] = OWN_VIEW,
};

struct plan_limits plan_default_limits(enum plan_tier tier)
{
	return tier == TIER_STRICT ? strict_limits : common_limits;
}

static const char **copy_list(struct plan *plan, const char *const *list)
{
	const char **copy;
	size_t count = 0;

	while (list[count])
		count++;
	copy = arena_array(&plan->arena, count + 1, sizeof *copy);
	for (size_t i = 0; copy && i < count; i++)
		copy[i] = list[i];
	return copy;
}

static bool fill_lists(struct plan *plan)
{
	const struct {
		const char ***to;
		const char *const *from;
	} lists[] = {
		{ &plan->workspace.hide, default_hide },
		{ &plan->workspace.protect, default_protect },
		{ &plan->mount_roots, no_names },
		{ &plan->allow, no_names },
		{ &plan->env_pass, default_pass },
		{ &plan->env_set, no_names },
		{ &plan->forwards, no_names },
		{ &plan->command_argv, no_names },
		{ &plan->command_enforces, no_names },
		{ &plan->command_observes, no_names },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		*lists[i].to = copy_list(plan, lists[i].from);
		if (!*lists[i].to)
			return false;
	}
	return true;
}

int plan_init(struct plan *plan, enum plan_tier tier)
{
	*plan = (struct plan){
		.tier = tier,
		.backend = "any",
		.workspace = { .at = "/workspace", .access = ACCESS_RO },
		.scratch_at = "/tmp",
		.network = NETWORK_NONE,
		.limits = plan_default_limits(tier),
		.limits_mode = tier >= TIER_ASSISTED ? LIMITS_HARD : LIMITS_BEST,
		.toolchains_auto = true,
		.on_violation = REACT_RECORD,
		.policy_is_modified = -1,
	};
	arena_init(&plan->arena, PLAN_QUOTA);
	if (!fill_lists(plan)) {
		arena_done(&plan->arena);
		return -ENOMEM;
	}
	plan_require(plan);
	return 0;
}

void plan_done(struct plan *plan)
{
	struct arena arena = plan->arena;

	arena_done(&arena);
	*plan = (struct plan){ 0 };
}

int plan_note(struct plan *plan, const struct plan_note *note)
{
	struct arena *arena = &plan->arena;
	struct plan_note copy = { .loosens = note->loosens };
	struct plan_note *notes;

	copy.what = arena_text(arena, note->what);
	copy.old = arena_text(arena, note->old);
	copy.now = arena_text(arena, note->now);
	copy.where = arena_text(arena, note->where);
	/* A few dozen notes at most: a copy for each is cheaper than a second size. */
	notes = arena_array(arena, plan->note_count + 1, sizeof *notes);
	if (!copy.what || !copy.old || !copy.now || !copy.where || !notes)
		return -ENOMEM;
	if (plan->note_count)
		memcpy(notes, plan->notes, plan->note_count * sizeof *notes);
	notes[plan->note_count] = copy;
	plan->notes = notes;
	plan->note_count++;
	return 0;
}

/* What must hold for every limit under `limits_mode: hard`. */
static uint64_t hard_features(const struct plan_limits *limits)
{
	const struct {
		uint64_t value, bit;
	} table[] = {
		{ limits->mem_bytes, FEATURE_MEMORY },
		{ limits->processes, FEATURE_PROCESSES },
		{ limits->cpu_milli, FEATURE_CPU },
		{ limits->scratch_bytes, FEATURE_SCRATCH },
	};
	uint64_t bits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].value != PLAN_UNLIMITED)
			bits |= table[i].bit;
	return bits;
}

static uint64_t workspace_features(const struct plan *plan)
{
	uint64_t bits = 0;

	if (plan->workspace.access == ACCESS_COW)
		bits |= FEATURE_FS_COW;
	if (!(tier_features[plan->tier] & FEATURE_FS_VIEW))
		return bits;
	if (plan->workspace.hide[0])
		bits |= FEATURE_FS_HIDE;
	if (plan->workspace.access == ACCESS_RW && plan->workspace.protect[0])
		bits |= FEATURE_FS_PROTECT;
	return bits;
}

bool plan_lends_late(const struct plan *plan)
{
	bool lends = plan->mount_roots[0] && !path_is_beneath(PLAN_LATE_RW, plan->scratch_at);

	lends &= !plan->workspace.host || !path_is_beneath(PLAN_LATE_RW, plan->workspace.at);
	for (size_t i = 0; lends && i < plan->mount_count; i++)
		lends = !path_is_beneath(PLAN_LATE_RW, plan->mounts[i].at);
	return lends;
}

void plan_require(struct plan *plan)
{
	uint64_t bits = tier_features[plan->tier] | workspace_features(plan);

	if (plan->tier != TIER_LOCAL && plan->network == NETWORK_NONE)
		bits |= FEATURE_NET_NONE;
	if (plan->tier != TIER_LOCAL && plan->network == NETWORK_LOOPBACK)
		bits |= FEATURE_NET_LOOPBACK;
	if (plan->limits_mode == LIMITS_HARD)
		bits |= hard_features(&plan->limits);
	plan->required = bits;
}
