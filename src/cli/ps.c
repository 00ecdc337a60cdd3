/*
 * caisson ps: the sandboxes that stay
 *
 * Who lives is what the locks say, so one whose monitor is stopped is listed too. What the others
 * do and use they are asked all at once (client/look.h).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cli/stats.h"
#include "client/look.h"

enum { SANDBOXES = 4096, PATIENCE_MS = 450, COLUMNS = 6 };

struct listing {
	struct look *looks;
	struct place_life *lives; /* of each */
	size_t count;
};

/* ---- who there is --------------------------------------------------------------------------- */

static void take_name(int place, char *name, struct listing *listing)
{
	struct look *look = &listing->looks[listing->count];
	struct place_life *life = &listing->lives[listing->count];
	char *dot = strrchr(name, '.');

	if (!dot || !str_is(dot, ".lock"))
		return;
	*dot = 0;
	if (!place_is_name(name) || !place_is_alive(place, name) ||
	    !place_life_of(place, name, life))
		return;
	*look = (struct look){ .is_skipped = !life->is_up };
	snprintf(look->name, sizeof look->name, "%.*s", PLACE_NAME_MAX, name);
	listing->count++;
}

/* All that live; removes what dead ones left. 0 or -errno. */
static int find_all(int place, struct listing *listing)
{
	int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		int r = -errno;

		fd_close(fd);
		return r;
	}
	while (listing->count < SANDBOXES && (entry = readdir(dir)))
		take_name(place, entry->d_name, listing);
	closedir(dir);
	return 0;
}

/* One that ended while it was asked is gone when its lock is free; until then it ends. */
static void drop_ended(int place, struct listing *listing)
{
	size_t kept = 0;

	for (size_t i = 0; i < listing->count; i++) {
		if (listing->looks[i].state == LOOK_GONE &&
		    !place_is_alive(place, listing->looks[i].name))
			continue;
		listing->looks[kept] = listing->looks[i];
		listing->lives[kept++] = listing->lives[i];
	}
	listing->count = kept;
}

static int find_and_ask(struct listing *listing, struct csn_error *err)
{
	_cleanup_fd_ int place = place_open(err);
	int r = place;

	if (place < 0)
		return place;
	listing->looks = calloc(SANDBOXES, sizeof *listing->looks);
	listing->lives = calloc(SANDBOXES, sizeof *listing->lives);
	r = listing->looks && listing->lives ? find_all(place, listing) : -ENOMEM;
	if (r >= 0)
		r = look_all(place, listing->looks, listing->count, PATIENCE_MS);
	drop_ended(place, listing);
	if (r < 0)
		csn_fail(err, r, "ps", "cannot list the sandboxes: %s", strerror(-r));
	return r;
}

/* ---- what is shown of one ------------------------------------------------------------------- */

struct row {
	const struct look *look;
	const char *state;
	int64_t started_ms;
};

static const char *state_of(const struct look *look)
{
	if (look->state == LOOK_ANSWERED)
		return look->stats->commands ? "busy" : "idle";
	if (look->state == LOOK_GONE)
		return "ending";
	if (look->state == LOOK_REFUSED) /* too many calls of others at once */
		return "busy";
	return look->is_skipped ? "starting" : "silent";
}

static int by_age(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->started_ms != y->started_ms)
		return x->started_ms < y->started_ms ? -1 : 1;
	return strcmp(x->look->name, y->look->name);
}

/* Oldest first. */
static void make_rows(const struct listing *listing, struct row *ret_rows)
{
	for (size_t i = 0; i < listing->count; i++) {
		const struct look *look = &listing->looks[i];

		ret_rows[i] = (struct row){
			.look = look,
			.state = state_of(look),
			.started_ms =
				look->stats ? look->stats->started_ms : listing->lives[i].since_ms,
		};
	}
	qsort(ret_rows, listing->count, sizeof *ret_rows, by_age);
}

/* ---- for a program -------------------------------------------------------------------------- */

static json_t *row_json(const struct row *row)
{
	const struct look *look = row->look;
	char started[CLOCK_TEXT];

	clock_format(row->started_ms, started);
	return json_pack("{s:s, s:s, s:i, s:s, s:o}", "name", look->name, "state", row->state,
			 "pid", (int)look->pid, "started", started, "stats",
			 look->stats ? stats_json(look->stats) : json_null());
}

static int print_json(const struct row *rows, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, row_json(&rows[i]));
	return out_json(json_pack("{s:o}", "sandboxes", list));
}

/* ---- for a person --------------------------------------------------------------------------- */

struct cells {
	char text[COLUMNS][PLACE_NAME_MAX + 1];
};

static const struct cells heads = { { "NAME", "STATE", "TIER", "AGE", "MEMORY", "PROCESSES" } };

static void set(struct cells *cells, int column, const char *text)
{
	snprintf(cells->text[column], sizeof cells->text[column], "%.*s", PLACE_NAME_MAX, text);
}

static void fill(const struct row *row, struct cells *ret_cells)
{
	const csn_stats_result *stats = row->look->stats;
	int64_t age_ms = clock_wall_ms() - row->started_ms;
	char text[STATS_TEXT];

	set(ret_cells, 0, row->look->name);
	set(ret_cells, 1, row->state);
	set(ret_cells, 2, stats ? stats->tier : "-");
	stats_time(age_ms > 0 ? (uint64_t)age_ms : 0, text);
	set(ret_cells, 3, text);
	stats_used(stats ? stats->mem_bytes : CSN_NONE, stats ? stats->mem_limit : CSN_NONE, text);
	set(ret_cells, 4, text);
	stats_count(stats ? stats->processes : CSN_NONE, stats ? stats->processes_limit : CSN_NONE,
		    text);
	set(ret_cells, 5, text);
}

static void widen(const struct cells *cells, int *widths)
{
	for (int i = 0; i < COLUMNS; i++) {
		int width = (int)strlen(cells->text[i]);

		widths[i] = width > widths[i] ? width : widths[i];
	}
}

static void print_cells(const struct cells *cells, const int *widths)
{
	for (int i = 0; i + 1 < COLUMNS; i++)
		printf("%-*s  ", widths[i], cells->text[i]);
	puts(cells->text[COLUMNS - 1]);
}

static void print_text(const struct cli *cli, const struct row *rows, size_t count)
{
	bool has_head = count > 0 && isatty(STDOUT_FILENO);
	int widths[COLUMNS] = { 0 };
	struct cells cells;

	if (has_head)
		widen(&heads, widths);
	for (size_t i = 0; i < count; i++) {
		fill(&rows[i], &cells);
		widen(&cells, widths);
	}
	if (has_head) {
		fputs(out_color(cli, stdout, OUT_DIM), stdout);
		print_cells(&heads, widths);
		fputs(out_plain(cli, stdout), stdout);
	}
	for (size_t i = 0; i < count; i++) {
		fill(&rows[i], &cells);
		print_cells(&cells, widths);
	}
}

static int print(const struct cli *cli, const struct listing *listing)
{
	struct row *rows = calloc(listing->count + 1, sizeof *rows);
	size_t count = rows ? listing->count : 0;
	int status = CLI_OK;

	if (rows)
		make_rows(listing, rows);
	if (count == 0)
		out_empty(cli, "no sandbox stays; `caisson up NAME` starts one");
	if (cli->options.json)
		status = print_json(rows, count);
	else if (!cli->options.quiet)
		print_text(cli, rows, count);
	else
		for (size_t i = 0; i < count; i++)
			puts(rows[i].look->name);
	free(rows);
	return status;
}

int cli_ps(struct cli *cli)
{
	struct listing listing = { 0 };
	struct csn_error err = { 0 };
	int status = find_and_ask(&listing, &err) < 0 ? cli_fail(cli, &err) : print(cli, &listing);

	for (size_t i = 0; listing.looks && i < listing.count; i++)
		csn_free(listing.looks[i].stats);
	free(listing.looks);
	free(listing.lives);
	return status;
}
