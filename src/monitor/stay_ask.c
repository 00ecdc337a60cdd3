/* See stay_ask.h. The stream's end is the monitor's: it closes when all else is gone. */
#include "monitor/stay_ask.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "monitor/channel.h"

static int ignore(void *data, int index, const struct term *items, struct csn_error *err)
{
	(void)data;
	(void)index;
	(void)items;
	(void)err;
	return 0;
}

static int wait_for_end(struct channel *channel, uint64_t until_ms, struct csn_error *err)
{
	while (!channel->is_ended) {
		struct pollfd end = { .fd = channel->fd, .events = POLLIN };
		uint64_t now_ms = clock_now_ms();
		int r;

		channel_flush(channel);
		if (now_ms >= until_ms)
			return csn_fail(
				err, -ETIMEDOUT, "down",
				"the sandbox did not end in time; its monitor may be stopped");
		if (poll(&end, 1, (int)(until_ms - now_ms)) <= 0)
			continue;
		r = channel_read(channel, ignore, NULL, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int stay_ask_end(int fd, uint64_t timeout_ms, struct csn_error *err)
{
	struct channel channel;
	struct emit emit;
	int r = fd_set_nonblock(fd, 1);

	if (r < 0)
		return csn_fail(err, r, "down", "cannot ask the sandbox to end");
	channel_init(&channel, fd);
	emit = channel_frame(&channel);
	emit_tuple(&emit, 1);
	emit_atom(&emit, "stop");
	r = channel_send(&channel, &emit);
	if (r >= 0)
		r = wait_for_end(&channel, clock_now_ms() + timeout_ms, err);
	channel_done(&channel);
	return r;
}
