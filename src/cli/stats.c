/*
 * caisson stats: what one sandbox that stays is and uses, now
 *
 * The numbers are the monitor's. Where the kernel does not count for us they are looked up, and
 * the answer says so: a number without its kind would be taken for more than it is.
 */
#include "cli/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/str.h"
#include "cli/call.h"
#include "cli/out.h"
#include "serve/answer.h"

/* ---- numbers -------------------------------------------------------------------------------- */

void stats_size(uint64_t bytes, char ret_text[STATS_TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t tenths = bytes < UINT64_MAX / 10 ? bytes * 10 : bytes;
	size_t unit = 0;

	if (bytes == CSN_NONE) {
		snprintf(ret_text, STATS_TEXT, "-");
		return;
	}
	while (tenths >= 10240 && unit + 1 < ARRAY_SIZE(units)) {
		tenths = tenths / 1024 + (tenths % 1024 >= 512);
		unit++;
	}
	if (tenths < 100 && tenths % 10)
		snprintf(ret_text, STATS_TEXT, "%" PRIu64 ".%" PRIu64 "%s", tenths / 10,
			 tenths % 10, units[unit]);
	else
		snprintf(ret_text, STATS_TEXT, "%" PRIu64 "%s", (tenths + 5) / 10, units[unit]);
}

/* The two largest units of a time. */
void stats_time(uint64_t ms, char ret_text[STATS_TEXT])
{
	static const struct {
		uint64_t s;
		const char *name;
	} units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
	uint64_t s = ms / 1000;
	size_t i = 0;

	if (ms == CSN_NONE) {
		snprintf(ret_text, STATS_TEXT, "-");
		return;
	}
	while (i + 1 < ARRAY_SIZE(units) && s < units[i].s)
		i++;
	if (i + 1 < ARRAY_SIZE(units) && s % units[i].s / units[i + 1].s)
		snprintf(ret_text, STATS_TEXT, "%" PRIu64 "%s%" PRIu64 "%s", s / units[i].s,
			 units[i].name, s % units[i].s / units[i + 1].s, units[i + 1].name);
	else
		snprintf(ret_text, STATS_TEXT, "%" PRIu64 "%s", s / units[i].s, units[i].name);
}

static void join(const char *used, const char *limit, char ret_text[STATS_TEXT])
{
	snprintf(ret_text, STATS_TEXT, str_is(limit, "-") ? "%.20s" : "%.20s/%.20s", used, limit);
}

void stats_used(uint64_t bytes, uint64_t limit, char ret_text[STATS_TEXT])
{
	char used[STATS_TEXT], most[STATS_TEXT];

	stats_size(bytes, used);
	stats_size(limit, most);
	join(used, most, ret_text);
}

void stats_count(uint64_t count, uint64_t limit, char ret_text[STATS_TEXT])
{
	char used[STATS_TEXT] = "-", most[STATS_TEXT] = "-";

	if (count != CSN_NONE)
		snprintf(used, sizeof used, "%" PRIu64, count);
	if (limit != CSN_NONE)
		snprintf(most, sizeof most, "%" PRIu64, limit);
	join(used, most, ret_text);
}

static void format_cpu(uint64_t us, char ret_text[STATS_TEXT])
{
	if (us == CSN_NONE)
		snprintf(ret_text, STATS_TEXT, "-");
	else if (us < 60000000)
		snprintf(ret_text, STATS_TEXT, "%" PRIu64 ".%02us", us / 1000000,
			 (unsigned)(us % 1000000 / 10000));
	else
		stats_time(us / 1000, ret_text);
}

/* ---- for a program -------------------------------------------------------------------------- */

static json_t *escaped_json(const char *path)
{
	_cleanup_buf_ struct buf text;

	buf_init(&text, 4 * strlen(path) + 1);
	if (escape_add(&text, path, strlen(path), false) < 0)
		return json_null();
	return json_stringn((const char *)buf_at(&text), buf_size(&text));
}

/* A path that is no UTF-8 is escaped, as people see it too. */
json_t *stats_json(const csn_stats_result *stats)
{
	const char *path = stats->workspace;
	json_t *object = answer_stats(stats);

	if (path && !str_is_utf8(path, strlen(path)))
		json_object_set_new(object, "workspace", escaped_json(path));
	return object;
}

/* ---- for a person --------------------------------------------------------------------------- */

static void print_row(const char *label, const char *text)
{
	printf("%-10s  ", label);
	out_text(stdout, text);
	putchar('\n');
}

static void print_life(const csn_stats_result *stats)
{
	int64_t age_ms = clock_wall_ms() - stats->started_ms;
	char age[STATS_TEXT], idle[STATS_TEXT], limit[STATS_TEXT];

	stats_time(age_ms > 0 ? (uint64_t)age_ms : 0, age);
	stats_time(stats->idle_ms, idle);
	stats_time(stats->idle_limit_ms, limit);
	print_row("age", age);
	printf("%-10s  %" PRIu64 "\n", "commands", stats->commands);
	if (stats->idle_limit_ms == CSN_NONE)
		printf("%-10s  %s\n", "silent for", idle);
	else
		printf("%-10s  %s; ends after %s\n", "silent for", idle, limit);
}

static void print_use(const csn_stats_result *stats)
{
	char text[STATS_TEXT];

	stats_used(stats->mem_bytes, stats->mem_limit, text);
	print_row("memory", text);
	format_cpu(stats->cpu_us, text);
	print_row("cpu", text);
	stats_count(stats->processes, stats->processes_limit, text);
	print_row("processes", text);
	stats_used(stats->scratch_bytes, stats->scratch_limit, text);
	print_row("scratch", text);
	print_row("means", str_is(stats->means, "sampled")
				   ? "sampled: looked up among its processes, no control group "
				     "counts them"
				   : stats->means);
}

static void print_text(const csn_stats_result *stats)
{
	print_row("tier", stats->tier);
	print_row("wall", stats->backend);
	printf("%-10s  ", "workspace");
	out_text(stdout, stats->workspace ? stats->workspace : "none");
	if (stats->workspace)
		printf(", %s", stats->mode);
	putchar('\n');
	print_life(stats);
	print_use(stats);
	print_row("record", stats->sandbox_id);
}

static int show(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_stats_result *stats = NULL;
	int status = CLI_OK;
	json_t *object;

	if (csn_stats(sandbox, NULL, &stats, err) < 0)
		return -1;
	if (cli->options.json) {
		object = stats_json(stats);
		if (object)
			json_object_set_new(object, "name", json_string(cli->args[0]));
		status = out_json(object);
	} else {
		print_text(stats);
	}
	csn_free(stats);
	return status;
}

int cli_stats(struct cli *cli)
{
	return call_verb(cli, show);
}
