/*
 * Reading a policy file, which may be anything: a folder, a pipe that never ends, a link
 * into somebody else's files, or a gigabyte
 *
 * Opened once without blocking, asked what it is through the descriptor, then read through
 * it: nothing is checked by name and opened afterwards.
 */
#include "cli/project.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/sha.h"
#include "base/fd.h"
#include "base/linux.h"
#include "base/str.h"

enum { WORD_TEXT = 200 };

static int open_policy(const char *path, bool found, struct csn_error *err)
{
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (found ? O_NOFOLLOW : 0);
	int fd = open(path, flags);

	if (fd >= 0)
		return fd;
	switch (errno) {
	case ENOENT:
		return csn_fail(err, -ENOENT, "policy",
				"there is no policy file %s; `caisson policy init` writes one",
				path);
	case ELOOP:
		return csn_fail(err, -ELOOP, "policy",
				"%s is a symbolic link, which a search does not follow; "
				"name its target: --policy FILE",
				path);
	case EACCES:
		return csn_fail(
			err, -EACCES, "policy",
			"%s cannot be read by you; change its mode or name another: --policy FILE",
			path);
	case ENXIO: /* a socket */
		return csn_fail(err, -EINVAL, "policy", "%s is not a regular file", path);
	default:
		return csn_fail(err, -errno, "policy", "cannot open %s: %s", path, strerror(errno));
	}
}

static int check_owner(const char *path, const struct stat *st, struct csn_error *err)
{
	char word[WORD_TEXT];

	if (str_shell_word(path, word, sizeof word) < 0)
		snprintf(word, sizeof word, "FILE");
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return csn_fail(
			err, -EPERM, "policy",
			"%.160s belongs to another user (uid %u), so it is not followed; if you "
			"trust it, say --policy %s",
			path, (unsigned)st->st_uid, word);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return csn_fail(
			err, -EPERM, "policy",
			"%.160s may be written by others, so it is not followed: chmod go-w %s",
			path, word);
	return 0;
}

static int check_kind(const char *path, const struct stat *st, struct csn_error *err)
{
	if (S_ISDIR(st->st_mode))
		return csn_fail(err, -EISDIR, "policy", "%s is a folder, not a policy file", path);
	if (!S_ISREG(st->st_mode))
		return csn_fail(err, -EINVAL, "policy",
				"%s is not a regular file; write the policy to a file first", path);
	if (st->st_size > POLICY_MAX_BYTES)
		return csn_fail(err, -EFBIG, "policy", "%s is longer than 1 MiB: no policy is",
				path);
	return 0;
}

int policy_file_read(const char *path, bool found, struct buf *ret_bytes, char ret_sha256[65],
		     struct csn_error *err)
{
	_cleanup_fd_ int fd = open_policy(path, found, err);
	struct stat st;
	ssize_t size;
	uint8_t *room;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return csn_fail(err, -errno, "policy", "cannot stat %s", path);
	r = check_kind(path, &st, err);
	if (r == 0 && found)
		r = check_owner(path, &st, err);
	if (r < 0)
		return r;
	room = buf_reserve(ret_bytes, POLICY_MAX_BYTES);
	if (!room)
		return csn_fail(err, -ENOMEM, "policy", "out of memory");
	size = fd_read_all(fd, room, POLICY_MAX_BYTES);
	if (size < 0)
		return csn_fail(err, (int)size, "policy", "cannot read %s: %s", path,
				strerror((int)-size));
	buf_grew(ret_bytes, (size_t)size);
	sha_parts(&(struct sha_part){ buf_at(ret_bytes), (size_t)size }, 1, ret_sha256);
	return 0;
}

/* The new file under a name of its own beside the old one. */
static int write_beside(const char *path, const void *data, size_t size, char ret_path[PATH_MAX])
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	mode_t mask = umask(0);
	int r;

	umask(mask);
	if (snprintf(ret_path, PATH_MAX, "%s.XXXXXX", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = mkostemp(ret_path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, size);
	if (r == 0 && fchmod(fd, stat(path, &st) == 0 ? st.st_mode & 0777 : 0644 & ~mask) < 0)
		r = -errno;
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0)
		unlink(ret_path);
	return r;
}

int policy_file_write(const char *path, bool is_new, const void *data, size_t size,
		      struct csn_error *err)
{
	char beside[PATH_MAX];
	int r;

	r = write_beside(path, data, size, beside);
	if (r < 0)
		return csn_fail(err, r, "policy", "cannot write %s: %s", path, strerror(-r));
	if (renameat2(AT_FDCWD, beside, AT_FDCWD, path, is_new ? RENAME_NOREPLACE : 0) < 0) {
		r = -errno;
		unlink(beside);
	}
	if (r == -EEXIST)
		return csn_fail(err, r, "policy", "%s exists; --force replaces it", path);
	return r < 0 ? csn_fail(err, r, "policy", "cannot write %s: %s", path, strerror(-r)) : 0;
}
