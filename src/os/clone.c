/*
 * See clone.h. A write changes mtime and ctime before or while its bytes arrive, so a file whose
 * stamps are the same before and after was copied whole, as far as the kernel's clock can tell:
 * two writes within one of its ticks look like one before kernel 6.13.
 */
#include "os/clone.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"

enum { BLOCK = 64 << 10, TRIES = 3 };

static int copy_range(int from, int to, off_t at, off_t end)
{
	char block[BLOCK];
	ssize_t n;

	if (lseek(to, at, SEEK_SET) < 0)
		return -errno;
	for (; at < end; at += n) {
		n = pread(from, block, end - at < BLOCK ? (size_t)(end - at) : BLOCK, at);
		if (n <= 0)
			return n < 0 ? -errno : -EAGAIN; /* it became shorter */
		if (fd_write_all(to, block, (size_t)n) < 0)
			return -errno;
	}
	return 0;
}

static int copy_data(int from, int to, off_t size)
{
	off_t at = 0, hole;
	int r = 0;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	while (r == 0 && at < size && (at = lseek(from, at, SEEK_DATA)) >= 0 && at < size) {
		hole = lseek(from, at, SEEK_HOLE);
		hole = hole < 0 || hole > size ? size : hole;
		r = copy_range(from, to, at, hole);
		at = hole;
	}
	if (r == 0 && ftruncate(to, size) < 0)
		r = -errno;
	return r;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int clone_file(int from, int to, struct stat *ret_stat)
{
	struct stat before, after;
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < TRIES; i++) {
		if (fstat(from, &before) < 0 || ftruncate(to, 0) < 0)
			return -errno;
		if (!S_ISREG(before.st_mode))
			return -EINVAL;
		r = copy_data(from, to, before.st_size);
		if (r == 0 && (fstat(from, &after) < 0 || !is_same(&before, &after)))
			r = -EAGAIN;
	}
	if (r == 0)
		*ret_stat = before;
	return r;
}
