/* Defaults, names, demands on walls, and children that are never wider than their parents. */
#include "plan/plan.h"
#include "tap.h"

#include <errno.h>

#include "base/str.h"

#define LIST(name, ...) static const char *name[] = { __VA_ARGS__, NULL }

LIST(kept, "hooks", "config", ".envrc", ".vscode");
LIST(only_env, ".env");
LIST(srv, "/srv");
LIST(srv_a, "/srv/a");
LIST(host_a, "a");
LIST(host_ab, "a", "b");
LIST(lang_aws, "LANG", "AWS");
LIST(lang, "LANG");
LIST(a_is_1, "A=1");
static struct plan_gate echo[] = { { .name = "echo" } };

static void test_defaults(void)
{
	struct plan_limits balanced = plan_default_limits(TIER_BALANCED);
	struct plan_limits strict = plan_default_limits(TIER_STRICT);

	CHECK(balanced.command_ms == 45000 && balanced.budget_ms == 180000);
	CHECK(balanced.startup_ms == 10000 && balanced.idle_ms == 0);
	CHECK(balanced.cpu_milli == 2000 && balanced.mem_bytes == UINT64_C(1024) << 20);
	CHECK(balanced.processes == 256 && balanced.output_bytes == UINT64_C(10) << 20);
	CHECK(balanced.open_files == 1024 && balanced.scratch_bytes == UINT64_C(512) << 20);
	CHECK(strict.command_ms == 60000 && strict.budget_ms == 240000);
	CHECK(strict.mem_bytes == UINT64_C(1536) << 20 && strict.processes == 128);
	CHECK(strict.scratch_bytes == UINT64_C(512) << 20);
	for (unsigned tier = TIER_LOCAL; tier < TIER_STRICT; tier++) {
		struct plan_limits other = plan_default_limits((enum plan_tier)tier);

		CHECK(memcmp(&other, &balanced, sizeof other) == 0);
	}
}

static void test_init(void)
{
	struct plan plan;

	for (unsigned tier = 0; tier < TIER_COUNT; tier++) {
		CHECK(plan_init(&plan, (enum plan_tier)tier) == 0);
		CHECK(plan.limits_mode == (tier >= TIER_ASSISTED ? LIMITS_HARD : LIMITS_BEST));
		CHECK(plan.mount_roots && plan.allow && plan.env_set);
		CHECK(plan_has(plan.workspace.hide, "*.pem"));
		CHECK(plan_has(plan.workspace.protect, ".git/hooks"));
		CHECK(plan_has(plan.env_pass, "NO_COLOR"));
		CHECK(plan.network == NETWORK_NONE && plan.toolchains_auto);
		CHECK_STR(plan.backend, "any");
		CHECK(plan.required & FEATURE_OUTPUT);
		plan_done(&plan);
	}
	plan_done(&plan);
}

static void test_names(void)
{
	static const struct {
		const char *name;
		enum plan_tier tier;
		bool approval;
	} rows[] = {
		{ "Auto", TIER_AUTO, false },
		{ "AUTO", TIER_AUTO, false },
		{ "Assisted", TIER_ASSISTED, false },
		{ "HumanApprove", TIER_ASSISTED, true },
		{ "ManualOnly", TIER_STRICT, true },
		{ "manualonly", TIER_STRICT, true },
		{ "Balanced", TIER_BALANCED, false },
		{ "strict", TIER_STRICT, false },
		{ "local", TIER_LOCAL, false },
		{ "Virtual", TIER_VIRTUAL, false },
		{ "", TIER_COUNT, false },
		{ "strict ", TIER_COUNT, false },
		{ "Human-Approve", TIER_ASSISTED, true },
		{ "manual-only", TIER_STRICT, true },
		{ "human_approve", TIER_COUNT, false },
	};
	enum plan_access access;
	enum plan_network network;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum plan_tier tier = TIER_COUNT;
		bool approval = !rows[i].approval;
		int code = plan_tier_parse(rows[i].name, &tier, &approval);

		CHECK(code == (rows[i].tier == TIER_COUNT ? -EINVAL : 0));
		CHECK(tier == rows[i].tier);
		CHECK(code < 0 || approval == rows[i].approval);
	}
	for (unsigned i = 0; i < TIER_COUNT; i++) {
		enum plan_tier tier;

		CHECK(plan_tier_parse(plan_tier_name((enum plan_tier)i), &tier, NULL) == 0);
		CHECK(tier == i);
	}
	for (unsigned i = 0; i < 3; i++)
		CHECK(plan_access_parse(plan_access_name(i), &access) == 0 && access == i);
	for (unsigned i = 0; i < 4; i++)
		CHECK(plan_network_parse(plan_network_name(i), &network) == 0 && network == i);
	CHECK(plan_access_parse("RO", &access) == -EINVAL);
	CHECK(plan_network_parse("", &network) == -EINVAL);
	for (unsigned i = 0; i < FEATURE_COUNT; i++)
		for (unsigned n = 0; n < i; n++)
			CHECK(!str_is(plan_feature_name(i), plan_feature_name(n)));
	CHECK_STR(plan_feature_name(16), "scratch");
	CHECK_STR(plan_mode_name(LIMITS_HARD), "hard");
	CHECK_STR(plan_reaction_name(REACT_KILL), "kill");
}

static void set_rw(struct plan *plan)
{
	plan->workspace.access = ACCESS_RW;
}

static void set_cow(struct plan *plan)
{
	plan->workspace.access = ACCESS_COW;
}

static void set_loopback(struct plan *plan)
{
	plan->network = NETWORK_LOOPBACK;
}

static void set_engine(struct plan *plan)
{
	plan->network = NETWORK_ENGINE;
}

static void set_hard(struct plan *plan)
{
	plan->limits_mode = LIMITS_HARD;
}

static void set_no_memory_limit(struct plan *plan)
{
	set_hard(plan);
	plan->limits.mem_bytes = PLAN_UNLIMITED;
}

static void set_nothing(struct plan *plan)
{
	(void)plan;
}

static void test_required(void)
{
	static const struct {
		enum plan_tier tier;
		void (*change)(struct plan *plan);
		uint64_t has, lacks;
	} rows[] = {
		{ TIER_LOCAL, set_nothing, FEATURE_TIME | FEATURE_OUTPUT,
		  FEATURE_FS_VIEW | FEATURE_NET_NONE | FEATURE_IDENTITY | FEATURE_FS_HIDE },
		{ TIER_VIRTUAL, set_nothing, FEATURE_FS_VIEW | FEATURE_NET_NONE, FEATURE_MEMORY },
		{ TIER_AUTO, set_nothing,
		  FEATURE_FS_WRITE | FEATURE_NET_NONE | FEATURE_SYSCALLS | FEATURE_PRIVILEGE |
			  FEATURE_IDENTITY,
		  FEATURE_FS_VIEW | FEATURE_PIDS | FEATURE_FS_HIDE | FEATURE_MEMORY },
		{ TIER_AUTO, set_cow, FEATURE_FS_COW, FEATURE_FS_PROTECT },
		{ TIER_BALANCED, set_nothing,
		  FEATURE_FS_VIEW | FEATURE_FS_HIDE | FEATURE_PIDS | FEATURE_NET_NONE,
		  FEATURE_MEMORY | FEATURE_FS_PROTECT | FEATURE_FS_COW },
		{ TIER_BALANCED, set_rw, FEATURE_FS_PROTECT, FEATURE_FS_COW },
		{ TIER_BALANCED, set_cow, FEATURE_FS_COW, FEATURE_FS_PROTECT },
		{ TIER_BALANCED, set_loopback, FEATURE_NET_LOOPBACK, FEATURE_NET_NONE },
		{ TIER_BALANCED, set_engine, 0, FEATURE_NET_LOOPBACK | FEATURE_NET_NONE },
		{ TIER_BALANCED, set_hard,
		  FEATURE_MEMORY | FEATURE_CPU | FEATURE_PROCESSES | FEATURE_SCRATCH, 0 },
		{ TIER_BALANCED, set_no_memory_limit, FEATURE_CPU, FEATURE_MEMORY },
		{ TIER_ASSISTED, set_nothing, FEATURE_MEMORY | FEATURE_FS_VIEW, 0 },
		{ TIER_STRICT, set_nothing, FEATURE_MEMORY | FEATURE_FS_VIEW, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct plan plan;

		printf("# row %zu\n", i);
		CHECK(plan_init(&plan, rows[i].tier) == 0);
		rows[i].change(&plan);
		plan_require(&plan);
		CHECK((plan.required & rows[i].has) == rows[i].has);
		CHECK((plan.required & rows[i].lacks) == 0);
		plan_done(&plan);
	}
}

static void test_notes(void)
{
	struct plan plan;
	char name[16];

	CHECK(plan_init(&plan, TIER_BALANCED) == 0);
	for (size_t i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "key%zu", i);
		CHECK(plan_note(&plan, &(struct plan_note){ name, "a", "b", "--x", i & 1 }) == 0);
	}
	name[0] = 0;
	CHECK(plan.note_count == 300);
	CHECK_STR(plan.notes[0].what, "key0");
	CHECK_STR(plan.notes[299].what, "key299");
	CHECK(plan.notes[299].loosens && !plan.notes[298].loosens);
	plan_done(&plan);
}

/* One way for a child to differ from a parent, and the field that is named if it is wider. */
struct change {
	const char *field; /* NULL: still within */
	void (*child)(struct plan *plan);
	void (*parent)(struct plan *plan);
};

#define CHANGE(name, statement)          \
	static void name(struct plan *p) \
	{                                \
		statement;               \
	}

static struct plan_mount srv_ro[] = { { "/srv/a", "/a", ACCESS_RO } };
static struct plan_mount srv_rw[] = { { "/srv/a", "/a", ACCESS_RW } };
static const char *ssh[] = { "ssh", "host", NULL }, *sudo[] = { "ssh", "host", "sudo", NULL };
static const char *pids[] = { "pids", NULL };
static struct plan_mount srv_deep[] = { { "/srv/a/b", "/b", ACCESS_RO } };

CHANGE(strict, p->tier = TIER_STRICT)
CHANGE(automatic, p->tier = TIER_AUTO)
CHANGE(docker, p->backend = "docker")
CHANGE(process, p->backend = "process")
CHANGE(longer, p->limits.command_ms++)
CHANGE(shorter, p->limits.command_ms--)
CHANGE(unlimited, p->limits.scratch_bytes = PLAN_UNLIMITED)
CHANGE(idle, p->limits.idle_ms = 1000)
CHANGE(idle_less, p->limits.idle_ms = 999)
CHANGE(writable, p->workspace.access = ACCESS_RW)
CHANGE(copied, p->workspace.access = ACCESS_COW)
CHANGE(proj, p->workspace.host = "/proj")
CHANGE(project, p->workspace.host = "/project")
CHANGE(sub, p->workspace.host = "/proj/sub")
CHANGE(git, p->workspace.host = "/proj/.git")
CHANGE(git_kept, p->workspace.host = "/proj/.git"; p->workspace.protect = kept)
CHANGE(hooks, p->workspace.host = "/proj/.git/hooks")
CHANGE(unhidden, p->workspace.host = "/proj"; p->workspace.hide = only_env)
CHANGE(mount_ro, p->mounts = srv_ro; p->mount_count = 1)
CHANGE(mount_rw, p->mounts = srv_rw; p->mount_count = 1)
CHANGE(mount_deep, p->mounts = srv_deep; p->mount_count = 1)
CHANGE(roots, p->mount_roots = srv)
CHANGE(roots_deep, p->mount_roots = srv_a)
CHANGE(loopback, p->network = NETWORK_LOOPBACK)
CHANGE(allow_a, p->network = NETWORK_ALLOW; p->allow = host_a)
CHANGE(allow_ab, p->network = NETWORK_ALLOW; p->allow = host_ab)
CHANGE(engine, p->network = NETWORK_ENGINE)
CHANGE(passes, p->env_pass = lang_aws)
CHANGE(passes_less, p->env_pass = lang)
CHANGE(sets, p->env_set = a_is_1)
CHANGE(identity, p->git_identity = true)
CHANGE(no_tools, p->toolchains_auto = false)
CHANGE(mine, p->backend = "command"; p->command_argv = ssh; p->command_enforces = pids)
CHANGE(mine_less, p->backend = "command"; p->command_argv = ssh)
CHANGE(other_mine, p->backend = "command"; p->command_argv = sudo; p->command_enforces = pids)
CHANGE(image, p->image = "debian")
static const char *model[] = { "tcp:127.0.0.1:80:/tmp/m", NULL };
CHANGE(gates, p->gates = echo; p->gate_count = 1)
CHANGE(forwards, p->forwards = model)
CHANGE(approval, p->needs_approval = true)
CHANGE(kill_it, p->on_violation = REACT_KILL)
CHANGE(hard, p->limits_mode = LIMITS_HARD)
CHANGE(reads, p->observe_reads = true)
CHANGE(rootless, p->rootless_required = true)
CHANGE(trusted_local, p->local_is_trusted = true)

static const struct change changes[] = {
	{ NULL, set_nothing, set_nothing },
	{ NULL, strict, set_nothing },
	{ "tier", automatic, set_nothing },
	{ "tier", trusted_local, set_nothing },
	{ NULL, docker, set_nothing },
	{ NULL, docker, docker },
	{ "backend", process, docker },
	{ "backend", set_nothing, docker },
	{ "backend", set_nothing, rootless },
	{ NULL, shorter, set_nothing },
	{ "limits", longer, set_nothing },
	{ "limits", unlimited, set_nothing },
	{ NULL, set_nothing, unlimited },
	{ NULL, idle, set_nothing },
	{ NULL, idle_less, idle },
	{ "limits", set_nothing, idle },
	{ "limits", idle, idle_less },
	{ "workspace", proj, set_nothing },
	{ "workspace", project, proj },
	{ NULL, sub, proj },
	{ NULL, set_nothing, proj },
	{ "workspace", git, proj },
	{ NULL, git_kept, proj },
	{ "workspace", hooks, proj },
	{ "workspace", unhidden, proj },
	{ NULL, proj, unhidden },
	{ NULL, mount_ro, mount_rw },
	{ NULL, mount_deep, mount_ro },
	{ "mounts", mount_rw, mount_ro },
	{ "mounts", mount_ro, mount_deep },
	{ "mounts", mount_ro, set_nothing },
	{ NULL, roots_deep, roots },
	{ "mount_roots", roots, roots_deep },
	{ "network", loopback, set_nothing },
	{ NULL, loopback, allow_a },
	{ NULL, allow_a, allow_ab },
	{ "network", allow_ab, allow_a },
	{ NULL, allow_ab, engine },
	{ "network", engine, allow_ab },
	{ NULL, passes_less, passes },
	{ "env", passes, set_nothing },
	{ "env", sets, set_nothing },
	{ NULL, sets, sets },
	{ "env", identity, set_nothing },
	{ NULL, no_tools, set_nothing },
	{ "toolchains", set_nothing, no_tools },
	{ "command", mine, set_nothing },
	{ "command", mine, other_mine },
	{ "command", mine, mine_less },
	{ NULL, mine_less, mine },
	{ NULL, mine, mine },
	{ "container.image", image, set_nothing },
	{ "container.image", set_nothing, image },
	{ NULL, image, image },
	{ "gates", gates, set_nothing },
	{ NULL, set_nothing, gates },
	{ "forwards", forwards, set_nothing },
	{ NULL, set_nothing, forwards },
	{ NULL, forwards, forwards },
	{ "approval", set_nothing, approval },
	{ "on_violation", set_nothing, kill_it },
	{ "limits_mode", set_nothing, hard },
	{ "observe", set_nothing, reads },
	{ NULL, approval, set_nothing },
};

static void test_within(void)
{
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct csn_error err = { 0 };
		struct plan child, parent;
		int code;

		CHECK(plan_init(&child, TIER_BALANCED) == 0 &&
		      plan_init(&parent, TIER_BALANCED) == 0);
		changes[i].child(&child);
		changes[i].parent(&parent);
		code = plan_within(&child, &parent, &err);
		if (code != (changes[i].field ? -EPERM : 0) ||
		    (changes[i].field && !strstr(err.text, changes[i].field))) {
			printf("# row %zu: %d %s\n", i, code, err.text);
			wrong++;
		}
		plan_done(&child);
		plan_done(&parent);
	}
	CHECK(wrong == 0);
}

/* Each limit by itself: one that is forgotten would let a child outgrow its parent. */
static void test_every_limit_within(void)
{
	static const size_t limits[] = {
		offsetof(struct plan_limits, command_ms),
		offsetof(struct plan_limits, budget_ms),
		offsetof(struct plan_limits, startup_ms),
		offsetof(struct plan_limits, idle_ms),
		offsetof(struct plan_limits, cpu_milli),
		offsetof(struct plan_limits, mem_bytes),
		offsetof(struct plan_limits, processes),
		offsetof(struct plan_limits, output_bytes),
		offsetof(struct plan_limits, open_files),
		offsetof(struct plan_limits, scratch_bytes),
	};
	struct plan child, parent;

	CHECK(ARRAY_SIZE(limits) * sizeof(uint64_t) == sizeof(struct plan_limits));
	CHECK(plan_init(&child, TIER_BALANCED) == 0 && plan_init(&parent, TIER_BALANCED) == 0);
	child.limits.idle_ms = parent.limits.idle_ms = 1000;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		uint64_t *value = (uint64_t *)((char *)&child.limits + limits[i]);

		++*value;
		printf("# at %zu\n", limits[i]);
		CHECK(plan_within(&child, &parent, NULL) == -EPERM);
		*value -= 2;
		CHECK(plan_within(&child, &parent, NULL) == 0);
		++*value;
	}
	plan_done(&child);
	plan_done(&parent);
}

/* What a stronger tier's defaults have more of is lowered; what was asked for is not touched. */
static void test_lowered(void)
{
	static const char *const named[] = { "memory=2GiB", "command", "cpus=", NULL };
	struct plan child, parent;

	CHECK(plan_init(&child, TIER_STRICT) == 0 && plan_init(&parent, TIER_BALANCED) == 0);
	parent.limits.idle_ms = 1000;
	child.limits.idle_ms = 0;
	child.limits.mem_bytes = 2ULL << 30;
	child.limits.cpu_milli = 64000;
	child.limits.processes = 3;
	plan_lower(&child, &parent, named);
	CHECK(child.limits.mem_bytes == 2ULL << 30 && child.limits.cpu_milli == 64000);
	CHECK(child.limits.command_ms == parent.limits.command_ms && child.limits.processes == 3);
	CHECK(child.limits.idle_ms == 1000);
	CHECK(plan_within(&child, &parent, NULL) == -EPERM);
	plan_lower(&child, &parent, NULL);
	CHECK(plan_within(&child, &parent, NULL) == 0);
	parent.limits.idle_ms = 0;
	plan_lower(&child, &parent, NULL);
	CHECK(child.limits.idle_ms == 1000 && child.limits.processes == 3);
	plan_done(&child);
	plan_done(&parent);
}

static void test_access_within(void)
{
	static const struct {
		void (*child)(struct plan *), (*parent)(struct plan *);
		int code;
	} rows[] = {
		{ writable, set_nothing, -EPERM }, { writable, copied, -EPERM },
		{ copied, set_nothing, 0 },        { set_nothing, copied, 0 },
		{ writable, writable, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct plan child, parent;

		CHECK(plan_init(&child, TIER_BALANCED) == 0 &&
		      plan_init(&parent, TIER_BALANCED) == 0);
		proj(&child);
		proj(&parent);
		rows[i].child(&child);
		rows[i].parent(&parent);
		CHECK(plan_within(&child, &parent, NULL) == rows[i].code);
		plan_done(&child);
		plan_done(&parent);
	}
}

static const struct tap_test tests[] = {
	{ "defaults are those of the table", test_defaults },
	{ "an empty plan has no NULL lists", test_init },
	{ "names read back, aliases ask for approval", test_names },
	{ "each tier and setting asks for its features", test_required },
	{ "notes keep their order", test_notes },
	{ "a child is never wider in any field", test_within },
	{ "cow counts as ro", test_access_within },
	{ "limits that nobody asked for are lowered", test_lowered },
	{ "a child has no limit above its parent's", test_every_limit_within },
};

TAP_MAIN(tests)
