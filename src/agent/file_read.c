/*
 * read: a small content comes in the reply, a larger one as {data, Ref, stdout, Bin} before it, as
 * far as the window is open. Sizes are not believed: files of /proc say 0, and others change.
 */
#include "agent/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/flow.h"
#include "wire/frame.h"

enum { PIECES = 4 }; /* in one step */

struct reading {
	struct job job;
	int fd;
	int64_t at, left; /* offset, and bytes still asked for */
	int64_t sent;
	struct flow flow;
	bool is_copied; /* its bytes cannot flow */
	char path[PATH_MAX];
};

/* Up to `size` bytes; fewer only at the end. */
static ssize_t read_full(int fd, char *data, size_t size, int64_t at)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = pread(fd, data + got, size - got, at + (int64_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static struct emit begin_piece(struct agent *agent, const struct reading *reading)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "data");
	emit_int(&emit, reading->job.ref);
	emit_atom(&emit, "stdout");
	return emit;
}

/* The next bytes of the file, at most `want`, straight into a frame. How many, or a negative errno;
 * of none there is no frame. */
static ssize_t copy_piece(struct agent *agent, const struct reading *reading, size_t want)
{
	struct emit emit = begin_piece(agent, reading);
	void *at = emit_space(&emit, want);
	ssize_t n = at ? read_full(reading->fd, at, want, reading->at) : -ENOMEM;

	if (n <= 0) {
		emit_drop(&emit);
		return n;
	}
	emit_space_end(&emit, (size_t)n);
	agent_send(agent, &emit);
	return n;
}

/* The same without a copy. Its size is known before its frame begins, whoever cuts the file
 * meanwhile; it may be less than `want` in the middle of the file. */
static ssize_t flow_piece(struct agent *agent, struct reading *reading, size_t want)
{
	int64_t at = reading->at;
	ssize_t n = flow_fill(&reading->flow, reading->fd, &at, want);
	struct emit emit;

	if (n <= 0)
		return n;
	emit = begin_piece(agent, reading);
	agent_send_flow(agent, &emit, &reading->flow);
	return n;
}

static ssize_t send_piece(struct agent *agent, struct reading *reading, size_t want)
{
	ssize_t n = reading->is_copied ? 0 : flow_piece(agent, reading, want);

	if (n <= 0) { /* the end, or an error that read() is to name */
		reading->is_copied = true;
		n = copy_piece(agent, reading, want);
	}
	if (n <= 0)
		return n;
	reading->job.window -= n;
	reading->at += n;
	reading->left -= n;
	reading->sent += n;
	return n;
}

static enum job_state end(struct agent *agent, struct reading *reading)
{
	struct emit emit = files_reply(agent, reading->job.ref, 1);

	emit_atom(&emit, "size");
	emit_int(&emit, reading->sent);
	agent_send(agent, &emit);
	return JOB_OVER;
}

static enum job_state step(struct agent *agent, struct job *job)
{
	struct reading *reading = (struct reading *)job;
	struct csn_error err = { 0 };

	for (int i = 0; i < PIECES; i++) {
		int64_t want = FRAME_PIECE;
		ssize_t n;

		want = reading->left < want ? reading->left : want;
		if (want == 0)
			return end(agent, reading);
		want = job->window < want ? job->window : want;
		if (want <= 0)
			return JOB_WAITS;
		n = send_piece(agent, reading, (size_t)want);
		if (n < 0) {
			resolve_fail(&err, (int)n, "read", reading->path);
			return files_over(agent, job, &err);
		}
		if (n == 0)
			return end(agent, reading);
	}
	return JOB_AGAIN;
}

static void done(struct job *job)
{
	struct reading *reading = (struct reading *)job;

	flow_done(&reading->flow);
	fd_cleanup(&reading->fd);
}

static const struct job_type type = { step, NULL, done };

static void send_whole(struct agent *agent, int64_t ref, const char *data, size_t size)
{
	struct emit emit = files_reply(agent, ref, 2);

	emit_atom(&emit, "bytes");
	emit_binary(&emit, data, size);
	emit_atom(&emit, "size");
	emit_int(&emit, (int64_t)size);
	agent_send(agent, &emit);
}

void read_start(struct agent *agent, const struct call *call)
{
	const char *path = call_text(call, "path");
	int64_t at = call_number(call, "offset", 0);
	int64_t left = call_number(call, "length", INT64_MAX);
	struct csn_error err = { 0 };
	_cleanup_fd_ int fd = -1;
	struct reading *reading;
	char data[FRAME_PIECE];
	struct stat st;
	ssize_t n;
	int r = files_open(&agent->roots, path, &fd, &st, &err);

	if (r < 0) {
		files_fail(agent, call->ref, &err);
		return;
	}
	left = left < INT64_MAX - at ? left : INT64_MAX - at;
	n = read_full(fd, data, left < FRAME_PIECE ? (size_t)left : sizeof data, at);
	if (n < 0) {
		resolve_fail(&err, (int)n, "read", path);
		files_fail(agent, call->ref, &err);
	} else if (n < FRAME_PIECE || n == left || at + n == st.st_size) {
		send_whole(agent, call->ref, data, (size_t)n);
	} else {
		reading = job_new(agent, call, &type, sizeof *reading);
		if (!reading)
			return;
		flow_init(&reading->flow);
		memcpy(reading->path, path, strlen(path) + 1);
		reading->fd = fd_take(&fd);
		reading->at = at;
		reading->left = left;
	}
}
