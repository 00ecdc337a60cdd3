/*
 * Time: the monotonic clock for deadlines, the wall clock for records only
 *
 * A clock that is set back must not lengthen a deadline, so nothing but a record's
 * `time` field uses wall time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* "No deadline": every limit that a policy sets to `none`. */
#define CLOCK_NEVER UINT64_MAX

enum {
	CLOCK_TEXT = 32,  /* room for clock_format(), with its NUL */
	CLOCK_STAMP = 16, /* room for clock_stamp() */
};

uint64_t clock_now_us(void); /* monotonic, microseconds */
uint64_t clock_now_ms(void); /* monotonic, milliseconds */
int64_t clock_wall_ms(void); /* since 1970 UTC, milliseconds */

/* RFC 3339 in UTC with milliseconds, "2026-01-02T03:04:05.678Z", into CLOCK_TEXT bytes. */
void clock_format(int64_t wall_ms, char *ret_text);

/* The same to the second, as ids begin, "20260102-030405", into CLOCK_STAMP bytes: they sort. */
void clock_stamp(int64_t wall_ms, char *ret_text);
