/* What a job's chain says of it; see past.h. */
#include "jobs/past.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/files.h"
#include "audit/lines.h"
#include "base/fd.h"
#include "base/str.h"
#include "jobs/iterations.h"

enum { CHECKPOINTS = 1000 };

struct reading {
	struct past *past;
	json_t *line, *payload; /* of now, borrowed */
	int iterations_fd;
	uint64_t iterations_last;
	int error;
};

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void append_bounded(json_t *list, json_t *take_value, size_t most)
{
	json_array_append_new(list, take_value);
	if (json_array_size(list) > most)
		json_array_remove(list, 0);
}

static void take_config(struct reading *reading)
{
	json_t *config = json_object_get(reading->payload, "config");

	if (!json_is_object(config))
		return;
	json_decref(reading->past->config);
	reading->past->config = json_incref(config);
}

static void on_started(struct reading *reading)
{
	reading->past->has_job = true;
	take_config(reading);
	book_read_limits(json_object_get(reading->payload, "limits"), &reading->past->book.limits);
}

static void on_extended(struct reading *reading)
{
	book_read_limits(json_object_get(reading->payload, "limits"), &reading->past->book.limits);
}

static void on_resumed(struct reading *reading)
{
	struct past *past = reading->past;
	const json_t *books = json_object_get(reading->payload, "books");

	take_config(reading);
	append_bounded(past->history,
		       json_pack("{s:s, s:s, s:O?, s:O?}", "time", text_at(reading->line, "time"),
				 "after", past->status, "iteration",
				 json_object_get(books, "iteration"), "wall_ms",
				 json_object_get(books, "wall_ms")),
		       PAST_LAUNCHES);
	past->launches++;
	snprintf(past->status, sizeof past->status, "running");
}

static void on_ended(struct reading *reading)
{
	snprintf(reading->past->status, sizeof reading->past->status, "%s",
		 text_at(reading->payload, "status"));
}

static void on_report(struct reading *reading)
{
	const char *kind = text_at(reading->payload, "kind");
	uint64_t seq = (uint64_t)json_integer_value(json_object_get(reading->line, "seq"));
	int r = 0;

	if (str_is(kind, "checkpoint"))
		append_bounded(reading->past->checkpoints,
			       json_string(reading->past->book.checkpoint), CHECKPOINTS);
	if (str_is(kind, "iteration") && reading->iterations_fd >= 0 &&
	    seq > reading->iterations_last)
		r = iterations_add(reading->iterations_fd, seq, text_at(reading->line, "time"),
				   reading->payload);
	if (r < 0)
		reading->error = r;
}

static const struct {
	enum audit_event event;
	void (*take)(struct reading *reading);
} events[] = {
	{ EVENT_JOB_STARTED, on_started },   { EVENT_JOB_RESUMED, on_resumed },
	{ EVENT_JOB_EXTENDED, on_extended }, { EVENT_JOB_ENDED, on_ended },
	{ EVENT_WORKER_EVENT, on_report },
};

static void take_line(struct reading *reading, const char *text, size_t size)
{
	const json_t *books;

	reading->line = json_loadb(text, size, JSON_ALLOW_NUL, NULL);
	reading->payload = json_object_get(reading->line, "payload");
	books = json_object_get(reading->payload, "books");
	if (json_is_object(books))
		book_read(books, &reading->past->book);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (str_is(text_at(reading->line, "event"), audit_event_name(events[i].event)))
			events[i].take(reading);
	json_decref(reading->line);
}

static int read_chain(int fd, struct reading *reading)
{
	struct lines lines;
	const char *text;
	size_t size;
	int r = lines_init(&lines, fd, CHAIN_LINE_MAX);

	while (r >= 0 && (r = lines_next(&lines, &text, &size)) == 1 && reading->error == 0)
		if (!lines.is_cut && !lines.is_too_long)
			take_line(reading, text, size);
	lines_done(&lines);
	return r < 0 ? r : reading->error;
}

int past_read(int dir_fd, int iterations_fd, struct past *ret_past, struct csn_error *err)
{
	_cleanup_fd_ int fd = files_open_regular(dir_fd, "logs/events.jsonl");
	struct past past = { .book = { .limits = BOOK_UNLIMITED },
			     .history = json_array(),
			     .checkpoints = json_array() };
	struct reading reading = { .past = &past, .iterations_fd = iterations_fd };
	int r;

	if (iterations_fd >= 0)
		reading.iterations_last = iterations_last(iterations_fd);
	r = fd < 0 ? fd : read_chain(fd, &reading);
	if (r < 0)
		r = files_fail(err, r, "read", "logs/events.jsonl");
	else if (!past.has_job || !past.config)
		r = csn_fail(err, -EBADMSG, "job", "logs/events.jsonl tells of no job");
	if (r < 0) {
		past_done(&past);
		return r;
	}
	*ret_past = past;
	return 0;
}

void past_done(struct past *past)
{
	json_decref(past->config);
	json_decref(past->history);
	json_decref(past->checkpoints);
	past->config = past->history = past->checkpoints = NULL;
}
