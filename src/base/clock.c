/* The monotonic clock for deadlines, the wall clock for records; see clock.h. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

uint64_t clock_now_ms(void)
{
	return clock_now_us() / 1000u;
}

int64_t clock_wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void clock_format(int64_t wall_ms, char *ret_text)
{
	int64_t seconds = wall_ms / 1000;
	int ms = (int)(wall_ms % 1000);
	struct tm tm;
	time_t when;

	if (ms < 0) {
		ms += 1000;
		seconds -= 1;
	}
	when = (time_t)seconds;
	gmtime_r(&when, &tm);
	snprintf(ret_text, CLOCK_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 (unsigned)(tm.tm_year + 1900) % 10000u, (unsigned)(tm.tm_mon + 1) % 100u,
		 (unsigned)tm.tm_mday % 100u, (unsigned)tm.tm_hour % 100u,
		 (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u, (unsigned)ms % 1000u);
}
