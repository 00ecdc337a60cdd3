/*
 * Notifications with real filters: a program in namespaces of its own makes calls, the
 * monitor's side answers; errnos, facts and what reached the host are compared. Each test runs
 * as the caller and, started by root, also as an ordinary user.
 */
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
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
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

static void host_file(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", workspace, name);
	put_file(path, "x");
	chmod(path, 0666);
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

static void expect_paths(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i >= list.count || !str_is(list.facts[i].detail.path, paths[i])) {
			show();
			printf("# fact %zu is not %s\n", i, paths[i]);
			CHECK(!"facts");
		}
	}
	if (list.count != count)
		show();
	CHECK(list.count == count);
}

/* ---- files ---------------------------------------------------------------------------------- */

static int open_(const char *path, int flags)
{
	return openat(AT_FDCWD, path, flags | O_CLOEXEC, 0666);
}

static void program_quiet(void)
{
	char deep[4000];

	note(open_("/tmp/made", O_WRONLY | O_CREAT));
	note(open_("/rw/made", O_WRONLY | O_CREAT));
	note(open_("/workspace/missing", O_WRONLY));
	note(open_("/workspace/file", O_WRONLY | O_CREAT | O_EXCL));
	note(open_("/workspace/file", O_RDONLY));
	note(open_("/dev/null", O_RDWR));
	note(open_("/dev/stdout", O_WRONLY));
	note(open_("/proc/self/comm", O_WRONLY | O_CREAT | O_TRUNC)); /* a shell's ">" */
	note(open_("/proc/1/task/1/comm", O_RDWR));
	note(mkdir("/workspace", 0777));
	note(mkdir("/tmp/d", 0777));
	note(chdir("/tmp/d"));
	note(open_("../up", O_WRONLY | O_CREAT));
	note(open_("here", O_WRONLY | O_CREAT));
	note(unlink("/workspace/missing"));
	note(rename("/workspace/missing", "/workspace/other"));
	note(chmod("/workspace/missing", 0600));
	note(rename("/tmp/made", "/tmp/renamed"));
	note(open_((const char *)8, O_WRONLY));
	for (size_t i = 0; i < sizeof deep; i++)
		deep[i] = "/a"[i % 2];
	deep[sizeof deep - 1] = 0;
	memcpy(deep, "/tmp", 4);
	note(open_(deep, O_WRONLY | O_CREAT));
}

static void files_quiet(bool as_user)
{
	static const int results[] = { 0,     0,     ENOENT, EEXIST, 0,      0,     0,
				       0,     0,     EEXIST, 0,      0,      0,     0,
				       EROFS, EROFS, ENOENT, 0,      EFAULT, ENOENT };

	start(as_user);
	host_file("file");
	CHECK(run_box(program_quiet) == 0);
	/* /dev/stdout is the test's own: what it is depends on who runs it. */
	shared->results[6] = 0;
	expect_results(results, ARRAY_SIZE(results));
	expect_paths(NULL, 0);
	CHECK(stats.handled >= ARRAY_SIZE(results) - 2);
	finish();
}

static void program_denied(void)
{
	int fd;

	note(open_("/workspace/new", O_WRONLY | O_CREAT));
	note(open_("/workspace/file", O_RDWR));
	note(mkdir("/home/x/y", 0777));
	note(unlink("/workspace/file"));
	note(rename("/tmp", "/workspace/moved"));
	symlink("/workspace/through", "/tmp/dangling");
	note(open_("/tmp/dangling", O_WRONLY | O_CREAT));
	note(chdir("/tmp"));
	note(open_("../workspace/relative", O_WRONLY | O_CREAT));
	fd = open_("/workspace", O_PATH);
	note(openat(fd, "beneath", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	note(chmod("/workspace/file", 0600));
	note(open_("/proc/sys/kernel/core_pattern", O_WRONLY));
	close(fd);
	fd = open_("/workspace/file", O_RDONLY);
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	note(open_(path, O_RDWR));
	note(open_("/proc/self/root/workspace/magic", O_WRONLY | O_CREAT));
	note(open_("/workspace", O_TMPFILE | O_RDWR));
	note(truncate("/etc/hosts", 0));
	symlink("../workspace", "/tmp/ws");
	note(open_("ws/linked", O_WRONLY | O_CREAT));
}

static void files_denied(bool as_user)
{
	static const int results[] = { EROFS, EROFS, EROFS,  EROFS, EBUSY, EROFS, 0,     EROFS,
				       EROFS, EROFS, EACCES, EROFS, EROFS, EROFS, EROFS, EROFS };
	static const char *const paths[] = {
		"/workspace/new",
		"/workspace/file",
		"/home/x/y",
		"/workspace/file",
		"/tmp",
		"/workspace/through",
		"/workspace/relative",
		"/workspace/beneath",
		"/workspace/file",
		"/proc/sys/kernel/core_pattern",
		"/workspace/magic",
		"/workspace",
		"/etc/hosts",
		"/workspace/linked",
	};

	start(as_user);
	host_file("file");
	CHECK(run_box(program_denied) == 0);
	/* mkdir below a missing folder: the kernel says ENOENT, the attempt is one all the same. */
	CHECK(shared->results[2] == ENOENT || shared->results[2] == EROFS);
	shared->results[2] = EROFS;
	CHECK(shared->results[4] == EBUSY || shared->results[4] == EXDEV);
	shared->results[4] = EBUSY;
	expect_results(results, ARRAY_SIZE(results));
	expect_paths(paths, ARRAY_SIZE(paths));
	for (size_t i = 0; i < list.count; i++)
		CHECK(!list.facts[i].is_certain && list.facts[i].event == FACT_FILESYSTEM_WRITE);
	CHECK_STR(list.facts[0].rule, "workspace.mode: ro");
	CHECK_STR(list.facts[0].detail.syscall, "openat");
	CHECK_STR(list.facts[4].detail.to, "/workspace/moved");
	CHECK(list.facts[1].count == 2); /* by /proc/self/fd it is the same file again */
	CHECK(list.facts[0].comm[0] && list.facts[0].pid > 0);
	finish();
}

static void program_reads(void)
{
	note(open_("/root/.ssh/id_rsa", O_RDONLY));
	note(open_("/etc/missing", O_RDONLY));
	note(open_("/workspace/.env", O_RDONLY));
	note(open_("/sys/fs/cgroup", O_RDONLY));
	note(open_("/workspace/file", O_RDONLY));
}

static void reads(bool as_user)
{
	static const char *hide[] = { ".env", NULL };
	static const char *const paths[] = { "/root/.ssh/id_rsa", "/workspace/.env" };

	start(as_user);
	host_file(".env");
	host_file("file");
	plan.workspace.hide = hide;
	profile = "command-reads";
	CHECK(run_box(program_reads) == 0);
	expect_paths(paths, ARRAY_SIZE(paths));
	CHECK(list.facts[0].event == FACT_FILESYSTEM_READ);
	finish();
}

/* ---- denied calls, ends, floods -----------------------------------------------------------------
 */

static void program_ptrace(void)
{
	errno = 0;
	note(syscall(SYS_ptrace, PTRACE_ATTACH, 0x1234, (uint64_t)1 << 40, 7));
	note(syscall(SYS_mknod, "/tmp/fifo", S_IFIFO | 0600, 0));
	note(syscall(SYS_mknod, "/tmp/whiteout", S_IFCHR, 0));
}

static void denied(bool as_user)
{
	static const int results[] = { EPERM, 0, EPERM };

	start(as_user);
	CHECK(run_box(program_ptrace) == 0);
	expect_results(results, 3);
	CHECK(list.count == 2 && list.facts[0].event == FACT_SYSCALL && list.facts[0].is_certain);
	CHECK_STR(list.facts[0].detail.syscall, "ptrace");
	CHECK(list.facts[0].detail.args[0] == PTRACE_ATTACH &&
	      list.facts[0].detail.args[2] == (uint64_t)1 << 40);
	CHECK(strstr(list.facts[0].rule, "reads other processes"));
	finish();
}

static void program_kill(void)
{
	open_("/tmp/__pycache__", O_WRONLY | O_CREAT);
	open_("/workspace/__pycache__", O_WRONLY | O_CREAT);
	note(0);
	open_("/workspace/new", O_WRONLY | O_CREAT);
	note(0);
}

static void kills(bool as_user)
{
	start(as_user);
	plan.on_violation = REACT_KILL;
	CHECK(run_box(program_kill) == -1);
	CHECK(last_state == NOTIFY_END && list.wants_end);
	CHECK(shared->count == 1); /* the call that did it never came back */
	finish();
}

static void program_flood(void)
{
	int64_t begin = (int64_t)clock_now_ms();

	for (int i = 0; i < 3000; i++)
		syscall(SYS_ptrace, 0, 0, 0, 0);
	shared->elapsed_ms = (int64_t)clock_now_ms() - begin;
}

static void floods(bool as_user)
{
	start(as_user);
	CHECK(run_box(program_flood) == 0);
	if (list.count != 1 || list.facts[0].count != 3000)
		show();
	CHECK(list.count == 1 && list.facts[0].count == 3000);
	if (shared->elapsed_ms < 700 || stats.delayed == 0)
		printf("# %lld ms, %llu delays\n", (long long)shared->elapsed_ms,
		       (unsigned long long)stats.delayed);
	CHECK(shared->elapsed_ms >= 700 && stats.delayed > 0);
	finish();
}

/* ---- sockets
 * ------------------------------------------------------------------------------------- */

static int path_socket(const char *path, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret_address->sun_path, sizeof ret_address->sun_path, "%s", path);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int connect_path(const char *path)
{
	struct sockaddr_un address;
	int fd = path_socket(path, &address);

	return connect(fd, (struct sockaddr *)&address, sizeof address);
}

static int listen_path(const char *path, int backlog)
{
	struct sockaddr_un address;
	int fd = path_socket(path, &address);

	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, backlog) < 0)
		return -1;
	return fd;
}

/* A socket of a host process in the workspace. */
static int host_listener(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/host.sock", workspace);
	fd = listen_path(path, 100);
	CHECK(fd >= 0 && chmod(path, 0777) == 0);
	CHECK(fd_set_nonblock(fd, 1) == 0);
	return fd;
}

static void program_sockets(void)
{
	int server = listen_path("/tmp/own.sock", 5);
	struct sockaddr_un address;
	struct nl_address {
		sa_family_t family;
		uint16_t pad;
		uint32_t pid, groups;
	} netlink = { .family = AF_NETLINK };
	int fd;

	note(server);
	note(connect_path("/tmp/own.sock"));
	note(accept(server, NULL, NULL));
	note(connect_path("/workspace/host.sock"));
	symlink("/workspace/host.sock", "/tmp/link");
	note(connect_path("/tmp/link"));
	note(connect_path("/tmp/missing.sock"));
	note(connect_path("/run/nscd/socket"));
	note(connect_path("/proc/self/root/workspace/host.sock"));
	chdir("/tmp");
	note(connect_path("own.sock"));
	note(connect_path("../workspace/host.sock"));
	note(listen_path("/workspace/mine.sock", 1));
	fd = path_socket("", &address);
	address.sun_path[1] = 'n';
	note(bind(fd, (struct sockaddr *)&address, 4) || listen(fd, 1) ? -1 : 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	note(connect(fd, (struct sockaddr *)&address, 4));
	note(connect(99, (struct sockaddr *)&address, 4));
	note(connect(1, (struct sockaddr *)&address, 4));
	note(connect(fd, (struct sockaddr *)8, 4));
	note(connect(fd, (struct sockaddr *)&address, 1));
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	note(connect(fd, (struct sockaddr *)&netlink, sizeof netlink));
	netlink.groups = 1;
	note(connect(fd, (struct sockaddr *)&netlink, sizeof netlink));
}

static void sockets(bool as_user)
{
	static const int results[] = { 0,        0,      0,      EACCES, EACCES, ENOENT, ENOENT,
				       EACCES,   0,      EACCES, EROFS,  0,      0,      EBADF,
				       ENOTSOCK, EFAULT, EINVAL, 0,      EPERM };
	int host;

	start(as_user);
	host = host_listener();
	CHECK(run_box(program_sockets) == 0);
	if (shared->results[14] == ECONNREFUSED || shared->results[14] == EINVAL)
		shared->results[14] = ENOTSOCK; /* the test's own output may be a socket */
	expect_results(results, ARRAY_SIZE(results));
	CHECK(accept(host, NULL, NULL) < 0 && errno == EAGAIN);
	if (list.count != 2)
		show();
	CHECK(list.count == 2 && list.facts[0].count == 4 && list.facts[0].is_certain);
	CHECK(list.facts[0].event == FACT_NETWORK_ACCESS);
	CHECK_STR(list.facts[0].detail.address, "unix:/workspace/host.sock");
	CHECK_STR(list.facts[1].detail.path, "/workspace/mine.sock");
	close(host);
	finish();
}

/* Another thread swaps the address between a permitted socket and the host's. */
static volatile bool is_swapping = true;

static void *swap(void *data)
{
	struct sockaddr_un *address = data;

	while (is_swapping) {
		memcpy(address->sun_path, "/workspace/host.sock", 21);
		memcpy(address->sun_path, "/tmp/own.sock", 14);
	}
	return NULL;
}

static void program_swap(void)
{
	static struct sockaddr_un address = { .sun_family = AF_UNIX };
	int server = listen_path("/tmp/own.sock", 2000);
	pthread_t thread;

	fd_set_nonblock(server, 1);
	snprintf(address.sun_path, sizeof address.sun_path, "/tmp/own.sock");
	pthread_create(&thread, NULL, swap, &address);
	for (int i = 0; i < 1500; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
			shared->count++;
		close(fd);
		close(accept(server, NULL, NULL));
	}
	is_swapping = false;
	pthread_join(thread, NULL);
}

static void swapped(bool as_user)
{
	int host;

	start(as_user);
	host = host_listener();
	CHECK(run_box(program_swap) == 0);
	CHECK(shared->count > 0); /* some got through to the own socket */
	CHECK(accept(host, NULL, NULL) < 0 && errno == EAGAIN);
	close(host);
	finish();
}

static void program_thread_of(void *data)
{
	(void)data;
	note(connect_path("/tmp/own.sock"));
}

static void *from_thread(void *data)
{
	program_thread_of(data);
	return NULL;
}

/* A notification names a thread: its id opens no ordinary pidfd. */
static void program_thread(void)
{
	pthread_t thread;

	note(listen_path("/tmp/own.sock", 5));
	pthread_create(&thread, NULL, from_thread, NULL);
	pthread_join(thread, NULL);
}

static void threads(bool as_user)
{
	static const int results[] = { 0, 0 };

	start(as_user);
	CHECK(run_box(program_thread) == 0);
	expect_results(results, 2);
	finish();
}

/* A full backlog: the third connect waits until the server takes one. */
static void program_backlog(void)
{
	int server = listen_path("/tmp/full.sock", 0), fd, flags;
	struct sockaddr_un address;
	int64_t begin;

	note(connect_path("/tmp/full.sock"));
	fd = path_socket("/tmp/full.sock", &address);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	note(connect(fd, (struct sockaddr *)&address, sizeof address));
	if (fork() == 0) {
		usleep(200 * 1000);
		accept(server, NULL, NULL);
		usleep(500 * 1000);
		_exit(0);
	}
	fd = path_socket("/tmp/full.sock", &address);
	begin = (int64_t)clock_now_ms();
	note(connect(fd, (struct sockaddr *)&address, sizeof address));
	shared->elapsed_ms = (int64_t)clock_now_ms() - begin;
	flags = fcntl(fd, F_GETFL);
	note(flags & O_NONBLOCK ? -1 : 0);
	/* SO_SNDTIMEO is kept: nobody takes this one */
	struct timeval limit = { .tv_usec = 50 * 1000 };
	fd = path_socket("/tmp/full.sock", &address);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	note(connect(fd, (struct sockaddr *)&address, sizeof address));
}

static void backlog(bool as_user)
{
	static const int results[] = { 0, EAGAIN, 0, 0, EAGAIN };

	start(as_user);
	CHECK(run_box(program_backlog) == 0);
	expect_results(results, ARRAY_SIZE(results));
	CHECK(shared->elapsed_ms >= 150);
	if (longest_us >= 100000)
		printf("# %llu us in one notify_handle()\n", (unsigned long long)longest_us);
	CHECK(longest_us < 100000);
	CHECK(list.count == 0);
	finish();
}

static struct sockaddr_in inet_address(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &address.sin_addr);
	return address;
}

static int connect_inet(int type, const char *text, uint16_t port)
{
	struct sockaddr_in address = inet_address(text, port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	return connect(fd, (struct sockaddr *)&address, sizeof address);
}

static void program_none(void)
{
	struct sockaddr_in address = inet_address("198.51.100.7", 99),
			   any = inet_address("0.0.0.0", 0);
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	struct iovec bytes = { "x", 1 };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = &bytes, .msg_iovlen = 1 } } };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int six_fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
	note(connect_inet(SOCK_STREAM, "198.51.100.7", 443));
	note(connect_inet(SOCK_STREAM, "127.0.0.1", 80));
	note(sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof address));
	messages[0].msg_hdr.msg_name = &address;
	messages[0].msg_hdr.msg_namelen = sizeof address;
	messages[1] = messages[0];
	note(sendmsg(fd, &messages[0].msg_hdr, 0));
	note(sendmmsg(fd, messages, 2, 0));
	note(connect(six_fd, (struct sockaddr *)&six, sizeof six));
	note(bind(fd, (struct sockaddr *)&any, sizeof any));
}

static void network_none(bool as_user)
{
	static const int results[] = {
		ENETUNREACH, ENETUNREACH, ENETUNREACH, ENETUNREACH, ENETUNREACH, ENETUNREACH, 0
	};

	start(as_user);
	CHECK(run_box(program_none) == 0);
	expect_results(results, ARRAY_SIZE(results));
	if (list.count != 6)
		show();
	CHECK(list.count == 6);
	CHECK_STR(list.facts[0].detail.address, "198.51.100.7");
	CHECK(list.facts[0].detail.port == 443 && list.facts[0].is_certain);
	CHECK_STR(list.facts[0].rule, "network.mode: none");
	CHECK_STR(list.facts[5].detail.address, "2001:db8::1");
	finish();
}

static int make_server(uint16_t *ret_port)
{
	struct sockaddr_in address = inet_address("127.0.0.1", 0);
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 0) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return -1;
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static void program_loopback(void)
{
	uint16_t port = 0;
	int server = make_server(&port), fd;
	struct sockaddr_in address = inet_address("127.0.0.1", port);

	note(server);
	note(connect_inet(SOCK_STREAM, "127.0.0.1", port));
	note(accept(server, NULL, NULL));
	note(connect_inet(SOCK_STREAM, "127.9.9.9", 1));
	note(connect_inet(SOCK_STREAM, "198.51.100.7", 443));
	note(connect_inet(SOCK_DGRAM, "127.0.0.1", 9));
	/* full backlog: TCP goes on by itself, and the answer comes late */
	note(connect_inet(SOCK_STREAM, "127.0.0.1", port));
	if (fork() == 0) {
		usleep(200 * 1000);
		accept(server, NULL, NULL);
		accept(server, NULL, NULL);
		usleep(300 * 1000);
		_exit(0);
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	note(connect(fd, (struct sockaddr *)&address, sizeof address));
	note(write(fd, "x", 1));
	note(fcntl(fd, F_GETFL) & O_NONBLOCK ? -1 : 0);
}

static void network_loopback(bool as_user)
{
	static const int results[] = { 0, 0, 0, ECONNREFUSED, ENETUNREACH, 0, 0, 0, 0, 0 };

	start(as_user);
	with_loopback = true;
	plan.network = NETWORK_LOOPBACK;
	CHECK(run_box(program_loopback) == 0);
	expect_results(results, ARRAY_SIZE(results));
	if (list.count != 1)
		show();
	CHECK(list.count == 1);
	CHECK_STR(list.facts[0].detail.address, "198.51.100.7");
	CHECK(longest_us < 100000);
	finish();
}

static void program_lookup(void)
{
	static const uint8_t bad[] = { 1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 63, 'x' };
	struct sockaddr_in resolver = inet_address(FACT_RESOLVER, 53);
	struct addrinfo *found, hints = { .ai_socktype = SOCK_STREAM };
	int64_t begin = (int64_t)clock_now_ms();
	int fd;

	note(getaddrinfo("files.example.org", "443", &hints, &found) ? 0 : -1);
	shared->elapsed_ms = (int64_t)clock_now_ms() - begin;
	/* a query that lies about its lengths, sent with an address */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	note(sendto(fd, bad, sizeof bad, 0, (struct sockaddr *)&resolver, sizeof resolver));
	/* connected, but the query never comes */
	note(connect(fd, (struct sockaddr *)&resolver, sizeof resolver));
}

static void lookup(bool as_user)
{
	static const int results[] = { 0, ENETUNREACH, 0 };

	start(as_user);
	CHECK(run_box(program_lookup) == 0);
	expect_results(results, ARRAY_SIZE(results));
	if (list.count != 3)
		show();
	CHECK(list.count == 3 && shared->elapsed_ms < 500);
	CHECK_STR(list.facts[0].detail.host, "files.example.org");
	CHECK_STR(list.facts[0].detail.address, FACT_RESOLVER);
	CHECK(strstr(list.facts[0].say, "--allow files.example.org"));
	CHECK(!list.facts[1].detail.host[0] && !list.facts[2].detail.host[0]);
	finish();
}

static void program_hidden(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	note(open_("/tmp/x", O_WRONLY | O_CREAT));
	note(connect_path("/tmp/own.sock"));
}

/* What cannot be read is not connected, and the record says that it was not observed. */
static void unreadable(bool as_user)
{
	static const int results[] = { 0, EACCES };

	start(as_user);
	if (!is_user) {
		finish();
		SKIP("ordinary user: root may read every process");
	}
	CHECK(run_box(program_hidden) == 0);
	expect_results(results, ARRAY_SIZE(results));
	CHECK(stats.unreadable == 2 && list.count == 2);
	CHECK(list.facts[0].detail.path_unknown && list.facts[0].is_expected);
	CHECK(list.facts[1].event == FACT_NETWORK_ACCESS && list.facts[1].detail.path_unknown);
	finish();
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
BOTH(files_quiet)
BOTH(files_denied)
BOTH(reads)
BOTH(denied)
BOTH(kills)
BOTH(sockets)
BOTH(swapped)
BOTH(threads)
BOTH(backlog)
BOTH(network_none)
BOTH(network_loopback)
BOTH(lookup)

static void floods_plain(void)
{
	floods(false);
}

static void unreadable_user(void)
{
	unreadable(true);
}

#define ROWS(name, what)                             \
	{ what, name##_plain },                      \
	{                                            \
		what " (ordinary user)", name##_user \
	}
static const struct tap_test tests[] = {
	ROWS(files_quiet, "what changes nothing or is permitted is no fact"),
	ROWS(files_denied, "writes outside the plan are facts with resolved paths"),
	ROWS(reads, "watched reads outside the view are facts"),
	ROWS(denied, "a denied call gets the profile's errno and is certain"),
	ROWS(kills, "on_violation: kill ends the run, noise does not"),
	ROWS(sockets, "connect reaches sockets on scratch only"),
	ROWS(swapped, "an address swapped by a thread reaches nothing"),
	ROWS(threads, "connect works from a thread"),
	ROWS(backlog, "a full backlog does not stop the monitor"),
	ROWS(network_none, "network none: every inet address is a fact"),
	ROWS(network_loopback, "network loopback: connects work, foreign ones are facts"),
	ROWS(lookup, "a lookup fails at once and its fact has the name"),
	{ "a flood is answered late", floods_plain },
	{ "what cannot be read is not connected (ordinary user)", unreadable_user },
};

TAP_MAIN(tests)
