/* A net namespace made beside the sandbox that will live in it; see netns.h. */
#include "backend/process/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/pass.h"

static int unshare_beside(int pidfd)
{
	int fd;

	if (setns(pidfd, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNET) < 0)
		return -errno;
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A copy of our memory would cost as much again as a tenth of the namespace: the helper shares it
 * while we wait, and only makes system calls. */
int netns_make(int pidfd, int socket)
{
	pid_t monitor = getpid(), pid = vfork();
	int fd;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != monitor) /* it died before the line above */
			_exit(1);
		fd = unshare_beside(pidfd);
		pass_send(socket, fd < 0 ? (char)-fd : 0, fd < 0 ? -1 : fd);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid < 0 ? -errno : 0;
}
