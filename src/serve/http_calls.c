/*
 * Verbs that are one call of libcaisson: the body fills its request, its result is the answer.
 * While one runs, its client's leaving cancels it.
 */
#include "serve/http_calls.h"

#include <string.h>

#include "base/str.h"
#include "serve/answer.h"
#include "serve/http_routes.h"

enum { REQUEST_MAX = 512, KEEP_MAX = 16 << 20, EDIT_MAX = 1 << 20 };

/* ---- a call and who waits for it ------------------------------------------------------------- */

static void cancel(void *data)
{
	calls_cancel(data);
}

void calls_cancel(struct running *running)
{
	box_cancel(&running->request->server->boxes, running->box, &running->call);
}

bool calls_start(struct request *request, struct running *running)
{
	csn_error err;

	*running = (struct running){ .request = request };
	if (box_find(&request->server->boxes, request->segments[0], &running->box, &err) < 0) {
		reply_error(request, &err);
		return false;
	}
	box_begin(&request->server->boxes, running->box, &running->call);
	return true;
}

void calls_finish(struct running *running, int r)
{
	struct boxes *boxes = &running->request->server->boxes;

	box_finish(boxes, running->box, &running->call);
	if (r == -CSN_LOST)
		box_lost(boxes, running->box);
	box_release(boxes, running->box);
}

bool calls_begin(struct request *request, struct running *running)
{
	if (!calls_start(request, running))
		return false;
	watch_hold(&request->server->watch, request->peer, cancel, running);
	return true;
}

void calls_end(struct running *running, int r)
{
	watch_release(&running->request->server->watch, running->request->peer);
	calls_finish(running, r);
}

bool calls_take(struct request *request, const struct field *fields, void *into)
{
	json_t *body = request_json(request);
	csn_error err;
	int r;

	if (!body)
		return false;
	r = fields_take(fields, body, &request->arena, into, &err);
	json_decref(body);
	if (r < 0)
		reply_error(request, &err);
	return r == 0;
}

/* What its route calls, with a decoded body. Did it do it? */
static bool run(struct request *request, void *body)
{
	const struct call *call = request->route->call;
	csn_call *options = body;
	struct running running;
	json_t *answer = NULL;
	csn_error err = { 0 };
	int r;

	if (!calls_begin(request, &running))
		return false;
	options->id = running.call.id;
	r = call->run(running.box->sandbox, body, &answer, &err);
	calls_end(&running, r);
	if (r < 0)
		reply_error(request, &err);
	else
		reply_json(request, 200, answer);
	return r == 0;
}

void calls_run(struct request *request)
{
	_Alignas(max_align_t) uint8_t room[REQUEST_MAX] = { 0 };

	if (calls_take(request, request->route->fields, room))
		run(request, room);
}

void calls_fork(struct request *request)
{
	struct boxes *boxes = &request->server->boxes;
	csn_fork_request fork = { 0 };
	csn_error err = { 0 };

	if (!calls_take(request, fork_fields, &fork))
		return;
	if (boxes_take_fork(boxes, request->token, &err) < 0)
		reply_problem(request, 429, "sandboxes", "%s", err.text);
	else
		boxes_keep_fork(boxes, request->token, run(request, &fork) ? fork.name : NULL);
}

/* ---- each ------------------------------------------------------------------------------------ */

#define AT(type, member) offsetof(type, member)
#define TIMEOUT(type)                                               \
	{                                                           \
		"timeout_ms", FIELD_U32, AT(type, call.timeout_ms), \
			.what = "after which it is given up"        \
	}

/* With a result of its own, which `answer_` turns into JSON. */
#define CALL(verb, request_, result_, answer_)                                             \
	static int run_##verb(csn_sandbox *sandbox, const void *data, json_t **ret_answer, \
			      csn_error *err)                                              \
	{                                                                                  \
		const request_ *request = data;                                            \
		result_ *result = NULL;                                                    \
		int r = csn_##verb(sandbox, request, &result, err);                        \
                                                                                           \
		if (r == 0) {                                                              \
			*ret_answer = answer_(result);                                     \
			csn_free(result);                                                  \
		}                                                                          \
		return r;                                                                  \
	}                                                                                  \
	const struct call call_##verb = { run_##verb };                                    \
	_Static_assert(sizeof(request_) <= REQUEST_MAX, "no room for a request")

/* Without one. */
#define CALL_DONE(verb, request_)                                                          \
	static int run_##verb(csn_sandbox *sandbox, const void *data, json_t **ret_answer, \
			      csn_error *err)                                              \
	{                                                                                  \
		const request_ *request = data;                                            \
		int r = csn_##verb(sandbox, request, err);                                 \
                                                                                           \
		if (r == 0)                                                                \
			*ret_answer = json_object();                                       \
		return r;                                                                  \
	}                                                                                  \
	const struct call call_##verb = { run_##verb };                                    \
	_Static_assert(sizeof(request_) <= REQUEST_MAX, "no room for a request")

CALL(edit, csn_edit_request, csn_edit_result, answer_edit);
CALL(glob, csn_glob_request, csn_glob_result, answer_glob);
CALL(grep, csn_grep_request, csn_grep_result, answer_grep);
CALL(stat, csn_path_request, csn_stat_result, answer_stat);
CALL(list, csn_path_request, csn_list_result, answer_list);
CALL(diff, csn_changes_request, csn_diff_result, answer_diff);
CALL(commit, csn_changes_request, csn_commit_result, answer_commit);
CALL(snapshot, csn_snapshot_request, csn_copied, answer_copied);
CALL(fork, csn_fork_request, csn_copied, answer_copied);
CALL(stats, csn_call, csn_stats_result, answer_stats);
CALL(ps, csn_call, csn_ps_result, answer_ps);
CALL(logs, csn_logs_request, csn_logs_result, answer_logs);
CALL(wait, csn_wait_request, csn_wait_result, answer_wait);
CALL_DONE(remove, csn_path_request);
CALL_DONE(move, csn_move_request);
CALL_DONE(mount, csn_mount_request);
CALL_DONE(kill, csn_kill_request);

#define PATH_OF(type)                                                                    \
	{                                                                                \
		"path", FIELD_TEXT, AT(type, path),                                      \
			.is_required = true,                                             \
			.what = "inside the wall, relative to the workspace or absolute" \
	}

const struct field read_fields[] = {
	PATH_OF(csn_read_request),
	{ "offset", FIELD_U64, AT(csn_read_request, offset), .what = "first byte" },
	{ "length", FIELD_U64, AT(csn_read_request, length), .max = 64 << 20,
	  .what = "most bytes; 0: to the end, and efbig above 64 MiB" },
	TIMEOUT(csn_read_request),
	{ NULL },
};

const struct field write_fields[] = {
	PATH_OF(csn_write_request),
	{ "content", FIELD_BYTES, AT(csn_write_request, bytes), AT(csn_write_request, size),
	  .is_required = true, .what = "what the file shall hold" },
	{ "mode", FIELD_U16, AT(csn_write_request, mode), .max = 07777,
	  .what = "permissions as a number, 420 for 0644; 0: those it had, or 0644" },
	TIMEOUT(csn_write_request),
	{ NULL },
};

const struct field edit_fields[] = {
	PATH_OF(csn_edit_request),
	{ "old", FIELD_BYTES, AT(csn_edit_request, old_text), AT(csn_edit_request, old_size),
	  .is_required = true, .what = "what must occur exactly once; at most 1 MiB" },
	{ "new", FIELD_BYTES, AT(csn_edit_request, new_text), AT(csn_edit_request, new_size),
	  .is_required = true, .what = "what replaces it; at most 1 MiB" },
	TIMEOUT(csn_edit_request),
	{ NULL },
};

const struct field glob_fields[] = {
	{ "pattern", FIELD_TEXT, AT(csn_glob_request, pattern), .is_required = true,
	  .what = "with ** and braces; matches dot files" },
	{ "cwd", FIELD_TEXT, AT(csn_glob_request, cwd), .what = "a folder; else the workspace" },
	{ "limit", FIELD_U32, AT(csn_glob_request, limit), .what = "most paths; 0: 1000" },
	TIMEOUT(csn_glob_request),
	{ NULL },
};

const struct field grep_fields[] = {
	{ "pattern", FIELD_TEXT, AT(csn_grep_request, pattern), .is_required = true,
	  .what = "a regular expression" },
	{ "path", FIELD_TEXT, AT(csn_grep_request, path), .what = "a file or folder" },
	{ "glob", FIELD_TEXT, AT(csn_grep_request, glob), .what = "only files that match" },
	{ "ignore_case", FIELD_BOOL, AT(csn_grep_request, ignore_case),
	  .what = "letters match their other case" },
	{ "limit", FIELD_U32, AT(csn_grep_request, limit), .what = "most matches" },
	{ "context", FIELD_U32, AT(csn_grep_request, context), .max = 100,
	  .what = "lines before and after" },
	TIMEOUT(csn_grep_request),
	{ NULL },
};

const struct field path_fields[] = { PATH_OF(csn_path_request),
				     TIMEOUT(csn_path_request),
				     { NULL } };

const struct field remove_fields[] = {
	PATH_OF(csn_path_request),
	{ "recursive", FIELD_BOOL, AT(csn_path_request, recursive),
	  .what = "a folder with its content" },
	TIMEOUT(csn_path_request),
	{ NULL },
};

const struct field move_fields[] = {
	PATH_OF(csn_move_request),
	{ "to", FIELD_TEXT, AT(csn_move_request, to), .is_required = true,
	  .what = "its new path, which is replaced" },
	TIMEOUT(csn_move_request),
	{ NULL },
};

const struct field mount_fields[] = {
	{ "host", FIELD_TEXT, AT(csn_mount_request, host), .is_required = true,
	  .what = "a path of the host, beneath one of the policy's mount_roots" },
	{ "at", FIELD_TEXT, AT(csn_mount_request, at), .is_required = true,
	  .what = "a place inside, absolute" },
	{ "writable", FIELD_BOOL, AT(csn_mount_request, writable), .what = "only beneath /mnt/rw" },
	{ NULL },
};

#define CHANGES                                                       \
	{                                                             \
		"paths", FIELD_TEXTS, AT(csn_changes_request, paths), \
			.what = "only these; else all"                \
	}

const struct field diff_fields[] = {
	CHANGES,
	{ "names_only", FIELD_BOOL, AT(csn_changes_request, names_only),
	  .what = "no changed lines" },
	{ "keep_bytes", FIELD_SIZE, AT(csn_changes_request, keep_bytes), .max = KEEP_MAX,
	  .what = "of the text; 0: 1 MiB" },
	TIMEOUT(csn_changes_request),
	{ NULL },
};

const struct field commit_fields[] = {
	CHANGES,
	{ "force", FIELD_BOOL, AT(csn_changes_request, force),
	  .what = "replaces what somebody else changed meanwhile" },
	{ "dry_run", FIELD_BOOL, AT(csn_changes_request, dry_run),
	  .what = "only says what it would do" },
	TIMEOUT(csn_changes_request),
	{ NULL },
};

const struct field snapshot_fields[] = {
	{ "tag", FIELD_TEXT, AT(csn_snapshot_request, tag), .is_required = true,
	  .what = "letters, digits, -, _ and ." },
	{ NULL },
};

const struct field fork_fields[] = {
	{ "name", FIELD_TEXT, AT(csn_fork_request, name), .is_required = true,
	  .what = "of the new sandbox" },
	{ "tag", FIELD_TEXT, AT(csn_fork_request, tag),
	  .what = "of a snapshot; else as it is now" },
	{ NULL },
};

const struct field empty_fields[] = { { NULL } };

#define TAG(type)                                                                 \
	{                                                                         \
		"tag", FIELD_TEXT, AT(type, tag), .is_required = true,            \
						  .what = "of a detached command" \
	}

const struct field logs_fields[] = {
	TAG(csn_logs_request),
	{ "follow", FIELD_BOOL, AT(csn_logs_request, follow), .what = "until it has ended" },
	{ "keep_bytes", FIELD_SIZE, AT(csn_logs_request, keep_bytes), .max = KEEP_MAX,
	  .what = "of each stream; 0: 1 MiB" },
	TIMEOUT(csn_logs_request),
	{ NULL },
};

const struct field wait_fields[] = {
	TAG(csn_wait_request),
	{ "port", FIELD_U16, AT(csn_wait_request, port), .what = "until somebody listens on it" },
	{ "line", FIELD_TEXT, AT(csn_wait_request, line),
	  .what = "until it writes a line that matches this POSIX extended expression" },
	{ "text", FIELD_TEXT, AT(csn_wait_request, text),
	  .what = "until it writes a line that contains this" },
	{ "forget", FIELD_BOOL, AT(csn_wait_request, forget),
	  .what = "of one that has ended: drops its status and output" },
	TIMEOUT(csn_wait_request),
	{ NULL },
};

const struct field kill_fields[] = {
	TAG(csn_kill_request),
	{ "signal", FIELD_INT, AT(csn_kill_request, signal), .max = 64,
	  .what = "1 to 64; 0: TERM to its tree, and KILL after 500 ms" },
	{ NULL },
};

/* ---- bytes ----------------------------------------------------------------------------------- */

void calls_read(struct request *request)
{
	csn_read_request read = { 0 };
	struct running running;
	csn_bytes *bytes = NULL;
	csn_error err = { 0 };
	int r;

	if (!calls_take(request, read_fields, &read) || !calls_begin(request, &running))
		return;
	read.call.id = running.call.id;
	r = csn_read(running.box->sandbox, &read, &bytes, &err);
	calls_end(&running, r);
	if (r < 0)
		reply_error(request, &err);
	else if (request_accepts(request, "application/octet-stream"))
		reply_bytes(request, "application/octet-stream", bytes->data, bytes->size);
	else
		reply_json(request, 200,
			   json_pack("{s:o}", "content", answer_bytes(bytes->data, bytes->size)));
	if (r == 0)
		csn_free(bytes);
}

/* The body is the content; the rest is in the query. */
static bool take_raw(struct request *request, csn_write_request *write)
{
	const char *mode = request_query(request, "mode");
	uint64_t number = 0;

	write->path = request_query(request, "path");
	if (!write->path || (mode && str_parse_u64(mode, 07777, &number) < 0)) {
		reply_problem(request, 400, "invalid",
			      "the query names the file: ?path=src/a.c and, if it must be, "
			      "&mode=420 (0644)");
		return false;
	}
	write->mode = (uint16_t)number;
	write->bytes = buf_size(&request->body) ? (const void *)buf_at(&request->body) : "";
	write->size = buf_size(&request->body);
	return true;
}

void calls_write(struct request *request)
{
	const char *type = request_header(request, "Content-Type");
	csn_write_request write = { 0 };
	struct running running;
	csn_error err = { 0 };
	bool is_raw = type && str_starts(type, "application/octet-stream");
	int r;

	if (!(is_raw ? take_raw(request, &write) : calls_take(request, write_fields, &write)) ||
	    !calls_begin(request, &running))
		return;
	write.call.id = running.call.id;
	r = csn_write(running.box->sandbox, &write, &err);
	calls_end(&running, r);
	if (r < 0)
		reply_error(request, &err);
	else
		reply_nothing(request);
}
