/* Bytes through a pipe without a copy of ours; see flow.h. */
#include "os/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

/* A piece of 64 KiB that begins anywhere in a page, in pages of 4 KiB, is 17 of them: the default
 * of 16 would cut each in two. More is not to be had by a user who has many pipes; less works. */
enum { PIPE_SIZE = 128 << 10 };

void flow_init(struct flow *flow)
{
	*flow = (struct flow){ -1, -1, 0 };
}

void flow_done(struct flow *flow)
{
	fd_cleanup(&flow->in);
	fd_cleanup(&flow->out);
	flow->size = 0;
}

static int make_pipe(struct flow *flow)
{
	int pair[2];

	if (flow->in >= 0)
		return 0;
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	flow->out = pair[0];
	flow->in = pair[1];
	fcntl(flow->in, F_SETPIPE_SZ, PIPE_SIZE);
	return 0;
}

ssize_t flow_fill(struct flow *flow, int fd, int64_t *at, size_t size)
{
	ssize_t n = make_pipe(flow);

	if (n < 0)
		return n;
	do
		n = splice(fd, at, flow->in, NULL, size, SPLICE_F_NONBLOCK);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	flow->size = (size_t)n;
	return n;
}

int flow_pour(struct flow *flow, int fd)
{
	while (flow->size > 0) {
		ssize_t n = splice(flow->out, NULL, fd, NULL, flow->size, SPLICE_F_NONBLOCK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0)
			return -EIO;
		flow->size -= (size_t)n;
	}
	return 0;
}

int flow_drain(struct flow *flow, void *ret_data)
{
	uint8_t *at = ret_data;

	while (flow->size > 0) {
		ssize_t n = read(flow->out, at, flow->size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		flow->size -= (size_t)n;
	}
	return 0;
}
