/* Frames to and from one agent; see channel.h. */
#include "monitor/channel.h"

#include <errno.h>
#include <stdint.h>
#include <sys/uio.h>
#include <stdalign.h>
#include <stddef.h>
#include <unistd.h>

#include "wire/frame.h"

enum { READ_SIZE = 256 << 10, OUT_MAX = 32 << 20, FRAME_QUOTA = 64 << 20 };

void channel_init(struct channel *channel, int fd)
{
	*channel = (struct channel){ .fd = fd, .out_fd = -1, .side = FROM_AGENT };
	buf_init(&channel->in, FRAME_MAX + READ_SIZE);
	buf_init(&channel->out, OUT_MAX);
}

void channel_done(struct channel *channel)
{
	buf_done(&channel->in);
	buf_done(&channel->out);
}

struct emit channel_frame(struct channel *channel)
{
	return emit_begin(&channel->out);
}

int channel_send(struct channel *channel, struct emit *emit)
{
	(void)channel;
	return emit_end(emit);
}

static int out_of(const struct channel *channel)
{
	return channel->out_fd >= 0 ? channel->out_fd : channel->fd;
}

/* Of what is queued and then `data`: how many bytes of `data` the stream took. */
static size_t write_both(struct channel *channel, const void *data, size_t size)
{
	size_t queued = buf_size(&channel->out);
	struct iovec parts[] = { { buf_at(&channel->out), queued },
				 { (void *)(uintptr_t)data, size } };
	ssize_t n = writev(out_of(channel), parts, 2);

	if (n < 0) /* not now, or never: channel_flush() finds out */
		return 0;
	buf_consume(&channel->out, (size_t)n < queued ? (size_t)n : queued);
	return (size_t)n > queued ? (size_t)n - queued : 0;
}

int channel_send_binary(struct channel *channel, struct emit *emit, const void *data, size_t size)
{
	size_t sent = 0;
	int r;

	emit_binary_head(emit, size);
	r = emit_end_before(emit, size);
	if (r < 0)
		return r;
	if (buf_size(&channel->out) < FRAME_PIECE && channel_wants_out(channel))
		sent = write_both(channel, data, size);
	r = buf_add(&channel->out, (const char *)data + sent, size - sent);
	if (r < 0)
		channel->is_broken = true;
	return r;
}

bool channel_wants_out(const struct channel *channel)
{
	return buf_size(&channel->out) > 0 && !channel->is_broken && !channel->is_unheard &&
	       !channel->is_ended;
}

int channel_flush(struct channel *channel)
{
	while (channel_wants_out(channel)) {
		ssize_t n = write(out_of(channel), buf_at(&channel->out), buf_size(&channel->out));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0) {
			channel->is_unheard =
				true; /* what it said before it went is still to be read */
			return -errno;
		}
		buf_consume(&channel->out, (size_t)n);
	}
	return 0;
}

static int handle_one(struct channel *channel, struct term_input payload, channel_fn handle,
		      void *data, struct csn_error *err)
{
	alignas(max_align_t) char
		first[FRAME_PIECE + (8 << 10)]; /* else a mapping for each piece */
	_cleanup_arena_ struct arena arena;
	struct term frame;
	int r;

	arena_init_in(&arena, FRAME_QUOTA, first, sizeof first);
	r = frame_decode(&arena, payload, channel->side, &frame, err);
	return r < 0 ? r : handle(data, r, frame.items, err);
}

static int handle_frames(struct channel *channel, channel_fn handle, void *data,
			 struct csn_error *err)
{
	const uint8_t *payload;
	size_t size;
	int r;

	while ((r = frame_peek(&channel->in, FRAME_MAX, &payload, &size, err)) > 0) {
		r = handle_one(channel, (struct term_input){ payload, size }, handle, data, err);
		if (r < 0)
			return r;
		buf_consume(&channel->in, 4 + size);
	}
	return r;
}

int channel_read(struct channel *channel, channel_fn handle, void *data, struct csn_error *err)
{
	uint8_t *at;
	ssize_t n;
	int r;

	if (channel->is_broken || channel->is_ended)
		return 0;
	at = buf_reserve(&channel->in, READ_SIZE);
	if (!at)
		return csn_fail(err, -ENOMEM, "wire", "out of memory");
	n = read(channel->fd, at, READ_SIZE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		channel->is_ended = true;
		return 0;
	}
	buf_grew(&channel->in, (size_t)n);
	r = handle_frames(channel, handle, data, err);
	channel->is_broken = r < 0;
	return r;
}
