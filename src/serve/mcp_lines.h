/*
 * mcp_lines - a client's bytes as lines, none longer than its ceiling
 *
 * A line that is longer is passed over as it comes and is not kept; the lines after it are as good
 * as any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

struct mcp_lines {
	struct buf in;
	size_t seen;      /* of it, bytes without a newline */
	bool is_skipping; /* the rest of a line that is too long */
	bool is_ended;    /* no more will come */
};

/* `max` bytes a line. */
void mcp_lines_init(struct mcp_lines *lines, size_t max);
void mcp_lines_done(struct mcp_lines *lines);

/* Reads once. How many bytes, 0 at the end, or a negative errno (-EAGAIN: none now). */
ssize_t mcp_lines_read(struct mcp_lines *lines, int fd);

/*
 * The next line without its newline, borrowed until the next call of any of these; its size, or
 * -EAGAIN: none is whole yet, or -EMSGSIZE: one was too long, told once. The last one needs no
 * newline. With `size` 0 it is empty.
 */
ssize_t mcp_lines_next(struct mcp_lines *lines, const char **ret_line);

/*
 * How many values, and how deep, a JSON text may hold: counted before a parser makes twenty times
 * its size of it. `text` need not be JSON.
 */
bool mcp_lines_is_bounded(const char *text, size_t size);
