/*
 * writer - the writing side of answer.h, with its limits
 */
#pragma once

#include "base/buf.h"
#include "search/answer.h"
#include "search/refuse.h"

struct writer {
	int fd; /* borrowed */
	struct buf buf;
	size_t paths, paths_bytes;
	size_t lines, lines_bytes;
	size_t binaries, binaries_bytes;
	const char *file; /* that the next line is in, borrowed; NULL: said already */
	size_t file_size; /* bytes of its path */
	bool is_truncated;
};

struct writer_line {
	enum answer_kind kind; /* MATCH or CONTEXT */
	uint64_t number;
	const char *text;
	size_t size;
};

/* Empty, allocates nothing; `fd` is where the end writes it to. */
void writer_init(struct writer *writer, int fd);

/* 0, or -1: the answer is full, and marked as truncated. */
int writer_path(struct writer *writer, const char *path, size_t size);
int writer_binary(struct writer *writer, const char *path, size_t size);
int writer_line(struct writer *writer, const struct writer_line *line);

/* Lines that follow are in this file; `path` stays good until the last of them. */
void writer_file(struct writer *writer, const char *path, size_t size);

/* Ends the stream and frees the buffer. 0, or a negative errno: nobody reads. */
int writer_end(struct writer *writer, uint64_t skipped, const struct refusal *refusal);
