/*
 * linux - calls of the kernel that a C library may lack
 *
 * musl got statx() in 1.2.5 and renameat2() later; Debian 12 has 1.2.3.
 */
#pragma once

#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef STATX_TYPE
#include <linux/stat.h>

/* As statx(2) and errno. */
static inline int statx(int dir_fd, const char *path, int flags, unsigned mask,
			struct statx *ret_stat)
{
	return (int)syscall(SYS_statx, dir_fd, path, flags, mask, ret_stat);
}
#endif

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)

/* As renameat2(2) and errno. */
static inline int renameat2(int from_fd, const char *from, int to_fd, const char *to,
			    unsigned flags)
{
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}
#endif
