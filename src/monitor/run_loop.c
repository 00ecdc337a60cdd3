/*
 * One poll loop. Order matters: notifications before pumping, because a program that waits on
 * one may hold what the pump waits for. Nothing in here blocks.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "monitor/run_private.h"

enum slot {
	SLOT_NOTIFY,
	SLOT_NOTIFY_TIMER,
	SLOT_LISTENERS,
	SLOT_STREAM,
	SLOT_SIGNALS,
	SLOT_WALL,
	SLOT_OOM,
	SLOT_OUT,
	SLOT_ERR,
	SLOT_IN,
	SLOT_COUNT,
	SLOT_ALL = SLOT_COUNT + GATES_CALLS + FORWARDS_LINKS
};

static void on_notify(struct run *run, short events)
{
	enum notify_state state;

	(void)events;
	if (!run->notify) /* its other descriptor told already */
		return;
	state = notify_handle(run->notify);
	if (state == NOTIFY_END)
		run_end(run, END_VIOLATION, false);
	if (state == NOTIFY_CLOSED) {
		notify_free(run->notify);
		run->notify = NULL;
	}
}

static void on_listeners(struct run *run, short events)
{
	/* Of an agent that was given up nothing is taken: what that fails by is not why. */
	if (events & POLLIN && !run->channel.is_broken)
		run_take_listener(run);
	else
		run->wall.listeners = fd_close(run->wall.listeners);
}

static void on_stream(struct run *run, short events)
{
	if (events & POLLOUT)
		channel_flush(&run->channel);
	if (!(events & (POLLIN | POLLHUP | POLLERR)))
		return;
	if (channel_read(&run->channel, run_handle_frame, run, &run->error) < 0)
		run_lose(run);
}

static void on_signals(struct run *run, short events)
{
	struct signalfd_siginfo info;

	(void)events;
	while (read(run->signal_fd, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGWINCH)
			run_send_resize(run);
		else
			run_interrupt(run, (int)info.ssi_signo);
	}
}

static void on_wall(struct run *run, short events)
{
	(void)events;
	run->is_wall_over = true;
}

static void on_oom(struct run *run, short events)
{
	(void)events;
	run->limits.was_oom_told |= cgroup_oom_ack(run->limits.oom_fd);
	if (limits_saw_oom(&run->limits))
		run_end(run, END_MEMORY, false);
}

static void flush_sink(struct run *run, struct sink *sink)
{
	ssize_t n = sink_flush(sink);

	if (n > 0)
		run_send_window(run, (size_t)n);
	if (n >= 0)
		return;
	/* Our reader left: as a pipe's writer we go too. Where it is there, and its disk is full,
	 * somebody has to say so. */
	if (n != -EPIPE && !run->error.code)
		csn_fail(&run->error, (int)n, "output", "cannot write the command's output: %s",
			 strerror((int)-n));
	run->end_signal = SIGPIPE;
	run_end(run, END_CANCELLED, false);
}

static void on_out(struct run *run, short events)
{
	(void)events;
	flush_sink(run, &run->out);
}

static void on_err(struct run *run, short events)
{
	(void)events;
	flush_sink(run, &run->err);
}

static void on_in(struct run *run, short events)
{
	(void)events;
	run_pump_input(run);
}

static void (*const handlers[SLOT_COUNT])(struct run *run, short events) = {
	[SLOT_NOTIFY] = on_notify,
	[SLOT_NOTIFY_TIMER] = on_notify,
	[SLOT_LISTENERS] = on_listeners,
	[SLOT_STREAM] = on_stream,
	[SLOT_SIGNALS] = on_signals,
	[SLOT_WALL] = on_wall,
	[SLOT_OOM] = on_oom,
	[SLOT_OUT] = on_out,
	[SLOT_ERR] = on_err,
	[SLOT_IN] = on_in,
};

/* How many there are of our own. */
static void fill(const struct run *run, struct pollfd *fds)
{
	bool reads = run->is_input_open && run->input_window > 0 && run->is_ready;
	bool has_stream = !run->channel.is_ended && !run->channel.is_broken;

	for (int i = 0; i < SLOT_COUNT; i++)
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	fds[SLOT_NOTIFY].fd = run->notify ? notify_fd(run->notify) : -1;
	fds[SLOT_NOTIFY_TIMER].fd = run->notify ? notify_timer_fd(run->notify) : -1;
	fds[SLOT_LISTENERS].fd = run->wall.listeners;
	fds[SLOT_STREAM].fd = has_stream ? run->wall.stream : -1;
	fds[SLOT_STREAM].events |= channel_wants_out(&run->channel) ? POLLOUT : 0;
	fds[SLOT_SIGNALS].fd = run->signal_fd;
	fds[SLOT_WALL].fd = run->is_wall_over ? -1 : run->wall.pidfd;
	fds[SLOT_OOM].fd = run->ending == END_NONE ? run->limits.oom_fd : -1;
	fds[SLOT_OOM].events = run->limits.oom_events;
	fds[SLOT_OUT] = (struct pollfd){ sink_wants_out(&run->out) ? run->out.fd : -1, POLLOUT, 0 };
	fds[SLOT_ERR] = (struct pollfd){ sink_wants_out(&run->err) ? run->err.fd : -1, POLLOUT, 0 };
	fds[SLOT_IN].fd = reads ? run->setup->stdin_fd : -1;
}

/* Over when the command is, or when nobody is left to tell; what came is written first. */
static bool is_over(struct run *run)
{
	bool is_silent = run->channel.is_ended || run->channel.is_broken || run->is_killed;

	if (!run->is_replied && !(run->is_wall_over && is_silent))
		return false;
	if (run->end_signal == SIGPIPE)
		return true;
	return !sink_wants_out(&run->out) && !sink_wants_out(&run->err);
}

static int sooner(int wait_ms, uint64_t at_ms, uint64_t now_ms)
{
	uint64_t left_ms = at_ms <= now_ms ? 0 : at_ms - now_ms;

	return wait_ms >= 0 && (uint64_t)wait_ms <= left_ms ? wait_ms
	       : left_ms > 60000                            ? wait_ms
							    : (int)left_ms;
}

void run_loop(struct run *run)
{
	struct pollfd fds[SLOT_ALL];

	while (!is_over(run)) {
		uint64_t next_ms, now_ms = clock_now_ms();
		size_t gates, count;
		int wait_ms;

		next_ms = forwards_clock(run->forwards, now_ms);
		channel_flush(&run->channel);
		wait_ms = sooner(run_clocks(run, now_ms), next_ms, now_ms);
		fill(run, fds);
		gates = SLOT_COUNT + gates_watch(run->gates, fds + SLOT_COUNT);
		count = gates + forwards_watch(run->forwards, fds + gates);
		if (poll(fds, count, wait_ms) < 0)
			continue;
		for (int i = 0; i < SLOT_COUNT; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				handlers[i](run, fds[i].revents);
		for (size_t i = SLOT_COUNT; i < count; i++)
			if (fds[i].revents && i < gates)
				gates_ready(run->gates, fds[i].fd);
			else if (fds[i].revents)
				forwards_ready(run->forwards, &fds[i]);
	}
}
