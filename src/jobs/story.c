/*
 * See story.h. Every event has a row in one table; what no row takes is only counted. The lines
 * were verified before, so they are canonical JSON of ours, but texts in them are the worker's.
 */
#include "jobs/story.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/files.h"
#include "audit/lines.h"
#include "base/fd.h"
#include "base/str.h"

/* One line while it is read. */
struct telling {
	struct story *story;
	json_t *line, *payload; /* borrowed */
	uint64_t seq;
	struct book before; /* the books before this line */
};

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void take_text(const json_t *value, struct story_text *ret_text)
{
	size_t size = json_string_length(value);

	*ret_text = (struct story_text){ .is_cut = size > STORY_TEXT };
	ret_text->size = size > STORY_TEXT ? STORY_TEXT : size;
	if (ret_text->size)
		memcpy(ret_text->data, json_string_value(value), ret_text->size);
	/* Not in the middle of a character. */
	while (ret_text->is_cut && ret_text->size > STORY_TEXT - 4 &&
	       ((unsigned char)json_string_value(value)[ret_text->size] & 0xc0) == 0x80)
		ret_text->size--;
}

static void take_time(const struct telling *telling, char ret_time[CLOCK_TEXT])
{
	snprintf(ret_time, CLOCK_TEXT, "%s", text_at(telling->line, "time"));
}

/* ---- lists ---------------------------------------------------------------------------------- */

size_t story_kept(const struct story_list *list)
{
	size_t most = STORY_FIRST + STORY_LAST;

	return list->count < most ? (size_t)list->count : most;
}

const struct story_row *story_row(const struct story_list *list, size_t i)
{
	uint64_t at = i - STORY_FIRST; /* in the ring, where it has not turned */

	if (i < STORY_FIRST)
		return &list->first[i];
	if (list->count > STORY_FIRST + STORY_LAST)
		at += list->count - STORY_FIRST - STORY_LAST;
	return &list->last[at % STORY_LAST];
}

/* The row for this line, which it fills. */
static struct story_row *add_row(struct story_list *list, const struct telling *telling,
				 enum story_kind kind)
{
	struct story_row *row = list->count < STORY_FIRST
					? &list->first[list->count]
					: &list->last[(list->count - STORY_FIRST) % STORY_LAST];

	list->count++;
	*row = (struct story_row){ .seq = telling->seq, .kind = kind };
	take_time(telling, row->time);
	return row;
}

static struct story_launch *launch_at(struct story *story, uint64_t number)
{
	if (number < STORY_LAUNCHES_FIRST)
		return &story->launches[number];
	return &story->launches[STORY_LAUNCHES_FIRST +
				(number - STORY_LAUNCHES_FIRST) % STORY_LAUNCHES_LAST];
}

size_t story_launches(const struct story *story)
{
	size_t most = ARRAY_SIZE(story->launches);

	return story->launch_count < most ? (size_t)story->launch_count : most;
}

const struct story_launch *story_launch(const struct story *story, size_t i)
{
	uint64_t at = i;

	if (i >= STORY_LAUNCHES_FIRST && story->launch_count > ARRAY_SIZE(story->launches))
		at += story->launch_count - ARRAY_SIZE(story->launches);
	return launch_at((struct story *)story, at);
}

static void clear_launch(struct story_launch *launch)
{
	json_decref(launch->started);
	json_decref(launch->exited);
	json_decref(launch->end);
	json_decref(launch->usage);
	*launch = (struct story_launch){ 0 };
}

/* The launch that this line belongs to; NULL before the first. */
static struct story_launch *current(const struct telling *telling)
{
	struct story *story = telling->story;

	return story->launch_count ? launch_at(story, story->launch_count - 1) : NULL;
}

/* ---- numbers -------------------------------------------------------------------------------- */

int64_t story_ceiling(const struct book_limits *limits, enum story_used used)
{
	const int64_t values[] = { limits->cost_nano, limits->time_ms, limits->tokens,
				   limits->iterations };

	return values[used];
}

int64_t story_amount(const struct book *book, enum story_used used)
{
	const int64_t values[] = { book->cost_nano, book->wall_ms, book->tokens, book->iteration };

	return values[used];
}

/* Half as many points, each the last of its stretch. */
static void thin(struct story_curve *curve)
{
	size_t kept = 0;

	curve->gap_ms *= 2;
	for (size_t i = 0; i < curve->count; i++) {
		bool is_same = kept && curve->points[kept - 1].wall_ms / curve->gap_ms ==
					       curve->points[i].wall_ms / curve->gap_ms;

		curve->points[is_same ? kept - 1 : kept] = curve->points[i];
		kept += !is_same;
	}
	curve->count = kept;
}

static void add_point(struct story_curve *curve, const struct book *book)
{
	struct story_point point = { .wall_ms = book->wall_ms };
	struct story_point *last = curve->count ? &curve->points[curve->count - 1] : NULL;

	for (int i = 0; i < STORY_USED; i++)
		point.used[i] = story_amount(book, (enum story_used)i);
	if (last && last->wall_ms / curve->gap_ms == point.wall_ms / curve->gap_ms) {
		*last = point;
		return;
	}
	while (curve->count == STORY_POINTS)
		thin(curve);
	curve->points[curve->count++] = point;
}

static void add_step(struct story *story)
{
	if (story->step_count == STORY_CEILINGS) { /* the last ones decide */
		memmove(&story->steps[1], &story->steps[2],
			(STORY_CEILINGS - 2) * sizeof story->steps[0]);
		story->step_count--;
		story->steps_lost++;
	}
	story->steps[story->step_count++] =
		(struct story_step){ story->book.wall_ms, story->book.limits };
}

static void tally(struct story *story, const char *name)
{
	size_t i = 0;

	while (i < story->kind_count && !str_is(story->kinds[i].name, name))
		i++;
	if (i == STORY_KINDS) {
		story->kinds_elsewhere++;
		return;
	}
	if (i == story->kind_count) {
		snprintf(story->kinds[i].name, REPORT_KIND, "%s", name);
		story->kind_count++;
	}
	story->kinds[i].count++;
}

/* ---- events --------------------------------------------------------------------------------- */

static void on_made(struct telling *telling)
{
	struct story *story = telling->story;
	json_t *config = json_object_get(telling->payload, "config");

	story->has_job = true;
	json_decref(story->config);
	story->config = json_incref(config);
	take_time(telling, story->made);
	book_read_limits(json_object_get(telling->payload, "limits"), &story->book.limits);
	add_step(story);
	add_row(&story->turns, telling, STORY_MADE)->limits = story->book.limits;
}

static void on_extended(struct telling *telling)
{
	struct story *story = telling->story;
	struct story_row *row = add_row(&story->turns, telling, STORY_CEILING);

	row->old = story->book.limits;
	book_read_limits(json_object_get(telling->payload, "limits"), &story->book.limits);
	row->limits = story->book.limits;
	add_step(story);
}

static void on_resumed(struct telling *telling)
{
	struct story *story = telling->story;
	struct story_row *row = add_row(&story->turns, telling, STORY_LAUNCH);
	struct story_launch *launch = launch_at(story, story->launch_count++);
	json_t *config = json_object_get(telling->payload, "config");

	clear_launch(launch);
	if (json_is_object(config)) {
		json_decref(story->config);
		story->config = json_incref(config);
	}
	row->number = launch->number =
		json_integer_value(json_object_get(telling->payload, "launch"));
	snprintf(row->name, sizeof row->name, "%s", story->status);
	take_time(telling, launch->began);
	launch->seq = telling->seq;
	launch->wall_from = launch->wall_to = story->book.wall_ms;
	snprintf(story->status, sizeof story->status, "running");
	story->reason = (struct story_text){ 0 };
	if (story->mark_count < STORY_MARKS)
		story->marks[story->mark_count++] = story->book.wall_ms;
}

static void on_ended(struct telling *telling)
{
	struct story *story = telling->story;
	struct story_row *row = add_row(&story->turns, telling, STORY_END);
	struct story_launch *launch = current(telling);

	snprintf(story->status, sizeof story->status, "%s", text_at(telling->payload, "status"));
	snprintf(row->name, sizeof row->name, "%s", story->status);
	take_text(json_object_get(telling->payload, "reason"), &row->text);
	story->reason = row->text;
	story->exit_status = json_integer_value(json_object_get(telling->payload, "exit_status"));
	row->number = story->exit_status;
	if (!launch)
		return;
	take_time(telling, launch->ended);
	launch->wall_to = story->book.wall_ms;
	json_decref(launch->end);
	launch->end = json_incref(telling->payload);
}

static void on_started(struct telling *telling)
{
	struct story_launch *launch = current(telling);

	if (!launch)
		return;
	json_decref(launch->started);
	launch->started = json_incref(telling->payload);
}

static void on_exited(struct telling *telling)
{
	struct story_launch *launch = current(telling);

	if (!launch)
		return;
	json_decref(launch->exited);
	launch->exited = json_incref(telling->payload);
}

static void on_exec_ended(struct telling *telling)
{
	struct story_launch *launch = current(telling);

	if (!launch)
		return;
	json_decref(launch->usage);
	launch->usage = json_incref(json_object_get(telling->payload, "usage"));
}

static void on_step(struct telling *telling)
{
	struct story_launch *launch = current(telling);

	if (launch)
		launch->steps++;
}

static void on_grant(struct telling *telling)
{
	struct story_launch *launch = current(telling);

	if (launch)
		launch->grants++;
}

static void on_approved(struct telling *telling)
{
	struct story_row *row = add_row(&telling->story->turns, telling, STORY_APPROVED);

	take_text(json_object_get(telling->payload, "id"), &row->text);
}

static bool is_same(const struct story_text *a, const struct story_text *b)
{
	return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static void on_violation(struct telling *telling)
{
	struct story *story = telling->story;
	struct story_launch *launch = current(telling);
	json_int_t count = json_integer_value(json_object_get(telling->payload, "count"));
	struct story_violation seen = { .count = count > 0 ? (uint64_t)count : 1 };
	size_t i = 0;

	take_text(json_object_get(telling->payload, "event"), &seen.event);
	take_text(json_object_get(telling->payload, "say"), &seen.say);
	take_text(json_object_get(telling->payload, "rule"), &seen.rule);
	take_time(telling, seen.first);
	memcpy(seen.last, seen.first, sizeof seen.last);
	seen.seq = telling->seq;
	seen.is_certain = json_is_true(json_object_get(telling->payload, "certain"));
	story->attempts += seen.count;
	if (launch)
		launch->violations += seen.count;
	while (i < story->violation_count && !(is_same(&story->violations[i].event, &seen.event) &&
					       is_same(&story->violations[i].say, &seen.say)))
		i++;
	if (i == STORY_VIOLATIONS) {
		story->attempts_elsewhere += seen.count;
	} else if (i == story->violation_count) {
		story->violations[story->violation_count++] = seen;
	} else {
		story->violations[i].count += seen.count;
		story->violations[i].is_certain |= seen.is_certain;
		memcpy(story->violations[i].last, seen.last, sizeof seen.last);
	}
}

/* What a report says beside what the books hold of it, as one line of JSON. */
static void take_report(const struct telling *telling, struct story_text *ret_text)
{
	json_t *report = json_copy(json_object_get(telling->payload, "report"));
	json_t *text = NULL;
	char *dumped;

	json_object_del(report, "event");
	dumped =
		report ? json_dumps(report, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15))
		       : NULL;
	if (dumped)
		text = json_string(dumped);
	take_text(text, ret_text);
	json_decref(text);
	json_decref(report);
	free(dumped);
}

static void keep_checkpoint(struct story *story, const struct telling *telling)
{
	json_t *path = json_object_get(json_object_get(telling->payload, "report"), "path");

	if (json_object_size(story->checkpoints) < STORY_CHECKPOINTS && json_is_string(path))
		json_object_set_new(story->checkpoints, json_string_value(path),
				    json_string(text_at(telling->line, "time")));
}

static void on_report(struct telling *telling)
{
	struct story *story = telling->story;
	const char *kind = text_at(telling->payload, "kind");
	const json_t *report = json_object_get(telling->payload, "report");
	const json_t *refused = json_object_get(telling->payload, "refused");
	struct story_row *row;

	if (refused) {
		row = add_row(&story->said, telling, STORY_REFUSED);
		take_text(refused, &row->text);
		return;
	}
	tally(story, kind);
	if (str_is(kind, "iteration")) {
		row = add_row(&story->progress, telling, STORY_ITERATION);
		row->number = story->book.iteration;
		take_text(json_object_get(report, "summary"), &row->text);
	} else if (str_is(kind, "checkpoint")) {
		row = add_row(&story->progress, telling, STORY_CHECKPOINT);
		take_text(json_object_get(report, "path"), &row->text);
		keep_checkpoint(story, telling);
	} else if (!str_is(kind, "usage")) {
		row = add_row(&story->said, telling, STORY_SAID);
		snprintf(row->name, sizeof row->name, "%.64s", kind);
		take_report(telling, &row->text);
	}
}

static void (*const takers[EVENT_COUNT])(struct telling *telling) = {
	[EVENT_RUN_STARTED] = on_started,   [EVENT_LOCKDOWN_STEP] = on_step,
	[EVENT_GRANT] = on_grant,           [EVENT_EXEC_ENDED] = on_exec_ended,
	[EVENT_APPROVED] = on_approved,     [EVENT_VIOLATION] = on_violation,
	[EVENT_WORKER_EVENT] = on_report,   [EVENT_RUN_EXITED] = on_exited,
	[EVENT_JOB_STARTED] = on_made,      [EVENT_JOB_RESUMED] = on_resumed,
	[EVENT_JOB_EXTENDED] = on_extended, [EVENT_JOB_ENDED] = on_ended,
};

/* ---- reading -------------------------------------------------------------------------------- */

static void take_line(struct telling *telling, const char *text, size_t size)
{
	struct story *story = telling->story;
	const char *event;
	json_t *books;

	telling->line = json_loadb(text, size, JSON_ALLOW_NUL, NULL);
	telling->payload = json_object_get(telling->line, "payload");
	telling->seq++;
	event = text_at(telling->line, "event");
	books = json_object_get(telling->payload, "books");
	if (json_is_object(books))
		book_read(books, &story->book);
	take_time(telling, story->last);
	for (int i = 0; i < EVENT_COUNT; i++) {
		if (!str_is(event, audit_event_name((enum audit_event)i)))
			continue;
		story->events[i]++;
		if (takers[i])
			takers[i](telling);
	}
	if (json_is_object(books))
		add_point(&story->curve, &story->book);
	json_decref(telling->line);
}

static int read_lines(int fd, uint64_t bytes, uint64_t most, struct story *story)
{
	struct telling telling = { .story = story };
	struct lines lines;
	const char *text;
	uint64_t seen = 0;
	size_t size;
	int r = lines_init(&lines, fd, CHAIN_LINE_MAX);

	while (r >= 0 && story->lines < most && (r = lines_next(&lines, &text, &size)) == 1) {
		seen += size + 1;
		if (lines.is_cut || lines.is_too_long || seen > bytes)
			break;
		story->lines++;
		take_line(&telling, text, size);
	}
	lines_done(&lines);
	return r < 0 ? r : 0;
}

int story_read(int dir_fd, uint64_t bytes, uint64_t lines, struct story **ret_story,
	       struct csn_error *err)
{
	_cleanup_fd_ int fd = files_open_regular(dir_fd, "logs/events.jsonl");
	struct story *story = fd < 0 ? NULL : calloc(1, sizeof *story);
	int r = fd < 0 ? fd : story ? 0 : -ENOMEM;

	if (r == 0) {
		story->book.limits = BOOK_UNLIMITED;
		story->curve.gap_ms = 1;
		story->checkpoints = json_object();
		r = read_lines(fd, bytes, lines, story);
	}
	if (r < 0) {
		story_free(story);
		return files_fail(err, r, "read", "logs/events.jsonl");
	}
	*ret_story = story;
	return 0;
}

void story_free(struct story *story)
{
	if (!story)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(story->launches); i++)
		clear_launch(&story->launches[i]);
	json_decref(story->config);
	json_decref(story->checkpoints);
	free(story);
}
