/* Limits: hard means a controller or a refusal; what is held, and by which means, is said. */
#include "monitor/limits.h"

#include "base/clock.h"
#include "monitor/cleaner.h"
#include "own_space.h"

#include <sys/mman.h>

static struct plan plan;
static struct limits limits;
static struct violations list;
static struct csn_error err;

static int start(enum plan_mode mode)
{
	static char id[64];

	CHECK(plan_init(&plan, TIER_AUTO) == 0);
	plan.limits_mode = mode;
	violations_init(&list, &plan, NULL, NULL);
	snprintf(id, sizeof id, "29991231-235959-unit-%d", getpid());
	err = (struct csn_error){ 0 };
	limits_look(&limits, &plan);
	return limits_open(&limits, id, &err);
}

static void finish(void)
{
	struct cleaner_work work = { .id = NULL };

	cleaner_clean(&work, limits_group(&limits));
	limits_close(&limits);
	CHECK(!limits_group(&limits) && limits_clone_fd(&limits) == -1);
}

static void expect_means(const char *name, const char *means)
{
	json_t *object = limits_means(&limits);

	CHECK(object && json_is_string(json_object_get(object, name)));
	CHECK_STR(json_string_value(json_object_get(object, name)), means);
	json_decref(object);
}

/* An ordinary user who was given no groups: there is no controller, and hard says so. */
static void hard_is_refused(void)
{
	int r;

	be_ordinary();
	r = start(LIMITS_HARD);
	CHECK(r == -ENOTSUP && limits.has_group == false);
	CHECK(strstr(err.text, "limits_mode is hard") && strstr(err.text, "memory"));
	CHECK(strstr(err.text, "limits_mode: best")); /* the line that would permit it */
	finish();
}

/* What the plan does not limit needs no controller. */
static void hard_without_limits(void)
{
	be_ordinary();
	CHECK(plan_init(&plan, TIER_AUTO) == 0);
	plan.limits_mode = LIMITS_HARD;
	plan.limits.mem_bytes = plan.limits.processes = plan.limits.cpu_milli = PLAN_UNLIMITED;
	limits_look(&limits, &plan);
	CHECK(limits_open(&limits, "29991231-235959-unit", &err) == 0);
	plan.limits.cpu_milli = 1000;
	limits_close(&limits);
	limits_look(&limits, &plan);
	CHECK(limits_open(&limits, "29991231-235959-unit", &err) == -ENOTSUP);
	CHECK(strstr(err.text, "cpus"));
}

static void best_says_what_it_is(void)
{
	int agent[3], cmd[3];

	be_ordinary();
	CHECK(start(LIMITS_BEST) == 0);
	CHECK(!limits_look(&limits, &plan)); /* so no cleaner is needed for it */
	expect_means("memory", "sampled");
	expect_means("processes", "rlimit");
	expect_means("cpus", "affinity");
	CHECK(limits_enforces(&limits) == 0 && limits.oom_fd == -1);
	CHECK(limits_data_bytes(&limits) == plan.limits.mem_bytes);
	limits_enter_fds(&limits, agent, cmd);
	for (int i = 0; i < 3; i++)
		CHECK(agent[i] == -1 && cmd[i] == -1);
	finish();
}

/* A child that holds that much memory. */
static pid_t hold(size_t size)
{
	int ready[2];
	char byte;
	pid_t pid;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		alarm(20);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (bytes == MAP_FAILED || write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	return pid;
}

/* Two looks in a row above the limit end it, one does not; the fact says that it was sampled. */
static void sampled_memory(void)
{
	uint64_t now = 1000;
	pid_t pid;

	be_ordinary();
	CHECK(start(LIMITS_BEST) == 0);
	plan.limits.mem_bytes = 32 << 20;
	CHECK(limits_tick(&limits, getpid(), now, &list) == LIMITS_FINE);
	pid = hold(64 << 20);
	CHECK(limits_tick(&limits, getpid(), now, &list) == LIMITS_FINE); /* not due yet */
	CHECK(limits_tick(&limits, getpid(), now += 100, &list) == LIMITS_FINE);
	CHECK(list.count == 0);
	CHECK(limits_tick(&limits, getpid(), now += 100, &list) == LIMITS_MEMORY);
	CHECK(list.count == 1 && list.facts[0].event == FACT_MEMORY_LIMIT);
	CHECK(!list.facts[0].is_certain &&
	      strstr(list.facts[0].detail.text, "limit 32MiB, sampled"));
	CHECK(limits_peak(&limits, 0) >= 64 << 20);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	CHECK(limits_tick(&limits, getpid(), now += 100, &list) == LIMITS_FINE);
	finish();
}

/* A peak between two looks is seen when the process is reaped: once, and it ends nothing. */
static void peak_at_the_end(void)
{
	be_ordinary();
	CHECK(start(LIMITS_BEST) == 0);
	plan.limits.mem_bytes = 32 << 20;
	CHECK(limits_finish(&limits, (32 << 20) - 1, &list) == LIMITS_FINE && list.count == 0);
	CHECK(limits_finish(&limits, 32 << 20, &list) == LIMITS_FINE && list.count == 1);
	CHECK(!list.facts[0].is_certain && list.facts[0].event == FACT_MEMORY_LIMIT);
	CHECK(strstr(list.facts[0].detail.text, "limit 32MiB, sampled peak of one process 32MiB"));
	CHECK(limits_finish(&limits, 33 << 20, &list) == LIMITS_FINE && list.count == 1);
	CHECK(limits_peak(&limits, 7) == 7);
	plan.limits.mem_bytes = PLAN_UNLIMITED;
	CHECK(limits_finish(&limits, 1ULL << 40, &list) == LIMITS_FINE);
	finish();
}

/* A full tree is seen once, and not at one process less (one of them stands for the reaper). */
static void sampled_processes(void)
{
	pid_t pids[4];
	uint64_t now = 1000;

	be_ordinary();
	CHECK(start(LIMITS_BEST) == 0);
	plan.limits.processes = 3;
	for (int i = 0; i < 4; i++) {
		CHECK(list.count == 0);
		pids[i] = hold(1 << 20);
		CHECK(limits_tick(&limits, getpid(), now += 100, &list) == LIMITS_FINE);
	}
	CHECK(list.count == 1 && list.facts[0].event == FACT_PROCESS_LIMIT);
	CHECK(!list.facts[0].is_certain && list.facts[0].source == SOURCE_MONITOR);
	CHECK_STR(list.facts[0].detail.text, "limit 3, sampled 3");
	CHECK(limits_tick(&limits, getpid(), now += 100, &list) == LIMITS_FINE && list.count == 1);
	for (int i = 0; i < 4; i++)
		CHECK(kill(pids[i], SIGKILL) == 0 && waitpid(pids[i], NULL, 0) == pids[i]);
	finish();
}

static void controllers(void)
{
	struct cgroup_probe probe;
	int agent[3], cmd[3], entered = 0;

	cgroup_probe(&probe);
	if (geteuid() != 0 || !probe.has[CGROUP_MEMORY] || !probe.has[CGROUP_PIDS] ||
	    !probe.has[CGROUP_CPU])
		SKIP("cgroups: %s", probe.reason[CGROUP_MEMORY]);
	CHECK(start(LIMITS_HARD) == 0);
	expect_means("memory", "cgroup");
	expect_means("processes", "cgroup");
	expect_means("cpus", "cgroup");
	CHECK(limits_enforces(&limits) == (FEATURE_MEMORY | FEATURE_PROCESSES | FEATURE_CPU));
	CHECK(limits_data_bytes(&limits) == PLAN_UNLIMITED);
	limits_enter_fds(&limits, agent, cmd);
	for (int i = 0; i < 3; i++)
		entered += cmd[i] >= 0;
	CHECK(entered > 0 && limits_group(&limits));
	CHECK(limits_finish(&limits, 0, &list) == LIMITS_FINE && list.count == 0);
	finish();
}

static const struct tap_test tests[] = {
	{ "hard without controllers is refused (ordinary user)", hard_is_refused },
	{ "hard without limits needs none (ordinary user)", hard_without_limits },
	{ "best says what it holds by (ordinary user)", best_says_what_it_is },
	{ "memory is sampled, twice (ordinary user)", sampled_memory },
	{ "a short peak is seen at the end (ordinary user)", peak_at_the_end },
	{ "a full tree is sampled (ordinary user)", sampled_processes },
	{ "controllers hold what is hard", controllers },
};

TAP_MAIN(tests)
