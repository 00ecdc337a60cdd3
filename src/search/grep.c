/*
 * One file at a time through one buffer:
 *
 *   buffer  kept for context │ lines not searched yet │ the beginning of a line │ free
 *           told ^            begin ^              end ^                  size ^
 *
 * A small file is one read, one look for a place worth asking about (regex.c), and nothing more:
 * lines are counted only once something was found. See grep.h.
 */
#include "search/grep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

/* A file on its way through the buffer; offsets are into that. */
struct scan {
	struct grep *grep;
	const struct grep_file *file;
	int fd;
	size_t size;  /* bytes in the buffer */
	size_t begin; /* of what was not searched yet */
	size_t told;  /* a line's begin: nothing before it is told any more */
	uint64_t told_line;
	size_t counted; /* a line's begin, whose number is `line` */
	uint64_t line;
	size_t after;  /* lines to be told after the last match */
	uint64_t left; /* bytes that may still be read */
	off_t offset;  /* of the next read */
	bool is_large; /* it did not fit into the first read */
	bool is_sparse;
	bool is_over; /* nothing follows what is in the buffer */
	bool is_sniffed;
	bool is_binary;
};

int grep_init(struct grep *grep)
{
	grep->buffer = malloc(GREP_BUFFER);
	return grep->buffer ? 0 : refuse(grep->refusal, "enomem", "out of memory");
}

void grep_done(struct grep *grep)
{
	free(grep->buffer);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static uint64_t count_newlines(const char *data, size_t size)
{
	uint64_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += data[i] == '\n';
	return count;
}

/* The number of the line that begins at `at`, which is not before the last one asked for. */
static uint64_t number_of(struct scan *scan, size_t at)
{
	scan->line += count_newlines(scan->grep->buffer + scan->counted, at - scan->counted);
	scan->counted = at;
	return scan->line;
}

static int tell(struct scan *scan, enum answer_kind kind, size_t begin, size_t end)
{
	struct writer_line line = { kind, scan->told_line, scan->grep->buffer + begin,
				    end - begin };

	scan->told = end + 1;
	scan->told_line++;
	return writer_line(scan->grep->writer, &line) < 0 ? 1 : 0;
}

/* Tells whole lines as context, from `told` up to `limit`, at most as many as are wanted. */
static int tell_context(struct scan *scan, size_t limit, size_t *count)
{
	const char *buffer = scan->grep->buffer;

	for (; *count > 0 && scan->told < limit; --*count) {
		const char *end = memchr(buffer + scan->told, '\n', limit - scan->told);
		int r = tell(scan, ANSWER_CONTEXT, scan->told,
			     end ? (size_t)(end - buffer) : limit);

		if (r != 0)
			return r;
	}
	return 0;
}

/* The begin of the line `count` lines above that which begins at `at`, or the first one that may
 * still be told; *count becomes how many there are. */
static size_t lines_above(const struct scan *scan, size_t at, size_t floor, size_t *count)
{
	const char *buffer = scan->grep->buffer, *end;
	size_t found = 0;

	for (; found < *count && at > floor; found++) {
		end = memrchr(buffer + floor, '\n', at - 1 - floor);
		at = end ? (size_t)(end - buffer) + 1 : floor;
	}
	*count = found;
	return at;
}

static int tell_match(struct scan *scan, size_t begin, size_t end)
{
	struct grep *grep = scan->grep;
	size_t before = grep->context, above;
	uint64_t number = number_of(scan, begin);
	int r;

	if (grep->matches == grep->limit) {
		tell_context(scan, begin, &scan->after);
		grep->writer->is_truncated = true;
		return 1;
	}
	grep->matches++;
	r = tell_context(scan, begin, &scan->after);
	if (r != 0)
		return r;
	above = lines_above(scan, begin, scan->told < begin ? scan->told : begin, &before);
	scan->told = above;
	scan->told_line = number - before;
	r = tell_context(scan, begin, &before);
	if (r == 0)
		r = tell(scan, ANSWER_MATCH, begin, end);
	scan->after = grep->context;
	return r;
}

static int tell_binary(struct scan *scan)
{
	scan->is_over = true;
	return writer_binary(scan->grep->writer, scan->file->path, scan->file->path_size) < 0;
}

/* Searches whole lines up to `end`. */
static int search(struct scan *scan, size_t end)
{
	struct regex_text text = { scan->grep->buffer, end, scan->begin };
	int r;

	while ((r = regex_next(scan->grep->regex, &text)) > 0) {
		if (scan->is_binary)
			return tell_binary(scan);
		r = tell_match(scan, text.begin, text.end);
		if (r != 0)
			return r;
	}
	if (r < 0)
		return refuse(scan->grep->refusal, "match_limit",
			      "%.400s:%llu: matching this line takes too long", scan->file->path,
			      (unsigned long long)number_of(scan, text.begin));
	scan->begin = end;
	return tell_context(scan, end, &scan->after);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The first read filled the buffer: only now is it worth asking what the file is. */
static int look_closer(struct scan *scan)
{
	struct stat st;

	if (fstat(scan->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	scan->is_large = true;
	scan->is_sparse = (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size;
	scan->left = st.st_size > 0 ? (uint64_t)st.st_size : GREP_UNSIZED;
	scan->left = scan->left > scan->size ? scan->left - scan->size : 0;
	return 0;
}

/* Goes over a hole, for which one NUL stands. False: only a hole is left. */
static bool skip_hole(struct scan *scan)
{
	off_t data = lseek(scan->fd, scan->offset, SEEK_DATA);

	if (data < 0)
		return errno != ENXIO;
	if (data > scan->offset) {
		uint64_t hole = (uint64_t)(data - scan->offset);

		scan->left = scan->left > hole ? scan->left - hole : 0;
		scan->offset = data;
		scan->grep->buffer[scan->size++] = 0;
	}
	return true;
}

/* One piece more into the buffer. 0, or a negative errno. */
static int fill(struct scan *scan)
{
	size_t want = scan->left < GREP_READ ? (size_t)scan->left : GREP_READ;
	ssize_t n;

	if (scan->is_sparse && !skip_hole(scan))
		want = 0;
	n = want == 0 ? 0 : read(scan->fd, scan->grep->buffer + scan->size, want);
	if (n < 0)
		return -errno;
	scan->is_over = n == 0;
	scan->size += (size_t)n;
	scan->offset += n;
	scan->left -= (size_t)n;
	return scan->offset >= GREP_READ && !scan->is_large ? look_closer(scan) : 0;
}

/* Makes room: what was searched goes, but for lines that may become context. */
static void shift(struct scan *scan)
{
	size_t count = scan->grep->context, keep, floor = scan->told;

	if (floor > scan->begin)
		floor = scan->begin;
	if (scan->begin - floor > GREP_KEPT) {
		const char *line =
			memchr(scan->grep->buffer + scan->begin - GREP_KEPT, '\n', GREP_KEPT);

		floor = line ? (size_t)(line - scan->grep->buffer) + 1 : scan->begin;
	}
	keep = lines_above(scan, scan->begin, floor, &count);
	number_of(scan, keep > scan->counted ? keep : scan->counted);
	if (keep > 0)
		memmove(scan->grep->buffer, scan->grep->buffer + keep, scan->size - keep);
	scan->counted -= keep;
	/* A line that goes on behind a piece has no newline to go beyond. */
	scan->told = scan->told > scan->size ? scan->size : scan->told;
	scan->told = scan->told > keep ? scan->told - keep : 0;
	scan->begin -= keep;
	scan->size -= keep;
}

/* The end of the whole lines in the buffer; `begin`: there is none yet. */
static size_t whole_lines(const struct scan *scan)
{
	const char *from = scan->grep->buffer + scan->begin;
	const char *last = memrchr(from, '\n', scan->size - scan->begin);

	if (scan->is_over || scan->size - scan->begin >= GREP_PIECE)
		return scan->size;
	return last ? scan->begin + (size_t)(last - from) + 1 : scan->begin;
}

static void sniff(struct scan *scan)
{
	size_t size = scan->size < GREP_SNIFF ? scan->size : GREP_SNIFF;

	scan->is_binary = memchr(scan->grep->buffer, 0, size);
	scan->is_sniffed = true;
}

int grep_open_file(struct grep *grep, const struct grep_file *file, int fd)
{
	struct scan scan = {
		.grep = grep, .file = file, .fd = fd, .line = 1, .told_line = 1, .left = UINT64_MAX
	};
	int r = 0;

	writer_file(grep->writer, file->path, file->path_size);
	while (r == 0 && !scan.is_over) {
		size_t end;

		if (fill(&scan) < 0) {
			grep->skipped++;
			return 0;
		}
		if (!scan.is_over && !scan.is_large)
			continue; /* most files: searched when they are known to be whole */
		if (!scan.is_sniffed)
			sniff(&scan);
		end = whole_lines(&scan);
		if (end > scan.begin)
			r = search(&scan, end);
		if (!scan.is_over)
			shift(&scan);
	}
	return r;
}

int grep_file(struct grep *grep, const struct grep_file *file)
{
	_cleanup_fd_ int fd = openat(file->folder_fd, file->name,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0) {
		grep->skipped++;
		return 0;
	}
	return grep_open_file(grep, file, fd);
}
