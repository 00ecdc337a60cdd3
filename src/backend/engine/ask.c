/*
 * Running a command of an engine; see ask.h. It is killed when its time is over, since a daemon
 * that hangs must not hang us, and read while it is written to, since it may say much before it
 * has taken all.
 */
#include "backend/engine/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/sys.h"

/* Our ends: what it reads, what it writes, what it complains of; -1: closed. */
enum { IN, OUT, ERR, STREAMS };

struct talk {
	int ours[STREAMS];
	int its[STREAMS];
	size_t written;
	char complaint[4096]; /* the first part: an engine says the cause first, then its usage */
	size_t complained;
};

static void talk_done(struct talk *talk)
{
	for (int i = 0; i < STREAMS; i++) {
		fd_cleanup(&talk->ours[i]);
		fd_cleanup(&talk->its[i]);
	}
}

static int talk_open(struct talk *talk)
{
	for (int i = 0; i < STREAMS; i++)
		talk->ours[i] = talk->its[i] = -1;
	for (int i = 0; i < STREAMS; i++) {
		int pair[2];

		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		talk->ours[i] = pair[i == IN];
		talk->its[i] = pair[i != IN];
		fd_set_nonblock(talk->ours[i], 1);
	}
	return 0;
}

_Noreturn static void be_client(const struct ask *ask, const struct talk *talk)
{
	int kept[STREAMS];
	sigset_t none;

	sigemptyset(&none);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0); /* an interrupt at the terminal is ours to pass on */
	/* Beyond the three streams first: one of ours may have such a number. */
	for (int i = 0; i < STREAMS; i++)
		kept[i] = fcntl(talk->its[i], F_DUPFD_CLOEXEC, STREAMS);
	for (int i = 0; i < STREAMS; i++)
		if (kept[i] < 0 || dup2(kept[i], i) < 0)
			_exit(126);
	execve(ask->path, ask->argv, ask->env);
	_exit(127);
}

static void write_some(struct talk *talk, const struct buf *input)
{
	size_t left = input ? buf_size(input) - talk->written : 0;
	ssize_t n = left ? write(talk->ours[IN], buf_at(input) + talk->written, left) : 0;

	if (n > 0)
		talk->written += (size_t)n;
	if (left == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		talk->ours[IN] = fd_close(talk->ours[IN]);
}

static void read_some(struct talk *talk, int stream, struct buf *output)
{
	char piece[4096];
	ssize_t n = read(talk->ours[stream], piece, sizeof piece);
	size_t room = sizeof talk->complaint - 1 - talk->complained;

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		talk->ours[stream] = fd_close(talk->ours[stream]);
	if (n <= 0)
		return;
	if (stream == OUT) {
		if (output && (size_t)n <= buf_room(output))
			buf_add(output, piece, (size_t)n);
		return;
	}
	room = (size_t)n < room ? (size_t)n : room;
	memcpy(talk->complaint + talk->complained, piece, room);
	talk->complained += room;
}

/* Until it closed both of its streams. */
static int converse(struct talk *talk, const struct ask *ask, struct buf *output)
{
	uint64_t end_ms = clock_now_ms() + (uint64_t)ask->timeout_ms;

	while (talk->ours[OUT] >= 0 || talk->ours[ERR] >= 0) {
		struct pollfd fds[STREAMS];
		uint64_t now_ms = clock_now_ms();

		if (now_ms >= end_ms)
			return -ETIMEDOUT;
		for (int i = 0; i < STREAMS; i++)
			fds[i] = (struct pollfd){ .fd = talk->ours[i],
						  .events = i == IN ? POLLOUT : POLLIN };
		if (poll(fds, STREAMS, (int)(end_ms - now_ms)) < 0 && errno != EINTR)
			return -errno;
		if (fds[IN].revents)
			write_some(talk, ask->input);
		for (int i = OUT; i <= ERR; i++)
			if (fds[i].revents)
				read_some(talk, i, output);
	}
	return 0;
}

/* One line, without what a terminal would obey: the first, or what podman says after its progress.
 */
static void keep_complaint(struct talk *talk, char ret_complaint[ASK_COMPLAINT])
{
	static const char error[] = "\nError: ";
	char *text = talk->complaint, *found;

	text[talk->complained] = 0;
	found = strstr(text, error);
	if (found)
		text = found + 1;
	text[strcspn(text, "\n")] = 0;
	str_escape(text, false, ret_complaint, ASK_COMPLAINT);
}

int ask_run(const struct ask *ask, struct buf *output, char ret_complaint[ASK_COMPLAINT])
{
	struct talk talk = { .written = 0 };
	int status = 0, r = talk_open(&talk);
	pid_t pid = -1;

	if (r >= 0)
		pid = r = sys_clone(0, NULL, -1);
	if (pid == 0)
		be_client(ask, &talk);
	if (r >= 0) {
		for (int i = 0; i < STREAMS; i++)
			talk.its[i] = fd_close(talk.its[i]);
		r = converse(&talk, ask, output);
		if (r < 0)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (ret_complaint)
		keep_complaint(&talk, ret_complaint);
	talk_done(&talk);
	if (r < 0)
		return r;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
