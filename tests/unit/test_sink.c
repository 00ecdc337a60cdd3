/* Sinks: what the record keeps of any output, and what the caller's descriptor gets. */
#include "monitor/sink.h"

#include "base/fd.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Byte `i` of any output. */
static char byte_at(uint64_t i)
{
	return (char)('a' + (i * 7 + i / 26) % 26);
}

static void add_range(struct sink *sink, uint64_t from, uint64_t to, size_t piece)
{
	static char bytes[1 << 16];

	while (from < to) {
		size_t n = to - from < piece ? (size_t)(to - from) : piece;

		for (size_t i = 0; i < n; i++)
			bytes[i] = byte_at(from + i);
		CHECK(sink_add(sink, bytes, n) == 0);
		from += n;
	}
}

static char *saved(const struct sink *sink, size_t *ret_size)
{
	static char text[1 << 20];
	int fd = memfd_create("saved", MFD_CLOEXEC);
	ssize_t n;

	CHECK(fd >= 0 && sink_save(sink, fd) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	n = fd_read_all(fd, text, sizeof text - 1);
	CHECK(n >= 0);
	text[n] = 0;
	close(fd);
	*ret_size = (size_t)n;
	return text;
}

/* Head, a line with the number of bytes that are missing, tail. */
static void expect_saved(const struct sink *sink, uint64_t total)
{
	uint64_t half = sink->half, cut = total > 2 * half ? total - 2 * half : 0;
	uint64_t head = total < half ? total : half;
	char line[64] = "";
	size_t size, at;
	char *text = saved(sink, &size);

	if (cut)
		snprintf(line, sizeof line, "\n[%" PRIu64 " bytes cut]\n", cut);
	CHECK(sink->total == total && sink_cut(sink) == cut);
	CHECK(size == total - cut + strlen(line));
	for (at = 0; at < head; at++)
		CHECK(text[at] == byte_at(at));
	CHECK(strncmp(text + at, line, strlen(line)) == 0);
	at += strlen(line);
	for (uint64_t i = head + cut; i < total; i++)
		CHECK(text[at++] == byte_at(i));
}

static void head_and_tail(void)
{
	static const uint64_t keeps[] = { 2, 10, 64, 1000, 65536 };
	static const size_t pieces[] = { 1, 3, 7, 50, 4096, 65536 };

	for (size_t k = 0; k < sizeof keeps / sizeof *keeps; k++)
		for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
			uint64_t keep = keeps[k];
			const uint64_t totals[] = { 0,        1,           keep / 2, keep / 2 + 1,
						    keep - 1, keep,        keep + 1, keep * 3 / 2,
						    keep * 3, keep * 4 + 5 };

			for (size_t t = 0; t < sizeof totals / sizeof *totals; t++) {
				struct sink sink;

				sink_init(&sink, -1, keep);
				add_range(&sink, 0, totals[t], pieces[p]);
				expect_saved(&sink, totals[t]);
				sink_done(&sink);
			}
		}
}

/* However much comes, memory stays at what is kept. */
static void memory_is_bounded(void)
{
	struct sink sink;

	sink_init(&sink, -1, 1000);
	add_range(&sink, 0, 20 << 20, 65536);
	CHECK(sink.head.cap + sink.tail.cap <= 1000 && sink.queue.cap == 0);
	expect_saved(&sink, 20 << 20);
	sink_done(&sink);
}

static void nothing_kept(void)
{
	struct sink sink;
	size_t size;

	sink_init(&sink, -1, 0);
	add_range(&sink, 0, 5000, 100);
	CHECK(sink.total == 5000 && sink_cut(&sink) == 5000 && !sink_wants_out(&sink));
	CHECK(strcmp(saved(&sink, &size), "\n[5000 bytes cut]\n") == 0);
	sink_done(&sink);
}

/* A reader who stopped: pieces of at most PIPE_BUF, the rest waits, order is kept. */
static void queues(void)
{
	static char got[1 << 20];
	struct sink sink;
	int pipe_fds[2];
	size_t size = 0;

	CHECK(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) == 0);
	sink_init(&sink, pipe_fds[1], 100);
	CHECK(sink_flush(&sink) == 0 && !sink_wants_out(&sink));
	add_range(&sink, 0, 300000, 10000);
	CHECK(sink_wants_out(&sink) && buf_size(&sink.queue) == 300000);
	for (ssize_t n; (n = sink_flush(&sink)) > 0;)
		CHECK(n <= PIPE_BUF);
	CHECK(sink_flush(&sink) == 0 && sink_wants_out(&sink)); /* full: not an error */
	while (size < 300000) {
		ssize_t n = read(pipe_fds[0], got + size, sizeof got - size);

		CHECK(n > 0 || sink_wants_out(&sink));
		size += n > 0 ? (size_t)n : 0;
		while (sink_flush(&sink) > 0)
			;
	}
	for (size_t i = 0; i < size; i++)
		CHECK(got[i] == byte_at(i));
	CHECK(size == 300000 && !sink_wants_out(&sink));
	sink_done(&sink);
}

static void queue_is_bounded(void)
{
	static char bytes[1 << 16];
	struct sink sink;
	int pipe_fds[2], r = 0;
	int added = 0;

	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	sink_init(&sink, pipe_fds[1], 100);
	for (; r == 0 && added < 1000; added++)
		r = sink_add(&sink, bytes, sizeof bytes);
	CHECK(r < 0 && added <= 65 && buf_size(&sink.queue) <= 4 << 20);
	sink_done(&sink);
}

/* The reader is gone: said once; what comes then goes to the record alone. */
static void reader_is_gone(void)
{
	struct sink sink;
	int pipe_fds[2];

	signal(SIGPIPE, SIG_IGN);
	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	sink_init(&sink, pipe_fds[1], 1000);
	add_range(&sink, 0, 10, 10);
	close(pipe_fds[0]);
	CHECK(sink_flush(&sink) == -EPIPE);
	CHECK(sink.is_gone && !sink_wants_out(&sink) && buf_size(&sink.queue) == 0);
	add_range(&sink, 10, 100, 10);
	CHECK(buf_size(&sink.queue) == 0 && sink_flush(&sink) == 0);
	expect_saved(&sink, 100);
	sink_done(&sink);
}

static void files(void)
{
	struct sink sink;
	int fd = memfd_create("out", MFD_CLOEXEC);

	sink_init(&sink, fd, 100);
	CHECK(sink.is_file);
	add_range(&sink, 0, 200000, 65536);
	CHECK(sink_flush(&sink) == 200000 && !sink_wants_out(&sink));
	CHECK(lseek(fd, 0, SEEK_END) == 200000);
	/* the caller's descriptor is as it was: others share it */
	CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	sink_done(&sink);
	CHECK(fcntl(fd, F_GETFD) >= 0);
}

static const struct tap_test tests[] = {
	{ "the record has head, cut and tail of any size", head_and_tail },
	{ "memory is what is kept", memory_is_bounded },
	{ "a record of nothing counts all the same", nothing_kept },
	{ "a slow reader gets everything in order", queues },
	{ "the queue has an end", queue_is_bounded },
	{ "a reader that left is noticed once", reader_is_gone },
	{ "a file is written at once", files },
};

TAP_MAIN(tests)
