/* Sockets of sandboxes that stay; see place.h. */
#include "base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

#define STAGE "name"

enum { FILE_NAME = PLACE_NAME_MAX + 8, BACKLOG = 128, PATIENCE_S = 2 };

int place_path(char *ret_path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (runtime && runtime[0] == '/')
		n = snprintf(ret_path, size, "%s/caisson", runtime);
	else if (geteuid() == 0)
		n = snprintf(ret_path, size, "/run/caisson");
	else
		n = snprintf(ret_path, size, "/tmp/caisson-%u", (unsigned)geteuid());
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int place_open(struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	char path[4096];
	struct stat st;

	if (place_path(path, sizeof path) < 0)
		return csn_fail(err, -ENAMETOOLONG, STAGE, "$XDG_RUNTIME_DIR is too long a path");
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return csn_fail(err, -errno, STAGE,
				"cannot make %s for the sandboxes' sockets: %m; set "
				"XDG_RUNTIME_DIR to a folder of yours",
				path);
	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return csn_fail(err, -errno, STAGE, "cannot open %s: %m", path);
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return csn_fail(
			err, -EPERM, STAGE,
			"%s must belong to you and be closed to others (chmod 700): whoever "
			"can write there could answer in a sandbox's place",
			path);
	return fd_take(&fd);
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool place_is_name(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > PLACE_NAME_MAX || !is_name_char(name[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!is_name_char(name[i]) && !strchr("-_.", name[i]))
			return false;
	return true;
}

/* By way of the folder's descriptor, since its own path may be longer than a socket's may be. */
static int address_of(int place_fd, const char *name, struct sockaddr_un *ret_address)
{
	int n;

	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(ret_address->sun_path, sizeof ret_address->sun_path,
		     "/proc/self/fd/%d/%s.sock", place_fd, name);
	return n < 0 || (size_t)n >= sizeof ret_address->sun_path ? -ENAMETOOLONG : 0;
}

static int check_name(const char *name, struct csn_error *err)
{
	return place_is_name(name)
		       ? 0
		       : csn_fail(err, -EINVAL, STAGE,
				  "a sandbox's name has 1 to %d letters, digits, '-', '_' and '.', "
				  "and begins with a letter or digit",
				  PLACE_NAME_MAX);
}

static int take_lock(int place_fd, const char *name)
{
	char file[FILE_NAME];
	struct stat there, ours;

	snprintf(file, sizeof file, "%s.lock", name);
	for (;;) {
		_cleanup_fd_ int fd =
			openat(place_fd, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EEXIST : -errno;
		/* Its last owner may have removed it between our two calls. */
		if (fstat(fd, &ours) == 0 &&
		    fstatat(place_fd, file, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    ours.st_ino == there.st_ino)
			return fd_take(&fd);
	}
}

int place_listen(int place_fd, const char *name, int *ret_lock, int *ret_socket,
		 struct csn_error *err)
{
	_cleanup_fd_ int lock = -1, fd = -1;
	struct sockaddr_un address;
	char file[FILE_NAME];
	int r = check_name(name, err);

	if (r < 0)
		return r;
	lock = take_lock(place_fd, name);
	if (lock == -EEXIST)
		return csn_fail(err, -EEXIST, STAGE,
				"a sandbox named %s is up; end it by: caisson down %s", name, name);
	if (lock < 0)
		return csn_fail(err, lock, STAGE, "cannot lock the name %s: %s", name,
				strerror(-lock));
	snprintf(file, sizeof file, "%s.sock", name);
	unlinkat(place_fd, file, 0); /* of a dead one: its lock was free */
	r = address_of(place_fd, name, &address);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r < 0 || fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
	    fchmodat(place_fd, file, 0600, 0) < 0 || listen(fd, BACKLOG) < 0)
		return csn_fail(err, -errno, STAGE, "cannot listen as %s: %m", name);
	if (ftruncate(lock, 0) < 0) /* the mark of a dead one */
		return csn_fail(err, -errno, STAGE, "cannot write %s.lock: %m", name);
	*ret_lock = fd_take(&lock);
	*ret_socket = fd_take(&fd);
	return 0;
}

void place_leave(int place_fd, const char *name)
{
	char file[FILE_NAME];

	snprintf(file, sizeof file, "%s.sock", name);
	unlinkat(place_fd, file, 0);
	snprintf(file, sizeof file, "%s.lock", name);
	unlinkat(place_fd, file, 0);
}

void place_mark_up(int lock)
{
	if (pwrite(lock, "up\n", 3, 0) != 3)
		return; /* a full disk: `ps` says that it starts */
}

bool place_life_of(int place_fd, const char *name, struct place_life *ret_life)
{
	char file[FILE_NAME];
	struct stat st;

	snprintf(file, sizeof file, "%.*s.lock", PLACE_NAME_MAX, name);
	if (fstatat(place_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	ret_life->is_up = st.st_size > 0;
	ret_life->since_ms = (int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000;
	return true;
}

int place_connect_now(int place_fd, const char *name)
{
	_cleanup_fd_ int fd = -1;
	struct sockaddr_un address;

	if (!place_is_name(name) || address_of(place_fd, name, &address) < 0)
		return -EINVAL;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return errno == ECONNREFUSED ? -ENOENT : -errno;
	return fd_take(&fd);
}

int place_connect(int place_fd, const char *name, struct csn_error *err)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S }, none = { 0 };
	_cleanup_fd_ int fd = -1;
	struct sockaddr_un address;
	int r = check_name(name, err);

	if (r >= 0)
		r = address_of(place_fd, name, &address);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* A stopped monitor lets nobody in once its queue is full. */
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
	    connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none) == 0)
		return fd_take(&fd);
	if (errno == EAGAIN)
		return csn_fail(err, -ETIMEDOUT, STAGE,
				"the sandbox %s does not answer; its monitor may be stopped", name);
	if (errno == ENOENT || errno == ECONNREFUSED)
		return csn_fail(err, -ENOENT, STAGE,
				"there is no sandbox named %s; `caisson ps` lists them", name);
	return csn_fail(err, -errno, STAGE, "cannot reach the sandbox %s: %m", name);
}

bool place_is_alive(int place_fd, const char *name)
{
	_cleanup_fd_ int lock = take_lock(place_fd, name);

	if (lock < 0)
		return true;
	place_leave(place_fd, name);
	return false;
}
