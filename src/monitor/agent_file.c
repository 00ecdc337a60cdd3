/*
 * The executables that go inside. They are executed from a descriptor, so that no path inside the
 * wall leads to one. Rootless, a program inside has the caller's own uid: if that uid may write the
 * file (a build tree), a sandbox that found a way to it would change the next one's agent; a
 * sealed memfd is used then. tests/escape/agent_file.py
 */
#include "monitor/agent_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U /* Linux 6.3 */
#endif

/* Installed, and in the build folder. */
static const char *const places[] = { "../libexec/caisson", ".",
				      "../agent",           "../search",
				      "../serve",           "../libexec/caisson/bin",
				      "../report",          "../../evaluators/lua" };

static int open_beside_us(const char *name)
{
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;
	int fd = -ENOENT;

	if (n <= 0)
		return -ENOENT;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = 0;
	for (size_t i = 0; fd < 0 && i < sizeof places / sizeof *places; i++) {
		snprintf(path, sizeof path, "%s/%s/%s", self, places[i], name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	return fd < 0 ? -ENOENT : fd;
}

/* Root's sandboxes have an id of their own, which owns nothing. */
static bool is_writable_inside(const struct stat *st)
{
	return geteuid() != 0 && (st->st_uid == geteuid() || (st->st_mode & 022));
}

static int copy_sealed(const char *name, int from_fd, off_t size)
{
	_cleanup_fd_ int fd = -1;
	off_t done = 0;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	while (done < size) {
		ssize_t n = sendfile(fd, from_fd, &done, (size_t)(size - done));

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	if (fchmod(fd, 0555) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return fd_take(&fd);
}

int agent_file_open(const char *name, int *ret_fd, struct csn_error *err)
{
	_cleanup_fd_ int fd = open_beside_us(name);
	struct stat st;

	if (fd < 0)
		return csn_fail(err, fd, "agent",
				"%s is missing: it lies beside caisson in the build "
				"folder, or in libexec/caisson after make install",
				name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return csn_fail(err, -EINVAL, "agent", "%s is not a regular file", name);
	if (is_writable_inside(&st)) {
		int copy = copy_sealed(name, fd, st.st_size);

		if (copy < 0)
			return csn_fail(err, copy, "agent",
					"cannot copy %s into memory; if vm.memfd_noexec is 2, "
					"install caisson (make install) or set it to 1",
					name);
		*ret_fd = copy;
		return 0;
	}
	*ret_fd = fd_take(&fd);
	return 0;
}

bool agent_file_folder(const char *name, char *ret_path)
{
	_cleanup_fd_ int fd = open_beside_us(name);
	char link[64];
	ssize_t n;

	if (fd < 0)
		return false;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, ret_path, PATH_MAX - 1);
	if (n <= 0)
		return false;
	ret_path[n] = 0;
	*strrchr(ret_path, '/') = 0;
	return true;
}
