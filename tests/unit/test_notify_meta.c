/*
 * Calls that change rights, owners, times and attributes where Landlock is the wall: made in the
 * program's place, with its rights, on what was decided about. A program without namespaces makes
 * them behind a real filter.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "monitor/notify.h"
#include "os/profile.h"
#include "os/sys.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

enum { USER = 65534, BEHIND = 123456, GROUP = 4242, THREADS = 400, ORDERS = 100, RESULTS = 64 };

static const int watched[] = {
	SYS_truncate,  SYS_openat,      SYS_fchmod,       SYS_fchmodat,     SYS_fchmodat2,
	SYS_fchown,    SYS_fchownat,    SYS_utimensat,    SYS_setxattr,     SYS_lsetxattr,
	SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr,
#ifdef SYS_chmod
	SYS_chmod,     SYS_chown,       SYS_lchown,       SYS_utime,        SYS_utimes,
	SYS_futimesat,
#endif
};

/* What the program tells: results in order; how many of its threads are done. */
static struct shared {
	int count, results[RESULTS];
	_Atomic int done;
	_Atomic bool may_go;
} * shared;

static char base[64], writable[80], foreign[80];
static const char *const *hidden;
static struct plan plan;
static struct violations list;
static uint64_t longest_us;
static uid_t program_uid, walk_uid;
static bool does_truncate;
static void (*on_turn)(void); /* called with every turn of the monitor's loop */

static const struct profile_rule *watch_all(const char *name, const struct seccomp_data *data)
{
	static const struct profile_rule watch = { .verdict = PROFILE_WATCH, .name = "watched" };

	(void)name, (void)data;
	return &watch;
}

static int load_filter(void)
{
	struct sock_filter code[ARRAY_SIZE(watched) + 3];
	struct sock_fprog program = { .filter = code };
	unsigned short at = 0;

	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		code[at++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)watched[i],
			(unsigned char)(ARRAY_SIZE(watched) - i), 0);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET, SECCOMP_RET_USER_NOTIF);
	program.len = at;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER | (1UL << 5), &program);
}

_Noreturn static void inside(int control, void (*program)(void))
{
	int listener;
	char go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (program_uid &&
	    (setgroups(0, NULL) < 0 || setresgid(program_uid, program_uid, program_uid) < 0 ||
	     setresuid(program_uid, program_uid, program_uid) < 0))
		_exit(98);
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	listener = load_filter();
	if (listener < 0 || chdir(writable) < 0 ||
	    write(control, &listener, sizeof listener) != sizeof listener ||
	    read(control, &go, 1) != 1)
		_exit(99);
	close(listener);
	program();
	_exit(0);
}

static void answer_all(int listener, int pidfd)
{
	struct notify_setup setup = { .plan = &plan,
				      .profile = "landlock",
				      .violations = &list,
				      .hidden = hidden,
				      .as_uid = walk_uid ? walk_uid : program_uid,
				      .scratch_fd = -1,
				      .decide = watch_all,
				      .does_truncate = does_truncate };
	struct notify *notify;
	bool is_over = false;

	CHECK(notify_new(listener, &setup, &notify, NULL) == 0);
	while (!is_over) {
		struct pollfd ready[3] = { { .fd = notify_fd(notify), .events = POLLIN },
					   { .fd = pidfd, .events = POLLIN },
					   { .fd = notify_timer_fd(notify), .events = POLLIN } };
		uint64_t before;

		poll(ready, 3, 20);
		before = clock_now_us();
		CHECK(notify_handle(notify) != NOTIFY_END);
		if (clock_now_us() - before > longest_us)
			longest_us = clock_now_us() - before;
		if (on_turn)
			on_turn();
		is_over = ready[1].revents;
	}
	notify_free(notify);
}

static void run_program(void (*program)(void))
{
	int control[2], pidfd, listener, status;
	pid_t pid;

	violations_init(&list, &plan, NULL, NULL);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
	pid = sys_clone(0, &pidfd, -1);
	CHECK(pid >= 0);
	if (pid == 0)
		inside(control[1], program);
	close(control[1]);
	CHECK(read(control[0], &listener, sizeof listener) == sizeof listener);
	listener = sys_pidfd_getfd(pidfd, listener);
	CHECK(listener >= 0);
	CHECK(write(control[0], "g", 1) == 1);
	answer_all(listener, pidfd);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(control[0]);
	close(pidfd);
}

static void put(const char *folder, const char *name, mode_t mode)
{
	char path[160];
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && fchmod(fd, mode) == 0);
	if (geteuid() == 0 && program_uid)
		CHECK(fchown(fd, program_uid, program_uid) == 0);
	close(fd);
}

static mode_t mode_of(const char *folder, const char *name)
{
	char path[160];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	CHECK(lstat(path, &st) == 0);
	return st.st_mode & 07777;
}

static void start(void)
{
	alarm(60);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	snprintf(base, sizeof base, "/tmp/notify-meta.XXXXXX");
	CHECK(mkdtemp(base));
	snprintf(writable, sizeof writable, "%s/rw", base);
	snprintf(foreign, sizeof foreign, "%s/other", base);
	CHECK(mkdir(writable, 0755) == 0 && mkdir(foreign, 0755) == 0 && chmod(base, 0755) == 0);
	plan = (struct plan){ .network = NETWORK_NONE };
	plan.workspace.host = plan.workspace.at = writable;
	plan.workspace.access = ACCESS_RW;
	put(writable, "own", 0600);
	put(foreign, "key", 0600);
	symlinkat("own", open(writable, O_RDONLY | O_CLOEXEC), "link");
}

static void become_user(void)
{
	if (geteuid() != 0)
		return;
	CHECK(setgroups(0, NULL) == 0 && setresgid(USER, USER, USER) == 0);
	CHECK(setresuid(USER, USER, USER) == 0);
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void finish(void)
{
	char command[128];
	pid_t pid;

	snprintf(command, sizeof command, "%s", base);
	pid = fork();
	if (pid == 0) {
		execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	violations_done(&list);
}

static void note(long result)
{
	shared->results[shared->count++] = result < 0 ? errno : 0;
}

static void expect(const int *results, int count)
{
	for (int i = 0; i < count && i < shared->count; i++)
		if (shared->results[i] != results[i])
			printf("# result %d is %s, not %s\n", i, strerror(shared->results[i]),
			       strerror(results[i]));
	CHECK(shared->count == count);
	CHECK(memcmp(shared->results, results, (size_t)count * sizeof *results) == 0);
}

/* ---- its own files ----------------------------------------------------------------------- */

static struct stat look(const char *name)
{
	struct stat st = { 0 };

	lstat(name, &st);
	return st;
}

#define IS(condition) note((condition) ? 0 : (errno = ERANGE, -1))

static void program_own(void)
{
	const struct timespec times[2] = { { 1, 2 }, { 3, 4 } };
	const struct timespec half[2] = { { 0, UTIME_OMIT }, { 9, 0 } };
	const struct timeval old[2] = { { 11, 12 }, { 13, 14 } };
	const struct utimbuf older = { 21, 22 };
	int fd = open("own", O_RDONLY | O_CLOEXEC), dir = open(".", O_PATH | O_CLOEXEC), pipes[2];

	note(syscall(SYS_chmod, "own", 0610));
	IS((look("own").st_mode & 07777) == 0610);
	note(syscall(SYS_fchmod, fd, 0611));
	IS((look("own").st_mode & 07777) == 0611);
	note(syscall(SYS_fchmodat, dir, "link", 0612));
	IS((look("own").st_mode & 07777) == 0612);
	note(syscall(SYS_fchmodat2, fd, "", 01613, AT_EMPTY_PATH));
	IS((look("own").st_mode & 07777) == 01613);
	note(syscall(SYS_chown, "own", -1, getgid()));
	note(syscall(SYS_lchown, "link", getuid(), -1));
	note(syscall(SYS_fchownat, dir, "own", getuid(), getgid(), 0));
	note(syscall(SYS_utimensat, AT_FDCWD, "link", times, AT_SYMLINK_NOFOLLOW));
	IS(look("link").st_mtim.tv_sec == 3 && look("link").st_mtim.tv_nsec == 4);
	IS(look("own").st_mtim.tv_sec > 1000);
	note(syscall(SYS_utimensat, fd, NULL, half, 0));
	IS(look("own").st_mtim.tv_sec == 9 && look("own").st_atim.tv_sec > 1000);
	note(syscall(SYS_utimes, "own", old));
	IS(look("own").st_mtim.tv_nsec == 14000);
	note(syscall(SYS_futimesat, dir, "own", NULL));
	IS(look("own").st_mtim.tv_sec > 1000);
	note(syscall(SYS_utime, "own", &older));
	IS(look("own").st_atim.tv_sec == 21 && look("own").st_mtim.tv_sec == 22);
	IS(pipe2(pipes, O_CLOEXEC) == 0);
	note(syscall(SYS_fchmod, pipes[1], 0600));
	note(syscall(SYS_fchmodat, AT_FDCWD, "/proc/self/fd/0", 0) < 0 ? 0 : -1);
}

static void own_files(void)
{
	static const int none[RESULTS];

	start();
	if (geteuid() == 0)
		program_uid = BEHIND;
	CHECK(geteuid() != 0 || chown(writable, BEHIND, BEHIND) == 0);
	put(writable, "own", 0600);
	char path[128];
	snprintf(path, sizeof path, "%s/link", writable);
	CHECK(geteuid() != 0 || lchown(path, BEHIND, BEHIND) == 0);
	run_program(program_own);
	expect(none, shared->count);
	CHECK(shared->count == 25);
	finish();
}

static void program_attributes(void)
{
	char big[65537] = "", text[8] = "";
	int fd = open("own", O_RDONLY | O_CLOEXEC);

	note(syscall(SYS_setxattr, "link", "user.a", "value", 5, 0));
	IS(getxattr("own", "user.a", text, sizeof text) == 5 && str_is(text, "value"));
	note(syscall(SYS_fsetxattr, fd, "user.a", "x", 1, XATTR_CREATE));
	note(syscall(SYS_lsetxattr, "own", "user.b", NULL, 0, 0));
	note(syscall(SYS_removexattr, "own", "user.a"));
	note(syscall(SYS_fremovexattr, fd, "user.b"));
	note(syscall(SYS_lremovexattr, "own", "user.b"));
	note(syscall(SYS_setxattr, "own", "user.a", big, sizeof big, 0));
	note(syscall(SYS_setxattr, "own", "", big, 1, 0));
	memset(big, 'a', 300);
	note(syscall(SYS_setxattr, "own", big, big, 1, 0));
	note(syscall(SYS_setxattr, "own", "user.a", 8, 1, 0));
	note(syscall(SYS_setxattr, "own", "trusted.a", "x", 1, 0));
}

static void attributes(void)
{
	static const int results[] = { 0,       0,     EEXIST, 0,      0,      0,
				       ENODATA, E2BIG, ERANGE, ERANGE, EFAULT, EPERM };

	start();
	if (geteuid() == 0)
		program_uid = BEHIND;
	put(writable, "own", 0600);
	char path[128];
	snprintf(path, sizeof path, "%s/own", writable);
	if (setxattr(path, "user.t", "", 0, 0) < 0)
		SKIP("extended attributes: none on /tmp: %s", strerror(errno));
	run_program(program_attributes);
	expect(results, ARRAY_SIZE(results));
	finish();
}

/* ---- errors as the kernel has them ------------------------------------------------------- */

static void program_errors(void)
{
	const struct timeval bad[2] = { { 1, 1000000 }, { 1, 0 } };
	char path[5000];

	memset(path, 'a', sizeof path - 1);
	path[sizeof path - 1] = 0;
	note(syscall(SYS_chmod, "missing", 0600));
	note(syscall(SYS_chmod, "own/below", 0600));
	note(syscall(SYS_chmod, "", 0600));
	note(syscall(SYS_chmod, NULL, 0600));
	note(syscall(SYS_chmod, path, 0600));
	note(syscall(SYS_chmod, "loop", 0600));
	note(syscall(SYS_fchmod, -1, 0600));
	note(syscall(SYS_fchmod, open("own", O_PATH | O_CLOEXEC), 0600));
	note(syscall(SYS_fchmodat, 999, "own", 0600));
	note(syscall(SYS_fchmodat2, AT_FDCWD, "own", 0600, 0x40000));
	note(syscall(SYS_fchmodat2, 999, "", 0600, AT_EMPTY_PATH));
	note(syscall(SYS_utimensat, AT_FDCWD, NULL, NULL, 0));
	note(syscall(SYS_utimensat, 0, NULL, NULL, AT_SYMLINK_NOFOLLOW));
	note(syscall(SYS_utimes, "own", bad));
	note(syscall(SYS_utimes, "own", 8));
	note(syscall(SYS_chown, "own", 1, 1));
	note(syscall(SYS_chmod, "own", 04755));
	note(syscall(SYS_chmod, "/proc/self/cwd/own", 0600));
}

static void errors(void)
{
	static const int results[] = { ENOENT, ENOTDIR, ENOENT, EFAULT, ENAMETOOLONG, ELOOP,
				       EBADF,  EBADF,   EBADF,  EINVAL, EBADF,        EFAULT,
				       EINVAL, EINVAL,  EFAULT, EPERM,  EPERM,        ELOOP };
	char path[128];

	start();
	snprintf(path, sizeof path, "%s/loop", writable);
	CHECK(symlink("loop", path) == 0);
	if (geteuid() == 0)
		program_uid = BEHIND;
	put(writable, "own", 0600);
	run_program(program_errors);
	expect(results, ARRAY_SIZE(results));
	CHECK(list.count == 0);
	finish();
}

/* ---- others' files ----------------------------------------------------------------------- */

static void program_foreign(void)
{
	char link[40];
	int fd = open("../other/key", O_PATH | O_CLOEXEC),
	    dir = open("../other", O_PATH | O_CLOEXEC);

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	note(syscall(SYS_chmod, "../other/key", 0666));
	note(syscall(SYS_chmod, "way/key", 0666));
	note(syscall(SYS_chmod, link, 0666));
	note(syscall(SYS_fchmodat, dir, "key", 0666));
	note(syscall(SYS_fchmodat2, fd, "", 0666, AT_EMPTY_PATH));
	note(syscall(SYS_utimensat, fd, "", NULL, AT_EMPTY_PATH));
	note(syscall(SYS_setxattr, "way/key", "user.a", "x", 1, 0));
	note(syscall(SYS_chmod, "covered/key", 0666));
	note(syscall(SYS_chmod, "covered", 0666));
	note(syscall(SYS_chmod, "/dev/null", 0666));
}

static void others(bool as_user)
{
	static const char *names[] = { "covered", NULL };
	static const int results[] = { EROFS, EROFS, EROFS, EROFS, EROFS,
				       EROFS, EROFS, EROFS, EROFS, EPERM };
	char path[128], text[160];

	if (as_user)
		become_user();
	start();
	snprintf(path, sizeof path, "%s/way", writable);
	CHECK(symlink(foreign, path) == 0);
	snprintf(path, sizeof path, "%s/covered", writable);
	CHECK(mkdir(path, 0755) == 0);
	put(path, "key", 0600);
	hidden = plan.workspace.hide = names;
	run_program(program_foreign);
	expect(results, ARRAY_SIZE(results));
	CHECK(mode_of(foreign, "key") == 0600 && mode_of(path, "key") == 0600);
	CHECK(list.count >= 4 && list.facts[0].event == FACT_FILESYSTEM_WRITE);
	CHECK(list.facts[0].is_certain);
	snprintf(text, sizeof text, "%s/key", foreign);
	CHECK_STR(list.facts[0].detail.path, text);
	CHECK_STR(list.facts[list.count - 1].rule, "workspace.hide");
	finish();
}

static void others_plain(void)
{
	others(false);
}

static void others_user(void)
{
	others(true);
}

/* Started by root, the program is somebody else: root's rights are not lent to it. */
static void program_of_root(void)
{
	note(syscall(SYS_chmod, "roots", 0666));
	note(syscall(SYS_utimensat, AT_FDCWD, "roots", NULL, 0));
	note(syscall(SYS_chmod, "closed/key", 0666));
	note(syscall(SYS_chmod, "grouped/key", 0666));
	note(syscall(SYS_chmod, "own", 0640));
	note(syscall(SYS_chown, "own", 0, 0));
	note(syscall(SYS_chown, "own", -1, 1));
}

static void not_roots_rights(void)
{
	static const int results[] = { EPERM, EACCES, EACCES, EACCES, 0, EPERM, EPERM };
	const gid_t own_group = GROUP;
	gid_t groups[2] = { 0 };
	char path[128];

	if (geteuid() != 0)
		SKIP("root: %s", "started by an ordinary user");
	start();
	put(writable, "roots", 0600);
	snprintf(path, sizeof path, "%s/closed", writable);
	CHECK(mkdir(path, 0700) == 0);
	put(path, "key", 0600);
	program_uid = BEHIND;
	snprintf(path, sizeof path, "%s/grouped", writable);
	CHECK(mkdir(path, 0710) == 0 && chown(path, 0, GROUP) == 0);
	put(path, "key", 0600);
	put(writable, "own", 0600);
	CHECK(setgroups(1, &own_group) == 0);
	run_program(program_of_root);
	expect(results, ARRAY_SIZE(results));
	/* And the monitor has its own back. */
	CHECK(getgroups(2, groups) == 1 && groups[0] == GROUP);
	CHECK(mode_of(writable, "roots") == 0600 && mode_of(writable, "own") == 0640);
	finish();
}

static void program_hiding(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	note(syscall(SYS_chmod, "own", 0666));
	note(syscall(SYS_fchmod, open("own", O_RDONLY | O_CLOEXEC), 0666));
}

static void unread(void)
{
	static const int results[] = { EACCES, EACCES };

	become_user();
	start();
	run_program(program_hiding);
	expect(results, ARRAY_SIZE(results));
	CHECK(mode_of(writable, "own") == 0600);
	CHECK(list.count >= 1 && list.facts[0].detail.path_unknown);
	finish();
}

/* ---- sizes, where Landlock does not know them -------------------------------------------- */

static void program_sizes(void)
{
	note(syscall(SYS_truncate, "own", 5L));
	IS(look("own").st_size == 5);
	note(syscall(SYS_truncate, "own", -1L));
	note(syscall(SYS_truncate, "../other/key", 0L));
	note(syscall(SYS_truncate, "way/key", 0L));
	note(syscall(SYS_openat, AT_FDCWD, "way/key", O_RDONLY | O_TRUNC | O_CLOEXEC));
	note(syscall(SYS_openat, AT_FDCWD, "way/key", O_ACCMODE | O_TRUNC | O_CLOEXEC));
	note(syscall(SYS_openat, AT_FDCWD, "own", O_WRONLY | O_TRUNC | O_CLOEXEC));
	IS(look("own").st_size == 0);
	note(syscall(SYS_openat, AT_FDCWD, "way/key", O_RDONLY | O_CLOEXEC));
}

static void sizes(void)
{
	static const int results[] = { 0, 0, EINVAL, EROFS, EROFS, EPERM, EPERM, 0, 0, 0 };
	char path[160];
	struct stat st;

	become_user();
	start();
	does_truncate = true;
	snprintf(path, sizeof path, "%s/way", writable);
	CHECK(symlink(foreign, path) == 0);
	snprintf(path, sizeof path, "%s/key", foreign);
	CHECK(truncate(path, 7) == 0);
	run_program(program_sizes);
	expect(results, ARRAY_SIZE(results));
	CHECK(stat(path, &st) == 0 && st.st_size == 7);
	finish();
}

/* ---- the hand -------------------------------------------------------------------------------- */

static pid_t hand(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (proc && (entry = readdir(proc))) {
		char path[300], text[512] = "";
		int fd, own = 0, parent = 0;

		snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (read(fd, text, sizeof text - 1) > 0 && strstr(text, "(caisson-hand)") &&
		    sscanf(text, "%d", &own) == 1 &&
		    sscanf(strrchr(text, ')'), ") %*c %d", &parent) == 1 && parent == getpid())
			found = own;
		close(fd);
	}
	if (proc)
		closedir(proc);
	return found;
}

static void *change_once(void *unused)
{
	long r = syscall(SYS_chmod, "own", 0644);

	if (r == 0)
		shared->done++;
	return unused;
}

/* The first call starts the hand; then many wait for one that is stopped. */
static void program_stalled(void)
{
	static pthread_t threads[THREADS];

	note(syscall(SYS_chmod, "own", 0600));
	while (!shared->may_go)
		usleep(1000);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, change_once, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void stop_a_while(void)
{
	static uint64_t stopped_us;
	pid_t pid = shared->count ? hand() : 0;

	if (pid && !shared->may_go) {
		kill(pid, SIGSTOP);
		stopped_us = clock_now_us();
		longest_us = 0;
		shared->may_go = true;
	} else if (pid && stopped_us && clock_now_us() - stopped_us > 700000) {
		CHECK(shared->done == 0);
		kill(pid, SIGCONT);
		stopped_us = 0;
	}
}

static void stalled(void)
{
	become_user();
	start();
	on_turn = stop_a_while;
	run_program(program_stalled);
	if (shared->done != THREADS || longest_us > 500000)
		printf("# %d done, a turn of %llu us\n", (int)shared->done,
		       (unsigned long long)longest_us);
	CHECK(shared->done == THREADS);
	CHECK(longest_us < 500000);
	finish();
}

static void program_killed(void)
{
	note(syscall(SYS_chmod, "own", 0600));
	while (!shared->may_go)
		usleep(1000);
	note(syscall(SYS_chmod, "own", 0644));
	note(syscall(SYS_chmod, "own", 0644));
}

static void kill_once(void)
{
	pid_t pid = shared->count == 1 && !shared->may_go ? hand() : 0;

	if (!pid)
		return;
	kill(pid, SIGKILL);
	usleep(50000);
	shared->may_go = true;
}

static void killed(void)
{
	static const int results[] = { 0, 0, 0 };

	become_user();
	start();
	on_turn = kill_once;
	run_program(program_killed);
	expect(results, ARRAY_SIZE(results));
	CHECK(mode_of(writable, "own") == 0644);
	CHECK(!hand() || waitpid(-1, NULL, 0) > 0);
	finish();
}

static void *fail_once(void *unused)
{
	if (syscall(SYS_chmod, "own", 0644) < 0 && errno == EIO)
		shared->done++;
	return unused;
}

/* All of them are given to a hand that is stopped, more than its socket holds. */
static void program_lost(void)
{
	static pthread_t threads[THREADS];

	note(syscall(SYS_chmod, "own", 0600));
	while (!shared->may_go)
		usleep(1000);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, fail_once, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	note(syscall(SYS_chmod, "own", 0640));
}

static void stop_then_kill(void)
{
	static uint64_t stopped_us;
	static pid_t pid;

	if (!shared->may_go && shared->count == 1 && (pid = hand())) {
		kill(pid, SIGSTOP);
		stopped_us = clock_now_us();
		shared->may_go = true;
	} else if (pid && clock_now_us() - stopped_us > 300000) {
		CHECK(shared->done == 0);
		kill(pid, SIGKILL);
		pid = 0;
	}
}

static void lost(void)
{
	static const int results[] = { 0, 0 };
	uint64_t told = 0;

	become_user();
	start();
	on_turn = stop_then_kill;
	run_program(program_lost);
	expect(results, ARRAY_SIZE(results));
	/* What had not been handed over yet goes to the next one. */
	CHECK(shared->done > ORDERS && mode_of(writable, "own") == 0640);
	for (size_t i = 0; i < list.count; i++)
		told += list.facts[i].count;
	CHECK(list.count == 1 && told == (uint64_t)shared->done);
	CHECK_STR(list.facts[0].detail.text, "caisson-hand was ended by signal 9");
	CHECK(list.facts[0].is_expected);
	finish();
}

static void program_useless(void)
{
	note(syscall(SYS_fchmod, open("own", O_RDONLY | O_CLOEXEC), 0644));
	note(syscall(SYS_fchmod, open("own", O_RDONLY | O_CLOEXEC), 0644));
	note(syscall(SYS_chmod, "own", 0644));
}

/* Ids that nobody but root may take: neither the hand nor the walk does with others. */
static void useless(void)
{
	static const int results[] = { EIO, EIO, EACCES };

	become_user();
	start();
	walk_uid = BEHIND;
	run_program(program_useless);
	expect(results, ARRAY_SIZE(results));
	CHECK(mode_of(writable, "own") == 0600);
	CHECK(list.count == 1 && list.facts[0].count == 2);
	CHECK_STR(list.facts[0].detail.text, "caisson-hand could not be set up");
	finish();
}

static const struct tap_test tests[] = {
	{ "its own files change as it asked", own_files },
	{ "extended attributes too, within the kernel's bounds", attributes },
	{ "errors are the kernel's", errors },
	{ "what lies elsewhere or is hidden stays as it was", others_plain },
	{ "what lies elsewhere or is hidden stays as it was (ordinary user)", others_user },
	{ "root's rights are not lent", not_roots_rights },
	{ "files are not emptied where Landlock does not know it", sizes },
	{ "a program that cannot be read changes nothing", unread },
	{ "a hand that waits stops nobody else", stalled },
	{ "a hand that was killed is replaced", killed },
	{ "what a hand leaves undone fails", lost },
	{ "a hand that cannot be set up fails the calls", useless },
};

TAP_MAIN(tests)
