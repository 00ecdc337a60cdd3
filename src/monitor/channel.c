/* Frames to and from one agent; see channel.h. */
#include "monitor/channel.h"

#include <errno.h>
#include <stdint.h>
#include <sys/uio.h>
#include <stdalign.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "wire/frame.h"

enum {
	READ_SIZE = 256 << 10,
	OUT_MAX = 32 << 20,
	FRAME_QUOTA = 64 << 20,
	SMALL_QUOTA = 4 << 10,
};

void channel_init(struct channel *channel, int fd)
{
	*channel = (struct channel){ .fd = fd, .out_fd = -1, .side = FROM_AGENT };
	buf_init(&channel->in, FRAME_MAX + READ_SIZE);
	buf_init(&channel->out, OUT_MAX);
	flow_init(&channel->flow);
}

void channel_done(struct channel *channel)
{
	buf_done(&channel->in);
	buf_done(&channel->out);
	flow_done(&channel->flow);
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

static int send_binary(struct channel *channel, struct emit *emit, const void *data, size_t size)
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

size_t channel_bytes(const struct channel *channel, const struct term *bytes)
{
	return bytes->bytes.size + channel->flow.size;
}

/* Of what the stream does not take now, or what is not all wanted, `size` bytes are copied. */
static int pour(struct channel *channel, struct flow *flow, size_t size)
{
	uint8_t *at;
	int r;

	if (buf_size(&channel->out) < FRAME_PIECE)
		channel_flush(channel);
	if (buf_size(&channel->out) == 0 && size == flow->size && !channel->is_unheard) {
		flow_pour(flow, out_of(channel)); /* a failure is channel_flush()'s to find */
		size = flow->size;
	}
	if (size == 0)
		return 0;
	at = buf_reserve(&channel->out, flow->size);
	r = at ? flow_drain(flow, at) : -ENOMEM;
	if (r == 0)
		buf_grew(&channel->out, size);
	return r;
}

int channel_pass(struct channel *channel, struct emit *emit, struct channel *from,
		 const struct term *bytes, size_t size)
{
	size_t here = bytes->bytes.size < size ? bytes->bytes.size : size;
	int r;

	if (here == size)
		return send_binary(channel, emit, bytes->bytes.data, size);
	emit_binary_head(emit, size);
	r = emit_end_before(emit, size);
	if (r < 0)
		return r;
	r = buf_add(&channel->out, bytes->bytes.data, here);
	if (r == 0)
		r = pour(channel, &from->flow, size - here);
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

/* Reads once, at most `size` bytes. 1: something came; 0; -ENOMEM with a sentence. */
static int read_some(struct channel *channel, size_t size, struct csn_error *err)
{
	uint8_t *at = buf_reserve(&channel->in, size);
	ssize_t n;

	if (!at)
		return csn_fail(err, -ENOMEM, "wire", "out of memory");
	n = read(channel->fd, at, size);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	channel->is_ended = n <= 0;
	if (n > 0)
		buf_grew(&channel->in, (size_t)n);
	return n > 0;
}

/* ---- bulk ------------------------------------------------------------------------------------ */

/* The rest of the frame that has begun, into the flow. 1: it is there; 0: not yet, or not so: what
 * did come is then in `in`, as if it had been read. */
static int fetch_rest(struct channel *channel, size_t size, struct csn_error *err)
{
	ssize_t n = flow_fill(&channel->flow, channel->fd, NULL, size);
	uint8_t *at;
	int r;

	if (n == (ssize_t)size)
		return 1;
	if (n == -EAGAIN)
		return 0;
	channel->is_ended = n == 0;
	channel->expects_bulk = n > 0; /* else this stream, or no pipe, is fit for it */
	if (n <= 0)
		return 0;
	at = buf_reserve(&channel->in, (size_t)n);
	r = at ? flow_drain(&channel->flow, at) : -ENOMEM;
	if (r < 0)
		return csn_fail(err, r, "wire", "cannot keep what came: %s", strerror(-r));
	buf_grew(&channel->in, (size_t)n);
	return 0;
}

/* One frame: 1 if it was handled, 0 if there is nothing to be done now. */
static int handle_bulk(struct channel *channel, channel_fn handle, void *data,
		       struct csn_error *err)
{
	alignas(max_align_t) char first[SMALL_QUOTA];
	_cleanup_arena_ struct arena arena;
	struct frame_data frame;
	struct term items[4];
	size_t here;
	int r;

	arena_init_in(&arena, SMALL_QUOTA, first, sizeof first);
	channel->expects_bulk = frame_data_begun(&channel->in, channel->side, &arena, &frame);
	if (!channel->expects_bulk)
		return 0;
	here = buf_size(&channel->in) - frame.head;
	r = fetch_rest(channel, frame.size - here, err);
	if (r <= 0)
		return r;
	memcpy(items, frame.term.items, sizeof items);
	items[3].bytes.data = buf_at(&channel->in) + frame.head;
	items[3].bytes.size = here;
	r = handle(data, frame.index, items, err);
	if (channel->flow.size > 0) /* nobody wanted it */
		flow_done(&channel->flow);
	buf_consume(&channel->in, frame.head + here);
	return r < 0 ? r : 1;
}

/* A head is read, and what follows it is not. One frame a turn: who gets it works on it while the
 * next one comes, and what he answers is not late. */
static int read_bulk(struct channel *channel, channel_fn handle, void *data, struct csn_error *err)
{
	int r = 1;

	if (buf_size(&channel->in) < FRAME_DATA_HEAD)
		r = read_some(channel, FRAME_DATA_HEAD - buf_size(&channel->in), err);
	if (r > 0) {
		channel->expects_bulk = false; /* unless a handler, or what has begun, says so */
		r = handle_frames(channel, handle, data, err);
	}
	if (r >= 0 && buf_size(&channel->in) > 0)
		r = handle_bulk(channel, handle, data, err);
	if (!channel->expects_bulk || channel->is_ended)
		flow_done(&channel->flow);
	return r;
}

int channel_read(struct channel *channel, channel_fn handle, void *data, struct csn_error *err)
{
	int r;

	if (channel->is_broken || channel->is_ended)
		return 0;
	if (channel->expects_bulk) {
		r = read_bulk(channel, handle, data, err);
	} else {
		r = read_some(channel, READ_SIZE, err);
		if (r > 0)
			r = handle_frames(channel, handle, data, err);
	}
	channel->is_broken = r < 0;
	return r < 0 ? r : 0;
}
