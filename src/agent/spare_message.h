/*
 * spare_message - what a leader that was forked ahead is told
 *
 * One message: this head, and then texts, each with its zero byte: workspace, cwd, PATH, the
 * arguments, the environment. Beside it the descriptors: stdin, stdout, stderr, the end of the
 * failure pipe, and the terminal where there is one.
 */
#pragma once

#include <stdint.h>

enum { SPARE_BYTES = 48 << 10, SPARE_TEXTS = 1024, SPARE_FIXED_TEXTS = 3, SPARE_FDS = 5 };

struct spare_head {
	int64_t ref;
	uint64_t open_files;
	uint32_t args;
	uint32_t variables;
	int32_t has_tty;
	int32_t has_workspace;
};

/* The leader's memory: the message, and where its texts begin. */
struct spare_room {
	char bytes[SPARE_BYTES];
	char *texts[SPARE_TEXTS];
};
