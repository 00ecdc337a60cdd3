/*
 * Looking at another process; see tracee.h.
 *
 * Memory is read by process_vm_readv(): /proc/PID/mem refuses processes that are not
 * dumpable even where ptrace rights suffice. A remote vector is split at page ends, because
 * the kernel promises short transfers only between vectors.
 */
#include "os/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/sys.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* 6.9 */
#endif

enum { PIECE = 4096, PIECES = 16, FIRST_LOOK = 256 };

ssize_t tracee_read(pid_t tid, uint64_t address, void *ret_data, size_t size)
{
	struct iovec remote[PIECES], local = { .iov_base = ret_data };
	unsigned long count = 0;
	ssize_t n;

	for (; size > 0 && count < PIECES; count++) {
		size_t step = PIECE - (size_t)(address % PIECE);

		if (step > size)
			step = size;
		remote[count].iov_base = (void *)(uintptr_t)address;
		remote[count].iov_len = step;
		local.iov_len += step;
		address += step;
		size -= step;
	}
	n = process_vm_readv(tid, &local, 1, remote, count, 0);
	if (n < 0)
		return -errno;
	return n > 0 ? n : -EFAULT;
}

int tracee_read_all(pid_t tid, uint64_t address, void *ret_data, size_t size)
{
	ssize_t n = tracee_read(tid, address, ret_data, size);

	if (n < 0)
		return (int)n;
	return (size_t)n == size ? 0 : -EFAULT;
}

ssize_t tracee_read_text(pid_t tid, uint64_t address, char *ret_text, size_t size)
{
	size_t done = 0, want = FIRST_LOOK;

	while (done < size) {
		size_t page_left = PIECE - (size_t)((address + done) % PIECE);
		const char *end;
		ssize_t n;

		if (want > page_left)
			want = page_left;
		if (want > size - done)
			want = size - done;
		n = tracee_read(tid, address + done, ret_text + done, want);
		if (n < 0)
			return n;
		end = memchr(ret_text + done, 0, (size_t)n);
		if (end)
			return end - ret_text;
		done += (size_t)n;
		want = PIECE;
	}
	return -ENAMETOOLONG;
}

static int open_link(pid_t tid, const char *name, int *ret_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)tid, name);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int tracee_open_root(pid_t tid, int *ret_fd)
{
	return open_link(tid, "root", ret_fd);
}

int tracee_open_cwd(pid_t tid, int *ret_fd)
{
	return open_link(tid, "cwd", ret_fd);
}

int tracee_open_fd(pid_t tid, int fd, int *ret_fd)
{
	char name[24];

	if (fd < 0)
		return -EBADF;
	snprintf(name, sizeof name, "fd/%d", fd);
	return open_link(tid, name, ret_fd);
}

static ssize_t read_file(pid_t tid, const char *name, char *ret_text, size_t size)
{
	_cleanup_fd_ int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, ret_text, size - 1);
	if (n < 0)
		return -errno;
	ret_text[n] = 0;
	return n;
}

int tracee_comm(pid_t tid, char *ret_text, size_t size)
{
	ssize_t n = read_file(tid, "comm", ret_text, size);

	if (n < 0)
		return (int)n;
	if (n > 0 && ret_text[n - 1] == '\n')
		ret_text[n - 1] = 0;
	return 0;
}

/* The thread group's id, for kernels whose pidfds are of whole processes. */
static int leader_of(pid_t tid, pid_t *ret_pid)
{
	char text[1024], *at, *end;
	uint64_t pid;
	ssize_t n = read_file(tid, "status", text, sizeof text);

	if (n < 0)
		return (int)n;
	at = strstr(text, "\nTgid:\t");
	if (!at)
		return -ESRCH;
	at += strlen("\nTgid:\t");
	end = strchr(at, '\n');
	if (!end)
		return -ESRCH;
	*end = 0;
	if (str_parse_u64(at, INT_MAX, &pid) < 0 || pid == 0)
		return -ESRCH;
	*ret_pid = (pid_t)pid;
	return 0;
}

/* The pidfd of one thread if the kernel has such (6.9), else of its process. */
static int open_pidfd(pid_t tid)
{
	pid_t pid;
	int r = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD);

	if (r >= 0)
		return r;
	if (errno != EINVAL)
		return -errno;
	r = leader_of(tid, &pid);
	return r < 0 ? r : sys_pidfd_open(pid);
}

int tracee_take_fd(pid_t tid, int fd, int *ret_fd)
{
	_cleanup_fd_ int pidfd = -1;
	int copy;

	pidfd = open_pidfd(tid);
	if (pidfd < 0)
		return pidfd;
	copy = sys_pidfd_getfd(pidfd, fd);
	if (copy < 0)
		return copy;
	*ret_fd = copy;
	return 0;
}

int tracee_name_of(int fd, char *ret_path, size_t size)
{
	char link[40];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, ret_path, size - 1);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size - 1)
		return -ENAMETOOLONG;
	ret_path[n] = 0;
	return 0;
}
