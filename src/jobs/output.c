/* A worker's output under a ceiling; see output.h. */
#include "jobs/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { NAME = 16, OPEN = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

static void name_of(const struct output_stream *stream, const char *end, char ret_name[NAME])
{
	snprintf(ret_name, NAME, "%s%s", stream->name, end);
}

/* Opens what is written next; its room is what a file of `most` bytes has left. */
static int open_next(struct output *output, struct output_stream *stream, uint64_t most)
{
	char name[NAME];
	struct stat st;

	name_of(stream, stream->is_first ? "" : ".2", name);
	stream->fd = openat(output->logs_fd, name, OPEN, 0600);
	if (stream->fd < 0 || fstat(stream->fd, &st) < 0)
		return -errno;
	stream->room = (uint64_t)st.st_size < most ? most - (uint64_t)st.st_size : 0;
	return 0;
}

static void turn(struct output *output, struct output_stream *stream)
{
	char old[NAME], older[NAME];

	stream->fd = fd_close(stream->fd);
	if (!stream->is_first) {
		name_of(stream, ".2", old);
		name_of(stream, ".1", older);
		renameat(output->logs_fd, old, output->logs_fd, older);
	}
	stream->is_first = false;
}

static int make_room(struct output *output, struct output_stream *stream)
{
	int r = 0;

	for (int i = 0; r == 0 && stream->room == 0 && i < 4; i++) {
		if (stream->fd >= 0)
			turn(output, stream);
		r = open_next(output, stream, stream->is_first ? output->cap / 2 : output->cap / 4);
	}
	return r < 0 ? r : stream->room ? 0 : -ENOSPC;
}

void output_init(struct output *output, int logs_fd, uint64_t cap)
{
	static const uint64_t most = UINT64_C(1) << 30;

	*output = (struct output){ .logs_fd = logs_fd,
				   .cap = cap < most ? cap : most,
				   .streams = { { "stdout", -1, true, 0 },
						{ "stderr", -1, true, 0 } } };
	if (output->cap < 4096)
		output->cap = 4096;
}

void output_done(struct output *output)
{
	for (int i = 0; i < 2; i++)
		output->streams[i].fd = fd_close(output->streams[i].fd);
}

int output_add(struct output *output, bool is_stderr, const void *bytes, size_t size)
{
	struct output_stream *stream = &output->streams[is_stderr];
	const char *at = bytes;

	while (size > 0) {
		size_t part;
		int r = make_room(output, stream);

		if (r < 0)
			return r;
		part = size < stream->room ? size : (size_t)stream->room;
		r = fd_write_all(stream->fd, at, part);
		if (r < 0)
			return r;
		stream->room -= part;
		at += part;
		size -= part;
	}
	return 0;
}
