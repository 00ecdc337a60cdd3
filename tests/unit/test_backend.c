/*
 * The choice of a wall: never a weaker one, and a refusal that says what was asked for, why it
 * cannot be had and what would help. A wall is made unusable by the kernel's own switch, in a
 * user namespace of the test's own.
 */
#include "backend/backend.h"

#include "backend/channels.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/filter.h"
#include "os/privs.h"
#include "own_space.h"

#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

static struct plan plan;
static struct csn_error err;
static struct backend_report report;

static void start(enum plan_tier tier, const char *backend)
{
	err = (struct csn_error){ 0 };
	if (plan.backend)
		plan_done(&plan);
	CHECK(plan_init(&plan, tier) == 0);
	plan.backend = backend;
}

/* The chosen wall's name, or NULL and a sentence in `err`. */
static const char *choose(void)
{
	const struct backend *backend = NULL;
	int r = backend_choose(&plan, &backend, &report, &err);

	if (r >= 0)
		return backend->name;
	CHECK(r == -ENOTSUP && err.code == ENOTSUP && err.text[0]);
	return NULL;
}

static void expect_refused(const char *const *words)
{
	const char *name = choose();

	if (name)
		printf("# %s was taken\n", name);
	CHECK(!name);
	for (; *words; words++) {
		if (!strstr(err.text, *words))
			printf("# no \"%s\" in: %s\n", *words, err.text);
		CHECK(strstr(err.text, *words));
	}
}
#define REFUSED(...) expect_refused((const char *const[]){ __VA_ARGS__, NULL })

/* As on a machine where user namespaces are switched off and no engine is at hand. */
static void close_namespaces(void)
{
	setenv("DOCKER_HOST", "tcp://192.0.2.1:1", 1);
	setenv("CONTAINER_HOST", "ssh://192.0.2.1", 1);
	own_users(CLONE_NEWNS);
	put_text("/proc/sys/user/max_user_namespaces", "0\n");
}

static void table(void)
{
	enum plan_tier last = TIER_COUNT;

	for (const struct backend *const *b = backends; *b; b++) {
		CHECK((*b)->name && (*b)->runtime && (*b)->profile && (*b)->probe && (*b)->start);
		CHECK(backend_find((*b)->name) == *b);
		/* the first one that will do is taken, so the strong ones stand first */
		bool is_dear = (*b)->is_runtimes || (*b)->is_program;
		CHECK((*b)->declare || is_dear || (*b)->tier <= last);
		last = is_dear ? last : (*b)->tier; /* dear ones are for what no other reaches */
		(*b)->probe(&report);
		CHECK(report.is_usable ? !report.cause[0] : report.cause[0] && report.fix[0]);
		CHECK(report.enforces >> FEATURE_COUNT == 0);
		CHECK(report.is_usable || report.enforces == 0);
	}
	CHECK(!backend_find("") && !backend_find("any") && !backend_find("proces"));
}

static void any(void)
{
	static const struct {
		enum plan_tier tier;
		const char *name;
	} rows[] = {
		{ TIER_LOCAL, "local" },
		{ TIER_VIRTUAL, "process" },
		{ TIER_AUTO, "process" },
		{ TIER_BALANCED, "process" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		start(rows[i].tier, "any");
		plan_require(&plan);
		CHECK(choose());
		CHECK_STR(choose(), rows[i].name);
	}
}

static void no_wall_is_strong_enough(void)
{
	start(TIER_STRICT, "any");
	REFUSED("TierUnavailable", "tier strict");
	plan.strict_by_request = true;
	REFUSED("StrictModeUnavailable: no wall", "tier strict");
	plan.strict_by_policy = true; /* the policy's demand is the one that counts */
	REFUSED("StrictModeRequired: no wall", "tier strict");
}

static void named(void)
{
	start(TIER_AUTO, "landlock");
	CHECK_STR(choose(), "landlock");
	start(TIER_LOCAL, "process"); /* stronger than asked for */
	CHECK_STR(choose(), "process");
	start(TIER_LOCAL, "local");
	CHECK_STR(choose(), "local");
	start(TIER_AUTO, "qemu");
	REFUSED("no wall named qemu", "caisson doctor");
	start(TIER_AUTO, "");
	REFUSED("no wall named");
}

/* A wall that the plan itself describes: no more than it says, and never unasked. */
static void declared(void)
{
	static const char *argv[] = { "true", NULL }, *none[] = { NULL };
	const char *all[FEATURE_COUNT + 1] = { NULL };

	for (unsigned bit = 0; bit < FEATURE_COUNT; bit++)
		all[bit] = plan_feature_name(bit);
	start(TIER_AUTO, "command");
	REFUSED("TierUnavailable: ", "command: {argv:");
	plan.command_argv = argv;
	REFUSED("does not enforce: fs-write, net-none, syscalls, privilege, identity.");
	plan.command_enforces = all;
	CHECK_STR(choose(), "command");
	CHECK(report.enforces == (UINT64_C(1) << FEATURE_COUNT) - 1 - FEATURE_FS_COW);
	start(TIER_STRICT, "command");
	plan.command_argv = argv;
	plan.command_enforces = all;
	CHECK_STR(choose(), "command");
	all[13] = "nothing"; /* what a controller of ours would hold elsewhere */
	REFUSED("does not enforce: memory.");
	plan.backend = "any";
	REFUSED("tier strict");
	start(TIER_LOCAL, "command");
	plan.command_argv = argv;
	plan.command_enforces = none;
	CHECK_STR(choose(), "command");
	CHECK(report.enforces == (FEATURE_TIME | FEATURE_OUTPUT));
}

static void named_is_too_weak(void)
{
	start(TIER_BALANCED, "landlock");
	REFUSED("TierUnavailable: the landlock wall reaches tier auto and balanced is asked for");
	start(TIER_AUTO, "local");
	REFUSED("TierUnavailable: the local wall reaches tier local and auto");
	start(TIER_STRICT, "process");
	plan.strict_by_request = true;
	REFUSED("StrictModeUnavailable: the process wall reaches tier balanced and strict");
	plan.strict_by_policy = true;
	REFUSED("StrictModeRequired: the process wall");
}

static void missing_features(void)
{
	start(TIER_AUTO, "landlock");
	plan.required = FEATURE_FS_VIEW | FEATURE_FS_WRITE | FEATURE_PIDS | FEATURE_NET_LOOPBACK;
	REFUSED("the landlock wall does not enforce: fs-view, net-loopback, pids");
	CHECK(!strstr(err.text, "fs-write"));
	plan.backend = "any"; /* then it is another wall that is taken */
	CHECK_STR(choose(), "process");
	start(TIER_LOCAL, "local");
	plan.required = FEATURE_FS_WRITE;
	REFUSED("the local wall does not enforce: fs-write");
	start(TIER_BALANCED, "process");
	plan.required = UINT64_C(1) << (FEATURE_COUNT - 1) | FEATURE_FS_COW;
	CHECK(choose());
	start(TIER_AUTO, "landlock");
	plan.required = FEATURE_FS_COW | FEATURE_SCRATCH;
	REFUSED("fs-cow");
}

/* Memory, processes and processors are held by controllers; the monitor looks at those. */
static void controllers_are_not_walls(void)
{
	start(TIER_BALANCED, "any");
	plan.required = FEATURE_MEMORY | FEATURE_CPU | FEATURE_PROCESSES;
	CHECK_STR(choose(), "process");
}

static void what_no_wall_does(void)
{
	static const char *const names[] = { "any", "process", "landlock" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		start(TIER_AUTO, names[i]);
		plan.network = NETWORK_ALLOW;
		REFUSED("network mode allow is not available", "none or loopback");
		CHECK_STR(err.stage, "network");
		if (i == 0)
			continue;
		plan.network = NETWORK_ENGINE;
		REFUSED("network of a container engine", "docker or podman");
		CHECK_STR(err.stage, "network");
	}
}

static void without_namespaces(void)
{
	close_namespaces();
	start(TIER_AUTO, "any");
	CHECK_STR(choose(), "landlock");
	start(TIER_BALANCED, "any");
	REFUSED("TierUnavailable: the process wall cannot be had here",
		"user namespaces are limited to none", "sysctl user.max_user_namespaces=");
	start(TIER_AUTO, "process"); /* a named one is never replaced */
	REFUSED("TierUnavailable: the process wall cannot be had here");
	start(TIER_AUTO, "any");
	plan.required = FEATURE_FS_VIEW;
	REFUSED("the landlock wall does not enforce: fs-view");
}

/* A container's filter forbids what the kernel's switches allow: only trying tells. */
static void attempt_fails(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
	};

	CHECK(privs_no_new() == 0);
	CHECK(filter_load(&(struct sock_fprog){ ARRAY_SIZE(code), code }) == 0);
	start(TIER_AUTO, "any");
	CHECK_STR(choose(), "landlock");
	CHECK(backend_find("process")->attempt() < 0);
}

/* ---- what is started ------------------------------------------------------------------------ */

static void private_ids(void)
{
	uid_t uid = backend_private_uid();

	CHECK(uid >= 1879048192u && uid < 1879048192u + (1u << 22));
	CHECK(backend_private_uid() == uid);
}

static void walls_close(void)
{
	struct wall wall = WALL_NONE;
	struct channels channels = CHANNELS_NONE;
	int fds[4];

	wall_done(&wall); /* nothing there: nothing happens */
	CHECK(channels_make(&channels, &wall, true) == 0);
	CHECK(fcntl(wall.stream, F_GETFL) & O_NONBLOCK);
	CHECK(!(fcntl(channels.stream, F_GETFL) & O_NONBLOCK));
	CHECK(write(channels.stream, "x", 1) == 1 && write(channels.failure, "x", 1) == 1);
	fds[0] = wall.stream;
	fds[1] = wall.failure;
	fds[2] = wall.life;
	fds[3] = channels.life;
	for (int i = 0; i < 4; i++)
		CHECK(fcntl(fds[i], F_GETFD) == FD_CLOEXEC);
	channels_done(&channels);
	wall_done(&wall);
	for (int i = 0; i < 4; i++)
		CHECK(fcntl(fds[i], F_GETFD) < 0);
	CHECK(wall.stream == -1 && wall.life == -1 && channels.stream == -1);
}

static bool has_limit(const struct launch *launch, int resource, rlim_t value)
{
	for (size_t i = 0; i < launch->limit_count; i++)
		if (launch->limits[i].resource == resource && launch->limits[i].value == value)
			return true;
	return false;
}

static void limits_become_rlimits(void)
{
	static struct launch launch;
	struct channels channels = { .stream = 40, .listeners = 41, .failure = 42, .life = 43 };
	struct backend_start how = { .agent_fd = 44, .search_fd = 45, .data_bytes = 1 << 30 };

	start(TIER_AUTO, "any");
	plan.limits.cpu_milli = 1500;
	plan.limits.open_files = 99;
	channels_fill(&channels, &plan, &how, &launch);
	CHECK(launch.cpu_count == 2); /* one and a half need two */
	CHECK(has_limit(&launch, RLIMIT_CORE, 1) && has_limit(&launch, RLIMIT_DATA, 1 << 30));
	CHECK(launch.stream_fd == 40 && launch.listeners_fd == 41 && launch.error_fd == 42);
	CHECK(launch.life_fd == 43 && launch.agent_fd == 44 && launch.search_fd == 45);
	launch = (struct launch){ 0 };
	plan.limits.cpu_milli = plan.limits.open_files = how.data_bytes = PLAN_UNLIMITED;
	channels_fill(&channels, &plan, &how, &launch);
	CHECK(launch.cpu_count == 0 && launch.limit_count == 1);
	CHECK(launch.limits[0].resource == RLIMIT_CORE);
}

AS_BOTH(any)
AS_BOTH(without_namespaces)
AS_BOTH(attempt_fails)

static const struct tap_test tests[] = {
	{ "walls have names, the strong ones stand first", table },
	BOTH_ROWS(any, "any is the first wall that reaches the tier"),
	{ "a tier that no wall reaches is refused by its event's name", no_wall_is_strong_enough },
	{ "a named wall is that one or none", named },
	{ "a wall that the policy describes", declared },
	{ "a named wall that is too weak is refused", named_is_too_weak },
	{ "what a wall lacks is named", missing_features },
	{ "controllers are not the wall's", controllers_are_not_walls },
	{ "allow and engine are refused", what_no_wall_does },
	BOTH_ROWS(without_namespaces, "without namespaces: landlock for auto, else cause and fix"),
	BOTH_ROWS(attempt_fails, "what is forbidden in silence is found by trying"),
	{ "a private uid is in the range that nobody hands out", private_ids },
	{ "a wall's descriptors close", walls_close },
	{ "limits of the plan become rlimits", limits_become_rlimits },
};

TAP_MAIN(tests)
