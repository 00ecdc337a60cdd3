/*
 * report - what a job's worker says, one JSON object a line
 *
 *   {"event":"usage","seq":7,"cost_usd":0.02,"tokens":150}
 *   {"event":"iteration","seq":8,"iteration":3,"summary":"…"}
 *   {"event":"checkpoint","path":"research/checkpoints/003.json"}
 *   {"event":"tool_call","tool":"bash",…}         and any other, which is kept as it is
 *
 * Every byte is hostile: lines are bounded before they are parsed, numbers are checked before they
 * are believed, and a line that is not what it should be is refused as a whole, with a reason.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"

enum { REPORT_LINE = 65536, REPORT_PATH = 512, REPORT_KIND = 65, REPORT_KEPT = 32 << 10 };

struct report {
	char kind[REPORT_KIND];
	int64_t seq;       /* its worker's own number, from 1; 0: it has none */
	int64_t cost_nano; /* what this one adds */
	int64_t tokens;
	int64_t iteration;      /* the number of the one that ended; 0: the next; -1: none ended */
	char path[REPORT_PATH]; /* of a checkpoint, relative to the job's folder; "" */
	json_t *value;          /* the object, owned; an outline of it where it is long */
};

/* "" and a report (report_done()), or why the line is refused. Static. */
const char *report_read(const char *line, size_t size, struct report *ret_report);
void report_done(struct report *report);

/* Bytes into lines. One that is too long is told as one of size 0, text NULL. */
struct report_lines {
	struct buf begun;
	bool is_skipping;
};

/* Empty; allocates nothing. */
void report_lines_init(struct report_lines *lines);

/* Gives its memory back; a line that was begun is dropped. */
void report_lines_done(struct report_lines *lines);

/* Calls `each` for every line that ends in these bytes, without its newline; empty ones are none.
 */
void report_lines_add(struct report_lines *lines, const char *bytes, size_t size,
		      void (*each)(void *data, const char *line, size_t size), void *data);
