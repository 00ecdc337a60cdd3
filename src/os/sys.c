/* System calls that libc does not wrap; see sys.h. */
#include "os/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int result(long value)
{
	return value < 0 ? -errno : (int)value;
}

int sys_pidfd_open(pid_t pid)
{
	return result(syscall(SYS_pidfd_open, pid, 0));
}

int sys_pidfd_signal(int pidfd, int signal)
{
	return result(syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0));
}

int sys_pidfd_getfd(int pidfd, int fd)
{
	return result(syscall(SYS_pidfd_getfd, pidfd, fd, 0));
}

pid_t sys_clone(uint64_t flags, int *ret_pidfd, int cgroup_fd)
{
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };

	if (ret_pidfd) {
		args.flags |= CLONE_PIDFD;
		args.pidfd = (uintptr_t)ret_pidfd;
	}
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	return result(syscall(SYS_clone3, &args, sizeof args));
}

int sys_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };

	return result(syscall(SYS_openat2, dir_fd, path, &how, sizeof how));
}

int sys_close_from(unsigned first)
{
	return result(syscall(SYS_close_range, first, ~0U, 0));
}

int sys_not_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
