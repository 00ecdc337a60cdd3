/*
 * From a call's map to the request that the host's function is given. The map was checked against
 * the verb's table: a text has a NUL where it ends and none before, a path is not empty.
 */
#include <string.h>

#include "base/str.h"
#include "client/answer.h"

enum { DEFAULT_LIMIT = 1000, LIST_MAX = 10000 };

/* A call on its way to the host. */
struct request {
	const csn_wall *host;
	const struct term *map;
	struct arena *arena;
	csn_answer *answer;
};

/* ---- values ---------------------------------------------------------------------------------- */

static const char *text_of(const struct request *request, const char *key)
{
	const struct term *term = term_get(request->map, key);

	return term ? (const char *)term->bytes.data : NULL;
}

static uint64_t number_of(const struct request *request, const char *key, uint64_t otherwise)
{
	const struct term *term = term_get(request->map, key);

	return term ? (uint64_t)term->integer : otherwise;
}

static bool is_true(const struct request *request, const char *key)
{
	const struct term *term = term_get(request->map, key);

	return term && term_is_atom(term, "true");
}

/* NULL: absent, or no memory, which `ret_r` says. */
static const char *const *list_of(const struct request *request, const char *key, int *ret_r)
{
	const struct term *list = term_get(request->map, key);
	const char **texts =
		list ? arena_array(request->arena, list->count + 1, sizeof *texts) : NULL;

	if (list && !texts)
		*ret_r = -CSN_ENOMEM;
	for (size_t i = 0; texts && i < list->count; i++)
		texts[i] = (const char *)list->items[i].bytes.data;
	return texts;
}

static const char *const *pairs_of(const struct request *request, const char *key, int *ret_r)
{
	const struct term *map = term_get(request->map, key);
	size_t count = map ? map->count / 2 : 0;
	const char **texts = map ? arena_array(request->arena, count + 1, sizeof *texts) : NULL;

	if (map && !texts)
		*ret_r = -CSN_ENOMEM;
	for (size_t i = 0; texts && i < count; i++) {
		texts[i] = arena_printf(request->arena, "%s=%s",
					(const char *)map->items[2 * i].bytes.data,
					(const char *)map->items[2 * i + 1].bytes.data);
		if (!texts[i])
			*ret_r = -CSN_ENOMEM;
	}
	return texts;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

/* Nothing of a file that is there is an answer too: the host is asked for a byte, and none goes. */
static int do_read(const struct request *request)
{
	csn_read_request it = { .path = text_of(request, "path"),
				.offset = number_of(request, "offset", 0),
				.length = number_of(request, "length", UINT64_MAX) };

	request->answer->most = it.length;
	it.length = it.length ? it.length : 1;
	return request->host->read(request->host->data, &it, request->answer);
}

static int do_write(const struct request *request)
{
	csn_write_request it = { .path = text_of(request, "path"),
				 .mode = (uint16_t)number_of(request, "mode", 0) };
	const struct term *bytes = term_get(request->map, "bytes");
	struct wall_call *call = request->answer->call;

	if (!bytes == !is_true(request, "stdin"))
		return csn_answer_fail(request->answer, CSN_EINVAL,
				       "write takes bytes or stdin, one of the two");
	if (bytes) {
		request->answer->is_bytes = call->is_input_over = true;
		if (bytes->bytes.size > 0 &&
		    buf_add(&call->input, bytes->bytes.data, bytes->bytes.size) < 0)
			return -CSN_ENOMEM;
	}
	return request->host->write(request->host->data, &it, request->answer);
}

static int do_edit(const struct request *request)
{
	const struct term *old = term_get(request->map, "old");
	const struct term *new = term_get(request->map, "new");
	csn_edit_request it = { .path = text_of(request, "path"),
				.old_text = old->bytes.data,
				.old_size = old->bytes.size,
				.new_text = new->bytes.data,
				.new_size = new->bytes.size };

	return request->host->edit(request->host->data, &it, request->answer);
}

static int do_exec(const struct request *request)
{
	int r = 0;
	csn_exec_request it = { .argv = list_of(request, "argv", &r),
				.command = text_of(request, "command"),
				.cwd = text_of(request, "cwd"),
				.env = pairs_of(request, "env", &r),
				.has_tty = is_true(request, "tty"),
				.rows = (uint16_t)number_of(request, "rows", 0),
				.columns = (uint16_t)number_of(request, "cols", 0),
				.tag = text_of(request, "tag") };

	if (r < 0)
		return r;
	if (is_true(request, "detach"))
		return csn_answer_fail(request->answer, CSN_NOT_SUPPORTED,
				       "a wall of a program's own detaches nothing");
	if (!it.argv == !it.command || (it.argv && !it.argv[0]))
		return csn_answer_fail(request->answer, CSN_EINVAL,
				       "exec takes argv or command, one of the two");
	if (!is_true(request, "stdin"))
		request->answer->call->is_input_over = true;
	return request->host->exec(request->host->data, &it, request->answer);
}

static csn_path_request path_of(const struct request *request)
{
	return (csn_path_request){ .path = text_of(request, "path"),
				   .recursive = is_true(request, "recursive") };
}

static int do_stat(const struct request *request)
{
	csn_path_request it = path_of(request);

	return request->host->stat(request->host->data, &it, request->answer);
}

static int do_list(const struct request *request)
{
	csn_path_request it = path_of(request);

	request->answer->most = LIST_MAX;
	return request->host->list(request->host->data, &it, request->answer);
}

static int do_remove(const struct request *request)
{
	csn_path_request it = path_of(request);

	return request->host->remove(request->host->data, &it, request->answer);
}

static int do_move(const struct request *request)
{
	csn_move_request it = { .path = text_of(request, "path"), .to = text_of(request, "to") };

	return request->host->move(request->host->data, &it, request->answer);
}

static int do_glob(const struct request *request)
{
	csn_glob_request it = { .pattern = text_of(request, "pattern"),
				.cwd = text_of(request, "cwd") };

	it.limit = (uint32_t)number_of(request, "limit", DEFAULT_LIMIT);
	request->answer->most = it.limit;
	return request->host->glob(request->host->data, &it, request->answer);
}

static int do_grep(const struct request *request)
{
	const struct term *sensitive = term_get(request->map, "case_sensitive");
	csn_grep_request it = { .pattern = text_of(request, "pattern"),
				.path = text_of(request, "path"),
				.glob = text_of(request, "glob"),
				.context = (uint32_t)number_of(request, "context", 0) };

	it.ignore_case = sensitive && term_is_atom(sensitive, "false");
	it.limit = (uint32_t)number_of(request, "limit", DEFAULT_LIMIT);
	request->answer->most = LIST_MAX; /* context lines are matches too */
	return request->host->grep(request->host->data, &it, request->answer);
}

static const struct row {
	const char *name;
	size_t at; /* of the host's function */
	int (*run)(const struct request *request);
} rows[] = {
	{ "read", offsetof(csn_wall, read), do_read },
	{ "write", offsetof(csn_wall, write), do_write },
	{ "edit", offsetof(csn_wall, edit), do_edit },
	{ "exec", offsetof(csn_wall, exec), do_exec },
	{ "stat", offsetof(csn_wall, stat), do_stat },
	{ "list", offsetof(csn_wall, list), do_list },
	{ "remove", offsetof(csn_wall, remove), do_remove },
	{ "move", offsetof(csn_wall, move), do_move },
	{ "glob", offsetof(csn_wall, glob), do_glob },
	{ "grep", offsetof(csn_wall, grep), do_grep },
};

static const struct row *find_row(const struct wall *wall, const struct frame_verb *verb)
{
	void (*function)(void);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!str_is(rows[i].name, verb->name))
			continue;
		memcpy(&function, (const char *)&wall->host + rows[i].at, sizeof function);
		return function ? &rows[i] : NULL;
	}
	return NULL;
}

bool wall_has(const struct wall *wall, const struct frame_verb *verb)
{
	return find_row(wall, verb) != NULL;
}

void wall_call(struct wall *wall, struct wall_call *call, const struct term *map,
	       struct arena *arena)
{
	csn_answer answer = { .wall = wall, .call = call };
	const struct request request = { &wall->host, map, arena, &answer };

	buf_init(&answer.kept, FRAME_PIECE);
	answer_end(&answer, find_row(wall, call->verb)->run(&request));
	buf_done(&answer.kept);
}
