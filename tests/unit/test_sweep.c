/*
 * Sweeps: nothing that was started is left, however it was started. The machine is shared: no
 * test has more than a few dozen processes at once, every loop has an end, every process an
 * alarm, and a chain stops when it is told to.
 */
#include "os/sweep.h"

#include "base/clock.h"
#include "own_space.h"

#include <stdatomic.h>
#include <sys/mman.h>

enum { DEEP = 70, WIDE = 30, CHAINS = 4, LINKS_MAX = 20000, LIFE_S = 20 };

/* Seen by every process of a test. */
static struct shared {
	_Atomic int count;  /* of processes that were started */
	_Atomic int links;  /* of a chain */
	_Atomic bool stops; /* chains end */
	_Atomic pid_t pids[DEEP + WIDE];
} * shared;

static void start(void)
{
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	alarm(LIFE_S);
}

/* Every process of a test calls this first. */
static void live(void)
{
	alarm(LIFE_S);
	shared->pids[atomic_fetch_add(&shared->count, 1) % (DEEP + WIDE)] = getpid();
}

static void sleep_on(void)
{
	for (int i = 0; i < LIFE_S; i++)
		sleep(1);
	_exit(0);
}

static void await_count(int count)
{
	for (int i = 0; i < 1000 && shared->count < count; i++)
		usleep(5000);
	CHECK(shared->count == count);
}

static void expect_none_left(void)
{
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	for (int i = 0; i < shared->count && i < DEEP + WIDE; i++)
		CHECK(kill(shared->pids[i], 0) < 0 && errno == ESRCH);
}

/* Each is the parent of the next: deeper than one look follows. */
static void grow_deeper(void)
{
	for (int depth = 1; depth <= DEEP; depth++) {
		live();
		if (depth == DEEP || fork() != 0)
			sleep_on();
	}
}

static void deep_tree(void)
{
	start();
	if (fork() == 0)
		grow_deeper();
	await_count(DEEP);
	sweep_kill(0);
	expect_none_left();
}

static void wide_tree(void)
{
	start();
	for (int i = 0; i < WIDE; i++)
		if (fork() == 0) {
			live();
			sleep_on();
		}
	await_count(WIDE);
	CHECK(sweep_signal(0, 0) == WIDE);
	sweep_kill(0);
	expect_none_left();
}

/* Sessions of their own, parents long gone, and a name that lies about the fields after it. */
static void daemons(void)
{
	start();
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			setsid();
			prctl(PR_SET_NAME, i % 2 ? ") R 1 1 (" : "x) S 1 ", 0, 0, 0);
			if (fork() == 0) {
				setsid();
				live();
				sleep_on();
			}
			_exit(0);
		}
	await_count(8);
	sweep_kill(0);
	expect_none_left();
}

static void deaf(void)
{
	start();
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			for (int signal_number = 1; signal_number < 32; signal_number++)
				signal(signal_number, SIG_IGN);
			live();
			if (i % 2)
				raise(SIGSTOP);
			sleep_on();
		}
	await_count(8);
	CHECK(sweep_signal(SIGTERM, 0) == 8);
	usleep(20000);
	CHECK(sweep_signal(0, 0) == 8);
	sweep_kill(0);
	expect_none_left();
}

/* A process that is gone before its pid was read, and so on: each starts the next and ends. */
static void run_chain(void)
{
	while (!shared->stops && atomic_fetch_add(&shared->links, 1) < LINKS_MAX) {
		alarm(LIFE_S);
		if (fork() != 0)
			_exit(0);
	}
	_exit(0);
}

static void chains(void)
{
	uint64_t begin;
	int links;

	start();
	for (int i = 0; i < CHAINS; i++)
		if (fork() == 0)
			run_chain();
	for (int i = 0; i < 1000 && shared->links < 50; i++)
		usleep(1000);
	begin = clock_now_ms();
	sweep_kill(0);
	links = shared->links;
	usleep(50000);
	printf("# %d links, %d ms\n", links, (int)(clock_now_ms() - begin));
	shared->stops = true;
	CHECK(clock_now_ms() - begin < 10000);
	CHECK(links < LINKS_MAX); /* it was the sweep that ended them */
	CHECK(shared->links == links);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* One child and what is beneath it stays, and stays to be waited for. */
static void spared(void)
{
	pid_t kept;
	siginfo_t info;
	int status;

	start();
	kept = fork();
	if (kept == 0) {
		live();
		if (fork() == 0) {
			live();
			sleep_on();
		}
		sleep_on();
	}
	await_count(2);
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			live();
			sleep_on();
		}
	await_count(6);
	CHECK(sweep_signal(0, (const pid_t[]){ kept, 0 }) == 4);
	sweep_kill((const pid_t[]){ kept, 0 });
	CHECK(sweep_signal(0, 0) == 2);
	CHECK(kill(kept, SIGKILL) == 0);
	CHECK(waitid(P_PID, (id_t)kept, &info, WEXITED | WNOWAIT) == 0);
	sweep_kill((const pid_t[]){ kept, 0 }); /* dead but not waited for; its child is ours now */
	CHECK(kill(shared->pids[1], 0) < 0 && errno == ESRCH);
	CHECK(waitpid(kept, &status, 0) == kept && WIFSIGNALED(status));
	expect_none_left();
}

/* Who is not beneath us is not touched: neither our parent nor our parent's other children. */
static void bystanders(void)
{
	pid_t sibling, sweeper;
	int status;

	start();
	sibling = fork();
	if (sibling == 0) {
		live();
		sleep_on();
	}
	sweeper = fork();
	if (sweeper == 0) {
		alarm(LIFE_S);
		if (fork() == 0) {
			live();
			sleep_on();
		}
		await_count(2);
		sweep_kill(0);
		_exit(sweep_signal(0, 0) != 0);
	}
	CHECK(waitpid(sweeper, &status, 0) == sweeper && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 0);
	CHECK(waitpid(sibling, &status, WNOHANG) == 0); /* it lives */
	kill(sibling, SIGKILL);
	CHECK(waitpid(sibling, &status, 0) == sibling);
}

static void nobody(void)
{
	start();
	CHECK(sweep_signal(SIGKILL, 0) == 0);
	sweep_kill(0);
	sweep_kill((const pid_t[]){ 1, 0 });
}

static const struct tap_test tests[] = {
	{ "a deep tree", deep_tree },
	{ "a wide tree", wide_tree },
	{ "orphans in sessions of their own, with names that lie", daemons },
	{ "who is stopped or ignores signals", deaf },
	{ "chains that fork and exit", chains },
	{ "the spared one and its children stay", spared },
	{ "bystanders are not touched", bystanders },
	{ "with nobody there nothing happens", nobody },
};

TAP_MAIN(tests)
