/*
 * Frames from and to the monitor; see monitor.h and, for frames out, agent.h. Bytes that a `write`
 * takes go from the stream into its file without a copy, frame by frame: only when all bytes of one
 * are there is anything done with them.
 */
#include "agent/monitor.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/job.h"
#include "os/agent_fds.h"
#include "wire/frame.h"

/* Most calls fit: each further block costs a start two system calls and their page faults. */
enum { ARENA_FIRST = 16 << 10 };

enum { READ_SIZE = 128 << 10, SMALL_QUOTA = 4 << 10 };

void monitor_init(struct agent *agent)
{
	buf_init(&agent->in, FRAME_MAX + READ_SIZE);
	buf_init(&agent->out, AGENT_OUT_MAX);
	flow_init(&agent->flow);
}

/* ---- out ------------------------------------------------------------------------------------- */

struct emit agent_frame(struct agent *agent)
{
	return emit_begin(&agent->out);
}

void agent_send(struct agent *agent, struct emit *emit)
{
	if (agent->is_broken)
		emit->error = -EPIPE;
	if (emit_end(emit) < 0)
		agent->is_broken = true;
}

void agent_fail(struct agent *agent, int64_t ref, const char *reason, const char *detail)
{
	struct emit emit = agent_frame(agent);

	emit_failed(&emit, ref, reason, detail);
	agent_send(agent, &emit);
}

/* Writes what the socket takes; asks for EPOLLOUT only while something is left. */
int monitor_flush(struct agent *agent)
{
	bool waits;

	while (buf_size(&agent->out) > 0) {
		ssize_t n = write(AGENT_FD_OUT, buf_at(&agent->out), buf_size(&agent->out));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		buf_consume(&agent->out, (size_t)n);
	}
	waits = buf_size(&agent->out) > 0;
	if (waits && !agent->is_out_watched)
		agent_watch(agent, AGENT_FD_OUT, EPOLLOUT,
			    (struct agent_source){ SOURCE_STREAM, 0 });
	else if (!waits && agent->is_out_watched)
		agent_unwatch(agent, AGENT_FD_OUT);
	agent->is_out_watched = waits;
	return 0;
}

void agent_send_flow(struct agent *agent, struct emit *emit, struct flow *flow)
{
	uint8_t *at;

	emit_binary_head(emit, flow->size);
	if (agent->is_broken || emit_end_before(emit, flow->size) < 0 || monitor_flush(agent) < 0) {
		agent->is_broken = true;
		return;
	}
	if (buf_size(&agent->out) == 0)
		flow_pour(flow, AGENT_FD_OUT); /* a failure is monitor_flush()'s to find */
	if (flow->size == 0)
		return;
	at = buf_reserve(&agent->out, flow->size);
	if (at)
		buf_grew(&agent->out, flow->size);
	if (!at || flow_drain(flow, at) < 0)
		agent->is_broken = true;
}

/* ---- in -------------------------------------------------------------------------------------- */

static int handle_payload(struct agent *agent, const uint8_t *payload, size_t size)
{
	alignas(max_align_t) char first[ARENA_FIRST];
	_cleanup_arena_ struct arena arena;
	struct csn_error err = { 0 };
	struct term frame;
	int r;

	arena_init_in(&arena, 64 << 20, first, sizeof first);
	r = frame_decode(&arena, (struct term_input){ payload, size }, FROM_MONITOR, &frame, &err);
	if (r < 0)
		return r;
	return agent_handle(agent, r, &frame, size);
}

/* Reads once, at most `size` bytes. 1: something came; 0; or a negative errno: it is over. */
static int read_some(struct agent *agent, size_t size)
{
	uint8_t *at = buf_reserve(&agent->in, size);
	ssize_t n;

	if (!at)
		return -ENOMEM;
	n = read(AGENT_FD_IN, at, size);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	buf_grew(&agent->in, (size_t)n);
	return 1;
}

static int handle_frames(struct agent *agent)
{
	const uint8_t *payload;
	size_t size;
	int r;

	while ((r = frame_peek(&agent->in, FRAME_MAX, &payload, &size, NULL)) > 0) {
		r = handle_payload(agent, payload, size);
		if (r < 0)
			return r;
		buf_consume(&agent->in, FRAME_HEAD + size);
	}
	return r;
}

/* The rest of a frame that has begun. 1: it is in the flow; 0: not yet, or not so: what did come is
 * then in `in`, as if it had been read. */
static int fetch_rest(struct agent *agent, size_t size)
{
	ssize_t n = flow_fill(&agent->flow, AGENT_FD_IN, NULL, size);
	uint8_t *at;
	int r;

	if (n == (ssize_t)size)
		return 1;
	if (n == 0)
		return -EPIPE;
	agent->expects_bulk = n > 0 || n == -EAGAIN; /* else read() works on this stream */
	if (n < 0)
		return 0;
	at = buf_reserve(&agent->in, (size_t)n);
	r = at ? flow_drain(&agent->flow, at) : -ENOMEM;
	if (r < 0)
		return r;
	buf_grew(&agent->in, (size_t)n);
	return 0;
}

/* One `data` frame of a job's: 1 if it was handled, 0 if there is nothing to be done now. */
static int handle_bulk(struct agent *agent)
{
	alignas(max_align_t) char first[SMALL_QUOTA];
	_cleanup_arena_ struct arena arena;
	struct frame_data frame;
	struct term bytes;
	struct job *job;
	size_t here;
	int r;

	arena_init_in(&arena, SMALL_QUOTA, first, sizeof first);
	agent->expects_bulk =
		agent->is_init && frame_data_begun(&agent->in, FROM_MONITOR, &arena, &frame);
	job = agent->expects_bulk ? job_find(agent, frame.term.items[1].integer) : NULL;
	agent->expects_bulk = job;
	if (!job)
		return 0;
	here = buf_size(&agent->in) - frame.head;
	r = fetch_rest(agent, frame.size - here);
	if (r <= 0)
		return r;
	bytes = (struct term){ .type = TERM_BINARY,
			       .bytes = { buf_at(&agent->in) + frame.head, here } };
	job_input(agent, job, &bytes, false);
	if (agent->flow.size > 0) /* it takes no input, or could not */
		flow_done(&agent->flow);
	buf_consume(&agent->in, frame.head + here);
	return 1;
}

/* A head is read, and what follows it is not. One frame a turn: its answer opens the window while
 * the next one comes. */
static int read_bulk(struct agent *agent)
{
	int r = 1;

	if (buf_size(&agent->in) < FRAME_DATA_HEAD)
		r = read_some(agent, FRAME_DATA_HEAD - buf_size(&agent->in));
	if (r > 0) {
		agent->expects_bulk = false; /* unless another has begun */
		r = handle_frames(agent);
	}
	if (r >= 0 && buf_size(&agent->in) > 0)
		r = handle_bulk(agent);
	if (!agent->expects_bulk)
		flow_done(&agent->flow);
	return r < 0 ? r : 0;
}

int monitor_read(struct agent *agent)
{
	int r;

	if (agent->expects_bulk)
		return read_bulk(agent);
	r = read_some(agent, READ_SIZE);
	return r > 0 ? handle_frames(agent) : r;
}
