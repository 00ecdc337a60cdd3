/* Maps of user namespaces, and one that only maps; see userns.h. */
#include "backend/process/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/sys.h"

static int write_proc(pid_t pid, const char *name, const char *text)
{
	char path[64];
	_cleanup_fd_ int fd = -1;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int userns_write_maps(pid_t pid, unsigned inside, uid_t uid, gid_t gid)
{
	char map[64];
	int r = 0;

	if (geteuid() != 0)
		r = write_proc(pid, "setgroups", "deny");
	if (r >= 0) {
		snprintf(map, sizeof map, "%u %u 1", inside, gid);
		r = write_proc(pid, "gid_map", map);
	}
	if (r >= 0) {
		snprintf(map, sizeof map, "%u %u 1", inside, uid);
		r = write_proc(pid, "uid_map", map);
	}
	return r;
}

static int write_pairs(pid_t pid, uid_t uid, uid_t spare)
{
	char map[64];
	int r;

	if (spare == 0)
		return userns_write_maps(pid, 0, uid, uid);
	snprintf(map, sizeof map, "0 %u 1\n%u %u 1\n", uid, spare, spare);
	r = write_proc(pid, "gid_map", map);
	return r < 0 ? r : write_proc(pid, "uid_map", map);
}

int userns_make(uid_t uid, uid_t spare, pid_t *ret_helper, struct csn_error *err)
{
	int fd = -1, r;
	char path[64];
	pid_t monitor = getpid(), pid = sys_clone(CLONE_NEWUSER, NULL, -1);

	if (pid < 0)
		return csn_fail(err, pid, "namespaces", "cannot make a user namespace");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() == monitor) /* it may have died before the line above */
			pause();
		_exit(0);
	}
	r = write_pairs(pid, uid, spare);
	if (r >= 0) {
		snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	kill(pid, SIGKILL);
	*ret_helper = pid;
	return fd < 0 ? csn_fail(err, r < 0 ? r : -EIO, "ids", "cannot map ids for root's mounts")
		      : fd;
}
