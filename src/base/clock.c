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

/*
 * Seconds since 1970 to a date of the Gregorian calendar in UTC. gmtime_r() would do, but glibc's
 * reads /etc/localtime first, 20 us of every launch. Years are counted from March, so that the
 * leap day is the last of a year; 146,097 days are 400 years.
 */
static struct tm utc(int64_t seconds)
{
	int64_t days = seconds / 86400 - (seconds % 86400 < 0);
	int64_t left = seconds - days * 86400;
	int64_t since = days + 719468; /* since 1 March of the year 0 */
	int64_t era = since / 146097 - (since % 146097 < 0);
	int64_t day = since - era * 146097; /* of the 400 years */
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t of_year = day - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153; /* 0: March */

	return (struct tm){ .tm_year = (int)(era * 400 + year + (month >= 10)),
			    .tm_mon = (int)(month < 10 ? month + 3 : month - 9),
			    .tm_mday = (int)(of_year - (153 * month + 2) / 5 + 1),
			    .tm_hour = (int)(left / 3600),
			    .tm_min = (int)(left / 60 % 60),
			    .tm_sec = (int)(left % 60) };
}

void clock_format(int64_t wall_ms, char *ret_text)
{
	int64_t seconds = wall_ms / 1000 - (wall_ms % 1000 < 0);
	int ms = (int)(wall_ms % 1000);
	struct tm tm = utc(seconds);

	snprintf(ret_text, CLOCK_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 (unsigned)tm.tm_year % 10000u, (unsigned)tm.tm_mon % 100u,
		 (unsigned)tm.tm_mday % 100u, (unsigned)tm.tm_hour % 100u,
		 (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u,
		 (unsigned)(ms < 0 ? ms + 1000 : ms) % 1000u);
}

void clock_stamp(int64_t wall_ms, char *ret_text)
{
	struct tm tm = utc(wall_ms / 1000 - (wall_ms % 1000 < 0));

	snprintf(ret_text, CLOCK_STAMP, "%04u%02u%02u-%02u%02u%02u", (unsigned)tm.tm_year % 10000u,
		 (unsigned)tm.tm_mon % 100u, (unsigned)tm.tm_mday % 100u,
		 (unsigned)tm.tm_hour % 100u, (unsigned)tm.tm_min % 100u,
		 (unsigned)tm.tm_sec % 100u);
}
