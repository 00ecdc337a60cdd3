/*
 * http - `caisson serve`: the verbs of a sandbox over HTTP
 *
 *   socket ── MHD, a thread a connection ── guard ── routes ── fields ── libcaisson ── monitors
 *                        │                                                    ▲
 *                        └── watch: a client that leaves ── cancels ──────────┘
 *
 * A program of its own (caisson-serve): it has threads and a library that the command must not
 * have. Its authority is its caller's. Whoever holds a token, or for a Unix socket the caller's
 * user id, may ask for sandboxes no wider than the policy that it was started with; a page of
 * another origin, another user of the machine and whoever knows the port only may not.
 *
 * A sandbox made here ends by DELETE, by its idle clock, or with this process, however that ends:
 * the monitor's stream is ours. Everything from the network is hostile until the guard let it
 * pass, and bounded afterwards; everything from inside a wall is hostile for ever.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>
#include <microhttpd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "caisson.h"
#include "serve/http_box.h"
#include "serve/http_token.h"
#include "serve/http_watch.h"

/* What the command line says; borrowed texts. */
struct http_config {
	const char *listen;       /* "127.0.0.1:4647", "[::1]:0", "unix:PATH" */
	const char *token_file;   /* NULL: a token is made and printed */
	const char *const *hosts; /* names that a Host header may have, beside addresses; or NULL */
	const char *run_root;     /* where records are */
	uint64_t max_sandboxes;   /* of a token, at once */
	uint64_t max_calls;       /* of a token, at once */
	uint64_t max_body_bytes;  /* of a request */
	uint64_t max_rate;        /* requests of a token a second */
	struct box_base base;     /* what each sandbox is made from */
};

struct server {
	const struct http_config *config;
	struct MHD_Daemon *daemon;
	struct tokens tokens;
	struct boxes boxes;
	struct watch watch;
	bool is_unix;  /* who connects has our user id, and needs no token */
	uint16_t port; /* that it listens on; 0: a Unix socket */
};

struct route;
struct stream;

enum { REQUEST_SEGMENTS = 4, REQUEST_ARENA = 96 << 20 };

/* One request, from its first line to its answer. Belongs to its connection's thread. */
struct request {
	struct server *server;
	struct MHD_Connection *connection;
	struct peer *peer;
	struct arena arena; /* of all that is decoded for it */
	const char *method;
	const char *target; /* as it was sent, in the arena; NULL: not to be had */
	const char *query;  /* what follows the '?', "" if nothing does */
	const struct route *route;
	const char *segments[REQUEST_SEGMENTS]; /* what stands for {name}, decoded */
	struct token *token;                    /* who asks; NULL before the guard, and for pages */
	struct buf body;
	struct stream *stream;  /* of an answer that goes on, owned */
	bool has_begun;         /* its header was looked at */
	bool is_refused;        /* … and answered */
	bool is_counted;        /* among its token's calls */
	bool is_last;           /* what follows it on its connection is not to be read */
	enum MHD_Result result; /* of the answer that was queued */
	bool is_answered;
};

/* ---- answers (http_reply.c); each ends the request, and must be the only one ---------------- */

/* Takes `value`; NULL (no memory) is told as a problem. */
void reply_json(struct request *request, unsigned status, json_t *value);
/* A copy of the bytes. */
void reply_bytes(struct request *request, const char *type, const void *data, size_t size);
/* 204. */
void reply_nothing(struct request *request);
/* Takes a response of its own making, with the headers that all have added. */
void reply_response(struct request *request, unsigned status, struct MHD_Response *response);

/* RFC 9457: `code` is a word for programs ("enoent"), the rest a sentence for people. */
__attribute__((format(printf, 4, 5))) void reply_problem(struct request *request, unsigned status,
							 const char *code, const char *format, ...);
/* What a call of libcaisson said, under the status that fits its code. */
void reply_error(struct request *request, const csn_error *err);
/* What a room below said. */
void reply_failure(struct request *request, const struct csn_error *err);

/* A header of the request, NULL: it has none. Borrowed. */
const char *request_header(const struct request *request, const char *name);
/* Does the Accept header name this type itself? A list with wildcards alone does not. */
bool request_accepts(const struct request *request, const char *type);
/* The value of ?name=, percent-decoded, in the request's arena; NULL: none, or one that is no text.
 */
const char *request_query(struct request *request, const char *name);
/* The body as an object, to be released; NULL: it is none, and that was answered. */
json_t *request_json(struct request *request);

/* ---- parts ---------------------------------------------------------------------------------- */

/* http_guard.c: is its header one that every program reads as the library does? If not, it is
 * answered, and its connection ends. */
bool guard_reads(struct request *request);

/* May this request be looked at? If not, it is answered. `is_page`: a static file,
 * which needs no token. */
bool guard_passes(struct request *request, bool is_page);

/* http_daemon.c: listens until a signal asks for the end. 0, or negative with a sentence. */
int http_serve(struct server *server, struct csn_error *err);
