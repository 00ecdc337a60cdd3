/* What the file verbs share; see files.h. */
#include "agent/files.h"

#include <errno.h>
#include <fcntl.h>

#include "base/errno_name.h"
#include "base/fd.h"

const char *call_text(const struct call *call, const char *key)
{
	const struct term *term = term_get(call->map, key);

	return term ? (const char *)term->bytes.data : "";
}

int64_t call_number(const struct call *call, const char *key, int64_t otherwise)
{
	const struct term *term = term_get(call->map, key);

	return term ? term->integer : otherwise;
}

bool call_flag(const struct call *call, const char *key)
{
	const struct term *term = term_get(call->map, key);

	return term && term_is_atom(term, "true");
}

struct emit files_reply(struct agent *agent, int64_t ref, uint32_t pairs)
{
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, ref);
	emit_map(&emit, pairs);
	return emit;
}

void files_done(struct agent *agent, int64_t ref)
{
	struct emit emit = files_reply(agent, ref, 0);

	agent_send(agent, &emit);
}

void files_fail(struct agent *agent, int64_t ref, const struct csn_error *err)
{
	agent_fail(agent, ref, errno_name(err->code), err->text);
}

enum job_state files_over(struct agent *agent, const struct job *job, const struct csn_error *err)
{
	files_fail(agent, job->ref, err);
	return JOB_OVER;
}

const char *files_type(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "device";
	}
}

int files_open(const struct roots *roots, const char *path, int *ret_fd, struct stat *ret_st,
	       struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	int r = resolve_open(roots, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd, err);

	if (r == -ENXIO || r == -ENODEV)
		return csn_fail(err, -EINVAL, "files", "%.300s is no regular file", path);
	if (r < 0)
		return r;
	if (fstat(fd, ret_st) < 0)
		return resolve_fail(err, -errno, "read", path);
	if (S_ISDIR(ret_st->st_mode))
		return resolve_fail(err, -EISDIR, "read", path);
	if (!S_ISREG(ret_st->st_mode))
		return csn_fail(err, -EINVAL, "files", "%.300s is no regular file but a %s", path,
				files_type(ret_st->st_mode));
	*ret_fd = fd_take(&fd);
	return 0;
}
