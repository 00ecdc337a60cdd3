/*
 * Routes; see http_routes.h. A path is compared as it was sent, segment by segment: only what
 * stands for a {name} is decoded, so that an encoded '/' is part of a name and leads nowhere.
 */
#include "serve/http_routes.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define SANDBOX "/v1/sandboxes/{name}"
#define RUN "/v1/runs/{id}"

/* One call of a verb with a JSON body and a JSON answer. */
#define VERB(verb, fields_, schema_, says)                                                         \
	{                                                                                          \
		"POST", SANDBOX "/" #verb, calls_run, fields_, BODY_JSON, ANSWER_JSON, 0, schema_, \
			#verb, says, &call_##verb                                                  \
	}

const struct route routes[] = {
	{ "GET", "/v1", server_show, NULL, BODY_NONE, ANSWER_JSON, 0, "Server", "server",
	  "What this server is, and its limits." },
	{ "GET", "/v1/openapi.json", openapi_show, NULL, BODY_NONE, ANSWER_JSON, 0, NULL, "openapi",
	  "This document." },
	{ "GET", "/v1/sandboxes", sandboxes_list, NULL, BODY_NONE, ANSWER_JSON, 0, "Sandboxes",
	  "sandboxes", "The sandboxes of this server, and those of `caisson up`." },
	{ "POST", "/v1/sandboxes", sandboxes_make, sandboxes_fields, BODY_JSON, ANSWER_JSON, 201,
	  "Sandbox", "open",
	  "Makes a sandbox, no wider than the server's policy. It ends by DELETE, by its idle "
	  "clock, or with the server." },
	{ "GET", SANDBOX, sandboxes_show, NULL, BODY_NONE, ANSWER_JSON, 0, "Sandbox", "show",
	  "What a sandbox is and uses, now." },
	{ "DELETE", SANDBOX, sandboxes_end, NULL, BODY_NONE, ANSWER_NOTHING, 204, NULL, "close",
	  "Ends a sandbox that was made here, with all that runs in it." },
	{ "GET", SANDBOX "/events", sandboxes_events, NULL, BODY_NONE, ANSWER_EVENTS, 0, NULL,
	  "sandboxEvents", "The events of its record, as they come; see those of a run." },
	{ "POST", SANDBOX "/exec", exec_run, exec_fields, BODY_JSON, ANSWER_EITHER, 0, "Exec",
	  "exec",
	  "Runs a command and waits for its end; with `Accept: text/event-stream` its output "
	  "comes as it is written. A client that leaves takes its command along." },
	{ "POST", SANDBOX "/read", calls_read, read_fields, BODY_JSON, ANSWER_BYTES, 0, "Read",
	  "read",
	  "Reads a file; with `Accept: application/octet-stream` its bytes and nothing else." },
	{ "POST", SANDBOX "/write", calls_write, write_fields, BODY_BYTES, ANSWER_NOTHING, 204,
	  NULL, "write",
	  "Replaces a file, whole or not at all; as application/octet-stream the body is the "
	  "content, and `path` and `mode` stand in the query." },
	VERB(edit, edit_fields, "Edit",
	     "Replaces a text that occurs exactly once, else counts it."),
	VERB(glob, glob_fields, "Glob", "Lists paths that match a pattern."),
	VERB(grep, grep_fields, "Grep", "Finds lines."),
	VERB(stat, path_fields, "Stat", "Says what a path is."),
	VERB(list, path_fields, "List", "Lists a folder."),
	VERB(remove, remove_fields, "Done", "Removes a file, a link or a folder."),
	VERB(move, move_fields, "Done", "Gives a path another name."),
	VERB(mount, mount_fields, "Done",
	     "Lends one more path of the host, from beneath the policy's mount_roots."),
	VERB(diff, diff_fields, "Diff", "Lists what a copy-on-write workspace changed."),
	VERB(commit, commit_fields, "Commit", "Writes those changes to the workspace."),
	VERB(snapshot, snapshot_fields, "Copied", "Keeps those changes under a tag."),
	{ "POST", SANDBOX "/fork", calls_fork, fork_fields, BODY_JSON, ANSWER_JSON, 0, "Copied",
	  "fork",
	  "Starts another sandbox with those changes; it has no owner, as one of `caisson up`, and "
	  "counts among the token's while it lives.",
	  &call_fork },
	VERB(stats, empty_fields, "Stats", "Says what it is and uses."),
	VERB(ps, empty_fields, "Commands", "Lists its commands."),
	VERB(logs, logs_fields, "Logs", "The output of a detached command."),
	VERB(wait, wait_fields, "Wait",
	     "Waits for a detached command: its end, a port, a line of its output."),
	VERB(kill, kill_fields, "Done", "Signals a detached command, or ends it."),
	{ "GET", "/v1/runs", records_list, NULL, BODY_NONE, ANSWER_JSON, 0, "Runs", "runs",
	  "The records, newest first; ?limit= (50) and ?before=ID." },
	{ "GET", RUN, records_show, NULL, BODY_NONE, ANSWER_JSON, 0, "Run", "run",
	  "One record: its state and, when it is over, its result." },
	{ "GET", RUN "/result", records_result, NULL, BODY_NONE, ANSWER_JSON, 0, "Result", "result",
	  "result.json, as it was written." },
	{ "GET", RUN "/events", records_events, NULL, BODY_NONE, ANSWER_EVENTS, 0, NULL, "events",
	  "Its events, and those to come while it runs. The id of each is its number in the hash "
	  "chain: Last-Event-ID goes on after it." },
	{ "GET", RUN "/verify", records_verify, NULL, BODY_NONE, ANSWER_JSON, 0, "Verdict",
	  "verify", "Recomputes the chain, the manifest and the head." },
	{ "GET", RUN "/diff", records_diff, NULL, BODY_NONE, ANSWER_TEXT, 0, NULL, "runDiff",
	  "What a run changed in its copy-on-write workspace, as patch(1) reads it." },
	{ NULL },
};

/* A part of a path. */
struct span {
	const char *at;
	size_t size;
};

/* ---- paths ----------------------------------------------------------------------------------- */

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const char *routes_decode(struct arena *arena, const char *text, size_t size)
{
	char *decoded = arena_alloc(arena, size + 1);
	size_t length = 0;

	if (!decoded)
		return NULL;
	for (size_t i = 0; i < size; i++) {
		int high, low;

		decoded[length] = text[i];
		if (text[i] == '%') {
			high = i + 2 < size ? digit(text[i + 1]) : -1;
			low = high >= 0 ? digit(text[i + 2]) : -1;
			if (low < 0)
				return NULL;
			decoded[length] = (char)(high << 4 | low);
			i += 2;
		}
		length++;
	}
	decoded[length] = 0;
	return str_is_utf8(decoded, length) && !memchr(decoded, 0, length) ? decoded : NULL;
}

/* Does a path, as it was sent, have this form? What stands for {…} goes to `segments`, not decoded;
 * how many there are to `ret_count`. */
static bool fits(const char *form, const char *path, struct span *segments, size_t *ret_count)
{
	size_t count = 0;

	while (*form) {
		size_t length = strcspn(path, "/");

		if (*form != '{') {
			if (*form++ != *path++)
				return false;
			continue;
		}
		if (length == 0 || count == REQUEST_SEGMENTS)
			return false;
		segments[count++] = (struct span){ path, length };
		path += length;
		form += strcspn(form, "}") + 1;
	}
	*ret_count = count;
	return *path == 0;
}

/* HEAD is GET without the body, which the HTTP library leaves out. */
static bool is_method(const char *method, const char *of_route)
{
	return str_is(method, of_route) || (str_is(method, "HEAD") && str_is(of_route, "GET"));
}

void routes_allowed(const char *target, char *ret_text, size_t size)
{
	struct span segments[REQUEST_SEGMENTS];
	size_t count, used = 0;

	*ret_text = 0;
	for (const struct route *route = routes; route->method; route++) {
		bool is_get = str_is(route->method, "GET");

		if (!target || !fits(route->path, target, segments, &count) || used + 16 > size)
			continue;
		used += (size_t)snprintf(ret_text + used, size - used, "%s%s%s", used ? ", " : "",
					 route->method, is_get ? ", HEAD" : "");
	}
}

unsigned routes_find(struct request *request)
{
	struct span segments[REQUEST_SEGMENTS];
	unsigned status = 404;
	size_t count = 0;

	for (const struct route *route = routes; route->method; route++) {
		if (!fits(route->path, request->target, segments, &count))
			continue;
		status = 405;
		if (!is_method(request->method, route->method))
			continue;
		request->route = route;
		for (size_t i = 0; i < count; i++) {
			request->segments[i] =
				routes_decode(&request->arena, segments[i].at, segments[i].size);
			if (!request->segments[i])
				return 404;
		}
		return 0;
	}
	return status;
}
