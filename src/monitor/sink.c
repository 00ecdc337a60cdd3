/* Where a command's output goes; see sink.h. */
#include "monitor/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { QUEUE_MAX = 4 << 20, FILE_PIECE = 1 << 20 };

void sink_init(struct sink *sink, int fd, uint64_t keep)
{
	struct stat st;

	*sink = (struct sink){ .fd = fd, .half = keep / 2 };
	buf_init(&sink->queue, QUEUE_MAX);
	buf_init(&sink->head, sink->half);
	buf_init(&sink->tail, sink->half);
	sink->is_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

void sink_done(struct sink *sink)
{
	buf_done(&sink->queue);
	buf_done(&sink->head);
	buf_done(&sink->tail);
}

static int keep(struct sink *sink, const uint8_t *data, size_t size)
{
	size_t room = buf_room(&sink->head), n = size < room ? size : room;
	int r = buf_add(&sink->head, data, n);

	data += n;
	size -= n;
	if (r < 0 || size == 0)
		return r;
	if (size > sink->half) {
		data += size - sink->half;
		size = sink->half;
	}
	room = buf_room(&sink->tail);
	if (size > room)
		buf_consume(&sink->tail, size - room);
	return buf_add(&sink->tail, data, size);
}

int sink_add(struct sink *sink, const void *data, size_t size)
{
	int r = sink->half > 0 ? keep(sink, data, size) : 0;

	sink->total += size;
	if (r >= 0 && sink->fd >= 0 && !sink->is_gone)
		r = buf_add(&sink->queue, data, size);
	return r;
}

ssize_t sink_flush(struct sink *sink)
{
	size_t size = buf_size(&sink->queue), limit = sink->is_file ? FILE_PIECE : PIPE_BUF;
	ssize_t n;

	if (!sink_wants_out(sink))
		return 0;
	n = write(sink->fd, buf_at(&sink->queue), size < limit ? size : limit);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0) {
		int error = errno;

		sink->is_gone = true;
		buf_clear(&sink->queue);
		return -error;
	}
	buf_consume(&sink->queue, (size_t)n);
	return n;
}

uint64_t sink_cut(const struct sink *sink)
{
	return sink->total - buf_size(&sink->head) - buf_size(&sink->tail);
}

int sink_save(const struct sink *sink, int fd)
{
	uint64_t cut = sink_cut(sink);
	char line[64];
	int n, r = fd_write_all(fd, buf_at(&sink->head), buf_size(&sink->head));

	if (r >= 0 && cut > 0) {
		n = snprintf(line, sizeof line, "\n[%" PRIu64 " bytes cut]\n", cut);
		r = fd_write_all(fd, line, (size_t)n);
	}
	return r < 0 ? r : fd_write_all(fd, buf_at(&sink->tail), buf_size(&sink->tail));
}
