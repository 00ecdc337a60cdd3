/*
 * The loop of a sandbox that stays: who is ready, and who is told. Notifications come before
 * pumping, since a program that waits on one may hold what a client waits for. Nothing blocks.
 */
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/stay_private.h"
#include "monitor/worker.h"

enum {
	FIXED = 6,
	FDS_MAX = FIXED + 3 * STAY_CALLS + 2 * STAY_DETACHED + STAY_CLIENTS + 1 + GATES_CALLS +
		  FORWARDS_LINKS
};

/* Of what came before in the same turn a later one may be the victim: each looks whether `fd` is
 * still its own. */
typedef void (*ready_fn)(struct stay *stay, size_t i, const struct pollfd *fd);

struct watch {
	struct pollfd fds[FDS_MAX];
	struct {
		ready_fn ready;
		size_t i;
	} who[FDS_MAX];
	nfds_t count;
};

static void add(struct watch *watch, struct pollfd fd, ready_fn ready, size_t i)
{
	if (fd.fd < 0)
		return;
	watch->fds[watch->count] = fd;
	watch->who[watch->count].ready = ready;
	watch->who[watch->count].i = i;
	watch->count++;
}

/* ---- the sandbox ----------------------------------------------------------------------------- */

static void on_listeners(struct stay *stay, size_t i, const struct pollfd *fd)
{
	(void)i;
	if (fd->revents & POLLIN)
		stay_exec_take_listener(stay);
	else
		stay->run.wall.listeners = fd_close(stay->run.wall.listeners);
}

static void on_stream(struct stay *stay, size_t i, const struct pollfd *fd)
{
	struct run *run = &stay->run;

	(void)i;
	if (!(fd->revents & (POLLIN | POLLHUP | POLLERR)))
		return;
	if (channel_read(&run->channel, stay_handle_frame, stay, &run->error) < 0)
		run_lose(run);
}

static void on_signals(struct stay *stay, size_t i, const struct pollfd *fd)
{
	struct signalfd_siginfo info;

	(void)i;
	while (read(fd->fd, &info, sizeof info) == sizeof info)
		if (info.ssi_signo != SIGWINCH) {
			stay->run.end_signal = (int)info.ssi_signo;
			stay->is_over = true;
		}
}

static void on_wall(struct stay *stay, size_t i, const struct pollfd *fd)
{
	(void)i;
	(void)fd;
	stay->run.is_wall_over = true;
}

static void on_oom(struct stay *stay, size_t i, const struct pollfd *fd)
{
	(void)i;
	(void)fd;
	stay_oom(stay);
}

static void on_knock(struct stay *stay, size_t i, const struct pollfd *fd)
{
	(void)i;
	(void)fd;
	stay_accept(stay);
}

static void add_fixed(struct watch *watch, const struct stay *stay)
{
	const struct run *run = &stay->run;
	const struct {
		ready_fn ready;
		struct pollfd fd;
	} fixed[FIXED] = {
		{ on_listeners, { run->wall.listeners, POLLIN, 0 } },
		{ on_stream,
		  { run->channel.is_ended ? -1 : run->wall.stream,
		    channel_wants_out(&run->channel) ? POLLIN | POLLOUT : POLLIN, 0 } },
		{ on_signals, { run->signal_fd, POLLIN, 0 } },
		{ on_wall, { run->wall.pidfd, POLLIN, 0 } },
		{ on_oom, { run->limits.oom_fd, run->limits.oom_events, 0 } },
		{ on_knock, { stay->is_up ? stay->setup->listen_fd : -1, POLLIN, 0 } },
	};

	for (size_t i = 0; i < FIXED; i++)
		add(watch, fixed[i].fd, fixed[i].ready, 0);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Of a notifier's two descriptors either wakes it. */
static bool is_notifiers(const struct notify *notify, int fd)
{
	return notify && (notify_fd(notify) == fd || notify_timer_fd(notify) == fd);
}

static void on_notified(struct stay *stay, size_t i, const struct pollfd *fd)
{
	struct stay_call *call = &stay->calls[i];

	if (call->exec && is_notifiers(call->exec->notify, fd->fd))
		stay_exec_notified(stay, call);
}

static void on_detached(struct stay *stay, size_t i, const struct pollfd *fd)
{
	if (stay->detached[i] && is_notifiers(stay->detached[i]->notify, fd->fd))
		stay_detached_notified(stay, i);
}

static void on_worker(struct stay *stay, size_t i, const struct pollfd *fd)
{
	struct stay_call *call = &stay->calls[i];

	if (call->work && call->work->channel.fd == fd->fd)
		stay_work_ready(stay, call);
}

static void on_client(struct stay *stay, size_t i, const struct pollfd *fd)
{
	if (stay->clients[i].channel.fd == fd->fd)
		stay_client_ready(stay, &stay->clients[i], fd->revents);
}

/* What he is told is flushed at the end of each turn. */
static void on_room(struct stay *stay, size_t i, const struct pollfd *fd)
{
	(void)stay;
	(void)i;
	(void)fd;
}

static void add_notifier(struct watch *watch, const struct stay_exec *exec, ready_fn ready,
			 size_t i)
{
	if (!exec || !exec->notify)
		return;
	add(watch, (struct pollfd){ notify_fd(exec->notify), POLLIN, 0 }, ready, i);
	add(watch, (struct pollfd){ notify_timer_fd(exec->notify), POLLIN, 0 }, ready, i);
}

static void add_channel(struct watch *watch, const struct channel *channel, ready_fn ready,
			size_t i)
{
	bool wants_out = channel_wants_out(channel), has_out = channel->out_fd >= 0;

	add(watch,
	    (struct pollfd){ channel->fd, wants_out && !has_out ? POLLIN | POLLOUT : POLLIN, 0 },
	    ready, i);
	/* Only then: a pipe that nobody reads any more is always ready, to say so. */
	if (wants_out && has_out)
		add(watch, (struct pollfd){ channel->out_fd, POLLOUT, 0 }, on_room, i);
}

static void on_gate(struct stay *stay, size_t i, const struct pollfd *fd)
{
	(void)i;
	gates_ready(stay->run.gates, fd->fd);
}

static void add_gates(struct watch *watch, const struct stay *stay)
{
	struct pollfd fds[GATES_CALLS];
	size_t count = gates_watch(stay->run.gates, fds);

	for (size_t i = 0; i < count; i++)
		add(watch, fds[i], on_gate, i);
}

static void on_forward(struct stay *stay, size_t i, const struct pollfd *fd)
{
	(void)i;
	forwards_ready(stay->run.forwards, fd);
}

static void add_forwards(struct watch *watch, const struct stay *stay)
{
	struct pollfd fds[FORWARDS_LINKS];
	size_t count = forwards_watch(stay->run.forwards, fds);

	for (size_t i = 0; i < count; i++)
		add(watch, fds[i], on_forward, i);
}

static void fill(struct watch *watch, const struct stay *stay)
{
	watch->count = 0;
	for (size_t i = 0; i < stay->calls_end; i++)
		add_notifier(watch, stay->calls[i].exec, on_notified, i);
	for (size_t i = 0; i < stay->detached_end; i++)
		add_notifier(watch, stay->detached[i], on_detached, i);
	add_fixed(watch, stay);
	for (size_t i = 0; i < stay->calls_end; i++)
		if (stay->calls[i].work)
			add_channel(watch, &stay->calls[i].work->channel, on_worker, i);
	add_gates(watch, stay);
	add_forwards(watch, stay);
	for (size_t i = 0; i < stay->clients_end; i++)
		add_channel(watch, &stay->clients[i].channel, on_client, i);
}

static void flush(struct stay *stay)
{
	stay_clients_turn(stay);
	channel_flush(&stay->run.channel);
	for (size_t i = 0; i < stay->calls_end; i++)
		if (stay->calls[i].work)
			channel_flush(&stay->calls[i].work->channel);
}

static bool is_over(const struct stay *stay)
{
	const struct run *run = &stay->run;

	return stay->is_over || run->is_killed || run->channel.is_broken || run->channel.is_ended ||
	       run->is_wall_over;
}

void stay_loop(struct stay *stay, int (*clocks)(struct stay *stay))
{
	struct watch watch;

	while (!is_over(stay)) {
		int wait_ms = clocks(stay);

		wall_reap(&stay->run.wall);
		flush(stay);
		if (is_over(stay))
			break;
		fill(&watch, stay);
		if (poll(watch.fds, watch.count, wait_ms) <= 0)
			continue;
		for (nfds_t i = 0; i < watch.count; i++)
			if (watch.fds[i].revents)
				watch.who[i].ready(stay, watch.who[i].i, &watch.fds[i]);
	}
}
