/*
 * Files of the records: opened relative to a descriptor, without following links, replaced
 * whole. A reader sees the old file or the new one, never half of one, whatever kills us.
 */
#include "audit/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "audit/dump.h"
#include "base/fd.h"
#include "base/str.h"

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
enum { WORD_TEXT = 256 };

int files_fail(struct csn_error *err, int code, const char *what, const char *name)
{
	static const struct {
		int code;
		const char *way_out;
	} table[] = {
		{ ENOSPC,
		  "free some space, name another folder with --run-dir, or use --no-record" },
		{ EDQUOT,
		  "free some space, name another folder with --run-dir, or use --no-record" },
		{ EROFS, "name a writable folder with --run-dir, or use --no-record" },
		{ EACCES, "name a folder of your own with --run-dir, or use --no-record" },
	};
	const char *way_out = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		way_out = table[i].code == -code ? table[i].way_out : way_out;
	return csn_fail(err, code, "record", "cannot %s %s: %s%s%s", what, name, strerror(-code),
			way_out ? "; " : "", way_out ? way_out : "");
}

/* ---- the run root ----------------------------------------------------------------------- */

static int make_parents(const char *root, struct csn_error *err)
{
	char path[4096];
	size_t size = strlen(root);

	if (size == 0 || size >= sizeof path)
		return files_fail(err, size ? -ENAMETOOLONG : -EINVAL, "make the run root", root);
	memcpy(path, root, size + 1);
	for (size_t i = 1; i <= size; i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		path[i] = 0;
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return files_fail(err, -errno, "make the run root", path);
		if (i < size)
			path[i] = '/';
	}
	return 0;
}

static int check_root(int fd, const char *root, struct csn_error *err)
{
	char word[WORD_TEXT];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return files_fail(err, -errno, "look at the run root", root);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return csn_fail(
			err, -EPERM, "record",
			"the run root %s belongs to user %u: name a folder of your own with "
			"--run-dir",
			root, (unsigned)st.st_uid);
	if (st.st_mode & 022)
		return csn_fail(err, -EPERM, "record",
				"others may write to the run root %s: run `chmod go-w %s`, or name "
				"another folder with --run-dir",
				root,
				str_shell_word(root, word, sizeof word) < 0 ? "FOLDER" : word);
	return 0;
}

/*
 * Tells the file system that the folders in here have nothing to do with each other (chattr(1), T).
 * ext4 then spreads them: all in one place, each new record searches past the inodes of those that
 * were just removed. Others refuse the flag, which is as good.
 */
static void spread(int fd)
{
	int flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
		flags |= FS_TOPDIR_FL;
		ioctl(fd, FS_IOC_SETFLAGS, &flags);
	}
}

int files_open_root(const char *root, bool makes, int *ret_fd, struct csn_error *err)
{
	_cleanup_fd_ int fd = open(root, OPEN_DIR);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT && makes) {
		r = make_parents(root, err);
		if (r < 0)
			return r;
		fd = open(root, OPEN_DIR);
		if (fd >= 0)
			spread(fd);
	}
	if (fd < 0) {
		r = -errno;
		if (lstat(root, &st) == 0 && S_ISLNK(st.st_mode))
			return csn_fail(err, -ELOOP, "record",
					"the run root %s is a symbolic link: name the folder it "
					"points to",
					root);
		return files_fail(err, r, "open the run root", root);
	}
	r = check_root(fd, root, err);
	if (r < 0)
		return r;
	*ret_fd = fd_take(&fd);
	return 0;
}

/* ---- reading ---------------------------------------------------------------------------- */

int files_open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, OPEN_DIR);

	return fd < 0 ? -errno : fd;
}

int files_open_regular(int dir_fd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_fd_ int fd = -1;
	struct stat st;
	char self[32];
	int opened;

	/* A device may act on being opened: take a handle, look, then open that very file. */
	if (path[0] != '/')
		how.resolve |= RESOLVE_BENEATH;
	fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	opened = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}

int files_read_json(int dir_fd, const char *name, size_t max, json_t **ret_value)
{
	_cleanup_fd_ int fd = files_open_regular(dir_fd, name);
	json_t *value;
	char *data;
	ssize_t size;

	if (fd < 0)
		return fd;
	data = malloc(max);
	if (!data)
		return -ENOMEM;
	size = fd_read_all(fd, data, max);
	if (size < 0) {
		free(data);
		return (int)size;
	}
	value = json_loadb(data, (size_t)size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	free(data);
	if (!value)
		return -EBADMSG;
	*ret_value = value;
	return 0;
}

int files_process_start(int64_t pid, uint64_t *ret_ticks)
{
	char name[48], text[1024], *at, *rest;
	_cleanup_fd_ int fd = -1;
	ssize_t size;

	snprintf(name, sizeof name, "/proc/%lld/stat", (long long)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size = fd_read_all(fd, text, sizeof text - 1);
	if (size < 0)
		return (int)size;
	text[size] = 0;
	at = strrchr(text, ')'); /* the name before it may hold anything, blanks and ')' too */
	if (!at)
		return -EBADMSG;
	/* One that nobody has waited for yet does nothing any more. */
	if (at && (str_starts(at, ") Z") || str_starts(at, ") X")))
		return -ESRCH;
	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -EBADMSG;
	rest = strchr(at + 1, ' ');
	if (rest)
		*rest = 0;
	return str_parse_u64(at + 1, UINT64_MAX, ret_ticks);
}

/* ---- writing ---------------------------------------------------------------------------- */

enum { TEMPORARY = 300, OPEN_NEW = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC };

/* One of ours under this name, as files_prepare() or a crash left it: nobody else can reach it. */
static bool is_own(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_uid == geteuid() &&
	       (st->st_mode & 077) == 0;
}

/*
 * The name under which a file is written before it takes its own. Untrusted code may have laid
 * something there: a link, a fifo, a file with a second name. That goes; a folder says so.
 */
static int open_temporary(int dir_fd, const char *name, char ret_temporary[TEMPORARY])
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	snprintf(ret_temporary, TEMPORARY, ".%s.new", name);
	fd = openat(dir_fd, ret_temporary, OPEN_NEW | O_NONBLOCK, 0600);
	if (fd < 0 || fstat(fd, &st) < 0 || !is_own(&st)) {
		fd_cleanup(&fd);
		if (unlinkat(dir_fd, ret_temporary, 0) < 0 && errno != ENOENT)
			return -errno;
		fd = openat(dir_fd, ret_temporary, OPEN_NEW | O_EXCL, 0600);
		return fd < 0 ? -errno : fd_take(&fd);
	}
	/* Only what a crash left is cut: O_TRUNC makes ext4 write the file out when it is closed.
	 */
	return st.st_size > 0 && ftruncate(fd, 0) < 0 ? -errno : fd_take(&fd);
}

void files_prepare(int dir_fd, const char *name)
{
	char temporary[TEMPORARY];
	int fd = open_temporary(dir_fd, name, temporary);

	fd_close(fd);
}

int files_replace(int dir_fd, const char *name, const char *data, size_t size, bool syncs)
{
	char temporary[TEMPORARY];
	_cleanup_fd_ int fd = open_temporary(dir_fd, name, temporary);
	int r;

	if (fd < 0)
		return fd;
	r = fd_write_all(fd, data, size);
	if (r == 0 && syncs && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, temporary, 0);
	else if (syncs && fsync(dir_fd) < 0)
		r = -errno;
	return r;
}

int files_replace_json(int dir_fd, const char *name, json_t *value, bool syncs)
{
	char *text;
	size_t size;
	int r = dump_json(value, JSON_INDENT(2), &text, &size);

	if (r < 0)
		return r;
	text[size] = '\n'; /* in place of the NUL: one write, one file */
	r = files_replace(dir_fd, name, text, size + 1, syncs);
	free(text);
	return r;
}
