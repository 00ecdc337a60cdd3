/*
 * smallest - the least that a sandbox of this kind can do, as a floor for the benchmark
 *
 *	smallest WORKSPACE COMMAND [ARG...]
 *
 * Seven namespaces, a root of its own by the new mount API (/usr read-only, /etc, /proc, five
 * devices, scratch, the workspace read-only), no capabilities, no new privileges, a deny-list of
 * some fifty system calls, exec. No policy, no agent, no limits, no record, no report: what a
 * launcher adds to this is what it costs. Not a sandbox to use.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof *(a))

/* Of <sys/mount.h>, which cannot be included beside <linux/mount.h> everywhere. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
	  const void *data);
int umount2(const char *target, int flags);

enum { RDONLY_TREE = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, DETACH = 2 };

static const int denied[] = {
	SYS_acct,
	SYS_add_key,
	SYS_adjtimex,
	SYS_bpf,
	SYS_chroot,
	SYS_clock_settime,
	SYS_delete_module,
	SYS_finit_module,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fsopen,
	SYS_fspick,
	SYS_init_module,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_io_uring_setup,
	SYS_kexec_load,
	SYS_keyctl,
	SYS_mount,
	SYS_mount_setattr,
	SYS_move_mount,
	SYS_move_pages,
	SYS_name_to_handle_at,
	SYS_open_by_handle_at,
	SYS_open_tree,
	SYS_perf_event_open,
	SYS_personality,
	SYS_pidfd_getfd,
	SYS_pivot_root,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_ptrace,
	SYS_quotactl,
	SYS_reboot,
	SYS_request_key,
	SYS_setdomainname,
	SYS_sethostname,
	SYS_setns,
	SYS_settimeofday,
	SYS_swapoff,
	SYS_swapon,
	SYS_syslog,
	SYS_umount2,
	SYS_unshare,
	SYS_userfaultfd,
	SYS_vhangup,
	SYS_kcmp,
	SYS_mbind,
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "smallest: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void map_ids(pid_t pid, unsigned uid, unsigned gid)
{
	char path[64], map[64];

	snprintf(path, sizeof path, "/proc/%d/setgroups", pid);
	write_file(path, "deny");
	snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
	snprintf(map, sizeof map, "1000 %u 1", uid);
	write_file(path, map);
	snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
	snprintf(map, sizeof map, "1000 %u 1", gid);
	write_file(path, map);
}

static void attach(int fd, const char *at)
{
	if (syscall(SYS_move_mount, fd, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		die(at);
	close(fd);
}

static void bind_tree(const char *from, const char *at, unsigned attributes)
{
	struct mount_attr attr = { .attr_set = attributes };
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, from,
			      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd < 0 || syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
			      sizeof attr) < 0)
		die(from);
	attach(fd, at);
}

static void new_mount(const char *type, const char *at, const char *size)
{
	int context = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC), fd;

	if (context < 0 ||
	    (size && syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "size", size, 0) < 0) ||
	    syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		die(type);
	fd = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
			  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		die(type);
	close(context);
	attach(fd, at);
}

static void add_devices(void)
{
	static const char *const names[] = { "null", "zero", "full", "random", "urandom" };
	char from[32], at[32];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(from, sizeof from, "/dev/%s", names[i]);
		snprintf(at, sizeof at, "dev/%s", names[i]);
		close(open(at, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
		bind_tree(from, at, MOUNT_ATTR_NOSUID);
	}
}

/* The workspace may lie beneath /tmp: it is taken before a tmpfs hides it. */
static void build_root(const char *workspace)
{
	static const char *const folders[] = { "usr", "etc", "proc", "tmp", "dev", "workspace" };
	static const char *const links[] = { "bin", "sbin", "lib", "lib64" };
	struct mount_attr attr = { .attr_set = RDONLY_TREE };
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, workspace,
			      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	char to[16];

	if (fd < 0 || syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
			      sizeof attr) < 0)
		die(workspace);
	new_mount("tmpfs", "/tmp", "4m");
	if (chdir("/tmp") < 0)
		die("/tmp");
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		mkdir(folders[i], 0755);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		snprintf(to, sizeof to, "usr/%s", links[i]);
		if (symlink(to, links[i]) < 0)
			die(to);
	}
	bind_tree("/usr", "usr", RDONLY_TREE);
	bind_tree("/etc", "etc", RDONLY_TREE);
	attach(fd, "workspace");
	add_devices();
	new_mount("proc", "proc", NULL);
	new_mount("tmpfs", "tmp", "512m");
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", DETACH) < 0)
		die("pivot_root");
	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof attr) < 0 ||
	    chdir("/workspace") < 0)
		die("/");
}

static void drop_privilege(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	for (int cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("privileges");
}

static void load_filter(void)
{
	enum { COUNT = ARRAY_SIZE(denied), HEAD = 3, SIZE = HEAD + COUNT + 2 };
	struct sock_filter code[SIZE] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
#ifdef __x86_64__
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, COUNT + 2),
#else
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_AARCH64, 0, COUNT + 2),
#endif
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { SIZE, code };

	for (unsigned i = 0; i < COUNT; i++)
		code[HEAD + i] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)denied[i],
						     (unsigned char)(COUNT - i), 0);
	code[HEAD + COUNT] = (struct sock_filter)BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW);
	code[HEAD + COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | EPERM);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		die("seccomp");
}

static _Noreturn void inside(int ready_fd, char **argv)
{
	static char *const env[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	char byte;

	if (read(ready_fd, &byte, 1) != 1)
		_exit(125);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (mount(NULL, "/", NULL, 0x44000 /* private, recursive */, NULL) < 0)
		die("/");
	build_root(argv[1]);
	drop_privilege();
	load_filter();
	execve(argv[2], argv + 2, env);
	die(argv[2]);
}

int main(int argc, char **argv)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
			 CLONE_NEWUTS | CLONE_NEWCGROUP,
		.exit_signal = SIGCHLD,
	};
	int ready[2], status = 0;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: smallest WORKSPACE COMMAND [ARG...]\n");
		return 125;
	}
	if (pipe2(ready, O_CLOEXEC) < 0)
		die("pipe");
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid < 0)
		die("clone3");
	if (pid == 0)
		inside(ready[0], argv);
	map_ids(pid, getuid(), getgid());
	if (write(ready[1], "", 1) != 1)
		die("start");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
