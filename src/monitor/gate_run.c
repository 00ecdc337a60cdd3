/* A program of the host's as a gate; see gate_run.h. */
#include "monitor/gate_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "os/sweep.h"
#include "os/sys.h"

enum {
	SIGNALED = 256,
	REASON_BYTES = 4096,
	PIECE = 16 << 10,
	IN = 0,
	OUT = 1,
	ERR = 2,
	LIFE = 3,
	STOP = 4,
	FDS
};

struct program {
	const struct gate_order *order;
	pid_t pid;
	int fds[FDS]; /* its streams, ours' ends; its end; a signal to us */
	size_t sent;
	struct buf out, err;
	uint64_t until_ms;
	const char *failure; /* of ours; NULL: it ended by itself */
};

/* ---- its start ------------------------------------------------------------------------------- */

_Noreturn static void become(const struct worker *worker, const struct gate_order *order,
			     const int ends[3])
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || chdir("/") < 0 ||
	    setrlimit(RLIMIT_DATA, &worker->memory) < 0)
		_exit(126);
	for (int i = 0; i < 3; i++)
		if (dup2(ends[i], i) < 0)
			_exit(126);
	if (sys_close_from(3) < 0)
		_exit(126);
	execv(order->gate->argv[0], (char *const *)order->gate->argv);
	dprintf(STDERR_FILENO, "cannot execute %s: %s", order->gate->argv[0], strerror(errno));
	_exit(127);
}

/* Above 2 on both sides: the monitor may have been started without streams. */
static int make_pipe(int ret_ends[2])
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		ret_ends[i] = fcntl(pair[i], F_DUPFD_CLOEXEC, 3);
		close(pair[i]);
	}
	return ret_ends[0] < 0 || ret_ends[1] < 0 ? -EMFILE : 0;
}

static int start(const struct worker *worker, struct program *program)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	int r = make_pipe(in);

	if (r >= 0)
		r = make_pipe(out);
	if (r >= 0)
		r = make_pipe(err);
	if (r < 0)
		return r;
	program->pid = fork();
	if (program->pid == 0)
		become(worker, program->order, (const int[]){ in[0], out[1], err[1] });
	close(in[0]);
	close(out[1]);
	close(err[1]);
	if (program->pid < 0)
		return -EAGAIN;
	program->fds[IN] = in[1];
	program->fds[OUT] = out[0];
	program->fds[ERR] = err[0];
	program->fds[LIFE] = sys_pidfd_open(program->pid);
	for (int i = IN; i <= ERR; i++)
		fd_set_nonblock(program->fds[i], 1);
	return program->fds[LIFE] < 0 ? program->fds[LIFE] : 0;
}

/* ---- its life -------------------------------------------------------------------------------- */

static void feed(struct program *program)
{
	const struct gate_order *order = program->order;
	ssize_t n =
		write(program->fds[IN], order->args + program->sent, order->size - program->sent);

	if (n > 0)
		program->sent += (size_t)n;
	/* It may not want to read them. */
	if ((n < 0 && errno != EAGAIN && errno != EINTR) || program->sent == order->size)
		program->fds[IN] = fd_close(program->fds[IN]);
}

/* What does not fit is dropped. True: there was too much. */
static bool drain(int *fd, struct buf *buf)
{
	char piece[PIECE];
	ssize_t n = read(*fd, piece, sizeof piece);
	size_t room = buf_room(buf);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		*fd = fd_close(*fd);
		return false;
	}
	buf_add(buf, piece, (size_t)n < room ? (size_t)n : room);
	return (size_t)n > room;
}

/* False: it is over. */
static bool step(struct program *program)
{
	struct pollfd fds[FDS];
	uint64_t now_ms = clock_now_ms();

	if (now_ms >= program->until_ms) {
		program->failure = "took too long, and was ended";
		return false;
	}
	for (int i = 0; i < FDS; i++)
		fds[i] = (struct pollfd){ program->fds[i], i == IN ? POLLOUT : POLLIN, 0 };
	if (poll(fds, FDS, (int)(program->until_ms - now_ms)) < 0)
		return true;
	if (fds[STOP].revents) {
		program->failure = "was ended with the sandbox";
		return false;
	}
	if (fds[IN].revents)
		feed(program);
	if (fds[ERR].revents)
		drain(&program->fds[ERR], &program->err);
	if (fds[OUT].revents && drain(&program->fds[OUT], &program->out)) {
		program->failure = "wrote more than 256 KiB";
		return false;
	}
	return !fds[LIFE].revents;
}

/* What its pipes hold when it is dead; who inherited them is, too. */
static void drain_rest(struct program *program)
{
	size_t before;

	do {
		before = buf_size(&program->out) + buf_size(&program->err);
		if (program->fds[OUT] >= 0 && drain(&program->fds[OUT], &program->out))
			program->failure = "wrote more than 256 KiB";
		if (program->fds[ERR] >= 0)
			drain(&program->fds[ERR], &program->err);
	} while (!program->failure && buf_size(&program->out) + buf_size(&program->err) > before);
}

/* Its end is told by its pidfd; what it started has nobody else, so it is ours. */
static int end(struct program *program)
{
	siginfo_t info = { 0 };
	int status = -1;

	/* Before the sweep reaps it: its status is the answer. */
	if (!program->failure && waitid(P_PID, (id_t)program->pid, &info, WEXITED) == 0)
		status = info.si_code == CLD_EXITED ? info.si_status : SIGNALED + info.si_status;
	sweep_kill(NULL);
	drain_rest(program);
	return status;
}

/* ---- its answer ------------------------------------------------------------------------------ */

static int tell(struct worker *worker, const void *text, size_t size, bool is_error)
{
	struct emit emit = worker_reply(worker, 2);

	emit_atom(&emit, "result");
	emit_binary(&emit, text, size);
	emit_atom(&emit, "is_error");
	emit_bool(&emit, is_error);
	return worker_send(worker, &emit);
}

static int tell_failure(struct worker *worker, const struct program *program, int status)
{
	char text[128];

	if (program->failure)
		snprintf(text, sizeof text, "the gate %s", program->failure);
	else if (status >= SIGNALED)
		snprintf(text, sizeof text, "the gate was ended by signal %d", status - SIGNALED);
	else
		snprintf(text, sizeof text, "the gate ended with status %d", status);
	return tell(worker, text, strlen(text), true);
}

static size_t without_newline(const struct buf *buf)
{
	size_t size = buf_size(buf);

	while (size > 0 && buf_at(buf)[size - 1] == '\n')
		size--;
	return size;
}

static int answer(struct worker *worker, struct program *program, int status)
{
	size_t said = without_newline(&program->err);

	if (!program->failure && status == 0)
		return tell(worker, buf_at(&program->out), buf_size(&program->out), false);
	if (!program->failure && said > 0)
		return tell(worker, buf_at(&program->err), said, true);
	return tell_failure(worker, program, status);
}

/* A signal to the worker ends the program first, and then the worker. The monitor's death is such
 * a signal from here on: of SIGKILL, which a worker has otherwise, nobody sweeps what the program
 * started. The kernel has one or the other at any time, so that no death falls between. */
static int await_stop(void)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &stop, NULL) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0)
		return -errno;
	return signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
}

int gate_run(struct worker *worker, const struct term *map, struct csn_error *err)
{
	struct program program = { .order = worker->data, .fds = { -1, -1, -1, -1, -1 } };
	int r, status;

	(void)map;
	buf_init(&program.out, FRAME_GATE_RESULT_BYTES);
	buf_init(&program.err, REASON_BYTES);
	program.fds[STOP] = await_stop();
	program.until_ms = clock_now_ms() + program.order->gate->timeout_ms;
	if (program.fds[STOP] < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return csn_fail(err, -errno, "gates", "cannot prepare its process");
	r = start(worker, &program);
	if (r < 0) {
		sweep_kill(NULL);
		return csn_fail(err, r, "gates", "cannot start its process: %s", strerror(-r));
	}
	while (step(&program))
		;
	status = end(&program);
	return answer(worker, &program, status);
}
