/* What a job has used and may use; see book.h. Pure: no file, no clock. */
#include "jobs/book.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define NANO 1000000000
static const int64_t BOOK_MAX = INT64_C(1) << 60; /* a sum stops there, far below what overflows */

static int64_t sum(int64_t a, int64_t b)
{
	return b > BOOK_MAX - a ? BOOK_MAX : a + b;
}

bool book_enter(struct book *book, const struct report *report, const char **ret_why)
{
	*ret_why = "";
	if (report->seq > 0 && report->seq <= book->report_seq) {
		book->duplicates++;
		return false;
	}
	if (report->iteration > 0 && report->iteration <= book->iteration) {
		*ret_why = "iteration goes back";
		return false;
	}
	book->cost_nano = sum(book->cost_nano, report->cost_nano);
	book->tokens = sum(book->tokens, report->tokens);
	if (report->iteration >= 0)
		book->iteration = report->iteration ? report->iteration : book->iteration + 1;
	if (report->seq > 0)
		book->report_seq = report->seq;
	if (report->path[0])
		memcpy(book->checkpoint, report->path, sizeof book->checkpoint);
	book->reports++;
	return true;
}

/* ---- ceilings ------------------------------------------------------------------------------- */

static const struct ceiling {
	const char *key;  /* in JSON */
	const char *flag; /* after "max-" or "add-" */
	size_t at;        /* in struct book_limits */
	size_t used;      /* in struct book */
	double unit;      /* how many of ours one of theirs is */
	bool is_whole;
} ceilings[] = {
	{ "max_cost_usd", "cost-usd", offsetof(struct book_limits, cost_nano),
	  offsetof(struct book, cost_nano), NANO, false },
	{ "max_time_minutes", "time-minutes", offsetof(struct book_limits, time_ms),
	  offsetof(struct book, wall_ms), 60000, false },
	{ "max_tokens_total", "tokens-total", offsetof(struct book_limits, tokens),
	  offsetof(struct book, tokens), 1, true },
	{ "max_iterations", "iterations", offsetof(struct book_limits, iterations),
	  offsetof(struct book, iteration), 1, true },
};

static int64_t *number_in(void *object, size_t offset)
{
	return (int64_t *)(void *)((char *)object + offset);
}

static int64_t number_of(const void *object, size_t offset)
{
	return *(const int64_t *)(const void *)((const char *)object + offset);
}

const char *book_reached(const struct book *book)
{
	for (size_t i = 0; i < ARRAY_SIZE(ceilings); i++) {
		int64_t most = number_of(&book->limits, ceilings[i].at);

		if (most >= 0 && number_of(book, ceilings[i].used) >= most)
			return ceilings[i].key;
	}
	return NULL;
}

static json_t *in_their_unit(const struct ceiling *ceiling, int64_t number)
{
	if (number < 0)
		return json_null();
	if (ceiling->is_whole)
		return json_integer(number);
	return json_real((double)number / ceiling->unit);
}

json_t *book_limits_json(const struct book_limits *limits)
{
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(ceilings); i++)
		json_object_set_new(object, ceilings[i].key,
				    in_their_unit(&ceilings[i], number_of(limits, ceilings[i].at)));
	return object;
}

/* In our unit; -1: none, or nothing that could be one. */
static int64_t in_our_unit(const struct ceiling *ceiling, double number)
{
	if (!isfinite(number) || number < 0 || number * ceiling->unit > (double)BOOK_MAX)
		return -1;
	return llround(number * ceiling->unit);
}

void book_read_limits(const json_t *json, struct book_limits *ret_limits)
{
	*ret_limits = BOOK_UNLIMITED;
	for (size_t i = 0; i < ARRAY_SIZE(ceilings); i++) {
		const json_t *value = json_object_get(json, ceilings[i].key);

		if (json_is_number(value))
			*number_in(ret_limits, ceilings[i].at) =
				in_our_unit(&ceilings[i], json_number_value(value));
	}
}

static int refuse(struct csn_error *err, const char *name, const char *text, const char *expected)
{
	return csn_fail(err, -EINVAL, "job", "--%s %s: expected %s", name, text, expected);
}

/* Digits with at most one point: what people write for money, and no "nan" or "0x1p3". */
static bool is_decimal(const char *text, bool is_whole)
{
	size_t digits = strspn(text, "0123456789"), more = 0;

	if (!is_whole && text[digits] == '.')
		more = 1 + strspn(text + digits + 1, "0123456789");
	return digits > 0 && digits < 16 && more < 11 && text[digits + more] == 0;
}

int book_set_limit(struct book_limits *limits, const char *name, const char *text,
		   struct csn_error *err)
{
	const struct ceiling *ceiling = NULL;
	bool is_added = str_starts(name, "add-");
	int64_t number, *limit;

	for (size_t i = 0; i < ARRAY_SIZE(ceilings); i++)
		if (str_is(name + strlen("max-"), ceilings[i].flag))
			ceiling = &ceilings[i];
	if (!ceiling)
		return csn_fail(err, -EINVAL, "job", "--%s: no such ceiling", name);
	limit = number_in(limits, ceiling->at);
	if (!is_added && str_is(text, "none")) {
		*limit = -1;
		return 0;
	}
	number =
		is_decimal(text, ceiling->is_whole) ? in_our_unit(ceiling, strtod(text, NULL)) : -1;
	if (number <= 0)
		return refuse(err, name, text,
			      ceiling->is_whole ? "a whole number above 0"
						: "a number above 0, as 5 or 0.25");
	if (is_added && *limit < 0)
		return csn_fail(err, -EINVAL, "job",
				"--%s: there is no %s to add to; set one with --max-%s", name,
				ceiling->key, ceiling->flag);
	*limit = is_added ? sum(*limit, number) : number;
	return 0;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

json_t *book_json(const struct book *book)
{
	return json_pack("{s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "iteration",
			 (json_int_t)book->iteration, "cost_usd", (double)book->cost_nano / NANO,
			 "tokens", (json_int_t)book->tokens, "wall_ms", (json_int_t)book->wall_ms,
			 "report_seq", (json_int_t)book->report_seq, "reports",
			 (json_int_t)book->reports, "refused", (json_int_t)book->refused,
			 "duplicates", (json_int_t)book->duplicates, "checkpoint",
			 book->checkpoint);
}

static int64_t count_at(const json_t *json, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(json, key));

	return value > 0 && value <= BOOK_MAX ? value : 0;
}

void book_read(const json_t *json, struct book *book)
{
	double cost = json_number_value(json_object_get(json, "cost_usd"));
	const char *checkpoint = json_string_value(json_object_get(json, "checkpoint"));

	book->cost_nano = isfinite(cost) && cost > 0 && cost < (double)BOOK_MAX / NANO
				  ? llround(cost * NANO)
				  : 0;
	book->tokens = count_at(json, "tokens");
	book->wall_ms = count_at(json, "wall_ms");
	book->iteration = count_at(json, "iteration");
	book->report_seq = count_at(json, "report_seq");
	book->reports = count_at(json, "reports");
	book->refused = count_at(json, "refused");
	book->duplicates = count_at(json, "duplicates");
	snprintf(book->checkpoint, sizeof book->checkpoint, "%s", checkpoint ? checkpoint : "");
}
