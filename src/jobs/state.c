/* state.json of a job: one block, written in place; see state.h. */
#include "jobs/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/dump.h"
#include "audit/files.h"
#include "base/fd.h"

enum { TRIES = 20, PAUSE_NS = 5000000 };

static int open_block(int dir_fd)
{
	_cleanup_fd_ int fd =
		openat(dir_fd, "state.json", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size != STATE_SIZE || st.st_nlink != 1)
		return -ENOENT;
	return fd_take(&fd);
}

int state_open(int dir_fd, struct csn_error *err)
{
	char block[STATE_SIZE];
	int fd = open_block(dir_fd), r;

	if (fd >= 0)
		return fd;
	memset(block, ' ', sizeof block);
	memcpy(block, "{}", 2);
	block[sizeof block - 1] = '\n';
	r = files_replace(dir_fd, "state.json", block, sizeof block, true);
	if (r >= 0)
		r = open_block(dir_fd);
	return r < 0 ? files_fail(err, r, "write", "state.json") : r;
}

/* As text that fits, first as people read it. */
static int dump_small(json_t *state, char **ret_text, size_t *ret_size)
{
	json_t *history = json_object_get(state, "resume_history");
	size_t flags = JSON_INDENT(1);

	for (;;) {
		int r = dump_json(state, flags, ret_text, ret_size);

		if (r < 0 || *ret_size < STATE_SIZE)
			return r;
		free(*ret_text);
		if (json_array_size(history) == 0 && flags == DUMP_CANONICAL)
			return -E2BIG;
		if (json_array_size(history) > 0)
			json_array_remove(history, 0);
		else
			flags = DUMP_CANONICAL;
	}
}

int state_write(int fd, json_t *state)
{
	char block[STATE_SIZE], *text;
	size_t size;
	ssize_t n;
	int r = dump_small(state, &text, &size);

	if (r < 0)
		return r;
	memset(block, ' ', sizeof block);
	memcpy(block, text, size);
	block[sizeof block - 1] = '\n';
	free(text);
	n = pwrite(fd, block, sizeof block, 0);
	if (n != (ssize_t)sizeof block)
		return n < 0 ? -errno : -ENOSPC;
	return fdatasync(fd) < 0 ? -errno : 0;
}

/* Not what somebody else laid there, nor what he may write: -EPERM. */
static int read_block(int dir_fd, json_t **ret_state)
{
	_cleanup_fd_ int fd = files_open_regular(dir_fd, "state.json");
	char block[STATE_SIZE];
	struct stat st;
	json_t *state;
	ssize_t size;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 022) || st.st_nlink != 1)
		return -EPERM;
	size = fd_read_all(fd, block, sizeof block);
	if (size < 0)
		return (int)size;
	state = json_loadb(block, (size_t)size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (!state)
		return -EBADMSG;
	*ret_state = state;
	return 0;
}

int state_read(int dir_fd, json_t **ret_state)
{
	int r = -EBADMSG;

	for (int i = 0; i < TRIES && r == -EBADMSG; i++) {
		if (i)
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		r = read_block(dir_fd, ret_state);
	}
	return r;
}
