/*
 * Who may ask; see http.h
 *
 * - DNS rebinding: a page of evil.example whose name suddenly means 127.0.0.1 is of our origin to
 *   the browser, but it sends its own name. So Host must be a literal address, localhost, or a name
 *   that the server was started with.
 * - Another origin's page can send simple requests, if not read the answers. Browsers say where
 *   from (Origin, Sec-Fetch-Site); what is not from here is refused, preflights included. Also a
 *   token travels in a header only, never in a cookie: no browser adds it by itself.
 * - A proxy in front may find another end of a request than we do, and pass what follows as a
 *   request of somebody else. So a header with two lengths, two hosts or a name that is none is
 *   refused, and nothing more is read of its connection.
 * - Another user of this machine reaches a loopback port too: so a token is needed there. Who
 *   connects to a Unix socket is asked of the kernel instead.
 * tests/serve/test_serve_guard.py
 */
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "serve/http.h"

enum { HOST_MAX = 256, KNOWN_MS = 60000 };

/* ---- its form -------------------------------------------------------------------------------- */

/* Two of one of these would be two meanings. */
static const char *const single[] = { "Host",          "Content-Length", "Transfer-Encoding",
				      "Authorization", "Content-Type",   "Origin" };

struct form {
	unsigned counts[ARRAY_SIZE(single)];
	bool is_bad;
};

/* RFC 9110, 5.6.2: what a name may have. "Content-Length " is another header to us, and none to
 * others. */
static bool is_field_name(const char *name)
{
	static const char signs[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return *name && name[strspn(name, signs)] == 0;
}

static enum MHD_Result look_at(void *data, enum MHD_ValueKind kind, const char *name,
			       const char *value)
{
	struct form *form = data;

	(void)kind;
	form->is_bad |= !is_field_name(name) || !value;
	for (size_t i = 0; i < ARRAY_SIZE(single); i++)
		if (strcasecmp(name, single[i]) == 0)
			form->is_bad |= form->counts[i]++ > 0;
	return MHD_YES;
}

bool guard_reads(struct request *request)
{
	struct form form = { .is_bad = false };

	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, look_at, &form);
	if (!form.is_bad)
		return true;
	request->is_last = true;
	reply_problem(request, 400, "invalid",
		      "the header has two of a kind, or a name that is no name");
	return false;
}

/* ---- who ------------------------------------------------------------------------------------- */

/* What may follow a name: nothing, or a port. */
static bool is_port(const char *text)
{
	uint64_t port;

	return *text == 0 || (*text == ':' && str_parse_u64(text + 1, UINT16_MAX, &port) == 0);
}

/* "[::1]:80", "localhost:80", "127.0.0.1": the name without its port. False: it is none. */
static bool cut_port(const char *host, char *ret_name)
{
	bool is_bracketed = *host == '[';
	size_t size = strcspn(host += is_bracketed, is_bracketed ? "]" : ":");

	if (size == 0 || size >= HOST_MAX || (is_bracketed && host[size] != ']') ||
	    !is_port(host + size + is_bracketed))
		return false;
	memcpy(ret_name, host, size);
	ret_name[size] = 0;
	return true;
}

static bool is_our_name(const struct server *server, const char *host)
{
	const char *const *names = server->config->hosts;
	struct in6_addr address;
	char name[HOST_MAX];

	if (!cut_port(host, name))
		return false;
	if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1 ||
	    strcasecmp(name, "localhost") == 0)
		return true;
	for (; names && *names; names++)
		if (strcasecmp(*names, name) == 0)
			return true;
	return false;
}

/* "http://HOST" is the page that we gave; "null" and all else is somebody's. */
static bool is_our_origin(const char *origin, const char *host)
{
	return strncasecmp(origin, "http://", 7) == 0 && strcasecmp(origin + 7, host) == 0;
}

static bool is_from_here(struct request *request)
{
	const char *host = request_header(request, "Host");
	const char *origin = request_header(request, "Origin");
	const char *site = request_header(request, "Sec-Fetch-Site");

	if (!host || !is_our_name(request->server, host)) {
		reply_problem(request, 421, "misdirected",
			      "this server does not answer to that name; use its address or "
			      "localhost, or start it with --host-name");
		return false;
	}
	if ((origin && !is_our_origin(origin, host)) ||
	    (site && !str_is(site, "same-origin") && !str_is(site, "none"))) {
		reply_problem(request, 403, "cross_origin",
			      "a page of another origin may not use this server");
		return false;
	}
	return true;
}

/* Of the process that connected, as it was then. */
static bool is_our_user(const struct request *request)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(request->peer->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       size == sizeof peer && peer.uid == geteuid();
}

static struct token *find_token(struct request *request)
{
	const char *text = request_header(request, "Authorization");

	if (!text || strncasecmp(text, "Bearer ", 7) != 0)
		return NULL;
	return tokens_find(&request->server->tokens, text + 7 + strspn(text + 7, " "));
}

static bool has_right(struct request *request)
{
	struct server *server = request->server;

	if (server->is_unix && !is_our_user(request)) {
		reply_problem(request, 403, "eperm", "this socket is another user's");
		return false;
	}
	request->token = server->is_unix ? &server->tokens.items[0] : find_token(request);
	if (!request->token) {
		reply_problem(request, 401, "unauthorized",
			      "send the server's token as `Authorization: Bearer TOKEN`");
		return false;
	}
	if (!request->peer->is_known) /* written by this thread alone */
		watch_know(&server->watch, request->peer);
	return true;
}

bool guard_passes(struct request *request, bool is_page)
{
	struct server *server = request->server;

	if (!is_from_here(request))
		return false;
	if (is_page)
		return true;
	if (!has_right(request))
		return false;
	if (!token_may_ask(&server->tokens, request->token, server->config->max_rate)) {
		reply_problem(request, 429, "rate", "more than %llu requests in a second",
			      (unsigned long long)server->config->max_rate);
		return false;
	}
	if (!token_take(&server->tokens, &request->token->calls, server->config->max_calls)) {
		reply_problem(request, 429, "calls", "%llu calls run already, which is the limit",
			      (unsigned long long)server->config->max_calls);
		return false;
	}
	request->is_counted = true;
	return true;
}
