/*
 * answer - what caisson-search writes and the agent reads
 *
 * Records on a pipe, in the machine's own byte order: both ends are one installation. Each is a
 * head and `size` bytes. The last one is ANSWER_END or ANSWER_REFUSED; a stream without either
 * was cut, and means nothing. The writer keeps the whole below what one reply frame carries; the
 * reader checks every number again, since the writer has parsed what untrusted code wrote.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum answer_kind {
	ANSWER_PATH = 1, /* a path that a pattern means */
	ANSWER_FILE,     /* the path of the file that the following lines are in */
	ANSWER_MATCH,    /* struct answer_line, then the line */
	ANSWER_CONTEXT,  /* the same, a neighbour of a match */
	ANSWER_BINARY,   /* the path of a file that matches and is not text */
	ANSWER_REFUSED,  /* reason, NUL, detail */
	ANSWER_END       /* struct answer_end */
};

struct answer_head {
	uint32_t kind;
	uint32_t size;
};

struct answer_line {
	uint64_t number; /* from 1 */
};

struct answer_end {
	uint64_t is_truncated; /* 0 or 1 */
	uint64_t skipped;
};

enum {
	ANSWER_ITEMS = 10000,            /* lines or paths in one answer */
	ANSWER_LINE = 64 << 10,          /* bytes of a line; the rest is cut */
	ANSWER_PATHS_BYTES = 1536 << 10, /* of all ANSWER_PATH, or all ANSWER_BINARY */
	ANSWER_LINES_BYTES = 3 << 20,    /* of all lines, each with its path */
	ANSWER_ITEM_BYTES = 100,         /* what a line costs in a frame beside its texts */
	ANSWER_PATH_BYTES = 16,          /* the same of a path */
	ANSWER_BYTES = 5 << 20,          /* of the whole stream */
};
