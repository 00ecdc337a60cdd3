/*
 * Removing skeletons; see roots.h. First renamed away, so that no monitor finds it any more; then
 * its lock is unlinked, so that one that had opened it sees that it came too late; then the rest.
 * Who is killed in between leaves a name that the next sweep knows. tests/cli/test_skeleton.py
 */
#include "audit/roots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/files.h"
#include "base/tree.h"
#include "base/fd.h"
#include "base/str.h"

#define ROOTS ".roots"
#define NEW ".new-"
#define GONE ".gone-"

enum { KEPT = 8, KEPT_S = 7 * 24 * 3600, MAKING_S = 10, SEEN_MAX = 256, NAME_SIZE = 32 };

struct seen {
	char name[NAME_SIZE];
	time_t used;
};

/* Removes one, unless its lock is held. */
static bool remove_one(int roots_fd, const char *name)
{
	_cleanup_fd_ int dir_fd = files_open_dir(roots_fd, name);
	_cleanup_fd_ int lock_fd = -1;
	char gone[sizeof GONE + NAME_SIZE];

	if (dir_fd < 0)
		return false;
	/* Its maker's, until it has its name. */
	if (str_starts(name, NEW) && flock(dir_fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	lock_fd = files_open_regular(dir_fd, "lock");
	if (lock_fd < 0 ? lock_fd != -ENOENT : flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	snprintf(gone, sizeof gone, "%s%s", str_starts(name, GONE) ? "" : GONE, name);
	if (!str_is(gone, name) && renameat(roots_fd, name, roots_fd, gone) < 0)
		return false;
	unlinkat(dir_fd, "lock", 0);
	return tree_remove(roots_fd, gone) >= 0;
}

/* When it was used last; one being made, or half gone, counts from its own last change. */
static bool look(int roots_fd, const char *name, struct seen *ret_seen)
{
	char lock[NAME_SIZE + 8];
	struct stat st;

	if (name[strspn(name, ".")] == 0 || strlen(name) >= sizeof ret_seen->name)
		return false;
	snprintf(lock, sizeof lock, "%s%s", name, name[0] == '.' ? "" : "/lock");
	ret_seen->used = 0;
	if (fstatat(roots_fd, lock, &st, AT_SYMLINK_NOFOLLOW) == 0)
		ret_seen->used = st.st_mtime;
	memcpy(ret_seen->name, name, strlen(name) + 1);
	return true;
}

static int latest_first(const void *a, const void *b)
{
	const struct seen *one = a, *other = b;

	return (one->used < other->used) - (one->used > other->used);
}

static size_t look_all(int roots_fd, struct seen *seen)
{
	int fd = files_open_dir(roots_fd, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t count = 0;

	if (!dir) {
		fd_close(fd);
		return 0;
	}
	while (count < SEEN_MAX && (entry = readdir(dir)))
		count += look(roots_fd, entry->d_name, &seen[count]);
	closedir(dir);
	qsort(seen, count, sizeof *seen, latest_first);
	return count;
}

void roots_sweep(int root_fd, const struct removed *removed)
{
	_cleanup_fd_ int roots_fd = files_open_dir(root_fd, ROOTS);
	struct seen *seen = roots_fd < 0 ? NULL : calloc(SEEN_MAX, sizeof *seen);
	size_t count = seen ? look_all(roots_fd, seen) : 0, whole = 0;
	time_t now = time(NULL);

	for (size_t i = 0; i < count; i++) {
		const char *name = seen[i].name;
		time_t age = now - seen[i].used; /* a clock set back: age 0 */
		bool may_go = name[0] == '.' ? !str_starts(name, NEW) || age > MAKING_S
					     : ++whole > KEPT || age > KEPT_S;

		if (may_go && remove_one(roots_fd, name))
			removed_tell(removed, "skeleton", name);
	}
	free(seen);
}
