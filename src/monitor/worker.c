/* A verb that the monitor answers itself, at work in a process of its own; see worker.h. */
#include "monitor/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/errno_name.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/sys.h"

enum { END_MS = 1000 };

/* ---- in the worker -------------------------------------------------------------------------- */

/* Blocks until all is written; whoever does not read is waited for, but not after his death. */
int worker_send(struct worker *worker, struct emit *emit)
{
	int r = channel_send(&worker->channel, emit);

	if (r >= 0)
		r = channel_flush(&worker->channel);
	return r;
}

/* All that a monitor tells its worker is that more may come. */
static int on_window(void *data, int index, const struct term *items, struct csn_error *err)
{
	struct worker *worker = data;

	if (index != FRAME_WINDOW_IN)
		return csn_fail(err, -EBADMSG, "worker", "a message out of turn");
	worker->window += items[2].integer;
	return 0;
}

static int await_window(struct worker *worker)
{
	struct csn_error err;

	while (worker->window <= 0) {
		if (channel_read(&worker->channel, on_window, worker, &err) < 0 ||
		    worker->channel.is_ended)
			return -EPIPE;
	}
	return 0;
}

int worker_data(struct worker *worker, const void *data, size_t size)
{
	const char *at = data;
	int r = 0;

	while (r >= 0 && size > 0) {
		size_t n = size < FRAME_PIECE ? size : FRAME_PIECE;
		struct emit emit;

		r = await_window(worker);
		if (r < 0)
			return r;
		if ((int64_t)n > worker->window)
			n = (size_t)worker->window;
		emit = channel_frame(&worker->channel);
		emit_tuple(&emit, 4);
		emit_atom(&emit, "data");
		emit_int(&emit, worker->ref);
		emit_atom(&emit, "stdout");
		emit_binary(&emit, at, n);
		worker->window -= (int64_t)n;
		at += n;
		size -= n;
		r = worker_send(worker, &emit);
	}
	return r;
}

struct emit worker_reply(struct worker *worker, uint32_t pairs)
{
	struct emit emit = channel_frame(&worker->channel);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, worker->ref);
	emit_map(&emit, pairs);
	return emit;
}

struct emit worker_note(struct worker *worker, uint32_t pairs)
{
	struct emit emit = channel_frame(&worker->channel);

	emit_tuple(&emit, 2);
	emit_atom(&emit, "fact");
	emit_map(&emit, pairs);
	return emit;
}

static void say_failure(struct worker *worker, int r, const struct csn_error *err)
{
	struct emit emit = channel_frame(&worker->channel);

	emit_failed(&emit, worker->ref, worker->reason ? worker->reason : errno_name(-r),
		    err->text);
	worker_send(worker, &emit);
}

/* Dies with the monitor, whose end of the stream is the only one left: asked after the kernel was,
 * so that no death falls between. */
static bool tie_to_monitor(int fd)
{
	struct pollfd life = { .fd = fd };

	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && poll(&life, 1, 0) == 0;
}

/* Bytes that the kernel counts for RLIMIT_DATA, of which ours were the monitor's before. */
static uint64_t data_in_use(void)
{
	_cleanup_fd_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128] = "", *word, *rest = text;
	uint64_t pages = 0;

	if (fd < 0 || fd_read_all(fd, text, sizeof text - 1) < 0)
		return 0;
	for (int i = 0; i < 6; i++) /* data and stack are the sixth number */
		word = strsep(&rest, " ");
	if (!word || str_parse_u64(word, UINT32_MAX, &pages) < 0)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Softly: a sandbox that this call starts takes the monitor's own limit again. */
static int bound_memory(struct worker *worker, unsigned others)
{
	uint64_t share = others < 4 ? WORKER_MEMORY >> others : WORKER_LEAST;
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &worker->memory) < 0)
		return -errno;
	limit = worker->memory;
	share += data_in_use();
	if (share < limit.rlim_cur)
		limit.rlim_cur = share;
	return setrlimit(RLIMIT_DATA, &limit) < 0 ? -errno : 0;
}

_Noreturn static void be_worker(const struct work_order *order, int fd)
{
	struct worker worker = {
		.run = order->run, .data = order->data, .ref = order->ref, .window = FRAME_WINDOW
	};
	struct csn_error err = { 0 };
	sigset_t none;
	int r;

	if (!tie_to_monitor(fd) || bound_memory(&worker, order->others) < 0)
		_exit(1);
	order->forget(order->data);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "caisson-worker", 0, 0, 0);
	channel_init(&worker.channel, fd);
	worker.channel.side = FROM_MONITOR;
	r = order->work(&worker, order->map, &err);
	if (r < 0)
		say_failure(&worker, r, &err);
	_exit(r < 0);
}

/* ---- in the monitor ------------------------------------------------------------------------- */

int work_start(const struct work_order *order, struct work **ret_work, struct csn_error *err)
{
	struct work *work = calloc(1, sizeof *work);
	int pair[2];

	if (!work || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(work);
		return csn_fail(err, -ENOMEM, "worker", "cannot start a process for the call");
	}
	work->pid = fork();
	if (work->pid == 0) {
		close(pair[0]);
		be_worker(order, pair[1]);
	}
	close(pair[1]);
	if (work->pid < 0 || fd_set_nonblock(pair[0], 1) < 0) {
		int r = work->pid < 0 ? -EAGAIN : -EIO;

		close(pair[0]);
		free(work);
		return csn_fail(err, r, "worker", "cannot start a process for the call");
	}
	channel_init(&work->channel, pair[0]);
	*ret_work = work;
	return 0;
}

void work_kill(struct work *work)
{
	/* Our own child, not waited for: the number is still his. A worker that has something to
	 * finish holds this signal for the instant that it takes; no other blocks it. One that
	 * somebody stopped takes no signal but this one. */
	kill(work->pid, SIGTERM);
	kill(work->pid, SIGCONT);
}

/* It ends at once, unless it is held up by a file system that does not answer. */
static bool has_ended(const struct work *work)
{
	_cleanup_fd_ int pidfd = sys_pidfd_open(work->pid);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	return pidfd < 0 || poll(&end, 1, END_MS) > 0;
}

void work_free(struct work *work)
{
	if (!work)
		return;
	work_kill(work);
	if (!has_ended(work))
		kill(work->pid, SIGKILL);
	waitpid(work->pid, NULL,
		WNOHANG); /* one that still cannot die is init's, when we are gone */
	fd_close(work->channel.fd);
	channel_done(&work->channel);
	free(work);
}
