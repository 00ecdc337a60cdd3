/*
 * Control groups as they are: v1 controllers, and a v2 mount with or without them, as far as this
 * machine has each. Every test removes its groups.
 */
#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "os/cgroup_file.h"
#include "tap.h"

static const struct cgroup_limits small = { 64 << 20, 16, 1500 };
static const struct cgroup_limits none = { CGROUP_UNLIMITED, CGROUP_UNLIMITED, CGROUP_UNLIMITED };

/* A group of this test on v1 with memory and pids, or a skip. */
static struct cgroup make_v1(const struct cgroup_limits *limits)
{
	struct cgroup_probe probe;
	struct csn_error err;
	struct cgroup cg;
	char id[32];

	cgroup_probe(&probe);
	if (probe.layout != CGROUP_V1 || !probe.has[CGROUP_MEMORY] || !probe.has[CGROUP_PIDS])
		SKIP("cgroup: no v1 memory and pids: %s %s", probe.reason[CGROUP_MEMORY],
		     probe.reason[CGROUP_PIDS]);
	snprintf(id, sizeof id, "test-%d", getpid());
	int r = cgroup_create(&probe, id, limits, &cg, &err);
	if (r < 0)
		printf("# %s\n", err.text);
	CHECK(r == 0);
	return cg;
}

/* The v2 mount here has no controllers: groups, cloning, killing and removing still work. */
static struct cgroup_probe probe_v2(void)
{
	struct cgroup_probe probe = { .layout = CGROUP_V2 };

	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		snprintf(probe.base[i], CGROUP_PATH, "/sys/fs/cgroup/unified/caisson");
	int fd = open("/sys/fs/cgroup/unified/cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		SKIP("cgroup: no v2 mount at /sys/fs/cgroup/unified that we may write");
	close(fd);
	return probe;
}

static struct cgroup make_v2(void)
{
	struct cgroup_probe probe = probe_v2();
	struct cgroup cg;
	char id[32];

	snprintf(id, sizeof id, "test-%d", getpid());
	CHECK(cgroup_create(&probe, id, &none, &cg, NULL) == 0);
	return cg;
}

static void clean(struct cgroup *cg)
{
	CHECK(cgroup_kill(cg, 2000) == 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
	CHECK(cgroup_remove(cg, 2000) == 0);
	cgroup_done(cg);
}

/* A child in the commands' group that runs `body`. */
static pid_t spawn(const struct cgroup *cg, int (*body)(void))
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(cgroup_enter(cg, CGROUP_CMD) < 0 ? 99 : body());
	return pid;
}

static int wait_forever(void)
{
	alarm(30); /* ends by itself where a test failed */
	for (;;)
		pause();
	return 0;
}

static bool fires(int fd, short events, int timeout_ms)
{
	struct pollfd poller = { .fd = fd, .events = events };

	return poll(&poller, 1, timeout_ms) == 1;
}

static int eat_memory(void)
{
	size_t size = 256 << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, size);
	return 3;
}

static int fork_many(void)
{
	for (int i = 0; i < 64; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return errno == EAGAIN && i < 16 ? 7 : 8;
		if (pid == 0)
			wait_forever();
	}
	return 9;
}

static bool is_in(const struct cgroup *cg, int controller, enum cgroup_side side, pid_t pid)
{
	char text[CGROUP_TEXT], word[16];

	snprintf(word, sizeof word, "%d", pid);
	CHECK(cgroup_file_read(cg->side_fd[controller][side], "cgroup.procs", text, sizeof text) >=
	      0);
	return cgroup_text_has(text, word);
}

static void test_v1_enter(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v1(&small);
	int fds[CGROUP_CONTROLLERS];
	pid_t pid = spawn(&cg, wait_forever);

	for (int i = 0; i < 1000 && !is_in(&cg, CGROUP_PIDS, CGROUP_CMD, pid); i++)
		usleep(1000);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		CHECK(!cgroup_has(&cg, i) || i == CGROUP_CPU || is_in(&cg, i, CGROUP_CMD, pid));
	CHECK(!is_in(&cg, CGROUP_MEMORY, CGROUP_AGENT, pid));
	CHECK(cgroup_enter_fds(&cg, CGROUP_AGENT, fds) == 1);
	CHECK(cgroup_enter_fds(&cg, CGROUP_CMD, fds) == 3 || !cgroup_has(&cg, CGROUP_CPU));
	CHECK(cgroup_clone_fd(&cg, CGROUP_CMD) == -1);
	CHECK(cgroup_file_u64(cg.top_fd[CGROUP_MEMORY], "memory.limit_in_bytes") == 128 << 20);
	CHECK(cgroup_file_u64(cg.side_fd[CGROUP_MEMORY][CGROUP_CMD], "memory.limit_in_bytes") ==
	      64 << 20);
	if (cgroup_has(&cg, CGROUP_CPU))
		CHECK(cgroup_file_u64(cg.top_fd[CGROUP_CPU], "cpu.cfs_quota_us") == 150000);
	CHECK(cgroup_attach(&cg, CGROUP_AGENT, pid) == 0);
	CHECK(is_in(&cg, CGROUP_MEMORY, CGROUP_AGENT, pid));
	clean(&cg);
}

/* Doors opened by root serve one who has no right left and sees neither /sys nor our pids. */
static void test_v1_enter_without_rights(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v1(&small);
	pid_t outer = fork();
	int status;

	if (outer == 0) {
		CHECK(unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWCGROUP) == 0);
		pid_t pid = fork();
		if (pid == 0) {
			CHECK(getuid() == 65534); /* unmapped */
			CHECK(cgroup_enter(&cg, CGROUP_AGENT) == 0);
			CHECK(cgroup_enter(&cg, CGROUP_CMD) == 0);
			wait_forever();
		}
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	struct cgroup_usage usage = { 0 };
	for (int i = 0; i < 1000 && usage.pids != 1; i++) {
		CHECK(cgroup_read(&cg, &usage) == 0);
		usleep(1000);
	}
	CHECK(usage.pids == 1);
	CHECK(cgroup_kill(&cg, 2000) == 0);
	CHECK(waitpid(outer, &status, 0) == outer && status == 0);
	clean(&cg);

	struct cgroup own = make_v1(&small);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(setresuid(65530, 65530, 65530) == 0);
		_exit(cgroup_enter(&own, CGROUP_CMD) == 0 ? 5 : 6);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5);
	clean(&own);
}

/* The way in that this room promises to be fast stays fast after idling. */
static void test_v1_enter_is_fast(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v1(&small);
	uint64_t best = UINT64_MAX;
	int pipes[2];

	CHECK(pipe(pipes) == 0);
	for (int i = 0; i < 5; i++) {
		usleep(150000);
		if (fork() == 0) {
			uint64_t start = clock_now_us();
			int r = cgroup_enter(&cg, CGROUP_CMD);

			start = clock_now_us() - start;
			CHECK(r == 0 && write(pipes[1], &start, sizeof start) == sizeof start);
			_exit(0);
		}
		uint64_t took;

		CHECK(read(pipes[0], &took, sizeof took) == sizeof took);
		best = took < best ? took : best;
	}
	printf("# enter after 150 ms idle: %llu us\n", (unsigned long long)best);
	CHECK(best < 2000);
	clean(&cg);
}

static void test_v1_memory(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v1(&small);
	struct cgroup_usage usage;
	short events;
	int fd, status;

	CHECK(cgroup_oom_fd(&cg, &fd, &events) == 0);
	CHECK(!fires(fd, events, 0));
	pid_t pid = spawn(&cg, eat_memory);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(fires(fd, events, 1000));
	cgroup_oom_ack(fd);
	CHECK(!fires(fd, events, 0));
	CHECK(cgroup_read(&cg, &usage) == 0);
	CHECK(usage.oom_kills == 1);
	CHECK(usage.mem_peak_bytes > 60 << 20 && usage.mem_peak_bytes <= 64 << 20);
	CHECK(usage.pids_refused == 0);
	close(fd);
	clean(&cg);
}

/* The agent at the limit above both groups: told through the same descriptor, counted too. */
static void test_v1_agent_runs_out(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v1(&small);
	struct cgroup_usage usage;
	short events;
	int fd, status;

	CHECK(cgroup_oom_fd(&cg, &fd, &events) == 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(cgroup_enter(&cg, CGROUP_AGENT) == 0 ? eat_memory() : 99);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(fires(fd, events, 1000));
	CHECK(cgroup_read(&cg, &usage) == 0 && usage.oom_kills == 1);
	close(fd);
	clean(&cg);
}

static int shared_file = -1;

static int fill_shared(void)
{
	static char block[1 << 20];

	memset(block, 1, sizeof block);
	for (int i = 0; i < 60; i++)
		if (write(shared_file, block, sizeof block) < 0)
			return 8;
	return 0;
}

/* What dead commands wrote stays charged; the next command pays for it, not the agent. */
static void test_v1_agent_survives(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v1(&small);
	int status, killed = 0;

	CHECK(cgroup_enter(&cg, CGROUP_AGENT) == 0);
	shared_file = memfd_create("scratch", MFD_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		pid_t pid = spawn(&cg, fill_shared);
		CHECK(waitpid(pid, &status, 0) == pid);
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		char *own = malloc(2 << 20);
		CHECK(own);
		memset(own, 1, 2 << 20);
		free(own);
	}
	CHECK(killed == 2);
	close(shared_file);
	/* Out again, so that the groups can go. */
	struct cgroup_probe probe;
	char path[CGROUP_PATH + 16];
	cgroup_probe(&probe); /* base is now beneath our own group: .../ID/agent/caisson */
	snprintf(path, sizeof path, "%s", probe.base[CGROUP_MEMORY]);
	CHECK(strstr(path, "/agent/caisson"));
	*strstr(path, "/caisson/") = 0;
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(cgroup_file_write(dir, "tasks", "0") == 0);
	close(dir);
	clean(&cg);
}

static void test_v1_processes(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v1(&small);
	struct cgroup_usage usage;
	short events;
	int fd, status;

	CHECK(cgroup_pids_fd(&cg, &fd, &events) == -ENOTSUP);
	pid_t pid = spawn(&cg, fork_many);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(cgroup_read(&cg, &usage) == 0);
	CHECK(usage.pids == 15 && usage.pids_refused == 1);
	CHECK(usage.pids_peak == 16 || usage.pids_peak == CGROUP_UNKNOWN);
	CHECK(usage.oom_kills == 0);
	clean(&cg);
}

static int bomb(void)
{
	uint64_t end_ms = clock_now_ms() + 8000; /* inherited: the bomb burns out */

	while (clock_now_ms() < end_ms)
		if (fork() < 0 || rand() % 4 == 0)
			usleep(10);
	return 0;
}

/* Orphans that go on forking: nothing is left, and the killer comes back in time. */
static void test_v1_kill_bomb(void)
{
	static const struct cgroup_limits many = { 512 << 20, 200, CGROUP_UNLIMITED };
	_cleanup_cgroup_ struct cgroup cg = make_v1(&many);
	struct cgroup_usage usage;
	uint64_t start;

	signal(SIGCHLD, SIG_IGN); /* reaps what becomes ours */
	spawn(&cg, bomb);
	usleep(200000);
	CHECK(cgroup_read(&cg, &usage) == 0 && usage.pids > 100);
	start = clock_now_ms();
	CHECK(cgroup_kill(&cg, 5000) == 0);
	printf("# %llu processes in %llu ms\n", (unsigned long long)usage.pids,
	       (unsigned long long)(clock_now_ms() - start));
	CHECK(cgroup_remove(&cg, 2000) == 0);
}

/* After kill -9 of its owner a forked copy of the struct is enough to clean up. */
static void test_v1_cleaner(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v1(&small);
	char path[CGROUP_PATH + 64];
	struct cgroup_probe probe;
	pid_t owner = fork();

	if (owner == 0) {
		spawn(&cg, wait_forever);
		wait_forever();
	}
	struct cgroup_usage usage;
	for (int i = 0; i < 1000; i++) {
		CHECK(cgroup_read(&cg, &usage) == 0);
		if (usage.pids == 1)
			break;
		usleep(1000);
	}
	CHECK(usage.pids == 1);
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	if (fork() == 0) {
		CHECK(chdir("/") == 0 && cgroup_kill(&cg, 2000) == 0);
		CHECK(cgroup_remove(&cg, 2000) == 0);
		_exit(0);
	}
	int status;
	CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cgroup_probe(&probe);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		snprintf(path, sizeof path, "%s/%s", probe.base[i], cg.id);
		CHECK(faccessat(AT_FDCWD, path, F_OK, 0) < 0 && errno == ENOENT);
	}
}

static bool lives(const char *id, void *data)
{
	return !str_is(id, data);
}

static void test_v1_sweep(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v1(&small);
	struct cgroup_probe probe;
	struct cgroup again;

	pid_t pid = spawn(&cg, wait_forever);
	usleep(50000);
	cgroup_probe(&probe);
	CHECK(cgroup_create(&probe, cg.id, &small, &again, NULL) == -EEXIST);
	CHECK(is_in(&cg, CGROUP_MEMORY, CGROUP_CMD, pid)); /* the refusal took nothing away */
	CHECK(cgroup_sweep(&probe, lives, (char[]){ "nobody" }) == 0);
	CHECK(is_in(&cg, CGROUP_PIDS, CGROUP_CMD, pid));
	signal(SIGCHLD, SIG_IGN);
	CHECK(cgroup_sweep(&probe, lives, cg.id) == 2 + cgroup_has(&cg, CGROUP_CPU));
	CHECK(kill(pid, 0) < 0 && errno == ESRCH);
	CHECK(cgroup_remove(&cg, 0) == 0);
}

static void test_bad_id(void)
{
	struct cgroup_probe probe = { .layout = CGROUP_NONE, .reason = { "no groups: sit down" } };
	struct csn_error err;
	struct cgroup cg;

	CHECK(cgroup_create(&probe, "../x", &small, &cg, &err) == -EINVAL);
	CHECK(cgroup_create(&probe, "x", &small, &cg, &err) == -ENOTSUP);
	CHECK_STR(err.text, "no groups: sit down");
	cgroup_init(&cg);
	CHECK(cgroup_kill(&cg, 0) == 0 && cgroup_remove(&cg, 0) == 0);
	cgroup_done(&cg);
}

static pid_t clone_into(int dir_fd)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP,
				   .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)dir_fd };

	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static void test_v2_clone_and_kill(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v2();
	pid_t pid = clone_into(cgroup_clone_fd(&cg, CGROUP_CMD));
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		fork();
		wait_forever();
	}
	pid_t agent = fork();
	if (agent == 0) {
		CHECK(cgroup_enter(&cg, CGROUP_AGENT) == 0);
		wait_forever();
	}
	for (int i = 0; i < 1000 && !is_in(&cg, 0, CGROUP_AGENT, agent); i++)
		usleep(1000);
	CHECK(is_in(&cg, 0, CGROUP_CMD, pid) && is_in(&cg, 0, CGROUP_AGENT, agent));
	CHECK(cgroup_kill_side(&cg, CGROUP_CMD, 1000) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	CHECK(waitpid(agent, &status, WNOHANG) == 0); /* the other side goes on */
	clean(&cg);
}

/* Somebody without any right but the grant clones into `cmd`; without it he may not. */
static void test_v2_grant(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v2();
	int status;

	for (int granted = 0; granted < 2; granted++) {
		CHECK(!granted || cgroup_grant(&cg, 65530) == 0);
		pid_t pid = clone_into(cgroup_clone_fd(&cg, CGROUP_AGENT));
		if (pid == 0) {
			CHECK(setresuid(65530, 65530, 65530) == 0);
			pid_t inner = clone_into(cgroup_clone_fd(&cg, CGROUP_CMD));
			if (inner == 0)
				_exit(0);
			CHECK(inner > 0 || errno == EACCES);
			_exit(inner > 0 ? 1 : 2);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		CHECK(WEXITSTATUS(status) == (granted ? 1 : 2));
	}
	clean(&cg);
}

static void test_v2_counters_missing(void)
{
	_cleanup_cgroup_ struct cgroup cg = make_v2();
	struct cgroup_usage usage;
	short events;
	int fd;

	CHECK(cgroup_read(&cg, &usage) == 0);
	CHECK(usage.oom_kills == CGROUP_UNKNOWN && usage.pids_refused == CGROUP_UNKNOWN);
	CHECK(usage.cpu_us != CGROUP_UNKNOWN); /* kept without a controller */
	CHECK(cgroup_oom_fd(&cg, &fd, &events) == -ENOTSUP);
	CHECK(cgroup_pids_fd(&cg, &fd, &events) == -ENOTSUP);
	clean(&cg);
}

/* A test's process is gone by then; a test that runs beside us keeps its groups. */
static bool is_running(const char *id, void *unused)
{
	uint64_t pid;

	(void)unused;
	if (!str_starts(id, "test-") || str_parse_u64(id + 5, INT32_MAX, &pid) < 0)
		return true;
	return kill((pid_t)pid, 0) == 0;
}

/* The last test: takes away what a failed one left, and fails if there was anything. */
static void test_nothing_is_left(void)
{
	struct cgroup_probe v1, v2 = probe_v2();

	cgroup_probe(&v1);
	CHECK(cgroup_sweep(&v1, is_running, NULL) + cgroup_sweep(&v2, is_running, NULL) == 0);
}

static const struct tap_test tests[] = {
	{ "ids and empty groups", test_bad_id },
	{ "v1: enter, limits, attach", test_v1_enter },
	{ "v1: entering needs no rights, only the doors", test_v1_enter_without_rights },
	{ "v1: entering is fast after idling", test_v1_enter_is_fast },
	{ "v1: out of memory is told", test_v1_memory },
	{ "v1: the agent runs out of memory", test_v1_agent_runs_out },
	{ "v1: the agent survives its commands", test_v1_agent_survives },
	{ "v1: refused forks are told", test_v1_processes },
	{ "v1: a fork bomb is killed", test_v1_kill_bomb },
	{ "v1: a cleaner after kill -9", test_v1_cleaner },
	{ "v1: sweep takes only the dead", test_v1_sweep },
	{ "v2: clone into, kill one side", test_v2_clone_and_kill },
	{ "v2: the grant and nothing more", test_v2_grant },
	{ "v2: counters without controllers", test_v2_counters_missing },
	{ "nothing is left", test_nothing_is_left },
};
TAP_MAIN(tests)
