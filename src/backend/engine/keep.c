/*
 * What the engines' walls keep between starts; see keep.h. A file is written whole beside its name
 * and renamed, so that two starts at once see one or the other.
 */
#include "backend/engine/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/seccomp_list.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"

enum { FRESH_S = 600, NAME_SIZE = 96, KEPT_MAX = 64 << 10 };

static int open_folder(struct csn_error *err)
{
	_cleanup_fd_ int place = place_open(err);
	int fd;

	if (place < 0)
		return place;
	if (mkdirat(place, "engines", 0700) < 0 && errno != EEXIST)
		return csn_fail(err, -errno, "engine", "cannot make a folder for the engines: %m");
	fd = openat(place, "engines", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? csn_fail(err, -errno, "engine", "cannot open the engines' folder: %m") : fd;
}

static int write_file(int folder, const char *name, const char *text, mode_t mode)
{
	char other[NAME_SIZE];
	int r = 0;

	snprintf(other, sizeof other, ".%s.%d", name, (int)getpid());
	{
		_cleanup_fd_ int fd = openat(
			folder, other, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
		r = fd_write_all(fd, text, strlen(text));
		if (r >= 0 && fchmod(fd, mode) < 0)
			r = -errno;
	}
	if (r >= 0 && renameat(folder, other, folder, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(folder, other, 0);
	return r;
}

json_t *keep_read(const char *name)
{
	_cleanup_fd_ int folder = open_folder(NULL), fd = -1;
	char file[NAME_SIZE], text[KEPT_MAX];
	struct stat st;
	ssize_t n;

	if (folder < 0)
		return NULL;
	snprintf(file, sizeof file, "%s.json", name);
	fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    time(NULL) - st.st_mtime > FRESH_S)
		return NULL;
	n = fd_read_all(fd, text, sizeof text);
	return n <= 0 ? NULL : json_loadb(text, (size_t)n, 0, NULL);
}

void keep_write(const char *name, const json_t *object)
{
	_cleanup_fd_ int folder = open_folder(NULL);
	char *text = json_dumps(object, JSON_COMPACT), file[NAME_SIZE];

	snprintf(file, sizeof file, "%s.json", name);
	if (folder >= 0 && text)
		write_file(folder, file, text, 0600);
	free(text);
}

void keep_forget(const char *name)
{
	_cleanup_fd_ int folder = open_folder(NULL);
	char file[NAME_SIZE];

	snprintf(file, sizeof file, "%s.json", name);
	if (folder >= 0)
		unlinkat(folder, file, 0);
}

/* Is it there, as this very build would write it? */
static bool has_text(int folder, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char kept[KEPT_MAX];
	ssize_t n = fd < 0 ? -1 : fd_read_all(fd, kept, sizeof kept);

	return n >= 0 && (size_t)n == strlen(text) && memcmp(kept, text, (size_t)n) == 0;
}

int keep_text(const char *name, const char *text)
{
	_cleanup_fd_ int folder = open_folder(NULL);

	if (folder < 0)
		return folder;
	/* Read inside by an id that is not ours; the folder itself is closed to others. */
	return has_text(folder, name, text) ? 0 : write_file(folder, name, text, 0644);
}

static int make_profile(int folder, const char *name, const char *profile)
{
	json_t *list = seccomp_list(profile);
	char *text = json_dumps(list, JSON_COMPACT);
	int r = text ? 0 : -ENOMEM;

	if (r >= 0 && !has_text(folder, name, text))
		r = write_file(folder, name, text, 0600);
	free(text);
	json_decref(list);
	return r;
}

static bool is_lock(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && str_is(dot, ".lock");
}

static bool is_held(int folder, const char *name)
{
	_cleanup_fd_ int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static void sweep(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		fd_close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (is_lock(entry->d_name) && !is_held(folder, entry->d_name))
			unlinkat(folder, entry->d_name, 0);
	closedir(dir);
}

int keep_lock(const char *id)
{
	_cleanup_fd_ int folder = open_folder(NULL), fd = -1;
	char name[NAME_SIZE], made[NAME_SIZE];

	if (folder < 0)
		return folder;
	sweep(folder);
	snprintf(name, sizeof name, "%s.lock", id);
	snprintf(made, sizeof made, ".%s.new", id);
	/* Locked before it has its name: a sweep never finds it free. */
	fd = openat(folder, made, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || renameat(folder, made, folder, name) < 0)
		return -errno;
	return fd_take(&fd);
}

bool keep_is_alive(const char *id)
{
	_cleanup_fd_ int folder = open_folder(NULL);
	char name[NAME_SIZE];

	snprintf(name, sizeof name, "%s.lock", id);
	return folder >= 0 && is_held(folder, name);
}

int keep_find(char *ret_path, size_t size)
{
	char place[PATH_MAX];
	struct stat st;
	int r = place_path(place, sizeof place);

	if (r < 0)
		return r;
	if ((size_t)snprintf(ret_path, size, "%s/engines", place) >= size)
		return -ENAMETOOLONG;
	return lstat(ret_path, &st) < 0 ? -errno : 0;
}

int keep_prepare(char *ret_path, size_t size, struct csn_error *err)
{
	_cleanup_fd_ int folder = open_folder(err);
	struct stat st;
	int r;

	if (folder < 0)
		return folder;
	r = make_profile(folder, "seccomp.json", "command-alone");
	if (r >= 0)
		r = make_profile(folder, "seccomp-net.json", "command-alone-net");
	if (r >= 0 && fstatat(folder, "hidden-file", &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = write_file(folder, "hidden-file", "", 0);
	if (r >= 0 && mkdirat(folder, "hidden-folder", 0) < 0 && errno != EEXIST)
		r = -errno;
	if (r >= 0)
		r = keep_find(ret_path, size);
	return r < 0 ? csn_fail(err, r, "engine", "cannot fill the engines' folder: %s",
				strerror(-r))
		     : 0;
}
