/*
 * remove: a path, or with `recursive` a directory and all that is in it
 *
 * One directory is open at a time. Its entries are unlinked; one that is a directory and not empty
 * is entered, and when it is empty we go back by "..", if that is still the directory we came from,
 * and read it anew. So depth costs 16 bytes a level and no descriptor, and no link is followed.
 * A directory that is moved while we are in it: we begin again at the top.
 *
 * A mount point is never emptied: the kernel refuses to remove one (EBUSY) before we would enter
 * it. Neither is the workspace, whatever it lies in. What was removed before a failure stays
 * removed. Who fills a directory as fast as we empty it keeps us at work, a slice at a time:
 * cancel.
 */
#include "agent/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/folder.h"
#include "base/fd.h"
#include "os/sys.h"

enum {
	ENTRIES = 256,    /* in one step */
	DEPTH = 1 << 20,  /* of directories in each other; 16 MiB */
	BEGINNINGS = 100, /* because something was moved */
};

struct level { /* a directory on the way to the one that is open */
	uint64_t device, inode;
};

struct removing {
	struct job job;
	struct entry entry;
	struct folder folder;
	struct level *levels;
	size_t depth, room; /* levels that are used, allocated */
	unsigned beginnings;
	char path[PATH_MAX];
};

/* A file, a link or an empty directory; -ENOTEMPTY for another one. What is gone is removed. */
static int remove_one(int dir_fd, const char *name, bool is_folder)
{
	int error;

	if (!is_folder && unlinkat(dir_fd, name, 0) == 0)
		return 0;
	error = is_folder ? EISDIR : errno;
	if (error == EISDIR || error == EPERM) { /* EPERM: what POSIX says of directories */
		if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
			return 0;
		if (error == EISDIR || errno != ENOTDIR)
			error = errno;
	}
	return error == EEXIST ? -ENOTEMPTY : -error;
}

static int explain(struct csn_error *err, int code, const struct removing *removing,
		   const char *name)
{
	if (code == -ESTALE)
		return csn_fail(err, code, "files",
				"cannot remove %.300s: it is moved again and again",
				removing->path);
	if (code == -EBUSY || code == -EXDEV)
		return csn_fail(err, -EBUSY, "files",
				"cannot remove %.300s: %.100s is a mount point or the workspace",
				removing->path, name);
	errno = -code;
	return csn_fail(err, code, "files", "cannot remove %.300s: %.100s: %m", removing->path,
			name);
}

/* ---- the walk ---------------------------------------------------------------------------- */

/* RESOLVE_NO_XDEV says what the comparison of devices does not: a bind mount of the same. */
static int open_child(const struct agent *agent, int dir_fd, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW, fd;

	if (agent->roots.has_openat2)
		return sys_openat2(dir_fd, name, (uint64_t)flags,
				   RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS);
	fd = openat(dir_fd, name, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int push(struct removing *removing, const struct stat *st)
{
	if (removing->depth == DEPTH)
		return -ENAMETOOLONG;
	if (removing->depth == removing->room) {
		size_t room = removing->room ? 2 * removing->room : 64;
		struct level *levels = reallocarray(removing->levels, room, sizeof *levels);

		if (!levels)
			return -ENOMEM;
		removing->levels = levels;
		removing->room = room;
	}
	removing->levels[removing->depth++] = (struct level){ st->st_dev, st->st_ino };
	return 0;
}

/* 0 also if it is no directory any more. */
static int enter(const struct agent *agent, struct removing *removing, const char *name)
{
	_cleanup_fd_ int fd = open_child(agent, removing->folder.fd, name);
	struct stat here, st;
	int r;

	if (fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR)
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || fstat(removing->folder.fd, &here) < 0)
		return -errno;
	if (roots_has(&agent->roots, &st) || st.st_dev != here.st_dev)
		return -EBUSY;
	r = push(removing, &here);
	if (r >= 0)
		folder_take(&removing->folder, fd_take(&fd));
	return r;
}

/* Opens the top, again if need be. 0 also if it is gone: the next removal says so. */
static int begin(const struct agent *agent, struct removing *removing)
{
	_cleanup_fd_ int fd = open_child(agent, removing->entry.dir_fd, removing->entry.name);
	struct stat st;

	if (removing->beginnings++ == BEGINNINGS)
		return -ESTALE;
	removing->depth = 0;
	folder_done(&removing->folder);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (roots_has(&agent->roots, &st))
		return -EBUSY;
	folder_take(&removing->folder, fd_take(&fd));
	return 0;
}

/* Back to where we came from. */
static int leave(const struct agent *agent, struct removing *removing)
{
	const struct level *level = &removing->levels[removing->depth - 1];
	_cleanup_fd_ int fd =
		openat(removing->folder.fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != level->device || st.st_ino != level->inode)
		return begin(agent, removing);
	removing->depth--;
	folder_take(&removing->folder, fd_take(&fd));
	return 0;
}

/* The top itself, after what was in it. 1: it is gone. */
static int finish(const struct agent *agent, struct removing *removing)
{
	int r = remove_one(removing->entry.dir_fd, removing->entry.name, true);

	if (r == -ENOTEMPTY) {
		removing->beginnings--; /* others write to it; nothing was moved */
		return begin(agent, removing);
	}
	return r == 0 || r == -ENOENT ? 1 : r;
}

/* What the open directory named. */
static int remove_entry(struct agent *agent, struct removing *removing, const char *name,
			bool is_folder)
{
	int r = remove_one(removing->folder.fd, name, is_folder);

	if (r == -ENOTDIR)
		r = remove_one(removing->folder.fd, name, false);
	if (r == -ENOTEMPTY)
		r = enter(agent, removing, name);
	return r == -ENOENT || r == -ENOTDIR ? 0 : r; /* changed: seen at the next reading */
}

/* One entry, or the end of a directory. 1: all is gone. */
static int go_on(struct agent *agent, struct removing *removing, struct csn_error *err)
{
	const char *name = NULL;
	bool is_folder;
	int r = 0;

	if (removing->folder.fd >= 0)
		name = folder_next(&removing->folder, &is_folder, &r);
	if (name)
		r = remove_entry(agent, removing, name, is_folder);
	else if ((r == 0 || r == -ENOENT) && removing->depth > 0) /* ENOENT: others removed it */
		r = leave(agent, removing);
	else if (r == 0 || r == -ENOENT)
		r = finish(agent, removing);
	return r < 0 ? explain(err, r, removing, name ? name : removing->entry.name) : r;
}

static enum job_state step(struct agent *agent, struct job *job)
{
	struct removing *removing = (struct removing *)job;
	struct csn_error err = { 0 };

	for (int i = 0; i < ENTRIES; i++) {
		int r = go_on(agent, removing, &err);

		if (r < 0)
			return files_over(agent, job, &err);
		if (r > 0) {
			files_done(agent, job->ref);
			return JOB_OVER;
		}
	}
	return JOB_AGAIN;
}

static void done(struct job *job)
{
	struct removing *removing = (struct removing *)job;

	folder_done(&removing->folder);
	fd_cleanup(&removing->entry.dir_fd);
	free(removing->levels);
}

static const struct job_type type = { step, NULL, done };

/* ---- starting ---------------------------------------------------------------------------- */

static int remove_now(const struct agent *agent, const struct call *call, struct entry *entry,
		      struct csn_error *err)
{
	const char *path = call_text(call, "path");
	struct stat st;
	int r = resolve_entry(&agent->roots, path, entry, err);

	if (r < 0)
		return r;
	if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    roots_has(&agent->roots, &st))
		return csn_fail(err, -EBUSY, "files", "%.300s is the workspace itself", path);
	r = remove_one(entry->dir_fd, entry->name, false);
	if (r == -ENOTEMPTY && call_flag(call, "recursive"))
		return 1;
	if (r == -ENOTEMPTY)
		return csn_fail(err, r, "files", "%.300s is not empty: say `recursive`", path);
	if (r == -EBUSY)
		return csn_fail(err, r, "files", "%.300s is a mount point", path);
	return r < 0 ? resolve_fail(err, r, "remove", path) : 0;
}

static void remove_later(struct agent *agent, const struct call *call, struct entry *entry)
{
	struct removing *removing = job_new(agent, call, &type, sizeof *removing);
	const char *path = call_text(call, "path");
	struct csn_error err = { 0 };
	int r;

	if (!removing)
		return;
	memcpy(removing->path, path, strlen(path) + 1);
	removing->folder.fd = -1;
	removing->entry = *entry;
	removing->entry.dir_fd = fd_take(&entry->dir_fd);
	r = begin(agent, removing);
	if (r < 0) {
		explain(&err, r, removing, entry->name);
		job_fail(agent, &removing->job, &err);
	}
}

void remove_start(struct agent *agent, const struct call *call)
{
	struct entry entry = { -1, "" };
	struct csn_error err = { 0 };
	int r = remove_now(agent, call, &entry, &err);

	if (r > 0)
		remove_later(agent, call, &entry);
	else if (r < 0)
		files_fail(agent, call->ref, &err);
	else
		files_done(agent, call->ref);
	fd_cleanup(&entry.dir_fd);
}
