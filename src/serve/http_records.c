/*
 * /v1/runs: records as they are on disk; see http_records.h
 *
 * Ids are resolved by the audit room, so an id is never a path. Events are lines of the hash chain,
 * which are complete where they end in a newline; the number of each is its id, with which a client
 * that was cut off goes on.
 */
#include "serve/http_records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/files.h"
#include "audit/list.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "serve/http_child.h"
#include "serve/http_routes.h"
#include "serve/http_stream.h"

enum {
	RESULT_MAX = 64 << 20,
	STATE_MAX = 1 << 20,
	LIST_DEFAULT = 50,
	LOOK_MS = 100, /* how late an event of a run that lives may be shown */
	LINES = 4 * CHAIN_LINE_MAX,
	LOOK_MAX = CHAIN_LINE_MAX,
	DIFF_MAX = 16 << 20,
};

/* ---- finding --------------------------------------------------------------------------------- */

/* The run root; -ENOENT: there are no records yet. */
static int open_root(const struct request *request, struct csn_error *err)
{
	int fd = -1;
	int r = record_open_root(request->server->config->run_root, &fd, err);

	return r < 0 ? r : fd;
}

struct found {
	int root_fd; /* owned */
	int dir_fd;  /* owned */
	char id[RUN_ID_SIZE];
};

#define FOUND_NONE ((struct found){ .root_fd = -1, .dir_fd = -1 })

static void found_done(struct found *found)
{
	fd_close(found->root_fd);
	fd_close(found->dir_fd);
}

#define _cleanup_found_ __attribute__((cleanup(found_done)))

/* False: there is none, and that was answered. */
static bool find(struct request *request, const char *name, struct found *found)
{
	struct csn_error err = { 0 };
	int r = found->root_fd = open_root(request, &err);

	if (r >= 0)
		r = *name ? record_resolve(found->root_fd, name, found->id, sizeof found->id, &err)
			  : csn_fail(&err, -ENOENT, "record", "a run has an id");
	if (r >= 0) {
		r = found->dir_fd = files_open_dir(found->root_fd, found->id);
		if (r < 0)
			csn_fail(&err, -ENOENT, "record", "the run is gone");
	}
	if (r == -ENOTUNIQ)
		reply_problem(request, 409, "ambiguous", "%s", err.text);
	else if (r < 0)
		reply_failure(request, &err);
	return r >= 0;
}

/* ---- one in a list --------------------------------------------------------------------------- */

static void copy_keys(json_t *to, json_t *from, const char *const *keys)
{
	for (; *keys; keys++)
		if (json_object_get(from, *keys))
			json_object_set(to, *keys, json_object_get(from, *keys));
}

static json_t *violation_count(const json_t *result)
{
	return json_integer((json_int_t)json_array_size(json_object_get(result, "violations")));
}

/* What stands in a row: of a run that is over from its result, of another from its start. */
static json_t *summary(int root_fd, const char *id)
{
	static const char *const keys[] = { "command", "runtime", "tier",  "termination",
					    "sandbox", "cwd",     "usage", NULL };
	struct run_info info = { 0 };
	json_t *row, *file = NULL;
	char started[CLOCK_TEXT];
	_cleanup_fd_ int dir_fd = -1;

	if (list_info(root_fd, id, false, &info) < 0)
		return NULL;
	clock_format(info.started_ms, started);
	row = json_pack("{s:s, s:s, s:s}", "run_id", id, "status", info.status, "started", started);
	dir_fd = files_open_dir(root_fd, id);
	if (dir_fd >= 0 && files_read_json(dir_fd, "result.json", RESULT_MAX, &file) == 0)
		json_object_set_new(row, "violations", violation_count(file));
	else if (dir_fd >= 0)
		files_read_json(dir_fd, "state.json", STATE_MAX, &file);
	copy_keys(row, file, keys);
	json_decref(file);
	return row;
}

static bool take_page(struct request *request, uint64_t *ret_limit, const char **ret_before)
{
	const char *limit = request_query(request, "limit");

	*ret_limit = LIST_DEFAULT;
	*ret_before = request_query(request, "before");
	if (limit && (str_parse_u64(limit, RECORDS_LIST_MAX, ret_limit) < 0 || *ret_limit == 0)) {
		reply_problem(request, 400, "invalid", "limit is 1 to %d", RECORDS_LIST_MAX);
		return false;
	}
	return true;
}

void records_list(struct request *request)
{
	_cleanup_fd_ int root = open_root(request, NULL);
	char(*ids)[RUN_ID_SIZE] = NULL;
	size_t count = 0;
	const char *before;
	uint64_t limit;
	json_t *list;

	if (!take_page(request, &limit, &before))
		return;
	list = json_array();
	if (root >= 0)
		list_ids(root, &ids, &count);
	for (size_t i = 0; i < count && json_array_size(list) < limit; i++) {
		json_t *row = before && strcmp(ids[i], before) >= 0 ? NULL : summary(root, ids[i]);

		if (row)
			json_array_append_new(list, row);
	}
	free(ids);
	reply_json(request, 200, json_pack("{s:o}", "runs", list));
}

/* ---- one ------------------------------------------------------------------------------------- */

void records_show(struct request *request)
{
	_cleanup_found_ struct found found = FOUND_NONE;
	json_t *row, *result = NULL;

	if (!find(request, request->segments[0], &found))
		return;
	row = summary(found.root_fd, found.id);
	if (files_read_json(found.dir_fd, "result.json", RESULT_MAX, &result) < 0)
		result = json_null();
	json_object_set_new(row, "result", result);
	reply_json(request, 200, row);
}

void records_result(struct request *request)
{
	_cleanup_found_ struct found found = FOUND_NONE;
	json_t *result = NULL;
	int r;

	if (!find(request, request->segments[0], &found))
		return;
	r = files_read_json(found.dir_fd, "result.json", RESULT_MAX, &result);
	if (r == -ENOENT)
		reply_problem(request, 404, "enoent",
			      "the run has no result: it is running or "
			      "was lost");
	else if (r < 0)
		reply_problem(request, 500, "ebadmsg",
			      "the result cannot be read; verify says "
			      "what is wrong");
	else
		reply_json(request, 200, result);
}

void records_verify(struct request *request)
{
	_cleanup_found_ struct found found = FOUND_NONE;
	struct csn_error err = { 0 };
	struct verdict verdict = { 0 };

	if (!find(request, request->segments[0], &found))
		return;
	if (record_verify(found.root_fd, found.id, &verdict, &err) < 0) {
		reply_failure(request, &err);
		return;
	}
	reply_json(request, 200,
		   json_pack("{s:s, s:b, s:s, s:I, s:s}", "run_id", found.id, "good",
			     verdict.is_good, "file", verdict.file, "line",
			     (json_int_t)verdict.line, "reason", verdict.reason));
}

/* The command's own: layers of a file system are another room's work. */
void records_diff(struct request *request)
{
	const struct http_config *config = request->server->config;
	_cleanup_found_ struct found found = FOUND_NONE;
	_cleanup_buf_ struct buf out;
	struct csn_error err = { 0 };
	int status;

	buf_init(&out, DIFF_MAX);
	if (!find(request, request->segments[0], &found))
		return;
	status =
		child_output((const char *const[]){ config->base.program, "runs", "diff",
						    "--run-dir", config->run_root, found.id, NULL },
			     &out, &err);
	if (status < 0)
		reply_failure(request, &err);
	else if (status > 0)
		reply_problem(request, 409, "no_diff", "%s", err.text);
	else
		reply_bytes(request, "text/plain; charset=utf-8", buf_at(&out), buf_size(&out));
}

/* ---- events ---------------------------------------------------------------------------------- */

/* In the request's arena. */
struct following {
	int root_fd; /* owned */
	int fd;      /* of the chain, owned */
	char id[RUN_ID_SIZE];
	uint64_t after; /* events up to this number were seen */
	struct buf lines;
};

/* One complete line: 0, 1 after the last event of all, or -EPIPE. */
static int put_line(struct stream *stream, struct following *following, char *line)
{
	json_t *event = json_loads(line, 0, NULL);
	json_int_t seq = json_integer_value(json_object_get(event, "seq"));
	const char *name = json_string_value(json_object_get(event, "event"));
	bool is_last = name && str_is(name, "RunExited");
	int r = 0;

	if (name && seq > 0 && (uint64_t)seq > following->after)
		r = stream_put(stream, "record", (uint64_t)seq, line);
	json_decref(event);
	return r < 0 ? r : is_last;
}

static int put_lines(struct stream *stream, struct following *following)
{
	struct buf *lines = &following->lines;
	int r = 0;

	while (r == 0 && buf_size(lines) > 0) {
		char *line = (char *)buf_at(lines), *end = memchr(line, '\n', buf_size(lines));

		if (!end)
			break;
		*end = 0;
		r = put_line(stream, following, line);
		buf_consume(lines, (size_t)(end - line) + 1);
	}
	return r;
}

/* 1: something came; 0: nothing more yet; negative: it cannot be read. */
static int read_more(struct following *following)
{
	size_t room = buf_room(&following->lines);
	uint8_t *to =
		room ? buf_reserve(&following->lines, room < LOOK_MAX ? room : LOOK_MAX) : NULL;
	ssize_t n = to ? read(following->fd, to, room < LOOK_MAX ? room : LOOK_MAX) : -1;

	if (n > 0)
		buf_grew(&following->lines, (size_t)n);
	return n < 0 ? -EIO : n > 0;
}

static bool is_over(const struct following *following)
{
	struct run_info info = { 0 };

	return list_info(following->root_fd, following->id, false, &info) < 0 ||
	       !str_is(info.status, "running");
}

/* The end is looked for before the rest is read: what came in between is not missed. */
static void produce(struct stream *stream, void *data)
{
	struct following *following = data;
	bool was_over = false;
	int r = 0;

	while (r == 0) {
		int more = read_more(following);

		r = more < 0 ? more : put_lines(stream, following);
		if (r == 0 && more == 0) {
			if (was_over)
				break;
			was_over = is_over(following);
			if (!was_over)
				r = stream_wait(stream, LOOK_MS);
		}
	}
	if (r >= 0)
		stream_put(stream, "end", 0, "{}");
	fd_close(following->fd);
	fd_close(following->root_fd);
	buf_done(&following->lines);
}

static bool take_last_id(struct request *request, uint64_t *ret_after)
{
	const char *id = request_header(request, "Last-Event-ID");

	if (!id)
		id = request_query(request, "after");
	if (id && str_parse_u64(id, INT64_MAX, ret_after) < 0) {
		reply_problem(request, 400, "invalid", "Last-Event-ID is a number");
		return false;
	}
	return true;
}

void records_follow(struct request *request, const char *run_id)
{
	struct following *following = arena_alloc(&request->arena, sizeof *following);
	_cleanup_found_ struct found found = FOUND_NONE;
	const struct stream_job job = { produce, NULL, following };

	if (!following) {
		reply_problem(request, 503, "enomem", "out of memory");
		return;
	}
	if (!take_last_id(request, &following->after) || !find(request, run_id, &found))
		return;
	following->fd = files_open_regular(found.dir_fd, "logs/events.jsonl");
	if (following->fd < 0) {
		reply_problem(request, 404, "enoent", "the run has no events");
		return;
	}
	following->root_fd = fd_take(&found.root_fd);
	memcpy(following->id, found.id, sizeof found.id);
	buf_init(&following->lines, LINES);
	if (stream_reply(request, &job) < 0) {
		fd_close(following->fd);
		fd_close(following->root_fd);
	}
}

void records_events(struct request *request)
{
	records_follow(request, request->segments[0]);
}
