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
	CANCEL_MS = 5000,        /* for what was cancelled */
	FLUSH_MS = 1000,         /* for a client that reads slowly to the last */
	BEAT_MS = 4 * 60 * 1000, /* less than limits.idle usually is */
};

struct serving {
	struct mcp *mcp;
	struct mcp_lines lines;
	int in_fd;
	int signal_fd;
	uint64_t beat_ms; /* when the sandbox is told next that we are here */
	bool is_over;
	bool is_signalled;
};

static void take_lines(struct serving *serving)
{
	const char *line = NULL;
	ssize_t size;

	while (!mcp_out_is_busy(&serving->mcp->out)) {
		size = mcp_lines_next(&serving->lines, &line);
		if (size == -EMSGSIZE)
			mcp_rpc_error(serving->mcp, NULL, MCP_INVALID_REQUEST,
				      "a message of more than 16 MiB: it was not read");
		else if (size < 0)
			return;
		else if (size > 0)
			mcp_rpc_line(serving->mcp, line, (size_t)size);
	}
}

static void take_input(struct serving *serving)
{
	ssize_t n = mcp_lines_read(&serving->lines, serving->in_fd);

	if (n < 0 && n != -EAGAIN)
		serving->is_over = true;
	take_lines(serving);
	if (n == 0)
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

/* Sleeps until there is something to do, and does it. */
static void turn(struct serving *serving)
{
	struct mcp_out *out = &serving->mcp->out;
	bool is_busy = mcp_out_is_busy(out);
	short writes = mcp_out_is_waiting(out) ? POLLOUT : 0;
	struct pollfd fds[] = {
		{ .fd = is_busy ? -1 : serving->in_fd, .events = POLLIN },
		{ .fd = out->fd, .events = writes },
		{ .fd = out->wake_fd, .events = POLLIN },
		{ .fd = serving->signal_fd, .events = POLLIN },
	};

	if (poll(fds, 4, BEAT_MS) < 0 && errno != EINTR)
		serving->is_over = true;
	if (fds[3].revents)
		serving->is_over = serving->is_signalled = true;
	if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		mcp_out_leave(out);
	if ((fds[1].revents & POLLOUT) || fds[2].revents)
		mcp_out_flush(out);
	if (is_busy)
		take_lines(serving); /* that waited */
	else if (fds[0].revents)
		take_input(serving);
	serving->is_over |= mcp_out_is_gone(out);
	beat(serving);
}

/* What is queued, as far as the client takes it in time. */
static void flush(struct mcp_out *out)
{
	uint64_t until_ms = clock_now_ms() + FLUSH_MS, now_ms;

	while (mcp_out_is_waiting(out) && (now_ms = clock_now_ms()) < until_ms) {
		struct pollfd room = { .fd = out->fd, .events = POLLOUT };

		poll(&room, 1, (int)(until_ms - now_ms));
		if (room.revents & ~POLLOUT)
			mcp_out_leave(out);
		mcp_out_flush(out);
	}
}

/* Did all calls end? */
static bool end_calls(struct serving *serving)
{
	struct mcp *mcp = serving->mcp;
	bool is_left = serving->is_signalled || mcp_out_is_gone(&mcp->out);

	if (!is_left && mcp_jobs_end(&mcp->jobs, clock_now_ms() + GRACE_MS))
		return true;
	mcp_jobs_cancel(&mcp->jobs, NULL);
	mcp_box_end(&mcp->box);
	if (is_left)
		mcp_out_leave(&mcp->out); /* who waits to write must not hold up the end */
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
	flush(&mcp->out);
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
	serving.beat_ms = clock_now_ms() + BEAT_MS;
	serve(&serving);
	mcp_lines_done(&serving.lines);
	mcp_out_done(&mcp.out);
	fd_close(serving.signal_fd);
	return 0;
}
