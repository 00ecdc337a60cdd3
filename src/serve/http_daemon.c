/*
 * The HTTP library's end; see http.h. A thread a connection, so that a call may simply wait.
 *
 * Bounds: connections, bytes of a header, seconds until a header is complete (and 60 for a body),
 * bytes of a body by what its Content-Length says, before one of them is read. A body without a
 * length is refused: it could only be bounded after it was sent.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "serve/http.h"
#include "serve/http_listen.h"
#include "serve/http_routes.h"
#include "serve/http_stream.h"

enum {
	CONNECTIONS = 512,
	HEADER_BYTES = 32 << 10,
	STACK_BYTES = 1 << 20,
	STRANGER_MS = 10000, /* until somebody unknown has sent a header */
	KNOWN_MS = 60000,    /* until the next header of somebody known */
	BODY_MS = 60000,
	IDLE_S = 75, /* the library's own clock for a line on which nothing moves */
};

/* ---- one request ----------------------------------------------------------------------------- */

/* The first that is heard of it: the target as it was sent. Never decoded by the library, so that
 * an encoded '/' or NUL cannot change what is asked for. */
static void *begin(void *data, const char *uri, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct request *request = calloc(1, sizeof *request);
	char *target, *query;

	if (!request)
		return NULL;
	request->server = data;
	request->connection = connection;
	request->peer = info ? info->socket_context : NULL;
	request->query = "";
	arena_init(&request->arena, REQUEST_ARENA);
	buf_init(&request->body, request->server->config->max_body_bytes + 1);
	target = arena_text(&request->arena, uri);
	query = target ? strchr(target, '?') : NULL;
	if (query) {
		*query = 0;
		request->query = query + 1;
	}
	request->target = target;
	return request;
}

static void finish(void *data, struct MHD_Connection *connection, void **context,
		   enum MHD_RequestTerminationCode why)
{
	struct server *server = data;
	struct request *request = *context;

	(void)connection;
	(void)why;
	*context = NULL;
	if (!request)
		return;
	stream_end(request->stream, request);
	if (request->is_counted)
		token_give(&server->tokens, &request->token->calls);
	if (request->peer)
		watch_expect(&server->watch, request->peer,
			     request->peer->is_known ? KNOWN_MS : STRANGER_MS);
	buf_done(&request->body);
	arena_done(&request->arena);
	free(request);
}

static bool is_type(const struct request *request, const char *type)
{
	const char *given = request_header(request, "Content-Type");
	size_t size = strlen(type);

	return given && strncasecmp(given, type, size) == 0 &&
	       (given[size] == 0 || strchr("; \t", given[size]));
}

/* Bytes of the body that were announced. False: answered. */
static bool check_length(struct request *request)
{
	const char *text = request_header(request, "Content-Length");
	uint64_t most =
		request->route->body == BODY_NONE ? 0 : request->server->config->max_body_bytes;
	uint64_t size = 0;

	if (request_header(request, "Transfer-Encoding")) {
		reply_problem(request, 411, "length", "send the body with a Content-Length");
		return false;
	}
	if (text && str_parse_u64(text, UINT64_MAX, &size) < 0) {
		reply_problem(request, 400, "invalid", "Content-Length is no number");
		return false;
	}
	if (size > most) {
		reply_problem(request, 413, "too_large", "a body has at most %llu bytes here",
			      (unsigned long long)most);
		return false;
	}
	if (size > 0 && !is_type(request, "application/json") &&
	    !(request->route->body == BODY_BYTES && is_type(request, "application/octet-stream"))) {
		reply_problem(request, 415, "media_type", "send %s",
			      request->route->body == BODY_BYTES
				      ? "application/json or application/octet-stream"
				      : "application/json");
		return false;
	}
	return true;
}

/* All that can be refused before a byte of the body is read. */
static bool check_header(struct request *request)
{
	unsigned status;

	if (!request->target) {
		reply_problem(request, 503, "enomem", "out of memory");
		return false;
	}
	if (!guard_reads(request) || page_answers(request) || !guard_passes(request, false))
		return false;
	status = routes_find(request);
	if (status == 404)
		reply_problem(request, 404, "no_route",
			      "there is nothing here; /v1/openapi.json lists what there is");
	else if (status)
		reply_problem(request, status, "method", "this path has other methods");
	return status == 0 && check_length(request);
}

static enum MHD_Result http_handle(void *data, struct MHD_Connection *connection, const char *url,
				   const char *method, const char *version, const char *upload,
				   size_t *upload_size, void **context)
{
	struct request *request = *context;
	struct server *server = data;

	(void)connection;
	(void)url;
	(void)version;
	if (!request || !request->peer)
		return MHD_NO;
	if (!request->has_begun) {
		request->has_begun = true;
		request->method = method;
		watch_expect(&server->watch, request->peer, BODY_MS);
		return check_header(request) ? MHD_YES : request->result;
	}
	if (*upload_size) {
		/* What was announced fits: more of it would be the library's mistake. */
		if (buf_add(&request->body, upload, *upload_size) < 0)
			return MHD_NO;
		*upload_size = 0;
		return MHD_YES;
	}
	watch_expect(&server->watch, request->peer, 0);
	request->route->run(request);
	return request->is_answered ? request->result : MHD_NO;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void connection_changed(void *data, struct MHD_Connection *connection, void **context,
			       enum MHD_ConnectionNotificationCode what)
{
	struct server *server = data;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = info ? watch_add(&server->watch, info->connect_fd) : NULL;
		if (*context)
			watch_expect(&server->watch, *context, STRANGER_MS);
	} else if (*context) {
		watch_remove(&server->watch, *context);
		*context = NULL;
	}
}

/* Texts stay as they were sent; see begin(). */
static size_t keep(void *data, struct MHD_Connection *connection, char *text)
{
	(void)data;
	(void)connection;
	return strlen(text);
}

/* What the library says of clients is theirs to know, not a log's. */
static void say_nothing(void *data, const char *format, va_list args)
{
	(void)data;
	(void)format;
	(void)args;
}

static int start(struct server *server, int listen_fd, struct csn_error *err)
{
	server->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
			MHD_USE_ITC,
		0, NULL, NULL, http_handle, server, MHD_OPTION_LISTEN_SOCKET, listen_fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_THREAD_STACK_SIZE,
		(size_t)STACK_BYTES, MHD_OPTION_URI_LOG_CALLBACK, begin, server,
		MHD_OPTION_NOTIFY_COMPLETED, finish, server, MHD_OPTION_NOTIFY_CONNECTION,
		connection_changed, server, MHD_OPTION_UNESCAPE_CALLBACK, keep, NULL,
		MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	if (!server->daemon)
		return csn_fail(err, -EIO, "serve", "the HTTP library does not start: %m");
	return 0;
}

/* ---- its life -------------------------------------------------------------------------------- */

/* Where to go, on stdout: a browser does not send what follows the '#', and a person can click it.
 */
static void announce(const struct server *server, const struct listener *listener,
		     const char *token)
{
	if (server->is_unix)
		printf("unix:%s\n", listener->path);
	else if (*token)
		printf("http://%s/#token=%s\n", listener->name, token);
	else
		printf("http://%s/\n", listener->name);
	fflush(stdout);
}

static int prepare_tokens(struct server *server, char *ret_token, struct csn_error *err)
{
	const char *path = server->config->token_file;

	*ret_token = 0;
	if (path)
		return tokens_read(&server->tokens, path, err);
	return tokens_make(&server->tokens, ret_token, err);
}

/* Until INT, TERM or HUP, which every thread blocks. */
static void await_end(const sigset_t *signals)
{
	int signal;

	while (sigwait(signals, &signal) == EINTR)
		;
}

static void stop(struct server *server)
{
	int fd = MHD_quiesce_daemon(server->daemon);

	watch_end(&server->watch);
	MHD_stop_daemon(server->daemon);
	fd_close(fd);
	boxes_done(&server->boxes);
}

int http_serve(struct server *server, struct csn_error *err)
{
	struct listener listener = { .fd = -1 };
	char token[TOKEN_HEX];
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	json_object_seed(0); /* once, before there are threads */
	r = prepare_tokens(server, token, err);
	if (r >= 0)
		r = listener_open(server->config->listen, &listener, err);
	if (r < 0)
		return r;
	server->is_unix = listener.path[0] != 0;
	server->port = listener.port;
	boxes_init(&server->boxes, &server->tokens, &server->config->base,
		   server->config->max_sandboxes);
	r = watch_start(&server->watch);
	r = r < 0 ? csn_fail(err, r, "serve", "cannot start a thread: %s", strerror(-r))
		  : start(server, listener.fd, err);
	if (r < 0) {
		listener_close(&listener);
		return r;
	}
	announce(server, &listener, token);
	explicit_bzero(token, sizeof token);
	await_end(&signals);
	listener_leave(&listener);
	stop(server);
	watch_done(&server->watch);
	return 0;
}
