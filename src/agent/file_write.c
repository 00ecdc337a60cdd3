/*
 * write: content that is in the call is written at once; content that follows goes to the temporary
 * file piece by piece, each answered by as much window, so nothing of it is kept in memory.
 */
#include "agent/files.h"

#include <errno.h>
#include <string.h>

#include "agent/replace.h"
#include "wire/frame.h"

struct writing {
	struct job job;
	struct replace replace;
	char path[PATH_MAX];
};

static int explain(struct csn_error *err, int code, const char *path)
{
	if (code == -EBUSY)
		return csn_fail(err, code, "files",
				"cannot replace %.300s: something is mounted on it", path);
	return resolve_fail(err, code, "write", path);
}

static void grant(struct agent *agent, int64_t ref, size_t size)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "window");
	emit_int(&emit, ref);
	emit_int(&emit, (int64_t)size);
	agent_send(agent, &emit);
}

static enum job_state input(struct agent *agent, struct job *job, const struct term *bytes,
			    bool is_end)
{
	struct writing *writing = (struct writing *)job;
	struct csn_error err = { 0 };
	size_t size = is_end ? 0 : bytes->bytes.size + agent->flow.size;
	int r;

	if (is_end) {
		r = replace_commit(&writing->replace, NULL);
	} else {
		r = replace_write(&writing->replace, bytes->bytes.data, bytes->bytes.size);
		if (r >= 0)
			r = replace_pour(&writing->replace, &agent->flow);
	}
	if (r < 0) {
		explain(&err, r, writing->path);
		return files_over(agent, job, &err);
	}
	if (is_end) {
		files_done(agent, job->ref);
		return JOB_OVER;
	}
	agent->expects_bulk = size == FRAME_PIECE;
	grant(agent, job->ref, size);
	return JOB_WAITS;
}

static enum job_state step(struct agent *agent, struct job *job)
{
	(void)agent;
	(void)job;
	return JOB_WAITS;
}

static void done(struct job *job)
{
	replace_done(&((struct writing *)job)->replace);
}

static const struct job_type type = { step, input, done };

static int write_at_once(struct agent *agent, const struct call *call, int mode,
			 struct csn_error *err)
{
	const struct term *bytes = term_get(call->map, "bytes");
	const char *path = call_text(call, "path");
	struct replace replace;
	int r;

	replace_init(&replace);
	r = replace_begin(&replace, &agent->roots, path, mode, err);
	if (r >= 0) {
		r = replace_write(&replace, bytes->bytes.data, bytes->bytes.size);
		if (r >= 0)
			r = replace_commit(&replace, NULL);
		if (r < 0)
			explain(err, r, path);
	}
	replace_done(&replace);
	return r;
}

static void write_later(struct agent *agent, const struct call *call, int mode)
{
	struct writing *writing = job_new(agent, call, &type, sizeof *writing);
	const char *path = call_text(call, "path");
	struct csn_error err = { 0 };

	if (!writing)
		return;
	memcpy(writing->path, path, strlen(path) + 1);
	replace_init(&writing->replace);
	if (replace_begin(&writing->replace, &agent->roots, path, mode, &err) < 0)
		job_fail(agent, &writing->job, &err);
}

void write_start(struct agent *agent, const struct call *call)
{
	bool has_bytes = term_get(call->map, "bytes");
	int mode = (int)call_number(call, "mode", -1);
	struct csn_error err = { 0 };

	if (has_bytes == call_flag(call, "stdin"))
		csn_fail(&err, -EINVAL, "files", "write needs either `bytes` or `stdin`");
	else if (!has_bytes)
		write_later(agent, call, mode);
	else if (write_at_once(agent, call, mode, &err) >= 0)
		files_done(agent, call->ref);
	if (err.code)
		files_fail(agent, call->ref, &err);
}
