/* See folder.h. Depth is bounded, so the walk may recurse. */
#include "jobs/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

/* A folder in a folder: no link, no other mount. */
static int open_here(int dir_fd, const char *name)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_BENEATH,
	};
	int fd = (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof how);

	return fd < 0 ? -errno : fd;
}

static bool is_dot(const char *name)
{
	return str_is(name, ".") || str_is(name, "..");
}

/* Of the account, in the job's own folder. */
static bool is_ours(const char *name)
{
	static const char *const names[] = { "logs", "state.json", "result.json", "manifest.json" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_is(name, names[i]))
			return true;
	return false;
}

/* In its place among the last changed; the oldest goes where there is no room. */
static void keep(struct folder *folder, const char *path, const struct stat *st)
{
	int64_t changed_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
	size_t at = folder->kept;

	while (at > 0 && folder->files[at - 1].changed_ms < changed_ms)
		at--;
	if (at == FOLDER_KEPT)
		return;
	if (folder->kept < FOLDER_KEPT)
		folder->kept++;
	memmove(&folder->files[at + 1], &folder->files[at],
		(folder->kept - 1 - at) * sizeof folder->files[0]);
	folder->files[at] =
		(struct folder_file){ .size = (uint64_t)st->st_size, .changed_ms = changed_ms };
	snprintf(folder->files[at].path, FOLDER_PATH, "%s", path);
}

static void look_at(struct folder *folder, const char *path, const struct stat *st)
{
	if (S_ISLNK(st->st_mode)) {
		folder->links++;
	} else if (S_ISREG(st->st_mode)) {
		folder->count++;
		folder->bytes += (uint64_t)st->st_size;
		keep(folder, path, st);
	} else if (!S_ISDIR(st->st_mode)) {
		folder->others++;
	}
}

static void walk(struct folder *folder, int dir_fd, const char *prefix, int depth);

static void look_in(struct folder *folder, DIR *dir, const char *prefix, int depth)
{
	char path[FOLDER_PATH];
	struct dirent *entry;
	struct stat st;

	while (!folder->is_cut && (entry = readdir(dir))) {
		int n;

		if (is_dot(entry->d_name) || (depth == 0 && is_ours(entry->d_name)))
			continue;
		n = snprintf(path, sizeof path, "%s%s", prefix, entry->d_name);
		folder->is_cut = ++folder->entries > FOLDER_ENTRIES || n >= FOLDER_PATH - 1;
		if (folder->is_cut || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		look_at(folder, path, &st);
		if (!S_ISDIR(st.st_mode))
			continue;
		memcpy(path + n, "/", 2);
		walk(folder, open_here(dirfd(dir), entry->d_name), path, depth + 1);
	}
}

/* Takes the descriptor; a negative errno is a folder that cannot be read. */
static void walk(struct folder *folder, int dir_fd, const char *prefix, int depth)
{
	DIR *dir = dir_fd < 0 || depth > FOLDER_DEPTH ? NULL : fdopendir(dir_fd);

	if (!dir) {
		folder->is_cut = true;
		fd_close(dir_fd);
		return;
	}
	look_in(folder, dir, prefix, depth);
	closedir(dir);
}

int folder_read(int dir_fd, struct folder **ret_folder)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct folder *folder = fd < 0 ? NULL : calloc(1, sizeof *folder);

	if (!folder) {
		int r = fd < 0 ? -errno : -ENOMEM;

		fd_close(fd);
		return r;
	}
	walk(folder, fd, "", 0);
	*ret_folder = folder;
	return 0;
}
