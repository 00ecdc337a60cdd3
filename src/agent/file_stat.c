/* stat and move: one call of the kernel each, nothing to wait for. */
#include "agent/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

static int64_t milliseconds(const struct timespec *time)
{
	return time->tv_sec < 0 ? 0 : (int64_t)time->tv_sec * 1000 + time->tv_nsec / 1000000;
}

void stat_start(struct agent *agent, const struct call *call)
{
	const char *path = call_text(call, "path");
	struct csn_error err = { 0 };
	_cleanup_fd_ int fd = -1;
	char target[PATH_MAX];
	struct emit emit;
	ssize_t size = -1;
	struct stat st;
	int r = resolve_open(&agent->roots, path, O_PATH | O_NOFOLLOW, &fd, &err);

	if (r >= 0 && fstat(fd, &st) < 0)
		r = resolve_fail(&err, -errno, "stat", path);
	if (r < 0) {
		files_fail(agent, call->ref, &err);
		return;
	}
	if (S_ISLNK(st.st_mode))
		size = readlinkat(fd, "", target, sizeof target - 1);
	emit = files_reply(agent, call->ref, size < 0 ? 4 : 5);
	emit_atom(&emit, "type");
	emit_atom(&emit, files_type(st.st_mode));
	emit_atom(&emit, "size");
	emit_int(&emit, st.st_size);
	emit_atom(&emit, "mode");
	emit_int(&emit, st.st_mode & 07777);
	emit_atom(&emit, "mtime_ms");
	emit_int(&emit, milliseconds(&st.st_mtim));
	if (size >= 0) {
		emit_atom(&emit, "target");
		emit_binary(&emit, target, (size_t)size);
	}
	agent_send(agent, &emit);
}

/* The workspace holds everything else: it is not renamed, whatever path leads to it. */
static int check_root(const struct roots *roots, const struct entry *entry, const char *path,
		      struct csn_error *err)
{
	struct stat st;

	if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    roots_has(roots, &st))
		return csn_fail(err, -EBUSY, "files", "%.300s is the workspace itself", path);
	return 0;
}

static int move(const struct roots *roots, const char *path, const char *to, struct csn_error *err)
{
	struct entry from_entry = { -1, "" }, to_entry = { -1, "" };
	_cleanup_fd_ int from_fd = -1, to_fd = -1;
	int r = resolve_entry(roots, path, &from_entry, err);

	from_fd = from_entry.dir_fd;
	if (r >= 0)
		r = resolve_entry(roots, to, &to_entry, err);
	to_fd = to_entry.dir_fd;
	if (r >= 0)
		r = check_root(roots, &from_entry, path, err);
	if (r < 0)
		return r;
	if (renameat(from_fd, from_entry.name, to_fd, to_entry.name) == 0)
		return 0;
	if (errno == EXDEV)
		return csn_fail(err, -EXDEV, "files",
				"cannot move %.160s to %.160s: another mount; write it there and "
				"remove it here",
				path, to);
	return csn_fail(err, -errno, "files", "cannot move %.160s to %.160s: %m", path, to);
}

void move_start(struct agent *agent, const struct call *call)
{
	struct csn_error err = { 0 };
	int r = move(&agent->roots, call_text(call, "path"), call_text(call, "to"), &err);

	if (r < 0)
		files_fail(agent, call->ref, &err);
	else
		files_done(agent, call->ref);
}
