/* See reach.h. */
#include "os/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

static int write_text(const char *path, const char *text)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int map_to_itself(const char *path, unsigned id)
{
	char text[64];

	snprintf(text, sizeof text, "%u %u 1\n", id, id);
	return write_text(path, text);
}

static int keep_read_search(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	data[0].effective = data[0].permitted = 1u << CAP_DAC_READ_SEARCH;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int reach_own_files(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (uid == 0)
		return 0;
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else the maps are not ours to write */
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	r = write_text("/proc/self/setgroups", "deny");
	if (r == 0)
		r = map_to_itself("/proc/self/uid_map", uid);
	if (r == 0)
		r = map_to_itself("/proc/self/gid_map", gid);
	return keep_read_search() < 0 ? -EPERM : r;
}
