/*
 * The lockdown: the order of its tables, what a failed step does, and the steps that can be
 * carried out alone. Filters and roots have tests of their own.
 */
#include "launch/launch.h"

#include "base/str.h"
#include "own_space.h"

#include <poll.h>
#include <sys/socket.h>

static const struct {
	const char *name;
	const struct launch_step *steps;
	bool is_wall;
} tables[] = {
	{ "process", launch_process_steps, true },
	{ "landlock", launch_landlock_steps, true },
	{ "local", launch_local_steps, false },
};

static int find(const struct launch_step *steps, const char *name)
{
	for (int i = 0; steps[i].name; i++)
		if (str_is(steps[i].name, name))
			return i;
	return -1;
}

static int count(const struct launch_step *steps)
{
	int n = 0;

	while (steps[n].name)
		n++;
	return n;
}

static void names_and_reasons(void)
{
	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (int i = 0; tables[t].steps[i].name; i++) {
			const struct launch_step *step = &tables[t].steps[i];

			if (find(tables[t].steps, step->name) != i || !step->why)
				printf("# %s: %s\n", tables[t].name, step->name);
			CHECK(find(tables[t].steps, step->name) == i);
			CHECK(step->run && step->why && strlen(step->why) >= 10);
			CHECK(strlen(step->name) < sizeof((struct csn_error *)0)->stage);
		}
}

/* What must come before what, with both there; a step that is missing is not out of order. */
static const struct {
	const char *first, *then;
} order[] = {
	{ "maps", "ids" },
	{ "ids", "caps" },
	{ "bounding", "caps" },
	{ "root", "caps" },
	{ "hostname", "caps" },
	{ "loopback", "caps" },
	{ "groups", "root" },
	{ "limits", "caps" },
	{ "cpus", "base-filter" },
	{ "caps", "no-new-privs" },
	{ "caps", "regain" },
	{ "no-new-privs", "regain" },
	{ "ids", "regain" },
	{ "no-new-privs", "landlock" },
	{ "no-new-privs", "base-filter" },
	{ "caps", "landlock" },
	{ "root", "landlock" },
	{ "landlock", "base-filter" },
	{ "regain", "base-filter" },
	{ "landlock", "fds" },
	{ "fds", "base-filter" },
	{ "root", "workdir" },
	{ "workdir", "fds" },
};

static void order_holds(void)
{
	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
			int first = find(tables[t].steps, order[i].first);
			int then = find(tables[t].steps, order[i].then);

			if (first >= 0 && then >= 0 && first >= then)
				printf("# %s: %s after %s\n", tables[t].name, order[i].first,
				       order[i].then);
			CHECK(first < 0 || then < 0 || first < then);
		}
	/* the parent-death signal is cleared by a change of ids; a check alone is not */
	CHECK(find(launch_process_steps, "ids") < find(launch_process_steps, "life"));
	/* where uid 0 itself is given up, what is left of it goes first */
	CHECK(find(launch_landlock_steps, "bounding") < find(launch_landlock_steps, "ids"));
}

static void walls_are_whole(void)
{
	static const char *const needed[] = { "ids",    "life",     "session", "groups",
					      "limits", "bounding", "caps",    "no-new-privs",
					      "regain", "landlock", "fds",     "base-filter" };

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++) {
		const struct launch_step *steps = tables[t].steps;
		int last = count(steps) - 1;

		CHECK_STR(steps[last].name, tables[t].is_wall ? "base-filter" : "fds");
		for (size_t i = 0; tables[t].is_wall && i < ARRAY_SIZE(needed); i++)
			CHECK(find(steps, needed[i]) >= 0);
	}
	CHECK(find(launch_process_steps, "root") >= 0 && find(launch_process_steps, "maps") == 0);
}

/* ---- running steps ------------------------------------------------------------------------- */

static struct launch launch;

static const struct launch_step *step(const char *name)
{
	int i = find(launch_process_steps, name);

	CHECK(i >= 0);
	return &launch_process_steps[i];
}

static int ran;

static int count_step(struct launch *unused, struct csn_error *err)
{
	(void)unused, (void)err;
	ran++;
	return 0;
}

static int fail_step(struct launch *unused, struct csn_error *err)
{
	(void)unused;
	return csn_fail(err, -ERANGE, "second", "it does not work: %d steps before", ran);
}

static int late_step(struct launch *unused, struct csn_error *err)
{
	(void)err;
	return write(unused->error_fd, "late", 4) == 4 ? 0 : -EIO;
}

/* A failed step: its sentence arrives, no later one runs, nothing is executed. */
static void failed_step(void)
{
	static const struct launch_step steps[] = { { "one", count_step, "first" },
						    { "two", fail_step, "fails" },
						    { "three", late_step, "never" },
						    { 0 } };
	struct csn_error errors[2] = { 0 };
	int pipe_fds[2], status;
	pid_t pid;

	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		launch.error_fd = pipe_fds[1];
		launch.agent_fd = open("/bin/true", O_PATH | O_CLOEXEC);
		launch_run(&launch, steps);
	}
	close(pipe_fds[1]);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 127);
	CHECK(read(pipe_fds[0], errors, sizeof errors) == sizeof errors[0]);
	CHECK(errors[0].code == ERANGE);
	CHECK_STR(errors[0].stage, "second");
	CHECK_STR(errors[0].text, "it does not work: 1 steps before");
}

/* Runs `program` after `steps`; what it wrote to its output, and the error if it did not run. */
static void run_program(const char *program, char *const *argv, char *ret_text, size_t size,
			struct csn_error *ret_error)
{
	static const struct launch_step steps[] = { { "one", count_step, "first" }, { 0 } };
	int out[2], failure[2];
	ssize_t n;
	pid_t pid;

	CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(failure, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		launch.error_fd = failure[1];
		launch.agent_fd = open(program, O_PATH | O_CLOEXEC);
		launch.agent_argv = argv;
		launch_run(&launch, steps);
	}
	close(out[1]);
	close(failure[1]);
	n = read(out[0], ret_text, size - 1);
	ret_text[n > 0 ? n : 0] = 0;
	if (read(failure[0], ret_error, sizeof *ret_error) == 0)
		ret_error->code = 0;
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void executes(void)
{
	static char *const env_argv[] = { (char *)"env", NULL };
	static char *const echo_argv[] = { (char *)"echo", (char *)"a b", NULL };
	struct csn_error error;
	char text[256];

	CHECK(setenv("SECRET", "x", 1) == 0);
	run_program("/usr/bin/env", env_argv, text, sizeof text, &error);
	CHECK(error.code == 0);
	CHECK_STR(text, ""); /* nothing is inherited */
	run_program("/usr/bin/echo", echo_argv, text, sizeof text, &error);
	CHECK_STR(text, "a b\n");
	run_program("/etc/passwd", env_argv, text, sizeof text, &error);
	CHECK(error.code == EACCES);
	CHECK_STR(error.stage, "agent");
}

static void limits(void)
{
	struct rlimit before, now;

	be_ordinary();
	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	launch_limit(&launch, RLIMIT_NOFILE, 50);
	launch_limit(&launch, RLIMIT_CORE, 0);
	launch_limit(&launch, RLIMIT_STACK, UINT64_MAX);
	before.rlim_max = 1 << 20;
	before.rlim_cur = 1 << 10;
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	launch_limit(&launch, RLIMIT_FSIZE, 1 << 30);
	CHECK(step("limits")->run(&launch, NULL) == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 50 && now.rlim_max == 50);
	CHECK(getrlimit(RLIMIT_CORE, &now) == 0 && now.rlim_cur == 0 && now.rlim_max == 0);
	CHECK(getrlimit(RLIMIT_FSIZE, &now) == 0 && now.rlim_max == 1 << 20); /* never raised */
	now.rlim_max = 60;
	CHECK(setrlimit(RLIMIT_NOFILE, &now) < 0);
}

static void tables_are_bounded(void)
{
	for (int i = 0; i < LAUNCH_RULES; i++)
		CHECK(launch_allow(&launch, "/usr", LANDLOCK_READ) == 0);
	CHECK(launch_allow(&launch, "/usr", LANDLOCK_READ) == -E2BIG);
	CHECK(launch.rule_count == LAUNCH_RULES);
	for (int i = 0; i < 100; i++)
		launch_limit(&launch, RLIMIT_CORE, 0);
	CHECK(launch.limit_count == ARRAY_SIZE(launch.limits));
}

static void processors(void)
{
	cpu_set_t set;

	launch.cpu_count = 1;
	CHECK(step("cpus")->run(&launch, NULL) == 0);
	CHECK(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1);
	launch.cpu_count = 1000; /* more than there are: what there is */
	CHECK(step("cpus")->run(&launch, NULL) == 0);
	CHECK(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1);
}

static bool is_null(int fd)
{
	struct stat null, st;

	return stat("/dev/null", &null) == 0 && fstat(fd, &st) == 0 && st.st_rdev == null.st_rdev;
}

/* The agent's descriptors lie where it looks for them, wherever they were; all others are gone. */
static void descriptors(void)
{
	int pair[2], listeners[2], fd;
	struct stat st;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, listeners) == 0);
	CHECK(dup2(pair[1], 8) == 8 && dup2(listeners[1], AGENT_FD_IN) == AGENT_FD_IN);
	CHECK(dup2(1, 300) == 300 && dup2(pair[0], 400) == 400);
	fd = open("/bin/true", O_PATH | O_CLOEXEC);
	launch.stream_fd = 8;
	launch.listeners_fd = AGENT_FD_IN;
	launch.order_fd = -1;
	launch.cmd_enter[0] = launch.cmd_enter[1] = launch.cmd_enter[2] = -1;
	launch.tty_fds[0] = launch.tty_fds[1] = -1;
	launch.agent_fd = fd;
	launch.search_fd = -1;
	launch.error_fd = 300;
	CHECK(step("fds")->run(&launch, NULL) == 0);
	CHECK(write(launch.error_fd, "", 0) == 0 && fcntl(launch.agent_fd, F_GETFD) == FD_CLOEXEC);
	CHECK(fcntl(launch.error_fd, F_GETFD) == FD_CLOEXEC);
	dup2(launch.error_fd, 1); /* so that a failed check is seen */
	for (int i = AGENT_FD_ENTER; i < AGENT_FD_END; i++)
		CHECK(is_null(i) && fcntl(i, F_GETFD) == 0);
	CHECK(fcntl(AGENT_FD_LISTENERS, F_GETFD) == 0 && !is_null(AGENT_FD_LISTENERS));
	CHECK(fstat(AGENT_FD_IN, &st) == 0 && S_ISSOCK(st.st_mode));
	CHECK(fcntl(AGENT_FD_SEARCH, F_GETFD) < 0); /* not lent, so not open */
	for (int i = AGENT_FD_FAILURE + 2; i < 1024; i++)
		CHECK(fcntl(i, F_GETFD) < 0);
}

static void monitor_is_gone(void)
{
	static const struct launch_step *const steps[] = { launch_process_steps,
							   launch_landlock_steps };
	int pipe_fds[2];

	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	launch.life_fd = pipe_fds[0];
	for (int i = 0; i < 2; i++)
		CHECK(steps[i][find(steps[i], "life")].run(&launch, NULL) == 0);
	close(pipe_fds[1]);
	for (int i = 0; i < 2; i++)
		CHECK(steps[i][find(steps[i], "life")].run(&launch, NULL) == -EPIPE);
	launch.sync_fd = pipe_fds[0];
	CHECK(step("maps")->run(&launch, NULL) == -EPIPE);
}

/* A drop that did not work is seen before anything runs. */
static void regain_is_seen(void)
{
	struct csn_error err = { 0 };

	if (geteuid() != 0)
		SKIP("root: only it has something to regain");
	CHECK(step("regain")->run(&launch, &err) == -EPERM);
	CHECK_STR(err.stage, "regain");
	CHECK(step("caps")->run(&launch, &err) == 0);
	CHECK(step("no-new-privs")->run(&launch, &err) == 0);
	CHECK(setresuid(ORDINARY, ORDINARY, ORDINARY) < 0); /* no capability: too late for ids */
}

static const struct tap_test tests[] = {
	{ "every step has a name of its own and a reason", names_and_reasons },
	{ "steps stand in the order that their reasons ask for", order_holds },
	{ "a wall has every step, the filter is last", walls_are_whole },
	{ "a failed step ends it with a sentence", failed_step },
	{ "the agent is executed without environment", executes },
	{ "limits are lowered and never raised (ordinary user)", limits },
	{ "rules and limits are bounded", tables_are_bounded },
	{ "processors are chosen among the allowed ones", processors },
	{ "descriptors lie where the agent looks", descriptors },
	{ "without a monitor nothing starts", monitor_is_gone },
	{ "privilege that is left is seen", regain_is_seen },
};

TAP_MAIN(tests)
