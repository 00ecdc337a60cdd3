/* The scratch folder of a wall without mounts; see scratch.h. */
#include "monitor/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/tree.h"
#include "backend/backend.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/sys.h"

#define PLACE "/tmp"
#define PREFIX "caisson-"

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
enum { MAKE_TRIES = 8, LAST_TRIES = 50, PAUSE_US = 20000, LOOK_AT = 4096 };

void scratch_name(char ret_path[SCRATCH_PATH], const char *id)
{
	snprintf(ret_path, SCRATCH_PATH, PLACE "/" PREFIX "%.*s", RUN_ID_SIZE, id);
}

static int open_place(void)
{
	return open(PLACE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Is the open folder what the name leads to? */
static bool is_named(int fd, const char *path)
{
	struct stat st, now;

	return fstat(fd, &st) == 0 && lstat(path, &now) == 0 && st.st_dev == now.st_dev &&
	       st.st_ino == now.st_ino;
}

/* Until it is locked somebody may sweep it: then it is made again. */
static int make_locked(const char *path, int *ret_fd)
{
	for (int i = 0; i < MAKE_TRIES; i++) {
		_cleanup_fd_ int fd = -1;

		if (mkdir(path, 0700) < 0)
			return -errno;
		fd = open(path, OPEN_DIR);
		if (fd < 0 && errno != ENOENT)
			return -errno;
		if (fd >= 0 && flock(fd, LOCK_EX) < 0)
			return -errno;
		if (fd >= 0 && is_named(fd, path)) {
			*ret_fd = fd_take(&fd);
			return 0;
		}
	}
	return -EBUSY;
}

int scratch_make(const char *path, uid_t owner, int *ret_fd, struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	int r = make_locked(path, &fd);

	if (r < 0)
		return csn_fail(err, r, "scratch", "cannot make a folder in " PLACE ": %s",
				strerror(-r));
	if (mkdirat(fd, "home", 0700) < 0)
		return csn_fail(err, -errno, "scratch", "cannot use %s: %m", path);
	if (owner != geteuid() && (fchownat(fd, "home", owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ||
				   fchown(fd, owner, owner) < 0))
		return csn_fail(err, -EPERM, "scratch", "cannot hand over %s: %m", path);
	*ret_fd = fd_take(&fd);
	return 0;
}

static bool is_ours(const struct stat *st)
{
	return S_ISDIR(st->st_mode) &&
	       (st->st_uid == geteuid() || (geteuid() == 0 && backend_is_private_uid(st->st_uid)));
}

bool scratch_remove(const char *path)
{
	_cleanup_fd_ int place_fd = open_place();
	const char *name = path + strlen(PLACE "/");
	struct stat st;

	if (place_fd < 0)
		return false;
	/* A name may be taken by somebody else: whoever removes it may not have been told. */
	if (fstatat(place_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_ours(&st))
		return true;
	for (int i = 0; i < LAST_TRIES; i++) {
		int r = tree_remove(place_fd, name);

		if (r >= 0 || r == -ENOENT)
			return true;
		usleep(PAUSE_US);
	}
	return false;
}

/* Its program may have closed it to everybody. */
static int open_closed(int place_fd, const char *name)
{
	_cleanup_fd_ int handle = sys_openat2(place_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	char self[32];
	struct stat st;

	if (handle < 0 || fstat(handle, &st) < 0 || !is_ours(&st))
		return -1;
	/* fchmod() refuses an O_PATH descriptor; its magic link reaches the very same folder. */
	snprintf(self, sizeof self, "/proc/self/fd/%d", handle);
	return chmod(self, 0700) < 0 ? -1 : openat(place_fd, name, OPEN_DIR);
}

static bool sweep_name(int place_fd, const char *name)
{
	_cleanup_fd_ int fd = openat(place_fd, name, OPEN_DIR);
	char path[SCRATCH_PATH];
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return true;
	if (fd < 0)
		fd = open_closed(place_fd, name);
	if (fd < 0 || fstat(fd, &st) < 0 || !is_ours(&st))
		return false;
	snprintf(path, sizeof path, PLACE "/%s", name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_named(fd, path))
		return false;
	return tree_remove(place_fd, name) >= 0;
}

bool scratch_sweep_one(const char *id)
{
	_cleanup_fd_ int place_fd = open_place();
	char path[SCRATCH_PATH];

	if (place_fd < 0 || !record_is_id(id))
		return false;
	scratch_name(path, id);
	return sweep_name(place_fd, path + strlen(PLACE "/"));
}

/* Was it there, and is it gone? */
static bool sweep_there(int place_fd, const char *name, const struct removed *removed)
{
	char path[SCRATCH_PATH];
	struct stat st;

	if (fstatat(place_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !sweep_name(place_fd, name))
		return false;
	scratch_name(path, name + strlen(PREFIX));
	removed_tell(removed, "scratch", path);
	return true;
}

int scratch_sweep(const struct removed *removed)
{
	DIR *dir = opendir(PLACE);
	const struct dirent *entry;
	int count = 0;

	for (int i = 0; dir && i < LOOK_AT && (entry = readdir(dir)); i++)
		if (str_starts(entry->d_name, PREFIX) &&
		    record_is_id(entry->d_name + strlen(PREFIX)))
			count += sweep_there(dirfd(dir), entry->d_name, removed);
	if (dir)
		closedir(dir);
	return count;
}
