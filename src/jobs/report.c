/* What a worker says, line by line; see report.h. Pure: no file, no clock. */
#include "jobs/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/dump.h"
#include "base/path.h"
#include "base/str.h"

/* Of one report. More is a mistake, and would let a sum overflow after some years. */
static const double COST_MAX = 1e6;
static const json_int_t TOKENS_MAX = INT64_C(1000000000000);
static const json_int_t SEQ_MAX = INT64_C(1) << 53; /* what every JSON reader takes */

enum { HAS_USAGE = 1 << 0, HAS_ITERATION = 1 << 1, HAS_PATH = 1 << 2 };

static const struct {
	const char *kind;
	unsigned has;
} kinds[] = {
	{ "usage", HAS_USAGE },
	{ "iteration", HAS_USAGE | HAS_ITERATION },
	{ "checkpoint", HAS_PATH },
};

static unsigned what_it_has(const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_is(kinds[i].kind, kind))
			return kinds[i].has;
	return 0;
}

static bool is_kind(const char *text, size_t size)
{
	if (size == 0 || size >= REPORT_KIND)
		return false;
	for (size_t i = 0; i < size; i++)
		if (text[i] != '_' && text[i] != '-' && text[i] != '.' &&
		    !(text[i] >= 'a' && text[i] <= 'z') && !(text[i] >= 'A' && text[i] <= 'Z') &&
		    !(text[i] >= '0' && text[i] <= '9'))
			return false;
	return true;
}

/* An integer in 0 .. max; `ret_number` is untouched where there is no such key. */
static bool take_count(const json_t *object, const char *key, json_int_t max, int64_t *ret_number)
{
	const json_t *value = json_object_get(object, key);

	if (!value || json_is_null(value))
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > max)
		return false;
	*ret_number = json_integer_value(value);
	return true;
}

/* Up, so that what costs something never costs nothing; but what a double cannot say exactly
 * (0.1) is not a billionth more. */
static bool take_cost(const json_t *object, int64_t *ret_nano)
{
	const json_t *value = json_object_get(object, "cost_usd");
	double cost = json_number_value(value);

	if (!value || json_is_null(value))
		return true;
	if (!json_is_number(value) || !isfinite(cost) || cost < 0 || cost > COST_MAX)
		return false;
	*ret_nano = (int64_t)ceil(cost * 1e9 - 1e-6);
	return true;
}

static const char *take_usage(struct report *report)
{
	int64_t in = 0, out = 0;

	if (!take_cost(report->value, &report->cost_nano))
		return "cost_usd is no number from 0 to 1000000";
	if (!take_count(report->value, "input_tokens", TOKENS_MAX, &in) ||
	    !take_count(report->value, "output_tokens", TOKENS_MAX, &out))
		return "input_tokens or output_tokens is no number from 0 to 10^12";
	report->tokens = in + out;
	if (!take_count(report->value, "tokens", TOKENS_MAX, &report->tokens))
		return "tokens is no number from 0 to 10^12";
	return "";
}

/* Beneath the job's folder, by name; what it leads to is looked at by who opens it. */
static const char *take_path(struct report *report)
{
	const json_t *value = json_object_get(report->value, "path");
	const char *text = json_string_value(value), *tail;
	char path[REPORT_PATH];

	if (!text || strlen(text) != json_string_length(value) ||
	    path_join("/workspace/run", text, path, sizeof path) < 0 ||
	    !path_is_beneath(path, "/workspace/run"))
		return "path is no path in the run's folder";
	tail = path_tail(path, "/workspace/run");
	if (!*tail)
		return "path is no path in the run's folder";
	memcpy(report->path, tail, strlen(tail) + 1);
	return "";
}

static const char *take_fields(struct report *report)
{
	unsigned has = what_it_has(report->kind);
	const char *why = "";

	if (!take_count(report->value, "seq", SEQ_MAX, &report->seq))
		return "seq is no positive number";
	if (has & HAS_USAGE)
		why = take_usage(report);
	if (!*why && has & HAS_ITERATION) {
		report->iteration = 0;
		if (!take_count(report->value, "iteration", SEQ_MAX, &report->iteration))
			why = "iteration is no positive number";
	}
	return !*why && has & HAS_PATH ? take_path(report) : why;
}

/* Long ones are kept as an outline: they would be cut in the log, and the books with them. */
static bool shorten(struct report *report)
{
	char *text;
	size_t size;
	json_t *outline;

	if (dump_json(report->value, DUMP_CANONICAL, &text, &size) < 0)
		return false;
	free(text);
	if (size <= REPORT_KEPT)
		return true;
	outline = json_pack("{s:s, s:b, s:I}", "event", report->kind, "cut", 1, "bytes",
			    (json_int_t)size);
	json_decref(report->value);
	report->value = outline;
	return outline != NULL;
}

static const char *read_value(struct report *report)
{
	const json_t *kind;
	const char *why;

	if (!json_is_object(report->value))
		return "not a JSON object";
	kind = json_object_get(report->value, "event");
	if (!json_is_string(kind) || !is_kind(json_string_value(kind), json_string_length(kind)))
		return "event is no name";
	memcpy(report->kind, json_string_value(kind), json_string_length(kind) + 1);
	why = take_fields(report);
	return *why || shorten(report) ? why : "out of memory";
}

const char *report_read(const char *line, size_t size, struct report *ret_report)
{
	struct report report = { .iteration = -1 };
	const char *why;

	if (!line || size > REPORT_LINE)
		return "longer than 64 KiB";
	report.value = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
	if (!report.value)
		return "not JSON";
	why = read_value(&report);
	if (*why) {
		report_done(&report);
		return why;
	}
	*ret_report = report;
	return "";
}

void report_done(struct report *report)
{
	json_decref(report->value);
	report->value = NULL;
}

/* ---- lines ---------------------------------------------------------------------------------- */

void report_lines_init(struct report_lines *lines)
{
	*lines = (struct report_lines){ 0 };
	buf_init(&lines->begun, REPORT_LINE);
}

void report_lines_done(struct report_lines *lines)
{
	buf_done(&lines->begun);
}

static void end_line(struct report_lines *lines, const char *bytes, size_t size,
		     void (*each)(void *data, const char *line, size_t size), void *data)
{
	size_t begun = buf_size(&lines->begun);

	if (lines->is_skipping || begun + size > REPORT_LINE)
		each(data, NULL, 0);
	else if (begun == 0 && size > 0)
		each(data, bytes, size);
	else if (begun > 0 && buf_add(&lines->begun, bytes, size) == 0)
		each(data, (const char *)buf_at(&lines->begun), begun + size);
	lines->is_skipping = false;
	buf_clear(&lines->begun);
}

void report_lines_add(struct report_lines *lines, const char *bytes, size_t size,
		      void (*each)(void *data, const char *line, size_t size), void *data)
{
	while (size > 0) {
		const char *end = memchr(bytes, '\n', size);
		size_t part = end ? (size_t)(end - bytes) : size;

		if (end) {
			end_line(lines, bytes, part, each, data);
			part++;
		} else if (!lines->is_skipping && buf_add(&lines->begun, bytes, part) < 0) {
			lines->is_skipping = true;
			buf_clear(&lines->begun);
		}
		bytes += part;
		size -= part;
	}
}
