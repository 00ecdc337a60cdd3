/* The books of a job: sums that only grow, ceilings, and the way to JSON and back. */
#include "jobs/book.h"
#include "jobs/money.h"

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

/* What matters of an amount is seen, and never more than there is. */
static void amounts(void)
{
	static const struct {
		int64_t nano;
		const char *shown, *all;
	} rows[] = {
		{ 0, "$0.00", "$0.00" },
		{ 1, "$0.000000001", "$0.000000001" },
		{ 31400, "$0.000031", "$0.0000314" },
		{ 4200000, "$0.0042", "$0.0042" },
		{ 4260000, "$0.0043", "$0.00426" },
		{ 9999999, "$0.01", "$0.009999999" },
		{ 304200000, "$0.3042", "$0.3042" },
		{ 300000000, "$0.30", "$0.30" },
		{ 12345678901, "$12.35", "$12.345678901" },
		{ 999999999, "$1.00", "$0.999999999" },
		{ -5, "$0.00", "$0.00" },
		{ INT64_MAX, "$1152921504.61", "$1152921504.606846976" },
	};
	char text[MONEY_TEXT];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		money_format(rows[i].nano, text);
		CHECK_STR(text, rows[i].shown);
		money_format_all(rows[i].nano, text);
		CHECK_STR(text, rows[i].all);
	}
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
	{ "amounts as people read them", amounts },
	{ "sums stop far below an overflow", sums_stop },
	{ "ceilings", ceilings },
	{ "there and back", there_and_back },
};

TAP_MAIN(tests)
