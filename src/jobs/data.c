/* What may be a job's data set; see data.h. */
#include "jobs/data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { ENTRIES_MAX = 100000, DEPTH_MAX = 32 };

static bool holds(int fd, const char *name)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* /home/somebody, whoever that is. */
static bool is_home(const char *real)
{
	return str_starts(real, "/home/") && real[6] && !strchr(real + 6, '/');
}

static const char *flaw_of(int fd, const char *real)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return "is a socket, a device or a pipe";
	if (is_home(real))
		return "is a home directory";
	if (str_is(real, "/"))
		return "is the root of the file system";
	if (S_ISREG(st.st_mode))
		return NULL;
	if (holds(fd, ".git"))
		return "is the root of a repository: name the one folder in it that holds the data";
	if (holds(fd, "logs/events.jsonl"))
		return "is the folder of a run or a job";
	if (holds(fd, "heads.jsonl"))
		return "is a run root, with the records of other runs";
	return NULL;
}

/* Who connects to a socket speaks to whoever listens, with that one's rights; a read-only mount
 * does not keep anybody from it. Links lead nowhere inside. */
static bool has_socket(int dir_fd, unsigned depth, unsigned *entries)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *entry;
	bool has = false;

	if (!dir) {
		fd_close(dir_fd);
		return false;
	}
	while (!has && (entry = readdir(dir)) && ++*entries < ENTRIES_MAX) {
		int fd;

		if (entry->d_type == DT_SOCK)
			has = true;
		if (entry->d_type != DT_DIR || depth == DEPTH_MAX || str_is(entry->d_name, ".") ||
		    str_is(entry->d_name, ".."))
			continue;
		fd = openat(dirfd(dir), entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			has = has_socket(fd, depth + 1, entries);
	}
	closedir(dir);
	return has;
}

int data_check(const char *path, char *ret_real, struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	const char *flaw;
	unsigned entries = 0;
	int dir_fd;

	if (!realpath(path, ret_real))
		return csn_fail(err, -errno, "data", "--data %.200s: %s", path, strerror(errno));
	if (strchr(ret_real, ':'))
		return csn_fail(err, -EINVAL, "data",
				"--data %.200s: a ':' in a path cannot be lent; give it another "
				"name by a bind mount or a rename",
				ret_real);
	fd = open(ret_real, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return csn_fail(err, -errno, "data", "--data %.200s: %s", path, strerror(errno));
	flaw = flaw_of(fd, ret_real);
	dir_fd = flaw ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!flaw && dir_fd >= 0 && has_socket(dir_fd, 0, &entries))
		flaw = "holds a socket";
	if (!flaw)
		return 0;
	return csn_fail(err, -EPERM, "data",
			"the data set %.200s%s%.200s %s; it is not lent to a job", path,
			str_is(path, ret_real) ? "" : " leads to ",
			str_is(path, ret_real) ? "" : ret_real, flaw);
}
