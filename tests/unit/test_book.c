/* The books of a job: sums that only grow, ceilings, and the way to JSON and back. */
#include "jobs/book.h"

#include "tap.h"

#include <string.h>

static const char *enter(struct book *book, const char *line)
{
	struct report report;
	const char *why = report_read(line, strlen(line), &report);

	if (*why)
		return why;
	book_enter(book, &report, &why);
	report_done(&report);
	return why;
}

/* Cents are no binary fractions: a thousand of them are ten dollars all the same. */
static void money(void)
{
	struct book book = { .limits = BOOK_UNLIMITED };

	for (int i = 0; i < 1000; i++)
		CHECK_STR(enter(&book, "{\"event\":\"usage\",\"cost_usd\":0.01}"), "");
	CHECK(book.cost_nano == 10000000000);
	CHECK_STR(enter(&book, "{\"event\":\"usage\",\"cost_usd\":1e-12}"), "");
	CHECK(book.cost_nano == 10000000001);
}

static void sums_stop(void)
{
	struct book book = { .tokens = (INT64_C(1) << 60) - 5, .limits = BOOK_UNLIMITED };

	CHECK_STR(enter(&book, "{\"event\":\"usage\",\"tokens\":1000000000000}"), "");
	CHECK(book.tokens == INT64_C(1) << 60);
}

static void ceilings(void)
{
	struct book book = { .limits = BOOK_UNLIMITED };
	struct csn_error err = { 0 };

	CHECK(!book_reached(&book));
	CHECK(book_set_limit(&book.limits, "max-cost-usd", "0.5", &err) == 0);
	CHECK(book_set_limit(&book.limits, "max-time-minutes", "1.5", &err) == 0);
	CHECK(book_set_limit(&book.limits, "add-cost-usd", "0.25", &err) == 0);
	CHECK(book.limits.cost_nano == 750000000);
	CHECK(book.limits.time_ms == 90000);
	book.cost_nano = 749999999;
	CHECK(!book_reached(&book));
	book.cost_nano++;
	CHECK_STR(book_reached(&book), "max_cost_usd");
	CHECK(book_set_limit(&book.limits, "max-cost-usd", "none", &err) == 0);
	CHECK(!book_reached(&book));
	CHECK(book_set_limit(&book.limits, "add-iterations", "1", &err) < 0);
	CHECK(book_set_limit(&book.limits, "max-iterations", "0", &err) < 0);
	CHECK(book_set_limit(&book.limits, "max-cost-usd", "0x10", &err) < 0);
	CHECK(book_set_limit(&book.limits, "max-cost-usd", "inf", &err) < 0);
}

/* A line of the chain holds all that the next launch needs. */
static void there_and_back(void)
{
	struct book book = { .cost_nano = 123456789012,
			     .tokens = 5,
			     .wall_ms = 7,
			     .iteration = 3,
			     .report_seq = 9,
			     .limits = { 1500000000, 90000, -1, 12 } };
	struct book back = { 0 };
	json_t *json = book_json(&book), *limits = book_limits_json(&book.limits);

	book_read(json, &back);
	book_read_limits(limits, &back.limits);
	CHECK(memcmp(&book, &back, sizeof book) == 0);
	json_decref(json);
	json_decref(limits);
	json = json_pack("{s:i, s:f, s:s}", "tokens", -5, "cost_usd", -1.0, "iteration", "x");
	book_read(json, &back);
	CHECK(back.tokens == 0 && back.cost_nano == 0 && back.iteration == 0);
	json_decref(json);
}

static const struct tap_test tests[] = {
	{ "money is exact", money },
	{ "sums stop far below an overflow", sums_stop },
	{ "ceilings", ceilings },
	{ "there and back", there_and_back },
};

TAP_MAIN(tests)
