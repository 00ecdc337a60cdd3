/*
 * lines - a file, line by line, under a ceiling
 *
 * A line that is too long is skipped and counted, never held in memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lines {
	int fd;     /* borrowed */
	char *data; /* owned */
	size_t max; /* bytes of a line with its newline */
	size_t start, end;
	uint64_t number;  /* of the line last returned, from 1 */
	bool is_cut;      /* it has no newline: the file ends in it */
	bool is_too_long; /* it is longer than `max`; its text is not given */
	bool at_end;
};

/* 0 or -ENOMEM. */
int lines_init(struct lines *lines, int fd, size_t max);
void lines_done(struct lines *lines);

/* 1 with a line without its newline, valid until the next call; 0 at the end; a negative errno. */
int lines_next(struct lines *lines, const char **ret_line, size_t *ret_size);
