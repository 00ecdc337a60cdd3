/*
 * The terms of a start. Whatever decides what runs has to be in here: what is not can be changed
 * between the yes and the start. The plan is in twice: part by part, so that a person reads it and
 * a difference has a name, and as a whole, so that a new key of a policy is never forgotten.
 */
#include "monitor/approval.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/env.h"
#include "monitor/toolchain.h"
#include "os/sys.h"
#include "policy/policy.h"

enum {
	PATH_ROOM = 4096,
	FILES_MAX = 256,
	FILE_BYTES_MAX = 64 << 20,
	ALL_BYTES_MAX = 256 << 20,
	PLAN_TEXT_MAX = 1 << 20,
	ARENA_QUOTA = 1 << 20,
	LINKS_MAX = 40, /* the kernel's own bound */
};

static const char stage[] = "approval";

struct maker {
	const struct run_setup *setup;
	const struct plan *plan;
	const struct backend *backend;
	const uint8_t *key;
	json_t *terms, *files;
	uint64_t left; /* bytes of files that are still read */
};

/* ---- values ---------------------------------------------------------------------------------- */

/* Arguments are bytes; what is no text has another type, so that no two look the same. */
static json_t *bytes_json(const char *bytes)
{
	static const char digits[] = "0123456789abcdef";
	_cleanup_buf_ struct buf hex;
	size_t size = strlen(bytes);

	buf_init(&hex, 2 * size + 1);
	if (str_is_utf8(bytes, size))
		return json_stringn(bytes, size);
	for (size_t i = 0; i < size; i++) {
		uint8_t byte = (uint8_t)bytes[i];

		if (buf_add_byte(&hex, (uint8_t)digits[byte >> 4]) < 0 ||
		    buf_add_byte(&hex, (uint8_t)digits[byte & 15]) < 0)
			return NULL;
	}
	return json_pack("{s:s%}", "hex", (const char *)buf_at(&hex), buf_size(&hex));
}

static json_t *list_json(const char *const *list)
{
	json_t *array = json_array();

	for (; list && *list; list++)
		json_array_append_new(array, bytes_json(*list));
	return array;
}

static json_t *bytes_or_null(const char *bytes)
{
	return bytes ? bytes_json(bytes) : json_null();
}

/* Under the key: a short secret cannot be found by trying, with the digest of the terms in hand. */
static json_t *keyed_json(const struct maker *maker, const void *data, size_t size)
{
	const struct sha_part parts[] = { { maker->key, APPROVAL_KEY }, { data, size } };
	char hex[SHA_HEX];

	sha_parts(parts, ARRAY_SIZE(parts), hex);
	return json_string(hex);
}

static json_t *limit_json(uint64_t value)
{
	return value == PLAN_UNLIMITED ? json_null() : json_integer((json_int_t)value);
}

static json_t *limits_json(const struct plan_limits *l)
{
	const struct {
		const char *key;
		uint64_t value;
	} rows[] = {
		{ "command_ms", l->command_ms }, { "budget_ms", l->budget_ms },
		{ "startup_ms", l->startup_ms }, { "idle_ms", l->idle_ms },
		{ "cpu_milli", l->cpu_milli },   { "mem_bytes", l->mem_bytes },
		{ "processes", l->processes },   { "output_bytes", l->output_bytes },
		{ "open_files", l->open_files }, { "scratch_bytes", l->scratch_bytes },
	};
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		json_object_set_new(object, rows[i].key, limit_json(rows[i].value));
	return object;
}

static json_t *lent_json(const char *host, const char *at, enum plan_access access)
{
	return json_pack("{s:o, s:o, s:s}", "host", bytes_json(host), "at", bytes_json(at), "mode",
			 plan_access_name(access));
}

static json_t *workspace_json(const struct plan_workspace *workspace)
{
	json_t *object = workspace->host
				 ? lent_json(workspace->host, workspace->at, workspace->access)
				 : json_null();

	if (workspace->host) {
		json_object_set_new(object, "hide",
				    list_json((const char *const *)workspace->hide));
		json_object_set_new(object, "protect",
				    list_json((const char *const *)workspace->protect));
	}
	return object;
}

static json_t *mounts_json(const struct plan *plan)
{
	json_t *array = json_array();

	for (size_t i = 0; i < plan->mount_count; i++)
		json_array_append_new(array, lent_json(plan->mounts[i].host, plan->mounts[i].at,
						       plan->mounts[i].access));
	return array;
}

/* Under its whole name. False where it is no text, or memory is short. */
static bool add_variable(const struct maker *maker, json_t *env, const char *item)
{
	size_t n = strcspn(item, "=");
	_cleanup_buf_ struct buf name;

	buf_init(&name, n + 1);
	return buf_add(&name, item, n) == 0 &&
	       json_object_set_new(env, buf_text(&name), keyed_json(maker, item, strlen(item))) ==
		       0;
}

/* What the plan passes and the caller has, as env_make() takes it, and what it sets. */
static json_t *env_json(const struct maker *maker)
{
	const char *const *caller = maker->setup->caller_env;
	json_t *env = json_object();
	bool is_whole = env;

	for (const char *const *name = maker->plan->env_pass; is_whole && name && *name; name++) {
		const char *item = env_find(caller, *name);

		is_whole = !item || add_variable(maker, env, item);
	}
	for (const char **item = maker->plan->env_set; is_whole && item && *item; item++)
		is_whole = add_variable(maker, env, *item);
	if (is_whole)
		return env;
	json_decref(env);
	return NULL; /* no terms without it */
}

/* ---- files that the command names ------------------------------------------------------------ */

/* What is lent, and where it is inside. */
struct place {
	const char *host, *at;
};

/* The deeper of two covers the other; of two as deep, what is mounted last. */
static void cover(struct place *place, const char *path, const char *host, const char *at)
{
	if (at && path_is_beneath(path, at) && (!place->at || strlen(at) >= strlen(place->at)))
		*place = (struct place){ host, at };
}

/*
 * Where a path inside lies, in the order in which walls mount; host NULL: in nothing that is lent.
 * Without a view of its own a wall mounts nothing.
 */
static struct place find_place(const struct maker *maker, const char *path)
{
	const struct plan *plan = maker->plan;
	const struct plan_workspace *workspace = &plan->workspace;
	bool has_view = maker->backend->has_view;
	struct place place = { NULL, NULL };

	cover(&place, path, NULL, has_view ? "/tmp" : NULL);
	cover(&place, path, NULL, has_view ? plan->scratch_at : NULL);
	if (workspace->host)
		cover(&place, path, workspace->host, has_view ? workspace->at : workspace->host);
	for (size_t i = 0; i < plan->mount_count; i++)
		cover(&place, path, plan->mounts[i].host,
		      has_view ? plan->mounts[i].at : plan->mounts[i].host);
	return place;
}

static json_t *digest_json(struct maker *maker, int fd, uint64_t size)
{
	uint64_t most = maker->left < FILE_BYTES_MAX ? maker->left : FILE_BYTES_MAX;
	char hex[SHA_HEX];

	if (size > most || sha_fd(fd, most, &size, hex) < 0)
		return json_pack("{s:s, s:I}", "unbound", "too large, or unreadable", "size",
				 (json_int_t)size);
	maker->left -= size;
	return json_pack("{s:s, s:I}", "sha256", hex, "size", (json_int_t)size);
}

/* A link may lead to where something else is mounted inside: that is another file there. */
static bool is_still_in(const struct maker *maker, const struct place *place, int handle)
{
	char self[32], real[PATH_ROOM], inside[PATH_ROOM];
	ssize_t n;

	snprintf(self, sizeof self, "/proc/self/fd/%d", handle);
	n = readlink(self, real, sizeof real - 1);
	if (n < 0)
		return false;
	real[n] = 0;
	return path_is_beneath(real, place->host) &&
	       snprintf(inside, sizeof inside, "%s/%s", place->at, path_tail(real, place->host)) <
		       (int)sizeof inside &&
	       find_place(maker, inside).at == place->at;
}

/* To read; opening what is no regular file could do something. */
static int open_regular(int handle)
{
	char self[32];
	int fd;

	snprintf(self, sizeof self, "/proc/self/fd/%d", handle);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The way of a path through what is lent, one component at a time. */
struct way {
	char rest[PATH_ROOM], at[PATH_ROOM]; /* left; what was walked, inside, without links */
	int fd;
	unsigned links;
};

static int way_up(struct way *way, const struct place *place)
{
	int fd = str_is(way->at, place->at) ? -1 : openat(way->fd, "..", O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -EXDEV;
	*strrchr(way->at, '/') = 0;
	fd_close(way->fd);
	way->fd = fd;
	return 0;
}

/* A link in front of what is left. */
static int way_by_link(struct way *way, int link_fd)
{
	char target[PATH_ROOM], rest[PATH_ROOM];
	ssize_t n = readlinkat(link_fd, "", target, sizeof target - 1);

	if (n <= 0 || ++way->links > LINKS_MAX)
		return -ELOOP;
	target[n] = 0;
	if (target[0] == '/')
		return -EXDEV;
	n = snprintf(rest, sizeof rest, "%s/%s", target, way->rest);
	if (n >= (int)sizeof rest)
		return -ENAMETOOLONG;
	memcpy(way->rest, rest, (size_t)n + 1);
	return 0;
}

static int way_down(struct way *way, const char *name)
{
	_cleanup_fd_ int fd = openat(way->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	size_t n = strlen(way->at);
	struct stat st;
	int added;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return way_by_link(way, fd);
	added = snprintf(way->at + n, sizeof way->at - n, "/%s", name);
	if (added < 0 || (size_t)added >= sizeof way->at - n)
		return -ENAMETOOLONG;
	fd_close(way->fd);
	way->fd = fd_take(&fd);
	return 0;
}

/*
 * Does the way stay in this one? What stands here where something else is mounted inside, a link
 * perhaps, is not what stands there: a path that only passes through it may be another file, too.
 */
static int check_way(const struct maker *maker, const struct place *place, const char *tail)
{
	struct way way = { .fd = open(place->host, O_PATH | O_CLOEXEC) };
	int n = snprintf(way.rest, sizeof way.rest, "%s", tail), r = way.fd < 0 ? -errno : 0;

	if (n >= (int)sizeof way.rest ||
	    snprintf(way.at, sizeof way.at, "%s", place->at) >= (int)sizeof way.at)
		r = -ENAMETOOLONG;
	while (r == 0 && way.rest[0]) {
		char name[PATH_ROOM];
		size_t size = strcspn(way.rest, "/"), skip = size + (way.rest[size] == '/');

		memcpy(name, way.rest, size);
		name[size] = 0;
		memmove(way.rest, way.rest + skip, strlen(way.rest + skip) + 1);
		if (!size || str_is(name, "."))
			continue;
		r = str_is(name, "..") ? way_up(&way, place) : way_down(&way, name);
		if (r == 0 && find_place(maker, way.at).at != place->at)
			r = -EXDEV;
	}
	fd_close(way.fd);
	return r;
}

/*
 * Links and ".." are followed as the kernel does it inside, within what is lent: `tail` is what was
 * typed. An absolute link would mean another file out here: -EXDEV, as for what leads out.
 */
static int open_lent(const struct maker *maker, const struct place *place, const char *tail,
		     struct stat *ret_st)
{
	_cleanup_fd_ int top = open(place->host, O_PATH | O_CLOEXEC), handle = -1;

	if (top < 0)
		return -errno;
	handle = *tail ? sys_openat2(top, tail, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
		       : fd_take(&top);
	if (handle < 0)
		return handle;
	if (fstat(handle, ret_st) < 0 || !S_ISREG(ret_st->st_mode))
		return -EINVAL;
	if (*tail && (!is_still_in(maker, place, handle) || check_way(maker, place, tail) < 0))
		return -EXDEV;
	return open_regular(handle);
}

/* Has it a part ".."? */
static bool has_dots(const char *path)
{
	for (size_t n; *path; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.')
			return true;
	}
	return false;
}

/* Why a file that is there is not in the terms; NULL: it is, or there is none. */
static const char *why_unbound(const struct maker *maker, int fd, const char *typed)
{
	if (fd >= 0 && !str_is_utf8(typed, strlen(typed)))
		return "its name is no text";
	if (fd == -EXDEV || fd == -ELOOP)
		return "a link that is absolute, leads out, or into a mount";
	if (fd == -EACCES)
		return "unreadable";
	/* It may be there inside, where more is mounted. A text for a shell is no path. */
	if (fd < 0 && fd != -EINVAL && has_dots(typed) && !strpbrk(typed, " \t\n"))
		return "a path with ..";
	return fd >= 0 && json_object_size(maker->files) >= FILES_MAX ? "one too many" : NULL;
}

static void add_path(struct maker *maker, const char *word)
{
	const char *cwd = maker->backend->has_view ? maker->setup->cwd : maker->setup->host_cwd;
	char path[PATH_ROOM], typed[PATH_ROOM], name[2 * PATH_ROOM];
	struct place place;
	const char *why;
	struct stat st;
	_cleanup_fd_ int fd = -1;

	if (!*word || path_join(cwd, word, path, sizeof path) < 0)
		return;
	/* A ".." behind a link is not the folder before it, so such a path stays as it was typed.
	 */
	if (!has_dots(word))
		snprintf(typed, sizeof typed, "%s", path);
	else if (snprintf(typed, sizeof typed, "%s%s%s", word[0] == '/' ? "" : cwd,
			  word[0] == '/' ? "" : "/", word) >= (int)sizeof typed)
		return;
	place = find_place(maker, path);
	/* Only what is no text is shown as another one: two names must not become the same. */
	if (str_is_utf8(typed, strlen(typed)))
		memcpy(name, typed, strlen(typed) + 1);
	else
		str_escape(typed, false, name, sizeof name);
	if (!place.host || json_object_get(maker->files, name))
		return;
	fd = path_is_beneath(typed, place.at)
		     ? open_lent(maker, &place, path_tail(typed, place.at), &st)
		     : -EXDEV;
	why = why_unbound(maker, fd, typed);
	if (why)
		json_object_set_new(maker->files, name, json_pack("{s:s}", "unbound", why));
	else if (fd >= 0)
		json_object_set_new(maker->files, name,
				    digest_json(maker, fd, (uint64_t)st.st_size));
}

/* Of a gate: on the host, where its program starts in "/". */
static void add_host_path(struct maker *maker, const char *word)
{
	_cleanup_fd_ int handle = -1, fd = -1;
	char path[PATH_ROOM];
	struct stat st;

	if (!*word || !str_is_utf8(word, strlen(word)) || json_object_get(maker->files, word) ||
	    snprintf(path, sizeof path, "%s%s", word[0] == '/' ? "" : "/", word) >=
		    (int)sizeof path)
		return;
	handle = open(path, O_PATH | O_CLOEXEC);
	if (handle < 0 || fstat(handle, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	fd = json_object_size(maker->files) < FILES_MAX ? open_regular(handle) : -EMFILE;
	json_object_set_new(maker->files, word,
			    fd < 0 ? json_pack("{s:s}", "unbound",
					       fd == -EMFILE ? "one too many" : "unreadable")
				   : digest_json(maker, fd, (uint64_t)st.st_size));
}

/* A word, and what a shell or an option would take for one in it. */
static void add_word(struct maker *maker, const char *word,
		     void (*add)(struct maker *maker, const char *word))
{
	static const char edges[] = " \t\n\"'`;|&<>()=,:@";

	add(maker, word);
	while (*word) {
		char piece[PATH_ROOM];
		size_t n = strcspn(word, edges);

		if (n > 0 && n < sizeof piece) {
			memcpy(piece, word, n);
			piece[n] = 0;
			add(maker, piece);
			if (n > 2 && piece[0] == '-') /* -fFILE */
				add(maker, piece + 2);
		}
		word += n + strspn(word + n, edges);
	}
}

/* Length of one word of a text for a shell. */
static size_t shell_word(const char *text)
{
	static const char ends[] = " \t\n;|&<>()";
	char quote = 0;
	size_t n = 0;

	for (; text[n] && (quote || !strchr(ends, text[n])); n++)
		if (quote && text[n] == quote)
			quote = 0;
		else if (!quote && (text[n] == '\'' || text[n] == '"'))
			quote = text[n];
	return n;
}

/* Would a shell make another word of it, but for taking away the quotes around all of it? */
static bool is_made(const char *word, size_t n)
{
	static const char makes[] = "*?[{~$`\\'\"";
	bool is_quoted = n >= 2 && (*word == '\'' || *word == '"') && word[n - 1] == *word;

	for (size_t i = is_quoted; i + is_quoted < n; i++)
		if (strchr(makes, word[i]))
			return true;
	return false;
}

/*
 * What a shell makes a file's name of is not known out here, so those words are listed as they
 * are: `d''.sh`, `*.sh`, `~/x`, `$X`. Quotes around a whole word are none of them.
 */
static void add_made(struct maker *maker, const char *text)
{
	static const char ends[] = " \t\n;|&<>()";
	char word[PATH_ROOM], name[2 * PATH_ROOM];

	for (size_t n; *text; text += n + strspn(text + n, ends)) {
		n = shell_word(text);
		snprintf(word, sizeof word, "%.*s", (int)(n < PATH_ROOM ? n : PATH_ROOM), text);
		if (!is_made(text, n)) {
			if (n > 2 && word[0] == word[n - 1] && strchr("'\"", word[0])) {
				word[n - 1] = 0;
				add_path(maker, word + 1);
			}
			continue;
		}
		str_escape(word, true, name, sizeof name);
		json_object_set_new(
			maker->files, name,
			json_pack("{s:s}", "unbound", "a shell makes another word of it"));
	}
}

static bool is_shell(const char *program)
{
	static const char *const names[] = { "sh",  "bash", "dash", "ash",  "busybox",
					     "zsh", "ksh",  "mksh", "fish", "toybox" };
	const char *slash = strrchr(program, '/');

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_is(slash ? slash + 1 : program, names[i]))
			return true;
	return false;
}

static void add_files(struct maker *maker)
{
	bool is_for_shell = false;

	maker->files = json_object();
	maker->left = ALL_BYTES_MAX;
	for (const char *const *word = maker->setup->argv; word && *word; word++)
		add_word(maker, *word, add_path);
	if (maker->setup->text)
		add_word(maker, maker->setup->text, add_path);
	/* Last: what a shell reads otherwise is not bound, also where a file has that very name. */
	for (const char *const *word = maker->setup->argv; word && *word; word++) {
		if (is_for_shell)
			add_made(maker, *word);
		is_for_shell |= is_shell(*word);
	}
	if (maker->setup->text)
		add_made(maker, maker->setup->text);
	json_object_set_new(maker->terms, "files", maker->files);
}

/* Their programs run outside the wall: what they are is bound as what the command names is. */
static void add_gates(struct maker *maker)
{
	json_t *gates = json_object();

	for (size_t i = 0; i < maker->plan->gate_count; i++) {
		const struct plan_gate *gate = &maker->plan->gates[i];
		const char *const *argv = (const char *const *)gate->argv;

		maker->files = json_object();
		for (const char *const *word = argv; word && *word; word++)
			add_word(maker, *word, add_host_path);
		json_object_set_new(gates, gate->name,
				    json_pack("{s:o, s:o}", "command",
					      argv ? list_json(argv) : json_null(), "files",
					      maker->files));
	}
	maker->files = NULL;
	json_object_set_new(maker->terms, "gates", gates);
}

/* ---- input ----------------------------------------------------------------------------------- */

static json_t *file_json(int fd, const struct stat *st)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	uint64_t size = 0;
	char hex[SHA_HEX];
	int r = at < 0 ? -errno : sha_fd(fd, (uint64_t)st->st_size, &size, hex);

	if (at >= 0 && lseek(fd, at, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? NULL
		     : json_pack("{s:s, s:s, s:I}", "kind", "file", "sha256", hex, "size",
				 (json_int_t)size);
}

/*
 * approval_gate() has made a sealed copy of a file; anything else that can be read is open. Whether
 * a stream is a terminal is no term, of this one or of the others: a start that was denied would be
 * another one as soon as its stderr went to a file.
 */
static json_t *stdin_json(const struct run_setup *setup)
{
	const char *kind = "stream";
	struct stat st;

	if (setup->tty_fd >= 0)
		return json_pack("{s:s}", "kind", "stream");
	if (setup->stdin_fd < 0)
		return json_pack("{s:s}", "kind", "none");
	if (fstat(setup->stdin_fd, &st) < 0)
		return NULL;
	if (S_ISREG(st.st_mode))
		return file_json(setup->stdin_fd, &st);
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		kind = "none";
	return json_pack("{s:s}", "kind", kind);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void add_toolchains(struct maker *maker)
{
	const struct toolchain_request request = { .plan = maker->plan,
						   .argv = maker->setup->argv,
						   .text = maker->setup->text,
						   .caller_env = maker->setup->caller_env,
						   .cwd = maker->setup->host_cwd };
	_cleanup_arena_ struct arena arena;
	struct toolchain toolchain = { 0 };

	arena_init(&arena, ARENA_QUOTA);
	if (maker->plan->toolchains_auto && !maker->backend->declare &&
	    toolchain_find(&request, &arena, &toolchain) < 0)
		return; /* the set() below is missing: no object */
	json_object_set_new(maker->terms, "toolchains", list_json(toolchain.prefixes));
}

static void add_plan(struct maker *maker)
{
	_cleanup_buf_ struct buf text;

	buf_init(&text, PLAN_TEXT_MAX);
	if (policy_render(maker->plan, &text) == 0)
		json_object_set_new(maker->terms, "plan",
				    keyed_json(maker, buf_at(&text), buf_size(&text)));
}

static json_t *command_json(const struct run_setup *setup)
{
	if (setup->text)
		return json_pack("{s:o}", "text", bytes_json(setup->text));
	return setup->argv ? list_json(setup->argv) : json_null();
}

static void add_parts(struct maker *maker)
{
	const struct run_setup *setup = maker->setup;
	const struct plan *plan = maker->plan;
	const struct {
		const char *key;
		json_t *value;
	} parts[] = {
		{ "schema", json_string("caisson.terms/1") },
		{ "kind", json_string(setup->text || setup->argv ? "run" : "sandbox") },
		{ "command", command_json(setup) },
		{ "cwd", bytes_or_null(setup->cwd) },
		{ "host_cwd", bytes_or_null(setup->host_cwd) },
		{ "uid", json_integer((json_int_t)geteuid()) },
		{ "tier", json_string(plan_tier_name(plan->tier)) },
		{ "backend", json_string(maker->backend->name) },
		{ "workspace", workspace_json(&plan->workspace) },
		{ "mounts", mounts_json(plan) },
		{ "mount_roots", list_json((const char *const *)plan->mount_roots) },
		{ "network", json_string(plan_network_name(plan->network)) },
		{ "allow", list_json((const char *const *)plan->allow) },
		{ "forwards", list_json((const char *const *)plan->forwards) },
		{ "limits", limits_json(&plan->limits) },
		{ "image", bytes_or_null(plan->image) },
		{ "env", env_json(maker) },
		{ "env_any", json_boolean(plan->env_any) },
		{ "wall_program", list_json((const char *const *)plan->command_argv) },
		{ "policy", bytes_or_null(plan->policy_path) },
		{ "policy_sha256", json_string(plan->policy_sha256) },
		{ "tags", list_json(setup->tags) },
		{ "stdin", stdin_json(setup) },
		{ "forked", json_boolean(setup->layer_from != NULL) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		json_object_set_new(maker->terms, parts[i].key, parts[i].value);
}

/* A part that could not be made is missing, and then there are no terms. */
static bool is_whole(const json_t *terms)
{
	static const char *const keys[] = {
		"schema",      "kind",    "command",      "cwd",       "host_cwd",
		"uid",         "tier",    "backend",      "workspace", "mounts",
		"mount_roots", "network", "allow",        "limits",    "image",
		"env",         "env_any", "wall_program", "policy",    "policy_sha256",
		"tags",        "stdin",   "forked",       "plan",      "toolchains",
		"files",       "gates",   "forwards"
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!json_object_get(terms, keys[i]))
			return false;
	return true;
}

json_t *approval_terms(const struct run_setup *setup, const struct backend *backend,
		       const uint8_t key[APPROVAL_KEY], struct csn_error *err)
{
	struct maker maker = { .setup = setup,
			       .plan = setup->plan,
			       .backend = backend,
			       .key = key,
			       .terms = json_object() };

	add_parts(&maker);
	add_plan(&maker);
	add_toolchains(&maker);
	add_files(&maker);
	add_gates(&maker);
	if (is_whole(maker.terms))
		return maker.terms;
	json_decref(maker.terms);
	csn_fail(
		err, -EINVAL, stage,
		"cannot put into words what is to be approved: a path is no text, its input cannot "
		"be read, or memory is short");
	return NULL;
}
