/*
 * /v1/sandboxes: which there are, making one, ending one
 *
 * Those of `caisson up` are listed beside ours, as `caisson ps` does. A request may ask for more
 * wall than the server's policy gives and never for less: the monitor compares the decided plan
 * with the server's own (--within), so that no word of a request is interpreted here.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "client/look.h"
#include "serve/answer.h"
#include "serve/http_calls.h"
#include "serve/http_records.h"
#include "serve/http_routes.h"

enum { LOOKS_MAX = 1024, PATIENCE_MS = 450 };

#define AT(member) offsetof(struct box_wish, member)

const struct field sandboxes_fields[] = {
	{ "name", FIELD_TEXT, AT(name), .what = "letters, digits, -, _ and .; else one is made" },
	{ "tier", FIELD_TEXT, AT(tier), .what = "at least this wall" },
	{ "backend", FIELD_TEXT, AT(backend), .what = "exactly this wall" },
	{ "workspace", FIELD_TEXT, AT(workspace),
	  .what = "a folder of the host in the server's workspace; else all of it" },
	{ "mode", FIELD_TEXT, AT(mode), .what = "of the workspace: ro, rw or cow" },
	{ "network", FIELD_TEXT, AT(network), .what = "none or loopback" },
	{ "mounts", FIELD_TEXTS, AT(mounts), .max = BOX_LIST_MAX,
	  .what = "HOST:AT[:ro|rw], of what the server's own mounts lend" },
	{ "limits", FIELD_PAIRS, AT(limits), .max = BOX_LIST_MAX,
	  .what = "as in a policy's limits: {\"memory\": \"256MiB\"}" },
	{ "tags", FIELD_TEXTS, AT(tags), .max = BOX_LIST_MAX,
	  .what = "for the record and the policy's strict_when" },
	{ NULL },
};

/* ---- which there are ------------------------------------------------------------------------- */

/* `stats` is borrowed, NULL: it does not answer. */
static json_t *sandbox_json(const char *name, bool is_ours, const csn_stats_result *stats)
{
	const char *state = !stats ? "silent" : stats->commands ? "busy" : "idle";

	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", name, "state", state, "owner",
			 is_ours ? "server" : "user", "run_id",
			 answer_text(stats ? stats->sandbox_id : NULL), "stats",
			 stats ? answer_stats(stats) : json_null());
}

static void add_ours(struct boxes *boxes, json_t *list)
{
	size_t count = 0;
	struct box **all = boxes_hold(boxes, &count);

	for (size_t i = 0; i < count; i++) {
		csn_stats_result *stats = NULL;
		int r = csn_stats(all[i]->sandbox, NULL, &stats, NULL);

		if (r == -CSN_LOST)
			box_lost(boxes, all[i]);
		else
			json_array_append_new(list, sandbox_json(all[i]->name, true, stats));
		csn_free(stats);
		box_release(boxes, all[i]);
	}
	free(all);
}

/* Those whose lock is held. */
static size_t find_up(int place, struct look *looks)
{
	int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t count = 0;

	if (!dir)
		fd_close(fd);
	while (dir && count < LOOKS_MAX && (entry = readdir(dir))) {
		char *dot = strrchr(entry->d_name, '.');

		if (!dot || !str_is(dot, ".lock"))
			continue;
		*dot = 0;
		if (!place_is_name(entry->d_name) || !place_is_alive(place, entry->d_name))
			continue;
		memcpy(looks[count].name, entry->d_name, strlen(entry->d_name) + 1);
		count++;
	}
	if (dir)
		closedir(dir);
	return count;
}

static void add_up(json_t *list)
{
	_cleanup_fd_ int place = place_open(NULL);
	struct look *looks = place < 0 ? NULL : calloc(LOOKS_MAX, sizeof *looks);
	size_t count = looks ? find_up(place, looks) : 0;

	if (count)
		look_all(place, looks, count, PATIENCE_MS);
	for (size_t i = 0; i < count; i++) {
		if (looks[i].state != LOOK_GONE)
			json_array_append_new(list,
					      sandbox_json(looks[i].name, false, looks[i].stats));
		csn_free(looks[i].stats);
	}
	free(looks);
}

void sandboxes_list(struct request *request)
{
	json_t *list = json_array();

	add_ours(&request->server->boxes, list);
	add_up(list);
	reply_json(request, 200, json_pack("{s:o}", "sandboxes", list));
}

/* ---- one ------------------------------------------------------------------------------------- */

static void show(struct request *request, struct box *box, unsigned status)
{
	csn_stats_result *stats = NULL;
	csn_error err = { 0 };
	int r = csn_stats(box->sandbox, NULL, &stats, &err);

	if (r == -CSN_LOST)
		box_lost(&request->server->boxes, box);
	if (r < 0)
		reply_error(request, &err);
	else
		reply_json(request, status, sandbox_json(box->name, box->is_ours, stats));
	csn_free(stats);
}

/* A word beginning with '-' would be a flag where a value is expected: refused before it is one. */
static bool is_wish(struct request *request, const struct box_wish *wish)
{
	const char *const words[] = { wish->tier, wish->backend, wish->workspace, wish->network,
				      wish->mode };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i] && (words[i][0] == '-' || words[i][0] == 0)) {
			reply_problem(request, 400, "invalid", "\"%.40s\" is no value", words[i]);
			return false;
		}
	if (wish->mode && !str_is(wish->mode, "ro") && !str_is(wish->mode, "rw") &&
	    !str_is(wish->mode, "cow")) {
		reply_problem(request, 400, "invalid", "mode is ro, rw or cow");
		return false;
	}
	return true;
}

void sandboxes_make(struct request *request)
{
	struct boxes *boxes = &request->server->boxes;
	struct box_wish wish = { 0 };
	struct box *box = NULL;
	csn_error err = { 0 };
	int r;

	if (!calls_take(request, sandboxes_fields, &wish) || !is_wish(request, &wish))
		return;
	r = box_open(boxes, &wish, request->token, &box, &err);
	if (r == -CSN_EAGAIN)
		reply_problem(request, 429, "sandboxes", "%s", err.text);
	else if (r < 0)
		reply_error(request, &err);
	if (r < 0)
		return;
	show(request, box, 201);
	box_release(boxes, box);
}

/* The one that the request names, held; NULL: there is none, and that is answered. */
static struct box *named(struct request *request)
{
	struct box *box = NULL;
	csn_error err = { 0 };

	if (box_find(&request->server->boxes, request->segments[0], &box, &err) < 0)
		reply_error(request, &err);
	return box;
}

void sandboxes_show(struct request *request)
{
	struct box *box = named(request);

	if (!box)
		return;
	show(request, box, 200);
	box_release(&request->server->boxes, box);
}

void sandboxes_end(struct request *request)
{
	struct boxes *boxes = &request->server->boxes;
	struct box *box = named(request);

	if (!box)
		return;
	if (!box->is_ours) {
		box_release(boxes, box);
		reply_problem(request, 403, "eperm",
			      "it was made by `caisson up`: end it with `caisson down`");
		return;
	}
	box_end(boxes, box);
	reply_nothing(request);
}

void sandboxes_events(struct request *request)
{
	struct box *box = named(request);
	csn_stats_result *stats = NULL;
	csn_error err = { 0 };
	int r;

	if (!box)
		return;
	r = csn_stats(box->sandbox, NULL, &stats, &err);
	box_release(&request->server->boxes, box);
	if (r < 0)
		reply_error(request, &err);
	else
		records_follow(request, stats->sandbox_id);
	csn_free(stats);
}
