/* System V segments of another namespace: attached or not, not our own, and never a wait. */
#include "os/sysv.h"

#include <linux/sched.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "own_space.h"

enum { MIB = 1 << 20 };

/* A segment of that size, all of it written, attached nowhere. */
static int segment_of(size_t size)
{
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
	char *at = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	CHECK(at != (void *)-1);
	memset(at, 1, size);
	CHECK(shmdt(at) == 0);
	return id;
}

/* A process in namespaces of its own, with such a segment. */
static pid_t elsewhere(size_t size)
{
	int ready[2];
	char byte;
	pid_t pid;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(20);
		own_users(CLONE_NEWIPC);
		segment_of(size);
		CHECK(write(ready[1], "r", 1) == 1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		SKIP("namespaces: an ordinary user may not make them");
	return pid;
}

static void has_no_child(void)
{
	CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD);
}

static void detached(void)
{
	struct sysv_use use;
	pid_t pid = elsewhere(4 * MIB);
	int ours = segment_of(2 * MIB), r;

	r = sysv_use(pid, 1000, &use);
	CHECK(shmctl(ours, IPC_RMID, NULL) == 0);
	CHECK(r == 0 && use.resident_bytes + use.swapped_bytes == 4 * MIB);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	has_no_child();
}
AS_BOTH(detached)

/* Root's sandboxes are not uid 0 inside either: their namespace is all that is entered. */
static void refused(void)
{
	struct sysv_use use = { .resident_bytes = 7 };

	CHECK(sysv_use(getpid(), 1000, &use) == -EINVAL); /* the namespace is ours */
	CHECK(sysv_use(INT32_MAX, 1000, &use) == -ESRCH);
	CHECK(use.resident_bytes == 7);
	has_no_child();
}
AS_BOTH(refused)

/* Another user's process: a refusal, not a number. */
static void test_foreign(void)
{
	struct sysv_use use;
	pid_t pid;

	if (geteuid() != 0)
		SKIP("root: only he has processes that an ordinary user may not enter");
	pid = elsewhere(MIB);
	be_ordinary();
	CHECK(sysv_use(pid, 1000, &use) == -EPERM);
}

/* No time to answer: the child is gone all the same, at the next question if not at once. */
static void test_late(void)
{
	struct sysv_use use = { .resident_bytes = 7 };
	pid_t pid = elsewhere(MIB);
	uint64_t start = clock_now_ms();
	int late = 0, r = -ETIMEDOUT;

	for (int i = 0; i < 20; i++)
		late += sysv_use(pid, 0, &use) == -ETIMEDOUT;
	CHECK(late > 0 && clock_now_ms() - start < 5000);
	for (int i = 0; i < 50 && r == -ETIMEDOUT; i++)
		r = sysv_use(pid, 1000, &use);
	CHECK(r == 0 && use.resident_bytes >= MIB);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	has_no_child();
}

/* One that the kernel holds, as SIGKILL leaves it: nothing is asked until it has ended. */
static void test_held(void)
{
	struct clone_args args = { 0 };
	struct sysv_use use;
	siginfo_t info;
	pid_t pid = elsewhere(MIB), held = (pid_t)syscall(SYS_clone3, &args, sizeof args);

	CHECK(held >= 0);
	if (held == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	CHECK(sysv_use(pid, 1000, &use) == -ETIMEDOUT);
	CHECK(kill(held, SIGKILL) == 0);
	CHECK(waitid(P_PID, (id_t)held, &info, WEXITED | WNOWAIT | __WCLONE) == 0);
	CHECK(sysv_use(pid, 1000, &use) == 0);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	has_no_child();
}

static int open_count(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void test_cost(void)
{
	struct sysv_use use;
	pid_t pid = elsewhere(MIB);
	uint64_t start, took, least = UINT64_MAX, all = 0;
	int open = open_count();

	for (int i = 0; i < 50; i++) {
		start = clock_now_us();
		CHECK(sysv_use(pid, 1000, &use) == 0);
		took = clock_now_us() - start;
		least = took < least ? took : least;
		all += took;
	}
	printf("# least %llu us, mean %llu us\n", (unsigned long long)least,
	       (unsigned long long)all / 50);
	CHECK(open_count() == open);
}

static const struct tap_test tests[] = {
	BOTH_ROWS(detached, "a segment that nobody has attached"),
	BOTH_ROWS(refused, "our own namespace, and nobody's"),
	{ "another user's namespace", test_foreign },
	{ "no time to answer", test_late },
	{ "a late child is waited for by nobody and reaped", test_held },
	{ "what an answer costs", test_cost },
};
TAP_MAIN(tests)
