/* Clocks: deadlines never go back, and a record's time is exact, before 1970 too. */
#include "base/clock.h"
#include "tap.h"

#include <ctype.h>
#include <time.h>

static void test_format(void)
{
	static const struct {
		int64_t ms;
		const char *text;
	} table[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ 1, "1970-01-01T00:00:00.001Z" },
		{ 999, "1970-01-01T00:00:00.999Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ -1000, "1969-12-31T23:59:59.000Z" },
		{ -1001, "1969-12-31T23:59:58.999Z" },
		{ 951782400000, "2000-02-29T00:00:00.000Z" },
		{ 1767323045678, "2026-01-02T03:04:05.678Z" },
		{ 2147483648000, "2038-01-19T03:14:08.000Z" },
		{ -2208988800000, "1900-01-01T00:00:00.000Z" },
		{ 253402300799999, "9999-12-31T23:59:59.999Z" },
	};
	char text[CLOCK_TEXT];

	setenv("TZ", "Asia/Tokyo", 1); /* the zone of whoever runs it plays no part */
	tzset();
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		clock_format(table[i].ms, text);
		CHECK_STR(text, table[i].text);
	}
}

/* The calendar is the C library's, over 400 years on both sides of 1970 and at random. */
static void test_calendar(void)
{
	uint64_t seed = 1;

	for (int i = 0; i < 200000; i++) {
		char ours[CLOCK_STAMP], theirs[CLOCK_STAMP];
		struct tm tm;
		time_t when;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		when = i < 150000 ? (time_t)(i - 75000) * 86400 * 2
				  : (time_t)(seed >> 16) % 253402300800;
		gmtime_r(&when, &tm);
		if (tm.tm_year + 1900 > 9999 || tm.tm_year + 1900 < 1000)
			continue;
		strftime(theirs, sizeof theirs, "%Y%m%d-%H%M%S", &tm);
		clock_stamp((int64_t)when * 1000, ours);
		CHECK_STR(ours, theirs);
	}
}

/* Beyond four digits of a year the text is not true, but it has its shape and its bounds. */
static void test_far(void)
{
	static const int64_t times[] = { INT64_MIN,       INT64_MIN + 1,   INT64_MAX,
					 INT64_MAX - 999, 253402300800000, -62135596800001 };
	static const char shape[] = "0000-00-00T00:00:00.000Z";

	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		char text[CLOCK_TEXT + 8];

		memset(text, '#', sizeof text);
		clock_format(times[i], text);
		printf("# %lld %s\n", (long long)times[i], text);
		CHECK(strlen(text) == sizeof shape - 1);
		for (size_t at = 0; shape[at]; at++)
			CHECK(shape[at] == '0' ? isdigit((unsigned char)text[at])
					       : text[at] == shape[at]);
		for (size_t at = CLOCK_TEXT; at < sizeof text; at++)
			CHECK(text[at] == '#');
	}
}

static void test_monotonic(void)
{
	uint64_t last = clock_now_us(), begin = clock_now_ms();

	for (int i = 0; i < 10000; i++) {
		uint64_t now = clock_now_us();

		CHECK(now >= last);
		last = now;
	}
	usleep(20000);
	CHECK(clock_now_ms() >= begin + 20);
	CHECK(clock_now_ms() - begin < 30000);
}

static void test_wall(void)
{
	int64_t seconds = time(NULL), ms = clock_wall_ms();

	CHECK(ms / 1000 >= seconds && ms / 1000 <= seconds + 30);
}

static const struct tap_test tests[] = {
	{ "RFC 3339 with milliseconds, in UTC", test_format },
	{ "far times stay in shape", test_far },
	{ "the calendar is the C library's", test_calendar },
	{ "the clock of deadlines never goes back", test_monotonic },
	{ "the wall clock is the machine's", test_wall },
};

TAP_MAIN(tests)
