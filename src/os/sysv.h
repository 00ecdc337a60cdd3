/*
 * sysv - System V shared memory of another IPC namespace
 *
 * A segment stays until somebody removes it. While no process has it attached, nothing in /proc
 * shows it from outside: the kernel tells whoever asks only about the namespace that he is in. So
 * a child of ours goes there, asks, and ends. It has no number inside, so nobody there can reach
 * it, and all capabilities there, of which it uses none.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct sysv_use {
	uint64_t resident_bytes; /* of all segments, attached or not */
	uint64_t swapped_bytes;
};

/*
 * Asks about the IPC namespace of `pid`, whose user namespace must be another than ours and belong
 * to us. Takes 80 to 400 µs, and never much more than `timeout_ms` and 100 ms. While a child that
 * was late has not ended there is no other: -ETIMEDOUT at once.
 *
 * 0 or a negative errno. -EPERM, -EACCES, -EINVAL and -ENOSYS are this machine's answer or mean
 * that the namespace is our own. -ESRCH: `pid` is gone. -ETIMEDOUT, -EAGAIN, -ENOMEM, -EMFILE,
 * -EIO: not now; code behind the wall may have brought that about.
 */
int sysv_use(pid_t pid, int timeout_ms, struct sysv_use *ret_use);
