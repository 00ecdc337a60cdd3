/*
 * tracee - looking at another process: its memory, its folders, its descriptors
 *
 * For the monitor, which answers seccomp notifications. A notification names a *thread*; all
 * calls take a thread id. They need ptrace rights over the target: the same uid and a dumpable
 * process, or CAP_SYS_PTRACE over its user namespace. -EPERM or -EACCES: the kernel forbids a
 * look (Yama, not dumpable). -ESRCH or -ENOENT: it is gone.
 *
 * Ids are reused: after the calls, and before acting on what they said, ask the listener
 * whether the notification is still valid.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Copies up to `size` bytes from `address`, fewer where mapped memory ends. Returns how many
 * (at least 1), or -EFAULT when not even one can be read, or another negative errno.
 */
ssize_t tracee_read(pid_t tid, uint64_t address, void *ret_data, size_t size);

/* Copies exactly `size` bytes: 0, or a negative errno (-EFAULT when short). */
int tracee_read_all(pid_t tid, uint64_t address, void *ret_data, size_t size);

/*
 * Copies a NUL-terminated text; reads no further than the page in which it ends. Its length,
 * or -ENAMETOOLONG when it has no end within `size` bytes, or a negative errno.
 */
ssize_t tracee_read_text(pid_t tid, uint64_t address, char *ret_text, size_t size);

/* The short name, as the process chose it: any bytes but NUL. 0 or a negative errno. */
int tracee_comm(pid_t tid, char *ret_text, size_t size);

/* O_PATH descriptors of the root, the current folder, or what descriptor `fd` refers to. */
int tracee_open_root(pid_t tid, int *ret_fd);
int tracee_open_cwd(pid_t tid, int *ret_fd);
int tracee_open_fd(pid_t tid, int fd, int *ret_fd);

/*
 * A duplicate of the thread's descriptor `fd`, sharing its open file. -EBADF: it has none.
 * Before Linux 6.9 the descriptor is the thread group leader's.
 */
int tracee_take_fd(pid_t tid, int fd, int *ret_fd);

/* The name of what our own descriptor refers to, as the kernel tells it. 0 or a negative errno. */
int tracee_name_of(int fd, char *ret_path, size_t size);
