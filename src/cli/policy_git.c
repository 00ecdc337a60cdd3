/*
 * .git, HEAD, refs, packed-refs and the index, read as plain files
 *
 * A repository of a linked work tree has a .git file that names its folder, and that folder a
 * file `commondir` that names the one with the refs. Names in those files are used as they
 * are: what can be learned through them is whether a file holds forty hex digits.
 */
#include "cli/policy_git.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/sha.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/git_index.h"

enum {
	INDEX_MAX = 16 << 20,
	PACKED_MAX = 16 << 20,
	LINE = PATH_MAX,
	REF = 256,
	REF_HOPS = 5, /* a ref may name another, as git allows */
};

struct repository {
	char tree[PATH_MAX]; /* the folder with .git in it */
	int git_fd;          /* owned: HEAD and index */
	int common_fd;       /* owned: refs */
};

static int open_folder(int dir_fd, const char *path)
{
	return openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
}

/* Reads a regular file that is no link; never blocks. 0 or a negative errno. */
static int read_file(int dir_fd, const char *name, struct buf *ret_bytes)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	uint8_t *room;
	ssize_t n;

	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (size_t)st.st_size > buf_room(ret_bytes))
		return -EINVAL;
	room = buf_reserve(ret_bytes, (size_t)st.st_size + 1);
	n = room ? fd_read_all(fd, room, (size_t)st.st_size) : -ENOMEM;
	if (n < 0)
		return (int)n;
	buf_grew(ret_bytes, (size_t)n);
	return 0;
}

/* A file of one line, without its newline; false for anything else. */
static bool read_line(int dir_fd, const char *name, char ret_line[LINE])
{
	_cleanup_buf_ struct buf bytes;
	size_t size;

	buf_init(&bytes, LINE);
	if (read_file(dir_fd, name, &bytes) < 0)
		return false;
	size = buf_size(&bytes);
	if (size && buf_at(&bytes)[size - 1] == '\n')
		size--;
	if (size == 0 || size >= LINE || memchr(buf_at(&bytes), 0, size) ||
	    memchr(buf_at(&bytes), '\n', size))
		return false;
	memcpy(ret_line, buf_at(&bytes), size);
	ret_line[size] = 0;
	return true;
}

/* ---- the repository ---------------------------------------------------------------------- */

static bool open_common(struct repository *repository)
{
	char line[LINE];

	if (faccessat(repository->git_fd, "commondir", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		repository->common_fd = fcntl(repository->git_fd, F_DUPFD_CLOEXEC, 3);
	else if (read_line(repository->git_fd, "commondir", line))
		repository->common_fd = open_folder(repository->git_fd, line);
	return repository->common_fd >= 0;
}

/* `.git` as a folder, or as a file that names one. */
static bool open_git(struct repository *repository, const struct stat *st)
{
	static const char key[] = "gitdir: ";
	_cleanup_fd_ int tree_fd = open_folder(AT_FDCWD, repository->tree);
	char line[LINE];

	if (tree_fd < 0)
		return false;
	if (S_ISDIR(st->st_mode))
		repository->git_fd = open_folder(tree_fd, ".git");
	else if (S_ISREG(st->st_mode) && read_line(tree_fd, ".git", line) && str_starts(line, key))
		repository->git_fd = open_folder(tree_fd, line + strlen(key));
	return repository->git_fd >= 0 && open_common(repository);
}

/* The nearest .git above a file. A stranger's, in a shared folder, says nothing about it. */
static bool find_repository(const char *path, struct repository *repository)
{
	char name[PATH_MAX + 8], *slash;
	struct stat st;

	snprintf(repository->tree, sizeof repository->tree, "%s", path);
	while ((slash = strrchr(repository->tree, '/'))) {
		*slash = 0;
		snprintf(name, sizeof name, "%s/.git", repository->tree);
		if (lstat(name, &st) < 0)
			continue;
		if (slash == repository->tree)
			snprintf(repository->tree, sizeof repository->tree, "/");
		return (st.st_uid == geteuid() || st.st_uid == 0) && open_git(repository, &st);
	}
	return false;
}

/* ---- HEAD --------------------------------------------------------------------------------- */

static bool is_commit(const char *text, size_t size)
{
	return size == GIT_HEX - 1 && strspn(text, "0123456789abcdef") >= size;
}

static bool is_ref(const char *name)
{
	return str_starts(name, "refs/") && strlen(name) < REF && !strstr(name, "..");
}

/* Lines of "HEX NAME", with "^HEX" and "#" lines between them. */
static bool find_packed(const struct repository *repository, const char *name,
			char ret_commit[GIT_HEX])
{
	_cleanup_buf_ struct buf bytes;
	const char *at;
	size_t length, size = strlen(name);

	buf_init(&bytes, PACKED_MAX);
	if (read_file(repository->common_fd, "packed-refs", &bytes) < 0 || !buf_text(&bytes))
		return false;
	for (at = buf_text(&bytes); *at; at += length + (at[length] == '\n')) {
		length = strcspn(at, "\n");
		if (length != GIT_HEX + size || at[GIT_HEX - 1] != ' ' ||
		    memcmp(at + GIT_HEX, name, size) != 0 || !is_commit(at, GIT_HEX - 1))
			continue;
		memcpy(ret_commit, at, GIT_HEX - 1);
		ret_commit[GIT_HEX - 1] = 0;
		return true;
	}
	return false;
}

static bool find_head(const struct repository *repository, char ret_commit[GIT_HEX])
{
	static const char key[] = "ref: ";
	char line[LINE], name[REF];

	if (!read_line(repository->git_fd, "HEAD", line))
		return false;
	for (int hops = 0; hops < REF_HOPS; hops++) {
		if (is_commit(line, strlen(line))) {
			memcpy(ret_commit, line, GIT_HEX);
			return true;
		}
		if (!str_starts(line, key) || !is_ref(line + strlen(key)))
			return false;
		snprintf(name, sizeof name, "%.*s", REF - 1, line + strlen(key));
		if (!read_line(repository->common_fd, name, line))
			return find_packed(repository, name, ret_commit);
	}
	return false;
}

/* ---- the file ----------------------------------------------------------------------------- */

static int is_modified(const struct repository *repository, const char *path,
		       const struct buf *bytes, bool *ret_untracked)
{
	const char *tail = path + (repository->tree[1] ? strlen(repository->tree) : 0) + 1;
	uint8_t in_index[GIT_SHA1], ours[GIT_SHA1];
	_cleanup_buf_ struct buf index;
	int r;

	buf_init(&index, INDEX_MAX);
	if (read_file(repository->git_fd, "index", &index) < 0)
		return -1;
	r = git_index_find(buf_at(&index), buf_size(&index), tail, in_index);
	*ret_untracked = r == 0;
	if (r <= 0)
		return r < 0 ? -1 : 1;
	sha_git_blob(buf_at(bytes), buf_size(bytes), ours);
	return memcmp(ours, in_index, GIT_SHA1) != 0;
}

void policy_git_look(const char *path, const struct buf *bytes, struct policy_git *ret_git)
{
	struct repository repository = { .git_fd = -1, .common_fd = -1 };
	char real[PATH_MAX];

	*ret_git = (struct policy_git){ .is_modified = -1 };
	if (!realpath(path, real))
		return;
	if (find_repository(real, &repository) && find_head(&repository, ret_git->commit))
		ret_git->is_modified =
			is_modified(&repository, real, bytes, &ret_git->is_untracked);
	fd_close(repository.git_fd);
	fd_close(repository.common_fd);
}
