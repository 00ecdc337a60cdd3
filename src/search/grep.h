/*
 * grep - the matching lines of files, with their neighbours
 *
 * Files are read into one buffer, never mapped: who truncates a mapped file kills its reader.
 * A file whose first GREP_SNIFF bytes hold a NUL is not text: it is named if it matches, and
 * none of its lines is told. Only regular files are read, and no further than they reached when
 * they were opened; a hole counts as one NUL, so a sparse file costs what it holds.
 */
#pragma once

#include "search/regex.h"
#include "search/writer.h"

enum {
	GREP_SNIFF = 8 << 10,
	GREP_READ = 256 << 10,
	/* A longer line is searched in pieces of this size: a match across two is not found. */
	GREP_PIECE = 8 << 20,
	GREP_KEPT = 1 << 20, /* bytes kept of earlier lines, for context */
	/* Bytes read of a file without a size, as the kernel's own are. */
	GREP_UNSIZED = 64 << 20,
	GREP_BUFFER = GREP_PIECE + GREP_READ + GREP_KEPT,
};

struct grep {
	struct regex *regex;   /* borrowed */
	struct writer *writer; /* borrowed */
	size_t limit;          /* of matches */
	size_t context;        /* lines before and after */
	size_t matches;
	uint64_t skipped; /* files that could not be read */
	char *buffer;     /* owned, GREP_BUFFER */
	struct refusal *refusal;
};

struct grep_file {
	int folder_fd;
	const char *name; /* in that folder; a link is not followed */
	const char *path; /* how it is told */
	size_t path_size;
};

/* 0 or -1: out of memory. */
int grep_init(struct grep *grep);
void grep_done(struct grep *grep);

/* Searches one file. 0; 1: there is enough, the writer says so; -1 and a reason. */
int grep_file(struct grep *grep, const struct grep_file *file);

/* The same for an open descriptor, which stays the caller's. */
int grep_open_file(struct grep *grep, const struct grep_file *file, int fd);
