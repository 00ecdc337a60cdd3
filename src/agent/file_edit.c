/*
 * edit: replaces a text where it occurs exactly once
 *
 * Occurrences that overlap count ("aa" is twice in "aaa"): where it could be either of them, it is
 * not clear which was meant. Bytes are bytes: ends of lines, a byte order mark, invalid UTF-8 stay.
 * The count is a Knuth-Morris-Pratt search, whose time does not depend on what the file holds. The
 * file is read once, what is written is that with one change; if it changed meanwhile, nothing is.
 */
#include "agent/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/replace.h"
#include "base/fd.h"

enum {
	TEXT_MAX = 16 << 20,   /* largest file */
	CONTENT_MAX = 1 << 20, /* largest one that the reply carries; as in wire/messages.c */
	SLICE = 1 << 20,       /* of one step */
};

struct editing {
	struct job job;
	int fd; /* -1: all was read */
	struct stat st;
	struct buf text;
	uint8_t *old, *new; /* one allocation */
	size_t old_size, new_size;
	uint32_t *back; /* for each length of a match: the next shorter one that ends here too */
	size_t matched; /* bytes of `old` at the end of what was read */
	int64_t occurrences;
	size_t behind;  /* the first occurrence ends here */
	size_t written; /* bytes of the new content */
	struct replace replace;
	char path[PATH_MAX];
};

/* ---- counting ---------------------------------------------------------------------------- */

static int prepare_search(struct editing *editing)
{
	const uint8_t *old = editing->old;
	uint32_t length = 0;

	editing->back = calloc(editing->old_size + 1, sizeof *editing->back);
	if (!editing->back)
		return -ENOMEM;
	for (size_t i = 1; i < editing->old_size; i++) {
		while (length > 0 && old[i] != old[length])
			length = editing->back[length];
		length += old[i] == old[length];
		editing->back[i + 1] = length;
	}
	return 0;
}

static void search(struct editing *editing, size_t from)
{
	const uint8_t *text = buf_at(&editing->text);
	size_t size = buf_size(&editing->text), matched = editing->matched;

	for (size_t i = from; i < size; i++) {
		while (matched > 0 && text[i] != editing->old[matched])
			matched = editing->back[matched];
		matched += text[i] == editing->old[matched];
		if (matched < editing->old_size)
			continue;
		if (editing->occurrences++ == 0)
			editing->behind = i + 1;
		matched = editing->back[matched];
	}
	editing->matched = matched;
}

/* ---- steps ------------------------------------------------------------------------------- */

static enum job_state fail(struct agent *agent, struct editing *editing, int code)
{
	struct csn_error err = { 0 };

	if (code == -EFBIG)
		csn_fail(&err, code, "files", "cannot edit %.300s: it is larger than 16 MiB",
			 editing->path);
	else if (code == -ESTALE)
		csn_fail(&err, code, "files", "%.300s changed meanwhile: read it again",
			 editing->path);
	else
		resolve_fail(&err, code, "edit", editing->path);
	return files_over(agent, &editing->job, &err);
}

static enum job_state reply(struct agent *agent, const struct editing *editing)
{
	size_t size = buf_size(&editing->text);
	bool fits = size <= CONTENT_MAX;
	struct emit emit = files_reply(agent, editing->job.ref, fits ? 2 : 1);

	emit_atom(&emit, "occurrences");
	emit_int(&emit, editing->occurrences);
	if (fits) {
		emit_atom(&emit, "content");
		emit_binary(&emit, size > 0 ? buf_at(&editing->text) : NULL, size);
	}
	agent_send(agent, &emit);
	return JOB_OVER;
}

/* The new content in the buffer, the temporary file open. */
static int change(const struct roots *roots, struct editing *editing, struct csn_error *err)
{
	size_t begin = editing->behind - editing->old_size;
	size_t tail = buf_size(&editing->text) - editing->behind;
	uint8_t *text;

	if (!buf_reserve(&editing->text, editing->new_size + 1))
		return csn_fail(err, -ENOMEM, "files", "the agent has no memory");
	text = buf_at(&editing->text);
	memmove(text + begin + editing->new_size, text + editing->behind, tail);
	if (editing->new_size > 0)
		memcpy(text + begin, editing->new, editing->new_size);
	editing->text.end = editing->text.start + begin + editing->new_size + tail;
	return replace_begin(&editing->replace, roots, editing->path, -1, err);
}

static enum job_state read_slice(struct agent *agent, struct editing *editing)
{
	size_t size = buf_size(&editing->text);
	uint8_t *at = buf_reserve(&editing->text, SLICE);
	struct csn_error err = { 0 };
	ssize_t n;

	if (!at)
		return fail(agent, editing, -ENOMEM);
	n = read(editing->fd, at, SLICE);
	if (n < 0)
		return errno == EINTR ? JOB_AGAIN : fail(agent, editing, -errno);
	buf_grew(&editing->text, (size_t)n);
	if (size + (size_t)n > TEXT_MAX)
		return fail(agent, editing, -EFBIG);
	search(editing, size);
	if (n > 0)
		return JOB_AGAIN;
	fd_cleanup(&editing->fd);
	if (editing->occurrences != 1)
		return reply(agent, editing);
	if (change(&agent->roots, editing, &err) < 0)
		return files_over(agent, &editing->job, &err);
	return JOB_AGAIN;
}

static enum job_state write_slice(struct agent *agent, struct editing *editing)
{
	size_t left = buf_size(&editing->text) - editing->written;
	size_t size = left < SLICE ? left : SLICE;
	int r = 0;

	if (size > 0)
		r = replace_write(&editing->replace, buf_at(&editing->text) + editing->written,
				  size);
	editing->written += size;
	if (r >= 0 && size < left)
		return JOB_AGAIN;
	if (r >= 0)
		r = replace_commit(&editing->replace, &editing->st);
	return r < 0 ? fail(agent, editing, r) : reply(agent, editing);
}

static enum job_state step(struct agent *agent, struct job *job)
{
	struct editing *editing = (struct editing *)job;

	if (editing->fd >= 0 && !editing->back && prepare_search(editing) < 0)
		return fail(agent, editing, -ENOMEM);
	return editing->fd >= 0 ? read_slice(agent, editing) : write_slice(agent, editing);
}

static void done(struct job *job)
{
	struct editing *editing = (struct editing *)job;

	replace_done(&editing->replace);
	fd_cleanup(&editing->fd);
	buf_done(&editing->text);
	free(editing->back);
	free(editing->old);
}

static const struct job_type type = { step, NULL, done };

/* ---- starting ---------------------------------------------------------------------------- */

static int keep_texts(struct editing *editing, const struct call *call)
{
	const struct term *old = term_get(call->map, "old"), *new = term_get(call->map, "new");

	editing->old_size = old->bytes.size;
	editing->new_size = new->bytes.size;
	editing->old = malloc(editing->old_size + editing->new_size + 1);
	if (!editing->old)
		return -ENOMEM;
	editing->new = editing->old + editing->old_size;
	memcpy(editing->old, old->bytes.data, editing->old_size);
	if (editing->new_size > 0)
		memcpy(editing->new, new->bytes.data, editing->new_size);
	return 0;
}

static int begin(struct agent *agent, struct editing *editing, const struct call *call,
		 struct csn_error *err)
{
	const char *path = call_text(call, "path");
	int r;

	memcpy(editing->path, path, strlen(path) + 1);
	r = files_open(&agent->roots, path, &editing->fd, &editing->st, err);
	if (r < 0)
		return r;
	if (editing->st.st_size > TEXT_MAX)
		return csn_fail(err, -EFBIG, "files",
				"cannot edit %.300s: it is larger than 16 MiB", path);
	return keep_texts(editing, call) < 0 ? resolve_fail(err, -ENOMEM, "edit", path) : 0;
}

void edit_start(struct agent *agent, const struct call *call)
{
	struct csn_error err = { 0 };
	struct editing *editing;

	if (term_get(call->map, "old")->bytes.size == 0) {
		csn_fail(&err, -EINVAL, "files",
			 "`old` is empty, which is everywhere: use write for a new file");
		files_fail(agent, call->ref, &err);
		return;
	}
	editing = job_new(agent, call, &type, sizeof *editing);
	if (!editing)
		return;
	editing->fd = -1;
	replace_init(&editing->replace);
	buf_init(&editing->text, TEXT_MAX + 2 * SLICE + 2);
	if (begin(agent, editing, call, &err) < 0)
		job_fail(agent, &editing->job, &err);
}
