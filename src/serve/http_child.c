/* A command of ours as a child; see http_child.h. posix_spawn(), because there are threads; killed
 * by its own pid, which is ours until it is reaped. */
#include "serve/http_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum { PIECE = 64 << 10, PATIENCE_MS = 30000, SAID_MAX = 4096 };

extern char **environ;

/* 0 or an errno. */
static int spawn(const char *const *argv, int out, int said, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return r;
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn(ret_pid, argv[0], &actions, &attributes,
				(char *const *)(uintptr_t)argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* 1: more may come; 0: its end; negative: no. */
static int take(int fd, struct buf *to)
{
	size_t size = buf_room(to) < PIECE ? buf_room(to) : PIECE;
	uint8_t *room = size ? buf_reserve(to, size) : NULL;
	ssize_t n = room ? read(fd, room, size) : -1;

	if (n > 0)
		buf_grew(to, (size_t)n);
	return !room ? -E2BIG : n < 0 && errno == EINTR ? 1 : n < 0 ? -errno : n > 0;
}

static int collect(int out_fd, int said_fd, struct buf *out, struct buf *said)
{
	struct pollfd fds[] = { { out_fd, POLLIN, 0 }, { said_fd, POLLIN, 0 } };
	uint64_t end_ms = clock_now_ms() + PATIENCE_MS;
	int open = 2, r = 0;

	while (r >= 0 && open > 0) {
		uint64_t now_ms = clock_now_ms();

		if (now_ms >= end_ms)
			return -ETIMEDOUT;
		if (poll(fds, 2, (int)(end_ms - now_ms)) < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; r >= 0 && i < 2; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			r = take(fds[i].fd, i ? said : out);
			if (r == 0 || (r < 0 && i)) {
				fds[i].fd = -1; /* of what it says, the first bytes are enough */
				open--;
				r = 0;
			}
		}
	}
	return r < 0 ? r : 0;
}

static int run(const char *const *argv, struct buf *out, struct buf *said)
{
	_cleanup_fd_ int out_read = -1, out_write = -1, said_read = -1, said_write = -1;
	int pipes[2], r, status = 0;
	pid_t pid = 0;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	out_read = pipes[0];
	out_write = pipes[1];
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	said_read = pipes[0];
	said_write = pipes[1];
	r = -spawn(argv, out_write, said_write, &pid);
	out_write = fd_close(out_write);
	said_write = fd_close(said_write);
	if (r < 0)
		return r;
	r = collect(out_read, said_read, out, said);
	if (r < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

int child_output(const char *const *argv, struct buf *out, struct csn_error *err)
{
	_cleanup_buf_ struct buf said;
	const char *text;
	int status;

	buf_init(&said, SAID_MAX);
	status = run(argv, out, &said);
	if (status < 0)
		return csn_fail(err, status, "child", "`caisson %s %s` did not answer: %s", argv[1],
				argv[2], strerror(-status));
	text = buf_text(&said);
	if (status > 0)
		csn_fail(err, -EIO, "child", "%.400s", text ? text : "");
	return status;
}
