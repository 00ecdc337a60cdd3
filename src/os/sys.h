/*
 * sys - system calls that libc does not wrap
 *
 * Thin: each returns a value or a negative errno. Numbers and structures come from the
 * kernel's own headers; where Debian 12's are older than the feature, the constant is
 * defined here with the kernel version that brought it.
 */
#pragma once

#include <linux/mount.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1 /* 5.2 */
#endif
#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000 /* 5.14 */
#endif

/* A descriptor for a process, O_CLOEXEC. */
int sys_pidfd_open(pid_t pid);

/* Signals the process behind a pidfd. */
int sys_pidfd_signal(int pidfd, int signal);

/* A copy of descriptor `fd` of the process behind `pidfd`, O_CLOEXEC. */
int sys_pidfd_getfd(int pidfd, int fd);

/* clone3() with `flags` and SIGCHLD; 0 in the child. `ret_pidfd` may be NULL; `cgroup_fd` -1: none.
 */
pid_t sys_clone(uint64_t flags, int *ret_pidfd, int cgroup_fd);

/* openat2() with RESOLVE_* flags; O_CLOEXEC is added. */
int sys_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t resolve);

/* Closes all descriptors from `first` on. */
int sys_close_from(unsigned first);

/* The first call of every process that holds something untrusted code must not read. */
int sys_not_dumpable(void);
