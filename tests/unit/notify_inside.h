/*
 * A program in namespaces of its own makes calls behind a real filter, the monitor's side
 * answers; errnos, facts and what reached the host are compared. Each test runs as the caller
 * and, started by root, also as an ordinary user.
 *
 * For one test file each: what it keeps is static.
 */
#pragma once

#include "base/fd.h"
#include "base/str.h"
#include "monitor/notify.h"
#include "os/profile.h"
#include "os/sys.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/clock.h"

enum { RESULTS = 64, USER = 65534, BEHIND = 100000 };

/* Results of the program's calls: 0 or errno, in order. Shared memory. */
struct shared {
	int count;
	int results[RESULTS];
	int64_t elapsed_ms;
};
static struct shared *shared;
static struct plan plan;
static struct violations list;
static struct notify_stats stats;
static enum notify_state last_state;
static uint64_t longest_us; /* of one notify_handle() */
static char workspace[64], writable[64];
static bool with_loopback, is_user;
static const char *profile = "command";

static void note(long result)
{
	shared->results[shared->count++] = result < 0 ? errno : 0;
}

/* ---- the box ------------------------------------------------------------------------------ */

static const int watched[] = {
	SYS_openat, SYS_mkdir,  SYS_unlink,  SYS_rename,   SYS_chmod,  SYS_truncate, SYS_connect,
	SYS_bind,   SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_ptrace, SYS_openat2,  SYS_mknod,
};

static const struct profile_rule *decide(const char *name, const struct seccomp_data *data)
{
	static const struct profile_rule watch = { .verdict = PROFILE_WATCH, .name = "watched" };
	static const struct profile_rule deny = { .verdict = PROFILE_DENY,
						  .error = EPERM,
						  .reason = "reads other processes" };

	(void)name;
	/* As in the profile: a FIFO may be made, a device may not, by one syscall. */
	if (data->nr == SYS_mknod && (data->args[1] & S_IFMT) == S_IFCHR)
		return &deny;
	return data->nr == SYS_ptrace ? &deny : &watch;
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

static void must(long result, const char *what)
{
	if (result >= 0)
		return;
	printf("# box: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(99);
}

static void bind_at(const char *from, const char *at, bool is_ro)
{
	struct mount_attr attr = { .attr_set = is_ro ? MOUNT_ATTR_RDONLY : 0 };
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, from, OPEN_TREE_CLONE | AT_RECURSIVE);

	must(fd, from);
	must(syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr),
	     "mount_setattr");
	must(syscall(SYS_move_mount, fd, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH), at);
	close(fd);
}

static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	must(fd, path);
	must(write(fd, text, strlen(text)), path);
	close(fd);
}

static void build_root(void)
{
	static const char *const folders[] = {
		"proc", "tmp", "workspace", "rw", "dev", "etc", "old"
	};
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	must(mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL), "slave");
	must(mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755"), "root");
	must(chdir("/mnt"), "chdir");
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		must(mkdir(folders[i], 0755), folders[i]);
	put_file("dev/null", "");
	put_file("etc/resolv.conf", "nameserver " FACT_RESOLVER "\noptions timeout:1 attempts:1\n");
	put_file("etc/nsswitch.conf", "hosts: files dns\n");
	put_file("etc/hosts", "127.0.0.1 localhost\n");
	bind_at("/dev/null", "dev/null", false);
	bind_at(workspace, "workspace", true);
	bind_at(writable, "rw", false);
	must(mount("proc", "proc", "proc", 0, NULL), "proc");
	must(mount("tmpfs", "tmp", "tmpfs", 0, "mode=1777"), "scratch");
	must(symlink("/proc/self/fd/1", "dev/stdout"), "dev/stdout");
	must(syscall(SYS_pivot_root, ".", "old"), "pivot_root");
	must(chdir("/"), "chdir");
	must(umount2("/old", MNT_DETACH), "umount");
	must(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof attr), "read-only root");
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(ioctl(fd, SIOCSIFFLAGS, &request), "lo up");
	close(fd);
}

static void inside(int control, void (*program)(void))
{
	char go;
	int listener;

	must(read(control, &go, 1), "go");
	must(setresgid(0, 0, 0), "setresgid");
	must(setresuid(0, 0, 0), "setresuid");
	build_root();
	if (with_loopback)
		loopback_up();
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed check must leave nothing behind */
	listener = load_filter();
	must(listener, "filter");
	must(write(control, &listener, sizeof listener), "listener");
	must(read(control, &go, 1), "go");
	close(listener);
	program();
	_exit(0);
}

static void write_map(pid_t pid, const char *name, const char *text)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	must(fd, path);
	must(write(fd, text, strlen(text)), path);
	close(fd);
}

static void answer_all(int listener, int pidfd, pid_t pid)
{
	struct notify_setup setup = { .plan = &plan,
				      .profile = profile,
				      .violations = &list,
				      .scratch_fd = -1,
				      .decide = decide,
				      .has_own_view = true };
	struct notify *notify;

	CHECK(notify_new(listener, &setup, &notify, NULL) == 0);
	for (last_state = NOTIFY_MORE; last_state == NOTIFY_MORE;) {
		struct pollfd ready[3] = { { .fd = notify_fd(notify), .events = POLLIN },
					   { .fd = pidfd, .events = POLLIN },
					   { .fd = notify_timer_fd(notify), .events = POLLIN } };
		uint64_t before;

		CHECK(poll(ready, 3, 10000) > 0);
		before = clock_now_us();
		last_state = notify_handle(notify);
		if (clock_now_us() - before > longest_us)
			longest_us = clock_now_us() - before;
		notify_stats(notify, &stats);
		if (ready[1].revents)
			break;
	}
	if (last_state == NOTIFY_END)
		kill(pid, SIGKILL);
	notify_free(notify);
}

/* Runs `program` behind the filter until it ends; facts are then in `list`. Its exit status. */
static int run_box(void (*program)(void))
{
	int control[2], pidfd, listener, status;
	char map[32];
	pid_t pid;

	violations_init(&list, &plan, NULL, NULL);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
	pid = sys_clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET, &pidfd, -1);
	if (pid < 0)
		SKIP("user namespaces: %s", strerror(-pid));
	if (pid == 0)
		inside(control[1], program);
	close(control[1]);
	snprintf(map, sizeof map, "0 %u 1", is_user ? geteuid() : BEHIND);
	write_map(pid, "setgroups", "deny");
	write_map(pid, "uid_map", map);
	write_map(pid, "gid_map", map);
	must(write(control[0], "g", 1), "go");
	CHECK(read(control[0], &listener, sizeof listener) == sizeof listener);
	listener = sys_pidfd_getfd(pidfd, listener);
	CHECK(listener >= 0);
	must(write(control[0], "g", 1), "go");
	answer_all(listener, pidfd, pid);
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void start(bool as_user)
{
	alarm(60);
	is_user = as_user || geteuid() != 0;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	snprintf(workspace, sizeof workspace, "/tmp/notify-ws.XXXXXX");
	snprintf(writable, sizeof writable, "/tmp/notify-rw.XXXXXX");
	CHECK(mkdtemp(workspace) && mkdtemp(writable));
	CHECK(chmod(workspace, 0777) == 0 && chmod(writable, 0777) == 0);
	if (as_user && geteuid() == 0) {
		CHECK(chown(workspace, USER, USER) == 0 && chown(writable, USER, USER) == 0);
		CHECK(setgroups(0, NULL) == 0 && setresgid(USER, USER, USER) == 0);
		CHECK(setresuid(USER, USER, USER) == 0);
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	}
	plan = (struct plan){ .scratch_at = "/tmp", .network = NETWORK_NONE };
	plan.workspace.host = workspace;
	plan.workspace.at = "/workspace";
	plan.mounts = calloc(1, sizeof *plan.mounts);
	plan.mounts[0] = (struct plan_mount){ writable, "/rw", ACCESS_RW };
	plan.mount_count = 1;
}

static void finish(void)
{
	char path[128];
	static const char *const files[] = { "file", ".env", "host.sock", "made" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof path, "%s/%s", workspace, files[i]);
		unlink(path);
		snprintf(path, sizeof path, "%s/%s", writable, files[i]);
		unlink(path);
	}
	rmdir(workspace);
	rmdir(writable);
	violations_done(&list);
	free(plan.mounts);
}

static void show(void)
{
	for (int i = 0; i < shared->count; i++)
		printf("#   result %d: %s\n", i, strerror(shared->results[i]));
	for (size_t i = 0; i < list.count; i++) {
		const struct fact *fact = &list.facts[i];

		printf("#   fact %zu: %s %s path=%s to=%s addr=%s:%u host=%s n=%llu [%s]\n", i,
		       fact_event_name(fact->event), fact->detail.syscall, fact->detail.path,
		       fact->detail.to, fact->detail.address, fact->detail.port, fact->detail.host,
		       (unsigned long long)fact->count, fact->rule);
	}
	fflush(stdout);
}

static void expect_results(const int *results, int count)
{
	for (int i = 0; i < count; i++) {
		if (i >= shared->count || shared->results[i] != results[i]) {
			show();
			printf("# result %d is not %s\n", i, strerror(results[i]));
			CHECK(!"results");
		}
	}
	CHECK(shared->count == count);
}

static int open_(const char *path, int flags)
{
	return openat(AT_FDCWD, path, flags | O_CLOEXEC, 0666);
}

#define BOTH(name)                     \
	static void name##_plain(void) \
	{                              \
		name(false);           \
	}                              \
	static void name##_user(void)  \
	{                              \
		name(true);            \
	}

#define ROWS(name, what)                             \
	{ what, name##_plain },                      \
	{                                            \
		what " (ordinary user)", name##_user \
	}
