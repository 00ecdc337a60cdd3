/* Memory where no process has it mapped and no descriptor in reach shows it. */
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "sample_tree.h"

/* Nobody may look at one of them: what the machine has more of is theirs, at the second look. */
static void test_blind(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;

	need_children();
	if (geteuid() == 0 && setresuid(54321, 54321, 54321) < 0)
		SKIP("setresuid: %s", strerror(errno));
	begin();
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0 && files.blind_looks == 0);
	if (fork() == 0) {
		file_of(48 * MIB);
		fill(9 * MIB, MAP_SHARED); /* is in the cheap count of a process all the same */
		prctl(PR_SET_DUMPABLE, 0);
		sleep_well();
	}
	await(1);
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	CHECK(files.blind_looks == 1 && !files.was_blind && tree.mem_bytes < 30 * MIB);
	files.rest_us = 0;
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	CHECK(files.blind_looks == 2 && files.was_blind && files.bytes == 0);
	CHECK(files.hidden_bytes >= 35 * MIB && tree.mem_bytes >= 45 * MIB);
	end();
}

/* What was seen before a process hid it stays. */
static void test_blink(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;
	int turn[2];
	char byte;

	need_children();
	if (geteuid() == 0 && setresuid(54321, 54321, 54321) < 0)
		SKIP("setresuid: %s", strerror(errno));
	begin();
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0 && pipe2(turn, O_CLOEXEC) == 0);
	if (fork() == 0) {
		file_of(16 * MIB);
		tell();
		CHECK(read(turn[0], &byte, 1) == 1);
		prctl(PR_SET_DUMPABLE, 0);
		sleep_well();
	}
	await(1);
	CHECK(sample_tree(getpid(), 0, &files, &tree) == 0);
	CHECK(tree.file_bytes == 16 * MIB && files.blind_looks == 0);
	CHECK(write(turn[1], "x", 1) == 1);
	await(1);
	CHECK(sample_tree(getpid(), 0, &files, &tree) == 0);
	CHECK(tree.file_bytes == 16 * MIB && files.blind_looks == 1);
	end();
}

/* A process that may not be looked at is not in a /proc mounted so, but among the children. */
static void test_hidepid(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;

	need_children();
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, "hidepid=invisible") < 0)
		SKIP("mounting: needs root");
	CHECK(setgroups(0, NULL) == 0 &&
	      setresgid(54321, 54321, 54321) == 0); /* else it may look */
	CHECK(setresuid(54321, 54321, 54321) == 0);
	begin();
	if (fork() == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		sleep_well();
	}
	await(1);
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
	CHECK(sample_tree(getpid(), 0, &files, &tree) == 0 && files.blind_looks == 1);
	end();
}

/* In namespaces of its own, as behind the process wall, with the caller their owner. */
static pid_t inside(void (*hold)(void))
{
	pid_t pid;

	need_children();
	if (geteuid() == 0 && setresuid(54321, 54321, 54321) < 0)
		SKIP("setresuid: %s", strerror(errno));
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
	begin();
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWIPC) < 0) {
			printf("# namespaces: %s\n", strerror(errno));
			fflush(stdout);
			tell();
			_exit(0);
		}
		hold();
		sleep_well();
	}
	await(1);
	return pid;
}

/* As a program that was executed in there: only such a one is its owner's to look at. */
static void hold_closed(void)
{
	char out[12];

	snprintf(out, sizeof out, "%d", ready[1]);
	if (fork() == 0) {
		fcntl(ready[1], F_SETFD, 0);
		execl("/proc/self/exe", "test_sample_hidden", out, NULL);
		_exit(1);
	}
}

static int executed(const char *out)
{
	ready[1] = (int)strtol(out, NULL, 10);
	file_of(48 * MIB);
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sleep_well();
	return 1;
}

/* Its /proc folder is root's, and yet its files are found: nothing is hidden. */
static void test_undumpable(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;
	pid_t pid = inside(hold_closed);

	await(1);
	CHECK(sample_tree(pid, 30 * MIB, &files, &tree) == 0);
	CHECK(tree.file_bytes == 48 * MIB && files.blind_looks == 0 && files.hidden_bytes == 0);
	CHECK(tree.mem_bytes >= 48 * MIB && tree.mem_bytes < 60 * MIB);
	end();
}

/* One that does not let us look makes nobody blind for the others. */
static void test_blind_beside(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;

	inside(hold_closed);
	await(1);
	if (fork() == 0) { /* looked at before the one that was executed */
		prctl(PR_SET_DUMPABLE, 0);
		sleep_well();
	}
	await(1);
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	CHECK(files.blind_looks == 1 && tree.file_bytes == 48 * MIB);
	end();
}

static void *segment_of(size_t size)
{
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
	char *at = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	CHECK(at != (void *)-1);
	memset(at, 1, size);
	return at;
}

static void hold_detached(void)
{
	CHECK(shmdt(segment_of(48 * MIB)) == 0);
	if (fork() == 0)
		sleep_well();
}

/* A busy machine may not answer in time. */
static struct sample_files look_at_segments(pid_t pid, uint64_t limit, struct sample_tree *ret_tree)
{
	struct sample_files files;

	for (int i = 0; i < 50; i++) {
		files = (struct sample_files){ .has_ipc = true };
		CHECK(sample_tree(pid, limit, &files, ret_tree) == 0);
		if (files.sysv_bytes || files.is_sysv_refused)
			break;
	}
	return files;
}

static void test_detached(void)
{
	struct sample_files files, none = { 0 };
	struct sample_tree tree;
	pid_t pid = inside(hold_detached);

	await(1);
	files = look_at_segments(pid, 30 * MIB, &tree);
	CHECK(!files.is_sysv_refused);
	CHECK(tree.file_bytes == 48 * MIB && files.sysv_bytes == 48 * MIB);
	CHECK(tree.mem_bytes >= 48 * MIB && tree.mem_bytes < 60 * MIB);
	CHECK(sample_tree(pid, 30 * MIB, &none, &tree) == 0 && tree.mem_bytes < 30 * MIB);
	files = look_at_segments(getpid(), 30 * MIB, &tree);
	CHECK(files.is_sysv_refused && files.blind_looks == 0); /* the namespace is ours */
	end();
}

/* Two have it mapped, one of them less of it than there is. */
static void hold_attached(void)
{
	if (fork() == 0) {
		char *p = segment_of(60 * MIB);

		if (fork() > 0)
			CHECK(madvise(p, 20 * MIB, MADV_DONTNEED) == 0);
		else
			for (size_t at = 20 * MIB; at < 60 * MIB; at += 4096)
				CHECK(p[at] == 1);
		sleep_well();
	}
}

static void test_attached(void)
{
	struct sample_files files;
	struct sample_tree tree;
	pid_t pid = inside(hold_attached);

	await(2);
	files = look_at_segments(pid, 80 * MIB, &tree);
	CHECK(files.sysv_bytes == 60 * MIB && files.hidden_bytes == 0 && tree.is_exact);
	CHECK(tree.mem_bytes >= 60 * MIB && tree.mem_bytes < 70 * MIB);
	end();
}

/* Its id is its inode number, and may be chosen to be that of a file that was found. */
static void hold_namesake(void)
{
	char text[24];
	struct stat st;
	int fd = file_of(MIB), next;

	setresuid(0, 0, 0); /* no map: it keeps the capabilities that unshare gave */
	CHECK(fstat(fd, &st) == 0);
	next = open("/proc/sys/kernel/shm_next_id", O_WRONLY | O_CLOEXEC);
	snprintf(text, sizeof text, "%llu", (unsigned long long)st.st_ino);
	if (next < 0 || write(next, text, strlen(text)) < 0)
		SKIP("shm_next_id: %s", strerror(errno));
	fcntl(fd, F_SETFD, 0);
	segment_of(48 * MIB);
}

static void test_namesake(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;

	need_children();
	begin();
	if (fork() == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWIPC) < 0)
			SKIP("namespaces: %s", strerror(errno));
		hold_namesake();
		sleep_well();
	}
	await(1);
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	CHECK(tree.mem_bytes >= 48 * MIB && tree.mem_bytes < 60 * MIB);
	end();
}

static void send_descriptor(int to, int fd)
{
	char room[CMSG_SPACE(sizeof fd)] = { 0 }, byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = room,
				  .msg_controllen = sizeof room };
	struct cmsghdr *part = CMSG_FIRSTHDR(&message);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(part), &fd, sizeof fd);
	CHECK(sendmsg(to, &message, 0) == 1);
}

/* A file that is mapped is known once: what is hidden beside it is not taken for that. */
static void test_hidden_beside(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;
	int pair[2], fd;

	need_children();
	begin();
	CHECK(sample_tree(getpid(), 50 * MIB, &files, &tree) == 0);
	if (fork() == 0) {
		fd = file_of(40 * MIB);
		CHECK(mmap(NULL, 40 * MIB, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0) !=
		      MAP_FAILED);
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		fd = file_of(32 * MIB);
		send_descriptor(pair[0], fd);
		close(fd);
		sleep_well();
	}
	await(1);
	files.queued_us = 1;
	CHECK(sample_tree(getpid(), 50 * MIB, &files, &tree) == 0);
	CHECK(files.hidden_bytes >= 30 * MIB && tree.mem_bytes >= 70 * MIB);
	end();
}

/* The only descriptor of a file waits in a socket: ours after a second, not at once. */
static void test_queued(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;
	int pair[2], fd;

	need_children();
	begin();
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	if (fork() == 0) {
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		fd = file_of(48 * MIB);
		send_descriptor(pair[0], fd);
		close(fd);
		sleep_well();
	}
	await(1);
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	CHECK(tree.mem_bytes < 30 * MIB && files.queued_us > 0);
	files.queued_us -= 1000000;
	files.looked_us = 0;
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	CHECK(tree.mem_bytes >= 40 * MIB && files.hidden_bytes > 0);
	end();
}

/* Shared memory that its only process gave back; the kernel keeps it. */
static void test_given_back(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;

	need_children();
	begin();
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	if (fork() == 0) {
		char *p = fill(48 * MIB, MAP_SHARED);

		CHECK(madvise(p, 44 * MIB, MADV_DONTNEED) == 0);
		if (fork() == 0)
			sleep_well();
		sleep_well();
	}
	await(2);
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	CHECK(files.hidden_bytes >= 38 * MIB && files.hidden_bytes <= 44 * MIB);
	CHECK(tree.mem_bytes >= 42 * MIB && tree.mem_bytes < 60 * MIB);
	end();
}

/* Files of other programs are not the tree's, which has nowhere to hide them. */
static void test_others(void)
{
	struct sample_files files = { 0 };
	struct sample_tree tree;

	need_children();
	begin();
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	file_of(48 * MIB);
	if (fork() == 0) {
		for (int fd = 3; fd < 100; fd++)
			close(fd == ready[1] ? -1 : fd);
		sleep_well();
	}
	await(1);
	CHECK(sample_tree(getpid(), 30 * MIB, &files, &tree) == 0);
	CHECK(files.looked_us > 0 && files.hidden_bytes == 0 && tree.mem_bytes < 30 * MIB);
	end();
}

static const struct tap_test tests[] = {
	{ "a process that may not be looked at", test_blind },
	{ "a process that hides after a look", test_blink },
	{ "a process that /proc does not list", test_hidepid },
	{ "a process beneath us that is not dumpable", test_undumpable },
	{ "the same beside one that may not be looked at", test_blind_beside },
	{ "hidden beside a mapped file", test_hidden_beside },
	{ "descriptors that wait in a socket", test_queued },
	{ "shared memory that was given back", test_given_back },
	{ "files of other programs", test_others },
	/* last: a namespace's segments are freed a while after its end */
	{ "segments that nobody has attached", test_detached },
	{ "segments that are attached count once", test_attached },
	{ "a segment with a file's number", test_namesake },
};

int main(int argc, char **argv)
{
	if (argc > 1)
		return executed(argv[1]);
	return tap_main(tests, sizeof tests / sizeof *tests);
}
