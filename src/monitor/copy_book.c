/*
 * See copy_book.h. The file is a row of records, appended in one write each: a head of fixed size,
 * then the path. One that a crash cut short is not read, and neither is what follows it.
 */
#include "monitor/copy_book.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"

enum { BOOK_MAX = 256 << 20 };

/* As on disk: written and read on one machine, by us. */
struct copy_book_head {
	uint64_t dev, ino;
	int64_t changed_s;
	uint32_t changed_ns;
	uint32_t path_size;
};

struct copy_book_line {
	struct copy_book_head head;
	const char *path; /* in the book's bytes, `path_size` bytes */
	size_t at;        /* its place in the file */
};

static int by_path(const void *a, const void *b)
{
	const struct copy_book_line *x = a, *y = b;
	size_t both = x->head.path_size < y->head.path_size ? x->head.path_size : y->head.path_size;
	int order = memcmp(x->path, y->path, both);

	if (order == 0 && x->head.path_size != y->head.path_size)
		order = x->head.path_size < y->head.path_size ? -1 : 1;
	if (order == 0)
		order = x->at < y->at ? -1 : x->at > y->at;
	return order;
}

static int add_line(struct copy_book *book, size_t *room, const struct copy_book_line *line)
{
	struct copy_book_line *lines;

	if (book->count == *room) {
		*room = *room ? *room * 2 : 64;
		lines = reallocarray(book->lines, *room, sizeof *lines);
		if (!lines)
			return -ENOMEM;
		book->lines = lines;
	}
	book->lines[book->count++] = *line;
	return 0;
}

static int parse(struct copy_book *book)
{
	const uint8_t *bytes = buf_at(&book->bytes);
	size_t size = buf_size(&book->bytes), at = 0, room = 0;
	struct copy_book_line line;

	while (size - at >= sizeof line.head) {
		memcpy(&line.head, bytes + at, sizeof line.head);
		line.at = at;
		at += sizeof line.head;
		if (line.head.path_size == 0 || line.head.path_size >= PATH_MAX ||
		    line.head.path_size > size - at)
			break;
		line.path = (const char *)bytes + at;
		at += line.head.path_size;
		if (add_line(book, &room, &line) < 0)
			return -ENOMEM;
	}
	if (book->count > 1)
		qsort(book->lines, book->count, sizeof *book->lines, by_path);
	return 0;
}

static int load(struct copy_book *book)
{
	struct stat st;
	uint8_t *room;
	ssize_t n;

	if (fstat(book->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > BOOK_MAX)
		return -EFBIG;
	buf_init(&book->bytes, BOOK_MAX);
	if (st.st_size == 0)
		return 0;
	room = buf_reserve(&book->bytes, (size_t)st.st_size);
	if (!room)
		return -ENOMEM;
	n = fd_read_all(book->fd, room, (size_t)st.st_size);
	if (n < 0)
		return (int)n;
	buf_grew(&book->bytes, (size_t)n);
	return parse(book);
}

int copy_book_open(struct copy_book *book, int cow_fd, bool makes, struct csn_error *err)
{
	int r;

	buf_init(&book->bytes, BOOK_MAX);
	book->fd = openat(cow_fd, "committed",
			  O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | (makes ? O_CREAT : 0), 0600);
	if (book->fd < 0 && errno == ENOENT && !makes)
		return 0;
	if (book->fd < 0)
		return csn_fail(err, -errno, "commit", "cannot open the book of commits: %m");
	if (flock(book->fd, LOCK_EX | LOCK_NB) < 0)
		return csn_fail(err, -EBUSY, "commit",
				"another commit of these changes is under way: wait for its end");
	r = load(book);
	return r < 0 ? csn_fail(err, r, "commit", "cannot read the book of commits: %s",
				strerror(-r))
		     : 0;
}

void copy_book_done(struct copy_book *book)
{
	free(book->lines);
	book->lines = NULL;
	book->count = 0;
	buf_done(&book->bytes);
	book->fd = fd_close(book->fd);
}

bool copy_book_has(const struct copy_book *book, const char *path, const struct stat *st)
{
	const struct copy_book_line wanted = { .head.path_size = (uint32_t)strlen(path),
					       .path = path,
					       .at = SIZE_MAX };
	const struct copy_book_head *head;
	size_t low = 0, high = book->count;

	/* The first line behind all of this path; the one before it is the last of them. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_path(&book->lines[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	head = &book->lines[low - 1].head;
	return head->path_size == wanted.head.path_size &&
	       memcmp(book->lines[low - 1].path, path, head->path_size) == 0 &&
	       head->dev == st->st_dev && head->ino == st->st_ino &&
	       head->changed_s == st->st_ctim.tv_sec &&
	       head->changed_ns == (uint32_t)st->st_ctim.tv_nsec;
}

void copy_book_add(struct copy_book *book, const char *path, const struct stat *st)
{
	struct copy_book_head head = { .dev = st->st_dev,
				       .ino = st->st_ino,
				       .changed_s = st->st_ctim.tv_sec,
				       .changed_ns = (uint32_t)st->st_ctim.tv_nsec,
				       .path_size = (uint32_t)strlen(path) };
	char record[sizeof head + PATH_MAX];

	if (head.path_size == 0 || head.path_size >= PATH_MAX)
		return;
	memcpy(record, &head, sizeof head);
	memcpy(record + sizeof head, path, head.path_size);
	fd_write_all(book->fd, record, sizeof head + head.path_size);
}
