/* System calls that libc does not wrap: what they return, and that every descriptor closes itself.
 */
#include "os/sys.h"

#include "own_space.h"

#include <linux/openat2.h>
#include <poll.h>

static bool is_cloexec(int fd)
{
	return fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

static void processes(void)
{
	int pidfd = -1, status, again;
	pid_t pid = sys_clone(0, &pidfd, -1);

	if (pid == 0) {
		pause();
		_exit(0);
	}
	CHECK(pid > 0 && is_cloexec(pidfd));
	again = sys_pidfd_open(pid);
	CHECK(again >= 0 && is_cloexec(again));
	CHECK(poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 0) == 0);
	CHECK(sys_pidfd_signal(pidfd, 0) == 0 && sys_pidfd_signal(pidfd, SIGTERM) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	      WTERMSIG(status) == SIGTERM);
	CHECK(sys_pidfd_signal(again, SIGTERM) == -ESRCH);
	CHECK(sys_pidfd_open(pid) == -ESRCH && sys_pidfd_open(-1) == -EINVAL);
	CHECK(sys_pidfd_signal(-1, SIGTERM) == -EBADF);
}

static void fetch_descriptor(void)
{
	int pipe_fds[2], pidfd, fd;
	char byte = 0;
	pid_t pid;

	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	pid = sys_clone(0, &pidfd, -1);
	if (pid == 0) {
		dup2(pipe_fds[1], 99);
		close(pipe_fds[1]);
		pause();
		_exit(0);
	}
	close(pipe_fds[1]);
	for (int i = 0; i < 500 && (fd = sys_pidfd_getfd(pidfd, 99)) == -EBADF; i++)
		usleep(10000);
	CHECK(fd >= 0 && is_cloexec(fd) && write(fd, "x", 1) == 1);
	CHECK(read(pipe_fds[0], &byte, 1) == 1 && byte == 'x');
	CHECK(sys_pidfd_getfd(pidfd, 98) == -EBADF);
	CHECK(sys_pidfd_signal(pidfd, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	CHECK(sys_pidfd_getfd(pidfd, 99) == -ESRCH);
}

static void open_beneath(void)
{
	int dir;

	own_mounts();
	CHECK(mkdir("in", 0755) == 0 && mkdir("out", 0755) == 0);
	put_text("in/file", "x");
	put_text("out/file", "x");
	CHECK(symlink("../out/file", "in/out") == 0 && symlink("file", "in/link") == 0);
	CHECK(symlink("/mnt/out/file", "in/absolute") == 0);
	dir = open("in", O_PATH | O_CLOEXEC);
	CHECK(is_cloexec(sys_openat2(dir, "file", O_RDONLY, RESOLVE_BENEATH)));
	CHECK(sys_openat2(dir, "link", O_RDONLY, RESOLVE_BENEATH) >= 0);
	CHECK(sys_openat2(dir, "link", O_RDONLY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS) == -ELOOP);
	CHECK(sys_openat2(dir, "out", O_RDONLY, RESOLVE_BENEATH) == -EXDEV);
	CHECK(sys_openat2(dir, "absolute", O_RDONLY, RESOLVE_BENEATH) == -EXDEV);
	CHECK(sys_openat2(dir, "../out/file", O_RDONLY, RESOLVE_BENEATH) == -EXDEV);
	CHECK(sys_openat2(dir, "/mnt/in/file", O_RDONLY, RESOLVE_BENEATH) == -EXDEV);
	CHECK(sys_openat2(dir, "missing", O_RDONLY, RESOLVE_BENEATH) == -ENOENT);
}

static void close_from(void)
{
	CHECK(dup2(0, 50) == 50 && dup2(0, 200) == 200 && dup2(0, 49) == 49);
	CHECK(sys_close_from(50) == 0);
	CHECK(fcntl(49, F_GETFD) >= 0 && fcntl(50, F_GETFD) < 0 && fcntl(200, F_GETFD) < 0);
}

/* What holds secrets is not read by processes of the same user. */
static void not_dumpable(void)
{
	char path[64];
	int fd;

	be_ordinary();
	snprintf(path, sizeof path, "/proc/%d/environ", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	close(fd);
	CHECK(sys_not_dumpable() == 0 && prctl(PR_GET_DUMPABLE) == 0);
	CHECK(open(path, O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
}

static const struct tap_test tests[] = {
	{ "processes by descriptor", processes },
	{ "a descriptor of another process", fetch_descriptor },
	{ "opening beneath a folder", open_beneath },
	{ "closing the rest", close_from },
	{ "not dumpable (ordinary user)", not_dumpable },
};

TAP_MAIN(tests)
