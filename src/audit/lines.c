/* Bounded lines for the verifier; see lines.h. One buffer of the largest line, refilled. */
#include "audit/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int lines_init(struct lines *lines, int fd, size_t max)
{
	*lines = (struct lines){ .fd = fd, .max = max, .data = malloc(max) };
	return lines->data ? 0 : -ENOMEM;
}

void lines_done(struct lines *lines)
{
	free(lines->data);
	lines->data = NULL;
}

/* Moves what is left to the front and reads more behind it. 0 or a negative errno. */
static int refill(struct lines *lines)
{
	ssize_t n;

	memmove(lines->data, lines->data + lines->start, lines->end - lines->start);
	lines->end -= lines->start;
	lines->start = 0;
	do {
		n = read(lines->fd, lines->data + lines->end, lines->max - lines->end);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	lines->at_end = n == 0;
	lines->end += (size_t)n;
	return 0;
}

static void give(struct lines *lines, size_t size, size_t skip, const char **ret_line,
		 size_t *ret_size)
{
	*ret_line = lines->data + lines->start;
	*ret_size = lines->is_too_long ? 0 : size;
	lines->start += size + skip;
}

int lines_next(struct lines *lines, const char **ret_line, size_t *ret_size)
{
	lines->is_cut = lines->is_too_long = false;
	lines->number++;
	for (;;) {
		size_t have = lines->end - lines->start;
		char *at = have ? memchr(lines->data + lines->start, '\n', have) : NULL;
		int r;

		if (at) {
			give(lines, (size_t)(at - lines->data) - lines->start, 1, ret_line,
			     ret_size);
			return 1;
		}
		if (lines->at_end && have == 0 && !lines->is_too_long)
			return 0;
		if (lines->at_end) {
			lines->is_cut = true;
			give(lines, have, 0, ret_line, ret_size);
			return 1;
		}
		if (have == lines->max) {
			lines->is_too_long = true;
			lines->start = lines->end = 0;
		}
		r = refill(lines);
		if (r < 0)
			return r;
	}
}
