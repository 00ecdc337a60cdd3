/* Sampling: real process trees, memory that is shared or not, a tmpfs that runs full. */
#include "os/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "os/shmem.h"
#include "sample_tree.h"

static void test_tree(void)
{
	struct sample_tree tree;

	need_children();
	begin();
	CHECK(sample_tree(getpid(), UINT64_MAX, NULL, &tree) == 0 && tree.processes == 0);
	if (fork() == 0) { /* child, grandchild, and an orphan that came back */
		if (fork() == 0)
			sleep_well();
		if (fork() == 0) {
			if (fork() == 0)
				sleep_well();
			_exit(0);
		}
		wait(NULL);
		sleep_well();
	}
	await(3);
	CHECK(sample_tree(getpid(), UINT64_MAX, NULL, &tree) == 0);
	CHECK(tree.processes == 2 || tree.processes == 3); /* the orphan may have come back late */
	usleep(20000);
	CHECK(sample_tree(getpid(), UINT64_MAX, NULL, &tree) == 0);
	CHECK(tree.processes == 3 && tree.threads == 3 && !tree.is_cut && !tree.is_exact);
	end();
}

static void *fork_in_thread(void *unused)
{
	if (fork() == 0)
		sleep_well();
	pause();
	return unused;
}

static void test_children_of_threads(void)
{
	struct sample_tree tree;
	pthread_t thread;

	need_children();
	begin();
	if (fork() == 0) {
		pthread_create(&thread, NULL, fork_in_thread, NULL);
		pause();
	}
	await(1);
	CHECK(sample_tree(getpid(), UINT64_MAX, NULL, &tree) == 0);
	CHECK(tree.processes == 2 && tree.threads == 3);
	end();
}

static void test_memory(void)
{
	struct sample_tree tree;

	need_children();
	begin();
	if (fork() == 0) {
		fill(32 * MIB, MAP_PRIVATE);
		sleep_well();
	}
	if (fork() == 0) {
		fill(64 * MIB, MAP_SHARED);
		sleep_well();
	}
	await(2);
	CHECK(sample_tree(getpid(), UINT64_MAX, NULL, &tree) == 0);
	CHECK(tree.mem_bytes >= 96 * MIB && tree.mem_bytes < 104 * MIB);
	CHECK(sample_tree(getpid(), 10 * MIB, NULL, &tree) == 0);
	CHECK(tree.is_exact && tree.mem_bytes >= 96 * MIB && tree.mem_bytes < 104 * MIB);
	end();
}

/* Five processes that share 40 MiB are no 200 MiB. */
static void test_shared_pages(void)
{
	struct sample_tree tree;

	need_children();
	begin();
	if (fork() == 0) {
		fill(20 * MIB, MAP_PRIVATE);
		fill(20 * MIB, MAP_SHARED)[0] = 2;
		for (int i = 0; i < 4; i++)
			if (fork() == 0)
				break;
		sleep_well();
	}
	await(5);
	CHECK(sample_tree(getpid(), UINT64_MAX, NULL, &tree) == 0);
	CHECK(!tree.is_exact && tree.mem_bytes > 95 * MIB); /* cheap, and too much */
	CHECK(sample_tree(getpid(), 64 * MIB, NULL, &tree) == 0);
	CHECK(tree.is_exact && tree.mem_bytes >= 20 * MIB && tree.mem_bytes < 48 * MIB);
	end();
}

static void test_bounds(void)
{
	struct sample_tree tree;
	uint64_t start;
	int count = SAMPLE_PROCESSES + 50;

	need_children();
	begin();
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0)
			sleep_well();
		if (pid < 0) {
			end();
			SKIP("processes: fork: %s", strerror(errno));
		}
		if (i == 999) { /* the list came in pieces, no number was torn */
			CHECK(sample_tree(getpid(), UINT64_MAX, NULL, &tree) == 0);
			CHECK(tree.processes == 1000 && tree.threads == 1000);
		}
	}
	await(count);
	start = clock_now_us();
	CHECK(sample_tree(getpid(), UINT64_MAX, NULL, &tree) == 0);
	printf("# %u processes in %llu us\n", tree.processes,
	       (unsigned long long)(clock_now_us() - start));
	CHECK(tree.is_cut && tree.processes == SAMPLE_PROCESSES);
	end();
}

static void test_gone(void)
{
	struct sample_tree tree;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	CHECK(sample_tree(pid, 0, NULL, &tree) == -ESRCH);
	CHECK(sample_tree(0, 0, NULL, &tree) == -EINVAL);
	CHECK(sample_tree(-5, 0, NULL, &tree) == -EINVAL);
}

static int scratch(const char *options)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		SKIP("mount: a mount namespace: %s", strerror(errno));
	CHECK(mount("tmpfs", "/mnt", "tmpfs", 0, options) == 0);
	int fd = open("/mnt", O_PATH | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void test_scratch_bytes(void)
{
	static char block[65536];
	struct sample_scratch now;
	int fd = scratch("size=4m,nr_inodes=20");
	int file = open("/mnt/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CHECK(sample_scratch(fd, &now) == 0);
	CHECK(now.size_bytes == 4 * MIB && now.free_bytes == 4 * MIB && !now.is_full);
	while (write(file, block, sizeof block) > 0)
		;
	CHECK(errno == ENOSPC);
	CHECK(sample_scratch(fd, &now) == 0);
	CHECK(now.is_full && now.free_bytes == 0 && now.free_inodes > 0);
	CHECK(ftruncate(file, 4096) == 0);
	CHECK(sample_scratch(fd, &now) == 0 && !now.is_full);
}

static void test_scratch_inodes(void)
{
	struct sample_scratch now;
	int fd = scratch("size=4m,nr_inodes=20");
	char path[32];

	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof path, "/mnt/%d", i);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	CHECK(sample_scratch(fd, &now) == 0);
	CHECK(now.is_full && now.free_inodes == 0 && now.free_bytes == 4 * MIB);
}

static void test_scratch_unsized(void)
{
	struct sample_scratch now;
	int fd = scratch("size=0,nr_inodes=0");

	CHECK(sample_scratch(fd, &now) == 0);
	CHECK(!now.is_full && now.size_bytes == 0 && now.inodes == 0);
	CHECK(sample_scratch(-1, &now) == -EBADF);
}

/* Five holders of one file, two of another. */
static void test_memfds(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;
	int fd;

	need_children();
	begin();
	if (fork() == 0) {
		file_of(40 * MIB);
		dup(file_of(30 * MIB));
		for (int i = 0; i < 4; i++)
			if (fork() == 0)
				break;
		sleep_well();
	}
	await(5);
	CHECK(sample_tree(getpid(), 64 * MIB, NULL, &tree) == 0 && tree.mem_bytes < 20 * MIB);
	CHECK(sample_tree(getpid(), 64 * MIB, &files, &tree) == 0);
	CHECK(tree.file_bytes == 70 * MIB && tree.mem_bytes > 70 * MIB);
	CHECK(tree.mem_bytes < 90 * MIB && files.blind_looks == 0 && !tree.is_cut);
	end();
	fd = file_of(MIB); /* ours is not the tree's */
	CHECK(sample_tree(getpid(), 0, &files, &tree) == 0 && tree.file_bytes == 0);
	close(fd);
}

/* What is mapped and in the file counts once, and the part that nobody maps as well. */
static void test_mapped_memfds(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;

	need_children();
	begin();
	if (fork() == 0) {
		int fd = file_of(60 * MIB);
		char *p = mmap(NULL, 40 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		CHECK(p != MAP_FAILED);
		if (fork() == 0)
			fill(10 * MIB, MAP_SHARED); /* without a descriptor */
		memset(p, 2, 40 * MIB);
		sleep_well();
	}
	await(2);
	CHECK(sample_tree(getpid(), 80 * MIB, &files, &tree) == 0);
	CHECK(tree.file_bytes == 60 * MIB && tree.is_exact);
	CHECK(tree.mem_bytes >= 70 * MIB && tree.mem_bytes < 78 * MIB);
	CHECK(sample_tree(getpid(), 64 * MIB, &files, &tree) == 0);
	CHECK(tree.mem_bytes >= 70 * MIB);
	end();
}

/* What a look found to be counted twice is no reason for another; what is added is. */
static void test_mapped_rest(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;
	uint64_t looked;
	int turn[2];
	char byte;

	need_children();
	begin();
	CHECK(pipe2(turn, O_CLOEXEC) == 0);
	if (fork() == 0) {
		alarm(30); /* should the test fail before its turn */
		int fd = file_of(60 * MIB);
		char *p = mmap(NULL, 60 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		CHECK(p != MAP_FAILED);
		memset(p, 2, 60 * MIB);
		tell();
		CHECK(read(turn[0], &byte, 1) == 1);
		fill(30 * MIB, MAP_PRIVATE);
		sleep_well();
	}
	await(1);
	CHECK(sample_tree(getpid(), 80 * MIB, &files, &tree) == 0 && files.looked_us > 0);
	CHECK(tree.mem_bytes >= 60 * MIB && tree.mem_bytes < 70 * MIB && tree.is_exact);
	looked = files.looked_us;
	files.rest_us = UINT64_MAX; /* other programs may change the sum */
	for (int i = 0; i < 5; i++) {
		CHECK(sample_tree(getpid(), 80 * MIB, &files, &tree) == 0);
		CHECK(tree.file_bytes == 60 * MIB && !tree.is_exact);
		CHECK(tree.mem_bytes >= 60 * MIB && tree.mem_bytes < 70 * MIB);
	}
	CHECK(files.looked_us == looked);
	CHECK(write(turn[1], "x", 1) == 1);
	await(1);
	CHECK(sample_tree(getpid(), 80 * MIB, &files, &tree) == 0 && files.looked_us > looked);
	CHECK(tree.mem_bytes >= 90 * MIB);
	end();
}

/* Files that the caller counts himself, mapped. */
static void test_apart(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;
	struct stat st;

	need_children();
	close(scratch("size=64m"));
	begin();
	CHECK(stat("/mnt", &st) == 0);
	if (fork() == 0) {
		int fd = open("/mnt/f", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		char *p;

		CHECK(ftruncate(fd, 40 * MIB) == 0);
		p = mmap(NULL, 40 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		memset(p, 2, 40 * MIB);
		sleep_well();
	}
	await(1);
	CHECK(sample_tree(getpid(), 20 * MIB, &files, &tree) == 0);
	CHECK(tree.mem_bytes >= 40 * MIB && tree.file_bytes == 0);
	files.apart_dev = st.st_dev;
	CHECK(sample_tree(getpid(), 20 * MIB, &files, &tree) == 0);
	CHECK(tree.mem_bytes < 10 * MIB);
	end();
}

static int hold_file(void *unused)
{
	(void)unused;
	file_of(32 * MIB);
	sleep_well();
	return 0;
}

/* A thread with descriptors of its own, beside a leader that has ended. */
static void test_own_table(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct sample_files files = { 0 };
	struct sample_tree tree;

	need_children();
	begin();
	if (fork() == 0) {
		CHECK(clone(hold_file, stack + sizeof stack,
			    CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FS, NULL) > 0);
		syscall(SYS_exit, 0); /* this thread only */
	}
	await(1);
	usleep(20000);
	CHECK(sample_tree(getpid(), 0, &files, &tree) == 0);
	CHECK(tree.file_bytes == 32 * MIB);
	end();
}

/* Far from the limit nothing is gone through; near it, again when the machine's sum changes. */
static void test_when_files(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;
	uint64_t limit, looked, swap;
	bool was_spared = false;

	need_children();
	begin();
	if (fork() == 0)
		sleep_well();
	await(1);
	file_of(80 * MIB);
	CHECK(sample_tree(getpid(), UINT64_MAX, &files, &tree) == 0 && files.looked_us == 0);
	limit = shmem_host_bytes(&swap);
	limit += swap;
	CHECK(sample_tree(getpid(), limit * 4, &files, &tree) == 0 && files.looked_us == 0);
	for (int i = 0; i < 50; i++) { /* other programs may change the sum */
		looked = files.looked_us;
		CHECK(sample_tree(getpid(), limit, &files, &tree) == 0 && files.looked_us > 0);
		was_spared |= files.looked_us == looked;
	}
	CHECK(was_spared);
	looked = files.looked_us;
	files.host_bytes += limit / 16;
	files.rest_us = 0;
	CHECK(sample_tree(getpid(), limit, &files, &tree) == 0 && files.looked_us > looked);
	looked = files.looked_us;
	files.host_bytes += limit; /* a rest does not last through this */
	files.rest_us = UINT64_MAX;
	CHECK(sample_tree(getpid(), limit, &files, &tree) == 0 && files.looked_us > looked);
	end();
}

static void measure(int processes, int descriptors)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;
	uint64_t start, cheap = UINT64_MAX, whole = UINT64_MAX, took;

	begin();
	for (int i = 0; i < processes; i++)
		if (fork() == 0) {
			for (int fd = 0; fd < descriptors; fd++)
				dup(0);
			sleep_well();
		}
	await(processes);
	for (int i = 0; i < 5; i++) {
		start = clock_now_us();
		CHECK(sample_tree(getpid(), UINT64_MAX, &files, &tree) == 0);
		took = clock_now_us() - start;
		cheap = took < cheap ? took : cheap;
		files.looked_us = 0; /* due again; no sum is above the limit, nothing is hidden */
		files.least_bytes = UINT64_MAX;
		start = clock_now_us();
		CHECK(sample_tree(getpid(), tree.mem_bytes + MIB, &files, &tree) == 0);
		took = clock_now_us() - start;
		whole = took < whole ? took : whole;
	}
	CHECK(tree.processes == (uint32_t)processes && files.looked_us > 0);
	printf("# %d processes of %d descriptors: %llu us, with a look at files %llu us\n",
	       processes, descriptors, (unsigned long long)cheap, (unsigned long long)whole);
	end();
}

static void test_cost(void)
{
	need_children();
	measure(5, 20);
	measure(250, 20);
}

static const struct tap_test tests[] = {
	{ "a tree with an orphan", test_tree },
	{ "children of threads", test_children_of_threads },
	{ "private and shared memory", test_memory },
	{ "shared pages count once when it matters", test_shared_pages },
	{ "a tree beyond the bounds is cut", test_bounds },
	{ "a root that is gone", test_gone },
	{ "scratch: out of bytes", test_scratch_bytes },
	{ "scratch: out of inodes", test_scratch_inodes },
	{ "scratch: no size, no verdict", test_scratch_unsized },
	{ "files in memory that nobody maps", test_memfds },
	{ "files in memory that are mapped count once", test_mapped_memfds },
	{ "a look at mapped files is good for a while", test_mapped_rest },
	{ "mapped files that the caller counts", test_apart },
	{ "a thread's own descriptors", test_own_table },
	{ "when descriptors are gone through", test_when_files },
	{ "what a look costs", test_cost },
};
TAP_MAIN(tests)
