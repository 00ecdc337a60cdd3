/*
 * Folders of bundles, and their removal; see leftover.h. Runs in the monitor and, after its death,
 * in the cleaner, both with the caller's rights. Nothing inside the wall reaches these folders.
 */
#include "backend/oci/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/oci/runtime.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/sys.h"

#define FOLDER ".oci"

enum { DELETE_MS = 5000, LEVELS_MAX = 8 };

bool leftover_path(const char *state_root, const char *id, char *ret_path)
{
	return snprintf(ret_path, PATH_MAX, "%s/" FOLDER "/%s", state_root, id) < PATH_MAX;
}

/* Each part that is missing, for the caller alone. */
static int make_above(const char *path)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

int leftover_make(const char *state_root, const char *id, int *ret_fd, struct csn_error *err)
{
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int r = leftover_path(state_root, id, path) ? make_above(path) : -ENAMETOOLONG;

	if (r >= 0 && mkdir(path, 0700) < 0)
		r = -errno;
	if (r >= 0)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r >= 0 && (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || fstat(fd, &st) < 0))
		r = -errno;
	if (r >= 0 && (st.st_uid != geteuid() || (st.st_mode & 07777) != 0700))
		r = -EPERM;
	if (r < 0)
		return csn_fail(err, r, "bundle", "cannot make the bundle's folder %s: %s", path,
				strerror(-r));
	*ret_fd = fd_take(&fd);
	return 0;
}

/* ---- removing ------------------------------------------------------------------------------- */

static void remove_tree(int dir_fd, const char *name, int levels)
{
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (unlinkat(dir_fd, name, 0) == 0 || unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 ||
	    levels == 0)
		return;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (!str_is(entry->d_name, ".") && !str_is(entry->d_name, ".."))
			remove_tree(fd, entry->d_name, levels - 1);
	closedir(dir);
	unlinkat(dir_fd, name, AT_REMOVEDIR);
}

static void run_delete(const char *program, const char *state, const char *id)
{
	static char *const env[] = { (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	char *const argv[] = { (char *)program,   (char *)"--root", (char *)state, (char *)"delete",
			       (char *)"--force", (char *)id,       NULL };
	_cleanup_fd_ int pidfd = -1;
	struct pollfd end;
	pid_t pid = sys_clone(0, &pidfd, -1);

	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDWR);
		sigset_t none;

		for (int fd = 0; fd < 3; fd++)
			dup2(null_fd, fd);
		sys_close_from(3);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execve(program, argv, env);
		_exit(127);
	}
	if (pid < 0)
		return;
	end = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	if (poll(&end, 1, DELETE_MS) == 0)
		sys_pidfd_signal(pidfd, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Is there state of a container? A runtime that ended by itself took it along. */
static bool has_state(int dir_fd)
{
	int fd = openat(dir_fd, "state", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool any = false;

	if (!dir) {
		fd_close(fd);
		return false;
	}
	while (!any && (entry = readdir(dir)))
		any = !str_is(entry->d_name, ".") && !str_is(entry->d_name, "..");
	closedir(dir);
	return any;
}

static void forget(int dir_fd, const char *path, const char *id)
{
	char name[32] = "", program[PATH_MAX], state[PATH_MAX];
	_cleanup_fd_ int fd = openat(dir_fd, "runtime", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (!has_state(dir_fd) || fd < 0 || read(fd, name, sizeof name - 1) <= 0 ||
	    !runtime_named(name, program) ||
	    snprintf(state, sizeof state, "%s/state", path) >= (int)sizeof state)
		return;
	run_delete(program, state, id);
}

void leftover_remove(const char *state_root, const char *id)
{
	_cleanup_fd_ int dir_fd = -1, above_fd = -1;
	char path[PATH_MAX], above[PATH_MAX];

	if (!leftover_path(state_root, id, path) || !leftover_path(state_root, ".", above))
		return;
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	above_fd = open(above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0 || above_fd < 0)
		return;
	forget(dir_fd, path, id);
	remove_tree(above_fd, id, LEVELS_MAX);
}

static bool is_free(int above_fd, const char *id)
{
	_cleanup_fd_ int fd = openat(above_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void leftover_sweep(const char *state_root, const struct removed *removed)
{
	char above[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	if (!leftover_path(state_root, ".", above) || !(dir = opendir(above)))
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || !is_free(dirfd(dir), entry->d_name))
			continue;
		leftover_remove(state_root, entry->d_name);
		removed_tell(removed, "bundle", entry->d_name);
	}
	closedir(dir);
}
