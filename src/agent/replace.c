/* A new file in an old one's place; see replace.h. */
#include "agent/replace.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/files.h"
#include "base/fd.h"
#include "wire/frame.h"

enum { TRIES = 16 };

void replace_init(struct replace *replace)
{
	replace->entry.dir_fd = -1;
	replace->fd = -1;
	replace->temporary[0] = 0;
}

static int make_temporary(struct replace *replace)
{
	for (int i = 0; i < TRIES; i++) {
		unsigned long long number;

		if (getrandom(&number, sizeof number, 0) != sizeof number)
			return -EIO;
		snprintf(replace->temporary, sizeof replace->temporary, ".caisson-%016llx", number);
		replace->fd = openat(replace->entry.dir_fd, replace->temporary,
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (replace->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	replace->temporary[0] = 0;
	return -errno;
}

/* After the last write, which would clear bits of the mode; the owner first, for the same reason.
 * Where we may not give it away the file becomes ours, as with an editor that replaces it. */
static int set_rights(const struct replace *replace)
{
	const struct stat *old = replace->is_there ? &replace->old : NULL;
	mode_t mode = old ? old->st_mode & 0777 : 0644;

	if (old && (old->st_uid != geteuid() || old->st_gid != getegid()) &&
	    fchown(replace->fd, old->st_uid, old->st_gid) < 0 &&
	    fchown(replace->fd, (uid_t)-1, old->st_gid) < 0 && errno != EPERM && errno != EINVAL)
		return -errno;
	if (replace->mode >= 0)
		mode = (mode_t)replace->mode;
	return fchmod(replace->fd, mode) < 0 ? -errno : 0;
}

int replace_begin(struct replace *replace, const struct roots *roots, const char *path, int mode,
		  struct csn_error *err)
{
	struct stat *old = &replace->old;
	int r = resolve_target(roots, path, &replace->entry, err);

	if (r < 0)
		return r;
	r = fstatat(replace->entry.dir_fd, replace->entry.name, old, AT_SYMLINK_NOFOLLOW);
	replace->is_there = r == 0 && S_ISREG(old->st_mode); /* a link came in between: new */
	replace->mode = mode;
	if (r < 0 && errno != ENOENT)
		return resolve_fail(err, -errno, "write", path);
	if (r == 0 && S_ISDIR(old->st_mode))
		return resolve_fail(err, -EISDIR, "write", path);
	if (r == 0 && !S_ISREG(old->st_mode) && !S_ISLNK(old->st_mode))
		return csn_fail(err, -EINVAL, "files", "%.300s is no regular file but a %s", path,
				files_type(old->st_mode));
	r = make_temporary(replace);
	return r < 0 ? resolve_fail(err, r, "write", path) : 0;
}

int replace_write(struct replace *replace, const void *data, size_t size)
{
	return fd_write_all(replace->fd, data, size);
}

int replace_pour(struct replace *replace, struct flow *flow)
{
	char data[FRAME_PIECE];
	size_t left;
	int r;

	flow_pour(flow, replace->fd);
	left = flow->size;
	if (left == 0)
		return 0;
	/* A file system that takes no pages takes bytes; and write() names what is wrong. */
	assert(left <= sizeof data);
	r = flow_drain(flow, data);
	return r < 0 ? r : replace_write(replace, data, left);
}

static bool is_unchanged(const struct replace *replace, const struct stat *old)
{
	struct stat st;

	return fstatat(replace->entry.dir_fd, replace->entry.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == old->st_dev && st.st_ino == old->st_ino && st.st_size == old->st_size &&
	       st.st_mtim.tv_sec == old->st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == old->st_mtim.tv_nsec &&
	       st.st_ctim.tv_sec == old->st_ctim.tv_sec &&
	       st.st_ctim.tv_nsec == old->st_ctim.tv_nsec;
}

int replace_commit(struct replace *replace, const struct stat *expected)
{
	int dir_fd = replace->entry.dir_fd, r = set_rights(replace);

	if (r < 0)
		return r;
	if (close(fd_take(&replace->fd)) < 0) /* where a server says late that it is full */
		return -errno;
	if (expected && !is_unchanged(replace, expected))
		return -ESTALE;
	if (renameat(dir_fd, replace->temporary, dir_fd, replace->entry.name) < 0)
		return -errno;
	replace->temporary[0] = 0;
	return 0;
}

void replace_done(struct replace *replace)
{
	if (replace->temporary[0])
		unlinkat(replace->entry.dir_fd, replace->temporary, 0);
	fd_cleanup(&replace->fd);
	fd_cleanup(&replace->entry.dir_fd);
}
