/*
 * See copy_save.h. The copying is done by a process of its own, which changes itself to read what
 * modes close (os/reach.h); whoever asked stays who he is.
 */
#include "monitor/copy_save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tree.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "os/layer.h"
#include "os/reach.h"

enum { NUMBER = 32, UPPER_PATH = 96 };

struct copied {
	struct layer_copied done;
	struct csn_error err;
};

_Noreturn static void be_copier(int from_fd, int to_fd, int told)
{
	struct copied copied = { 0 };
	struct pollfd life = { .fd = told };

	reach_own_files(); /* where it cannot, a closed file ends the copy with its name */
	/* Dies with who asked, whose end of the pipe is the only one left: asked after the kernel
	 * was, so that no death falls between. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || poll(&life, 1, 0) != 0)
		_exit(1);
	layer_copy(from_fd, to_fd, &copied.done, &copied.err);
	_exit(write(told, &copied, sizeof copied) != sizeof copied);
}

static int copy_apart(int from_fd, int to_fd, struct layer_copied *ret_copied,
		      struct csn_error *err)
{
	struct copied copied;
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return csn_fail(err, -errno, "layer", "cannot make a pipe: %m");
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		be_copier(from_fd, to_fd, ends[1]);
	}
	close(ends[1]);
	n = pid < 0 ? -1 : fd_read_all(ends[0], &copied, sizeof copied);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != sizeof copied)
		return csn_fail(err, -ECHILD, "layer", "the process that copied the layer died");
	if (copied.err.code) {
		*err = copied.err;
		return copied.err.code < 0 ? copied.err.code : -EIO;
	}
	*ret_copied = copied.done;
	return 0;
}

/* Makes `name` in `dir_fd` with a copy in its `upper`; removes it on failure. */
static int save(int from_fd, int dir_fd, const char *name, struct layer_copied *ret_copied,
		struct csn_error *err)
{
	char upper[UPPER_PATH];
	_cleanup_fd_ int to_fd = -1;
	int r;

	snprintf(upper, sizeof upper, "%s/upper", name);
	if (mkdirat(dir_fd, name, 0700) < 0 || mkdirat(dir_fd, upper, 0700) < 0)
		return csn_fail(err, -errno, "layer", "cannot make a folder for the copy: %m");
	to_fd = layer_open(dir_fd, upper, O_DIRECTORY);
	r = to_fd < 0 ? csn_fail(err, to_fd, "layer", "cannot open the folder of the copy")
		      : copy_apart(from_fd, to_fd, ret_copied, err);
	if (r < 0)
		tree_remove(dir_fd, name);
	return r;
}

static int count_names(int dir_fd)
{
	_cleanup_fd_ int fd = layer_open(dir_fd, ".", O_DIRECTORY);
	struct dirent *entry;
	int count = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return -EIO;
	fd_take(&fd);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static int check_tag(const char *tag, struct csn_error *err)
{
	return place_is_name(tag) ? 0
				  : csn_fail(err, -EINVAL, "snapshot",
					     "a tag has 1 to 64 letters, digits, '-', '_', '.', "
					     "the first a letter or digit");
}

/* The folder of snapshots, ready for one more. */
static int open_snapshots(int cow_fd, const char *tag, struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (mkdirat(cow_fd, "snapshots", 0700) < 0 && errno != EEXIST)
		return csn_fail(err, -errno, "snapshot", "cannot make the folder of snapshots: %m");
	fd = layer_open(cow_fd, "snapshots", O_DIRECTORY);
	if (fd < 0)
		return csn_fail(err, fd, "snapshot", "cannot open the folder of snapshots");
	if (fstatat(fd, tag, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return csn_fail(err, -EEXIST, "snapshot", "there is a snapshot %s already", tag);
	if (count_names(fd) >= COPY_SNAPSHOTS)
		return csn_fail(err, -E2BIG, "snapshot",
				"a sandbox keeps at most %d snapshots; they go with its record",
				COPY_SNAPSHOTS);
	return fd_take(&fd);
}

int copy_snapshot(int cow_fd, const char *tag, struct layer_copied *ret_copied,
		  struct csn_error *err)
{
	_cleanup_fd_ int fd = -1, upper = layer_open(cow_fd, "upper", O_DIRECTORY);
	char partial[NUMBER];
	int r = check_tag(tag, err);

	if (r == 0)
		r = fd = open_snapshots(cow_fd, tag, err);
	if (r < 0)
		return r;
	if (upper < 0)
		return csn_fail(err, upper, "snapshot", "cannot open the layer");
	snprintf(partial, sizeof partial, ".partial-%d", (int)getpid());
	tree_remove(fd, partial); /* of a process that had this number and was killed */
	r = save(upper, fd, partial, ret_copied, err);
	if (r == 0 && renameat(fd, partial, fd, tag) < 0) {
		r = csn_fail(err, -errno, "snapshot", "cannot keep the snapshot: %m");
		tree_remove(fd, partial);
	}
	return r;
}

/* ---- for a new sandbox ------------------------------------------------------------------- */

int64_t copy_since(int cow_fd, int64_t started_ms)
{
	_cleanup_fd_ int fd = openat(cow_fd, "since", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[NUMBER] = "";
	uint64_t since = 0;

	if (fd < 0 || fd_read_all(fd, text, sizeof text - 1) <= 0 ||
	    str_parse_u64(text, INT64_MAX, &since) < 0)
		return started_ms;
	return (int64_t)since;
}

static int write_since(int dir_fd, int64_t since_ms)
{
	_cleanup_fd_ int fd =
		openat(dir_fd, "since", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char text[NUMBER];

	snprintf(text, sizeof text, "%" PRId64, since_ms);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* What earlier commits wrote is ours in the fork, too. */
static int copy_book_file(int cow_fd, int to_fd)
{
	_cleanup_fd_ int from = openat(cow_fd, "committed", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_fd_ int to = -1;
	char block[4096];
	ssize_t n;

	if (from < 0)
		return errno == ENOENT ? 0 : -errno;
	to = openat(to_fd, "committed", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	while ((n = read(from, block, sizeof block)) > 0)
		if (fd_write_all(to, block, (size_t)n) < 0)
			return -EIO;
	return n < 0 ? -errno : 0;
}

static int open_source(int cow_fd, const char *tag, struct csn_error *err)
{
	char path[UPPER_PATH] = "upper";
	int fd, r = tag ? check_tag(tag, err) : 0;

	if (r < 0)
		return r;
	if (tag)
		snprintf(path, sizeof path, "snapshots/%s/upper", tag);
	fd = layer_open(cow_fd, path, O_DIRECTORY);
	if (fd < 0 && tag)
		return csn_fail(err, fd, "fork", "there is no snapshot %s", tag);
	return fd < 0 ? csn_fail(err, fd, "fork", "cannot open the layer") : fd;
}

int copy_fork(int cow_fd, const char *tag, int64_t started_ms, struct copy_forked *ret_forked,
	      struct csn_error *err)
{
	_cleanup_fd_ int from = open_source(cow_fd, tag, err), to = -1;
	int r;

	if (from < 0)
		return from;
	snprintf(ret_forked->name, sizeof ret_forked->name, ".fork-%d", (int)getpid());
	tree_remove(cow_fd,
		    ret_forked->name); /* of a process that had this number and was killed */
	r = save(from, cow_fd, ret_forked->name, &ret_forked->copied, err);
	if (r < 0)
		return r;
	to = layer_open(cow_fd, ret_forked->name, O_DIRECTORY);
	r = to < 0 ? to : write_since(to, copy_since(cow_fd, started_ms));
	if (r == 0)
		r = copy_book_file(cow_fd, to);
	if (r < 0) {
		tree_remove(cow_fd, ret_forked->name);
		csn_fail(err, r, "fork", "cannot keep the account of the layer: %s", strerror(-r));
	}
	return r;
}
