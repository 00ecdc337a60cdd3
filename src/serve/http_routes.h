/*
 * http_routes - the one table of what can be asked
 *
 * The server dispatches on it, the Allow header is made from it, and so is the OpenAPI document: a
 * route that is not in the document does not exist.
 */
#pragma once

#include "serve/http.h"
#include "serve/http_fields.h"

enum route_body {
	BODY_NONE,
	BODY_JSON,
	BODY_BYTES, /* JSON, or the bytes themselves with the rest in the query */
};

/* What an answer is, for the document. */
enum route_answer {
	ANSWER_JSON,
	ANSWER_NOTHING,
	ANSWER_BYTES,  /* JSON, or the bytes themselves where Accept asks for them */
	ANSWER_EVENTS, /* server-sent events */
	ANSWER_EITHER, /* JSON, or events where Accept asks for them */
	ANSWER_TEXT,
};

struct route {
	const char *method; /* NULL ends the table */
	const char *path;   /* "/v1/sandboxes/{name}/exec" */
	void (*run)(struct request *request);
	const struct field *fields; /* of the body */
	enum route_body body;
	enum route_answer answer;
	unsigned status;     /* when it worked; 0: 200 */
	const char *schema;  /* of the answer, by name */
	const char *name;    /* operationId */
	const char *summary; /* a sentence */
	const void *call;    /* of the handler's own */
};

extern const struct route routes[];

/* Finds the route and fills in `segments`. 0, or the status of a problem: 404, 405. HEAD finds GET.
 */
unsigned routes_find(struct request *request);

/* "GET, HEAD, POST": the methods of a path, to at least 64 bytes. */
void routes_allowed(const char *target, char *ret_text, size_t size);

/* Percent-decoded text in the arena; NULL: no memory, a NUL, or not UTF-8. */
const char *routes_decode(struct arena *arena, const char *text, size_t size);

/* ---- what they lead to ----------------------------------------------------------------------- */

/* Each answers its request. http_sandboxes.c: */
void sandboxes_list(struct request *request);
void sandboxes_make(struct request *request);
void sandboxes_show(struct request *request);
void sandboxes_end(struct request *request);
void sandboxes_events(struct request *request);
extern const struct field sandboxes_fields[];

/* http_calls.c: those of the verbs that are one call and one answer; http_exec.c: exec. */
struct call;
void calls_run(struct request *request);
/* The same for a fork, which counts among the sandboxes of its token. */
void calls_fork(struct request *request);
void calls_read(struct request *request);
void calls_write(struct request *request);
void exec_run(struct request *request);
extern const struct call call_edit, call_glob, call_grep, call_stat, call_list, call_remove,
	call_move, call_mount, call_diff, call_commit, call_snapshot, call_fork, call_stats,
	call_ps, call_logs, call_wait, call_kill;
extern const struct field read_fields[], write_fields[], edit_fields[], glob_fields[],
	grep_fields[], path_fields[], remove_fields[], move_fields[], mount_fields[], diff_fields[],
	commit_fields[], snapshot_fields[], fork_fields[], empty_fields[], logs_fields[],
	wait_fields[], kill_fields[], exec_fields[];

/* http_records.c: */
void records_list(struct request *request);
void records_show(struct request *request);
void records_result(struct request *request);
void records_events(struct request *request);
void records_verify(struct request *request);
void records_diff(struct request *request);

/* http_openapi.c: */
void openapi_show(struct request *request);
void server_show(struct request *request);

/* http_page.c: is `target` a file of the page? It is answered then. */
bool page_answers(struct request *request);
