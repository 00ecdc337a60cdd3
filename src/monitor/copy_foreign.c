/* See copy_foreign.h. */
#include "monitor/copy_foreign.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { DEPTH = 40 };

struct search {
	struct copy_foreign *found;
	uid_t uid;
	gid_t gid;
	dev_t dev;
	unsigned budget;
	char path[PATH_MAX]; /* of the folder that is walked, with its '/' */
};

static void note(struct search *search, const char *name)
{
	struct copy_foreign *found = search->found;
	char *path;

	found->count++;
	if (found->named < COPY_FOREIGN_NAMES && asprintf(&path, "%s%s", search->path, name) >= 0)
		found->names[found->named++] = path;
}

static void walk(struct search *search, int take_fd, unsigned depth);

static void enter(struct search *search, int dir_fd, const char *name, unsigned depth)
{
	size_t length = strlen(search->path), size = strlen(name);
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	if (depth == DEPTH || length + size + 2 > sizeof search->path) {
		fd_close(fd);
		return;
	}
	snprintf(search->path + length, sizeof search->path - length, "%s/", name);
	walk(search, fd, depth + 1);
	search->path[length] = 0;
}

static void walk(struct search *search, int take_fd, unsigned depth)
{
	DIR *dir = fdopendir(take_fd);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		fd_close(take_fd);
		return;
	}
	while (search->budget > 0 && (entry = readdir(dir))) {
		if (str_is(entry->d_name, ".") || str_is(entry->d_name, "..") ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_dev != search->dev) /* another file system is not in the copy */
			continue;
		search->budget--;
		if (st.st_uid != search->uid || st.st_gid != search->gid)
			note(search, entry->d_name);
		if (S_ISDIR(st.st_mode))
			enter(search, dirfd(dir), entry->d_name, depth);
	}
	closedir(dir);
}

void copy_find_foreign(int lower_fd, struct copy_foreign *ret_foreign)
{
	struct search search = { .found = ret_foreign,
				 .uid = geteuid(),
				 .gid = getegid(),
				 .budget = COPY_FOREIGN_WALK };
	struct stat st;
	int fd;

	*ret_foreign = (struct copy_foreign){ 0 };
	fd = openat(lower_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		fd_close(fd);
		return;
	}
	search.dev = st.st_dev;
	walk(&search, fd, 0);
	ret_foreign->is_partial = search.budget == 0;
}

void copy_foreign_done(struct copy_foreign *foreign)
{
	for (unsigned i = 0; i < foreign->named; i++)
		free(foreign->names[i]);
	foreign->named = 0;
}
