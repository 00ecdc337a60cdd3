/*
 * The first thread: reads the client's lines, writes what it did not take at once, and ends
 *
 * The client is gone when its end of stdin is closed, nobody reads stdout, or a signal says so. A
 * stdin that ends gives the calls that run a second to be answered (a script pipes its requests
 * in); then they are cancelled. The sandbox is destroyed before we leave, and if a call does not
 * come back, by leaving: its monitor sees the stream end.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "serve/mcp.h"
#include "serve/mcp_lines.h"

enum {
	GRACE_MS = 1000,         /* for calls that run when stdin ends */
	STUCK_MS = 2000,         /* for a client that closed stdin and reads no answers */
	CANCEL_MS = 5000,        /* for what was cancelled */
	TICK_MS = 100,           /* between looks, when nothing would wake us */
	BEAT_MS = 4 * 60 * 1000, /* less than limits.idle usually is */
};

struct serving {
	struct mcp *mcp;
	struct mcp_lines lines;
	int in_fd;
	int signal_fd;
	uint64_t beat_ms;  /* when the sandbox is told next that we are here */
	uint64_t moved_ms; /* when the client last took something, or there was little to take */
	bool is_closed;    /* the client closed its end; there may be more to read */
	bool is_over;
	bool is_signalled;
};

/* Is there nothing left to take? A client that does not read its answers is not asked for more. */
static bool take_lines(struct serving *serving)
{
	const char *line = NULL;
	ssize_t size;

	while (!mcp_out_is_busy(&serving->mcp->out)) {
		size = mcp_lines_next(&serving->lines, &line);
		if (size == -EMSGSIZE)
			mcp_rpc_error(serving->mcp, NULL, MCP_INVALID_REQUEST,
				      "a message of more than 16 MiB: it was not read");
		else if (size < 0)
			return true;
		else if (size > 0)
			mcp_rpc_line(serving->mcp, line, (size_t)size);
	}
	return false;
}

static void take_input(struct serving *serving, short events)
{
	ssize_t n = events ? mcp_lines_read(&serving->lines, serving->in_fd) : -EAGAIN;

	if (n < 0 && n != -EAGAIN)
		serving->is_over = true;
	if (take_lines(serving) && serving->lines.is_ended)
		serving->is_over = true;
}

static void beat(struct serving *serving)
{
	uint64_t now_ms = clock_now_ms();

	if (!serving->mcp->config->keeps_alive || now_ms < serving->beat_ms)
		return;
	serving->beat_ms = now_ms + BEAT_MS;
	mcp_box_beat(&serving->mcp->box);
}

/* Sends what the client takes. Does it take nothing, for long, having closed its own end? */
static void give_output(struct serving *serving, short events)
{
	struct mcp_out *out = &serving->mcp->out;

	if (events & (POLLERR | POLLHUP | POLLNVAL))
		mcp_out_leave(out);
	if (events & POLLOUT || !mcp_out_is_busy(out))
		serving->moved_ms = clock_now_ms();
	mcp_out_flush(out);
	serving->is_over |= mcp_out_is_gone(out);
	if (serving->is_closed && clock_now_ms() - serving->moved_ms > STUCK_MS)
		serving->is_over = true;
}

/* Sleeps until there is something to do, and does it. */
static void turn(struct serving *serving)
{
	struct mcp_out *out = &serving->mcp->out;
	bool reads = !mcp_out_is_busy(out) && !serving->lines.is_ended;
	struct pollfd fds[] = {
		/* Closed while it is not read from, it would wake us for ever. */
		{ .fd = reads || !serving->is_closed ? serving->in_fd : -1,
		  .events = reads ? POLLIN : POLLRDHUP },
		{ .fd = out->fd, .events = mcp_out_is_waiting(out) ? POLLOUT : 0 },
		{ .fd = out->wake_fd, .events = POLLIN },
		{ .fd = serving->signal_fd, .events = POLLIN },
	};

	if (poll(fds, 4, serving->is_closed ? TICK_MS : BEAT_MS) < 0 && errno != EINTR)
		serving->is_over = true;
	if (fds[3].revents)
		serving->is_over = serving->is_signalled = true;
	serving->is_closed |= (fds[0].revents & (POLLHUP | POLLRDHUP)) != 0;
	give_output(serving, fds[1].revents);
	take_input(serving, reads ? fds[0].revents : 0);
	beat(serving);
}

/* Until the calls have ended and what they said is written, or the time is over. */
static void drain(struct mcp *mcp, uint64_t wait_ms)
{
	uint64_t until_ms = clock_now_ms() + wait_ms;
	struct mcp_out *out = &mcp->out;

	while ((mcp_jobs_count(&mcp->jobs) > 0 || mcp_out_is_waiting(out)) &&
	       clock_now_ms() < until_ms && !mcp_out_is_gone(out)) {
		struct pollfd fds[] = {
			{ .fd = out->fd, .events = mcp_out_is_waiting(out) ? POLLOUT : 0 },
			{ .fd = out->wake_fd, .events = POLLIN },
		};

		poll(fds, 2, TICK_MS / 10);
		if (fds[0].revents & ~POLLOUT)
			mcp_out_leave(out);
		mcp_out_flush(out);
	}
}

/* Did all calls end? */
static bool end_calls(struct serving *serving)
{
	struct mcp *mcp = serving->mcp;

	if (!serving->is_signalled)
		drain(mcp, GRACE_MS);
	mcp_out_leave(&mcp->out); /* who waits to write must not hold up the end */
	mcp_jobs_cancel(&mcp->jobs, NULL);
	mcp_box_end(&mcp->box);
	return mcp_jobs_end(&mcp->jobs, clock_now_ms() + CANCEL_MS);
}

static int take_signals(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void serve(struct serving *serving)
{
	struct mcp *mcp = serving->mcp;

	while (!serving->is_over)
		turn(serving);
	if (!end_calls(serving))
		_exit(1); /* its end of the stream closes: the monitor destroys the sandbox */
	mcp_box_close(&mcp->box);
}

int mcp_serve(const struct mcp_config *config, int in_fd, int out_fd)
{
	struct mcp mcp = { .config = config, .log_level = MCP_WARNING };
	struct serving serving = { .mcp = &mcp, .in_fd = in_fd, .signal_fd = take_signals() };
	int r = mcp_out_init(&mcp.out, out_fd);

	if (r < 0 || serving.signal_fd < 0) {
		fprintf(stderr, "caisson mcp: stdout or a descriptor is missing: %s\n",
			strerror(r < 0 ? -r : errno));
		return 1;
	}
	mcp_box_init(&mcp.box, config);
	mcp_jobs_init(&mcp.jobs, &mcp);
	mcp_lines_init(&serving.lines, MCP_LINE_BYTES);
	serving.moved_ms = clock_now_ms();
	serving.beat_ms = serving.moved_ms + BEAT_MS;
	serve(&serving);
	mcp_lines_done(&serving.lines);
	mcp_out_done(&mcp.out);
	fd_close(serving.signal_fd);
	return 0;
}
