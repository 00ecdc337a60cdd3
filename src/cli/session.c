/* See session.h. There is no handler: a signal that came while we were busy is read later, and one
 * that comes while our reader is slow wakes the same poll() that waits for him. */
#include "cli/session.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/call.h"

enum { MERCY_S = 1 }; /* between a signal that was passed on and the end */

/* ---- signals -------------------------------------------------------------------------------- */

static void resize(const struct session *session)
{
	uint16_t rows, columns;

	tty_size(STDIN_FILENO, &rows, &columns);
	if (session->has_tty)
		csn_resize(session->sandbox, session->id, rows, columns, NULL);
}

/* As the kernel would stop us, but with the terminal as it was. */
static void stop(struct session *session)
{
	tty_leave(&session->tty);
	raise(SIGSTOP);
	tty_enter(&session->tty, STDIN_FILENO);
	resize(session);
}

static void end(struct session *session, int number)
{
	const struct itimerval mercy = { .it_value.tv_sec = MERCY_S };

	if (session->is_cancelled) { /* the other side does not answer: what it runs ends with us */
		tty_leave(&session->tty);
		_exit(128 + session->end_signal);
	}
	if (session->end_signal) {
		session->is_cancelled = true;
		csn_cancel(session->sandbox, session->id, NULL);
		return;
	}
	session->end_signal = number;
	csn_signal(session->sandbox, session->id, number, NULL);
	setitimer(ITIMER_REAL, &mercy, NULL);
}

static void on_signal(struct session *session, int number)
{
	if (number == SIGWINCH)
		resize(session);
	else if (number == SIGTSTP)
		stop(session);
	else if (number == SIGCONT)
		tty_again(&session->tty), resize(session);
	else if (number != SIGALRM || !session->is_cancelled)
		end(session, number);
}

static int take_signals(void *data)
{
	struct session *session = data;
	struct signalfd_siginfo info;

	while (read(session->signal_fd, &info, sizeof info) == sizeof info)
		on_signal(session, (int)info.ssi_signo);
	return 0;
}

/* What the caller ignores, as nohup(1) does, is left ignored. */
static void fill_mask(sigset_t *set, bool has_tty)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction old;

	sigemptyset(set);
	sigaddset(set, SIGALRM);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(set, ends[i]);
	if (!has_tty)
		return;
	sigaddset(set, SIGWINCH);
	sigaddset(set, SIGCONT);
	sigaddset(set, SIGTSTP);
}

/* ---- output --------------------------------------------------------------------------------- */

/* Until it takes something; false: we were asked to end meanwhile. */
static bool await_room(struct session *session, int fd)
{
	struct pollfd fds[] = { { fd, POLLOUT, 0 }, { session->signal_fd, POLLIN, 0 } };

	while (!session->is_cancelled) {
		int n = poll(fds, 2, -1);

		if (n > 0 && fds[1].revents)
			take_signals(session);
		if (n > 0 && fds[0].revents)
			return true;
	}
	return false;
}

static int fail(struct session *session, int error)
{
	if (error == EBADF)
		return 0; /* the caller closed it: what is written there is nobody's */
	if (error != EPIPE) {
		errno = error;
		fprintf(stderr, "caisson: cannot write the command's output: %m\n");
	}
	session->end_signal = SIGPIPE;
	session->is_cancelled = true;
	return -1;
}

/* A pipe that has room takes PIPE_BUF without waiting for its reader. */
static int output(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct session *session = data;
	int fd = stream == CSN_STDERR ? STDERR_FILENO : STDOUT_FILENO;
	const char *at = bytes;

	while (size > 0) {
		size_t want = size < PIPE_BUF ? size : PIPE_BUF;
		ssize_t n = await_room(session, fd) ? write(fd, at, want) : -1;

		if (session->is_cancelled)
			return -1;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return fail(session, errno);
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

/* What there is. */
static ptrdiff_t input(void *data, void *ret_bytes, size_t size)
{
	struct session *session = data;
	ssize_t n = read(STDIN_FILENO, ret_bytes, size);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return CSN_INPUT_LATER;
	session->has_read |= n > 0;
	return n < 0 && errno == EIO ? 0 : n;
}

/* ---- life ----------------------------------------------------------------------------------- */

int session_begin(struct session *session, csn_sandbox *sandbox, bool has_tty, csn_error *err)
{
	sigset_t set;

	*session = (struct session){
		.sandbox = sandbox, .id = csn_call_id(sandbox), .has_tty = has_tty, .tty.fd = -1
	};
	fill_mask(&set, has_tty);
	session->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (session->signal_fd < 0)
		return call_misuse(err, "there is no descriptor for signals: %s", strerror(errno));
	sigprocmask(SIG_BLOCK, &set, &session->old_mask);
	signal(SIGPIPE, SIG_IGN);
	if (has_tty)
		tty_enter(&session->tty, STDIN_FILENO);
	return 0;
}

void session_request(struct session *session, csn_exec_request *request)
{
	int fd = tty_unless_closed(STDIN_FILENO);

	request->call.id = session->id;
	request->has_input_fd = fd >= 0 && !request->detach;
	request->input_fd = fd;
	request->on_input = request->has_input_fd ? input : NULL;
	request->on_output = output;
	request->on_ready = take_signals;
	request->ready_fd = session->signal_fd;
	request->data = session;
	request->has_tty = session->has_tty;
	if (session->has_tty)
		tty_size(STDIN_FILENO, &request->rows, &request->columns);
}

void session_end(struct session *session)
{
	const struct itimerval none = { 0 };
	const struct timespec now = { 0 };
	sigset_t alarm;

	tty_leave(&session->tty);
	setitimer(ITIMER_REAL, &none, NULL);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigtimedwait(&alarm, NULL, &now); /* our own; others that come now end us as usual */
	session->signal_fd = fd_close(session->signal_fd);
	sigprocmask(SIG_SETMASK, &session->old_mask, NULL);
}

int session_status(const struct session *session, int status)
{
	return session->end_signal ? 128 + session->end_signal : status;
}
