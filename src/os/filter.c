/* Loading seccomp programs; see filter.h. */
#include "os/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static int load(unsigned long flags, const struct sock_fprog *program)
{
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);

	return fd < 0 ? -errno : (int)fd;
}

int filter_load(const struct sock_fprog *program)
{
	return load(0, program);
}

int filter_load_listener(const struct sock_fprog *program)
{
	return load(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		    program);
}
