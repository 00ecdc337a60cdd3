/*
 * Folders of bundles, and their removal; see leftover.h. Runs in the monitor and, after its death,
 * in the cleaner, both with the caller's rights.
 *
 * Attack in mind: whoever comes to write in the run root leaves a state there whose hooks, groups
 * and process numbers are his. So the runtime is not asked to forget it: nothing of what a state
 * says is believed. Processes end with their agent and their groups, and what is here is removed.
 */
#include "backend/oci/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"

#define FOLDER ".oci"

enum { GROUP_TRIES = 50, GROUP_PAUSE_US = 10000 };

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

/* "20290101-000000-0123456789ab": nothing that leads elsewhere. */
static bool is_id(const char *name)
{
	return *name && name[strspn(name, "0123456789abcdef-")] == 0;
}

/* Empty groups; those who were in them are dying. */
static void remove_group(const char *base, const char *above, const char *id)
{
	const char *const between[][3] = { { "/caisson/", id, "/cmd" },
					   { "/caisson/", id, "" },
					   { "", "", "" } };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(between); i++) {
		int n = snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s%s%s%s/%s", base, above,
				 between[i][0], between[i][1], between[i][2], id);

		if (n < 0 || n >= (int)sizeof path)
			continue;
		for (int j = 0; j < GROUP_TRIES && rmdir(path) < 0 && errno == EBUSY; j++)
			usleep(GROUP_PAUSE_US);
	}
}

/* runc makes its own, in our group, and beneath the caller's in hierarchies where we have none. */
static void remove_groups(const char *id)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];

	while (file && is_id(id) && fgets(line, sizeof line, file)) {
		char *name = strchr(line, ':'), *above = name ? strchr(name + 1, ':') : NULL;

		if (!above)
			continue;
		*name++ = *above++ = 0;
		above[strcspn(above, "\n")] = 0;
		if (str_is(name, "")) { /* v2, alone or beside v1 */
			remove_group("", above, id);
			name = (char *)(uintptr_t) "unified";
		}
		remove_group(str_starts(name, "name=") ? name + strlen("name=") : name, above, id);
	}
	if (file)
		fclose(file);
}

void leftover_remove(const char *state_root, const char *id)
{
	_cleanup_fd_ int above_fd = -1;
	char above[PATH_MAX];

	if (!leftover_path(state_root, ".", above))
		return;
	above_fd = open(above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (above_fd >= 0)
		tree_remove(above_fd, id);
	remove_groups(id);
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
