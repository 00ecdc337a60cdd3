/* logs/iterations.jsonl; see iterations.h. */
#include "jobs/iterations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/dump.h"
#include "audit/files.h"
#include "audit/lines.h"
#include "base/fd.h"

enum { LINE_MAX_ = 65536 };

/* The end of the last whole line, and the chain's line that it was made of. */
static int scan(int fd, off_t *ret_end, uint64_t *ret_line)
{
	struct lines lines;
	const char *text;
	size_t size;
	int r = lines_init(&lines, fd, LINE_MAX_);

	*ret_end = 0;
	*ret_line = 0;
	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return r < 0 ? r : -errno;
	while ((r = lines_next(&lines, &text, &size)) == 1 && !lines.is_cut && !lines.is_too_long) {
		json_t *line = json_loadb(text, size, 0, NULL);
		json_int_t seq = json_integer_value(json_object_get(line, "line"));

		json_decref(line);
		*ret_end += (off_t)size + 1;
		if (seq > 0)
			*ret_line = (uint64_t)seq;
	}
	lines_done(&lines);
	return r < 0 ? r : 0;
}

int iterations_open(int logs_fd, struct csn_error *err)
{
	_cleanup_fd_ int fd =
		openat(logs_fd, "iterations.jsonl",
		       O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	uint64_t line;
	off_t end;
	int r = fd < 0 ? -errno : scan(fd, &end, &line);

	if (r == 0 && ftruncate(fd, end) < 0)
		r = -errno;
	return r < 0 ? files_fail(err, r, "open", "logs/iterations.jsonl") : fd_take(&fd);
}

uint64_t iterations_last(int fd)
{
	uint64_t line = 0;
	off_t end;

	return scan(fd, &end, &line) < 0 ? 0 : line;
}

int iterations_add(int fd, uint64_t seq, const char *time, const json_t *payload)
{
	const json_t *books = json_object_get(payload, "books");
	const json_t *report = json_object_get(payload, "report");
	json_t *line = json_pack("{s:O, s:s, s:I, s:O, s:O, s:O, s:O*}", "iteration",
				 json_object_get(books, "iteration"), "time", time, "line",
				 (json_int_t)seq, "cost_usd", json_object_get(books, "cost_usd"),
				 "tokens", json_object_get(books, "tokens"), "wall_ms",
				 json_object_get(books, "wall_ms"), "summary",
				 json_object_get(report, "summary"));
	char *text;
	size_t size;
	int r = line ? dump_short(line, &text, &size) : -ENOMEM;

	json_decref(line);
	if (r < 0)
		return r;
	text[size] = '\n'; /* in place of the NUL: one write, one line */
	r = fd_write_all(fd, text, size + 1);
	free(text);
	return r;
}
