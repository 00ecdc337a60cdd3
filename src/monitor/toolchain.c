/*
 * The folder a program needs to run. `python3` from a virtual environment is a link to an
 * interpreter elsewhere, a script's "#!" names another, a shim a third: each step adds the prefix
 * (the parent of a bin folder) that it lies in. Bounded: at most TOOLCHAIN_STEPS steps.
 *
 * A text for the shell is searched for the names of programs: its first word as if it were
 * argv[0], every other word only if the caller's PATH has it. A path in a text may be anything,
 * and naming one must not show what lies beside it.
 */
#include "monitor/toolchain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "monitor/shim.h"

enum { TOOLCHAIN_STEPS = 6, TOOLCHAIN_MAX = 16, PARTS_MAX = 256, ENV_MAX = 16, WORDS_MAX = 64 };

struct search {
	const struct toolchain_request *request;
	const struct plan *plan;
	struct arena *arena;
	const char *path; /* the caller's PATH */
	const char *home;
	const char *real_home; /* the same behind its links; NULL: none, or not there */
	const char **parts;    /* what is shown */
	size_t part_count;
	const char **paths;
	size_t count; /* of prefixes */
	const char **env;
	size_t env_count;
};

/*
 * What a prefix is shown by: not itself. A script from an unread project names the interpreter in
 * its first line, and so could name a folder with secrets beside a bin (~/.local holds keyrings, a
 * cargo home its token). `share` only where the prefix is not a folder of the home directory, and
 * sources only beside the VERSION of a Go release: elsewhere they are the caller's own.
 */
static const char *const parts[] = {
	"bin",        "lib",      "lib32",   "lib64",   "libexec", "include",
	"shims",      "versions", "version", "plugins", "pyenv.d", "installs",
	"toolchains", "conf",     "release", "jmods",   "legal",   "pyvenv.cfg",
};

static const char *const go_parts[] = { "VERSION", "go.env", "pkg", "src", "api", "misc" };

static const char *const system_folders[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64",
					      "/etc", "/dev", "/proc", "/sys", "/run",
					      "/var", "/tmp", "/boot" };

/* Is it seen inside anyway, or never to be shown? */
static bool is_covered(const struct search *search, const char *path)
{
	const struct plan_workspace *ws = &search->plan->workspace;

	for (size_t i = 0; i < ARRAY_SIZE(system_folders); i++)
		if (path_is_beneath(path, system_folders[i]))
			return true;
	return ws->host && path_is_beneath(path, ws->host);
}

static bool ends_in_bin(const char *path, size_t size)
{
	return (size > 4 && strncmp(path + size - 4, "/bin", 4) == 0) ||
	       (size > 6 && strncmp(path + size - 6, "/shims", 6) == 0);
}

static bool may_show(const struct search *search, const char *prefix)
{
	if (!search->home) /* unknown: any folder may be it */
		return false;
	if ((search->home && path_is_beneath(search->home, prefix)) ||
	    (search->real_home && path_is_beneath(search->real_home, prefix)))
		return false;
	return strchr(prefix + 1, '/');
}

/* The parent of the bin folder that holds `program`; false when there is none to show. */
static bool prefix_of(const struct search *search, const char *program, char *ret_prefix)
{
	const char *slash = strrchr(program, '/'), *bin;
	char real[PATH_MAX];
	size_t n;

	if (!slash || slash == program)
		return false;
	for (bin = slash; bin > program && bin[-1] != '/'; bin--)
		;
	n = (size_t)(slash - bin);
	if (!ends_in_bin(program, (size_t)(slash - program)))
		return false;
	if (bin - program < 2)
		return false;
	n = (size_t)(bin - program) - 1;
	memcpy(ret_prefix, program, n);
	ret_prefix[n] = 0;
	/* Not a home directory, nor anything that contains one, nor a folder right beneath /, by
	 * this name or behind its links. */
	return may_show(search, ret_prefix) &&
	       (!realpath(ret_prefix, real) || may_show(search, real));
}

/* A link could lead anywhere. */
static void add_shown(struct search *search, const char *path)
{
	struct stat st;

	for (size_t i = 0; i < search->part_count; i++)
		if (path_is_beneath(path, search->parts[i]))
			return;
	if (search->part_count < PARTS_MAX && lstat(path, &st) == 0 && !S_ISLNK(st.st_mode))
		search->parts[search->part_count++] = path;
}

static int add_part(struct search *search, const char *prefix, const char *name)
{
	char *path = arena_printf(search->arena, "%s/%s", prefix, name);

	if (path)
		add_shown(search, path);
	return path ? 0 : -ENOMEM;
}

static bool is_right_beneath(const char *folder, const char *prefix)
{
	return folder && path_is_beneath(prefix, folder) && !strchr(path_tail(prefix, folder), '/');
}

/* By its name or behind links: a link to ~/.local may lie anywhere. */
static bool is_right_beneath_home(const struct search *search, const char *prefix)
{
	char real[PATH_MAX];
	const char *names[] = { prefix, realpath(prefix, real) ? real : prefix };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_right_beneath(search->home, names[i]) ||
		    is_right_beneath(search->real_home, names[i]))
			return true;
	return false;
}

/* Many projects have a file VERSION beside bin and src; Go's begins with "go1." or "devel ". */
static bool is_go_root(const char *prefix)
{
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX], text[8] = "";
	struct stat st;

	if (path_join(prefix, go_parts[0], path, sizeof path) < 0)
		return false;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    fd_read_all(fd, text, sizeof text - 1) < 0)
		return false;
	return str_starts(text, "go1.") || str_starts(text, "devel ");
}

static int add_prefix(struct search *search, const char *prefix)
{
	bool is_go = is_go_root(prefix);
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(parts); i++)
		r = add_part(search, prefix, parts[i]);
	for (size_t i = 0; r >= 0 && is_go && i < ARRAY_SIZE(go_parts); i++)
		r = add_part(search, prefix, go_parts[i]);
	if (r >= 0 && !is_right_beneath_home(search, prefix))
		r = add_part(search, prefix, "share");
	return r;
}

static int add_path(struct search *search, const char *path, size_t size)
{
	static const char *const standard[] = { "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin",
						"/sbin" };

	for (size_t i = 0; i < ARRAY_SIZE(standard); i++)
		if (strlen(standard[i]) == size && strncmp(standard[i], path, size) == 0)
			return 0;
	for (size_t i = 0; i < search->count; i++)
		if (strlen(search->paths[i]) == size && strncmp(search->paths[i], path, size) == 0)
			return 0;
	if (search->count == TOOLCHAIN_MAX)
		return 0;
	search->paths[search->count] = arena_copy(search->arena, path, size);
	return search->paths[search->count++] ? 0 : -ENOMEM;
}

/* In a system folder or the workspace: seen inside anyway, there by its own name for it. */
static int add_seen(struct search *search, const char *program, size_t dir_size)
{
	const struct plan_workspace *ws = &search->plan->workspace;
	const char *inside;

	/* `./build.sh` must not put the project itself on PATH. */
	if (!ends_in_bin(program, dir_size))
		return 0;
	if (!ws->host || !path_is_beneath(program, ws->host))
		return add_path(search, program, dir_size);
	inside = arena_printf(search->arena, "%s/%s", ws->at, path_tail(program, ws->host));
	return inside ? add_path(search, inside, (size_t)(strrchr(inside, '/') - inside)) : -ENOMEM;
}

static int add(struct search *search, const char *program)
{
	char prefix[PATH_MAX];
	const char *slash = strrchr(program, '/');
	int r;

	if (is_covered(search, program))
		return add_seen(search, program, (size_t)(slash - program));
	if (!prefix_of(search, program, prefix))
		return 0;
	for (size_t i = 0; i < search->part_count; i++)
		if (path_is_beneath(program, search->parts[i]))
			return 0;
	r = add_path(search, program, (size_t)(slash - program));
	return r < 0 ? r : add_prefix(search, prefix);
}

static bool find_program(const char *name, const char *path, char *ret_path)
{
	if (strchr(name, '/'))
		return name[0] == '/' && path_normalize(name, ret_path, PATH_MAX) >= 0 &&
		       program_is(ret_path);
	return program_find(name, path, ret_path);
}

/* The interpreter of a script's first line, "" if there is none. */
static void read_shebang(const char *program, char *ret_name)
{
	_cleanup_fd_ int fd = open(program, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char line[256] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
	const char *at = line + 2;

	ret_name[0] = 0;
	if (n < 3 || line[0] != '#' || line[1] != '!')
		return;
	at += strspn(at, " \t");
	if (str_starts(at, "/usr/bin/env ")) {
		at += 13;
		at += strspn(at, " \t");
		at += str_starts(at, "-S ") ? 3 : 0;
	}
	snprintf(ret_name, PATH_MAX, "%.*s", (int)strcspn(at, " \t\r\n"), at);
}

/*
 * Where a link leads is shown, and on PATH behind the link's folder. Not a system folder: what
 * lies beside /usr/lib/node_modules/npm/bin/npm-cli.js is another npm than /usr/bin's.
 */
static int add_target(struct search *search, const char *real)
{
	return is_covered(search, real) ? 0 : add(search, real);
}

static void add_env(struct search *search, const char *const *list)
{
	for (; *list && search->env_count < ENV_MAX; list++)
		search->env[search->env_count++] = *list;
}

/* A shim's own program stands before the shim; a proxy's folder is shown by its parts. */
static int add_shim(struct search *search, const char *program, const char *real)
{
	const struct shim_request request = { search->request->caller_env, search->home,
					      search->request->cwd, search->arena };
	struct shim shim;
	char started[PATH_MAX];
	int r = shim_look(&request, program, real, &shim);

	if (r < 0)
		return r;
	add_env(search, shim.env);
	for (const char **part = shim.parts; *part; part++)
		if (!is_covered(search, *part))
			add_shown(search, *part);
	if (!shim.program)
		return 0;
	r = add(search, shim.program);
	return r >= 0 && realpath(shim.program, started) ? add_target(search, started) : r;
}

/* One program: where it is named, where its links lead, and who interprets it. */
static int follow(struct search *search, const char *name)
{
	char program[PATH_MAX], real[PATH_MAX], next[PATH_MAX];
	int r = 0;

	if (snprintf(next, sizeof next, "%s", name) >= (int)sizeof next)
		return 0;
	for (int step = 0; r >= 0 && step < TOOLCHAIN_STEPS && next[0]; step++) {
		if (!find_program(next, search->path, program) || !realpath(program, real))
			return 0;
		r = add_shim(search, program, real);
		if (r >= 0)
			r = add(search, program);
		if (r >= 0)
			r = add_target(search, real);
		read_shebang(program, next);
	}
	return r;
}

/* argv[0], or the first word of a text. */
static int follow_first(struct search *search, const char *name)
{
	char absolute[PATH_MAX];

	if (!strchr(name, '/') || name[0] == '/')
		return follow(search, name);
	if (path_join(search->request->cwd, name, absolute, sizeof absolute) < 0)
		return 0;
	return follow(search, absolute);
}

static int follow_text(struct search *search, const char *text)
{
	static const char between[] = " \t\r\n;|&()<>{}`$\"'=";
	char word[NAME_MAX + 1];
	int r = 0;

	for (int i = 0; r >= 0 && i < WORDS_MAX && *(text += strspn(text, between)); i++) {
		size_t n = strcspn(text, between);

		if (n < sizeof word) {
			snprintf(word, sizeof word, "%.*s", (int)n, text);
			if (i == 0)
				r = follow_first(search, word);
			else if (!strchr(word, '/') && word[0] != '-')
				r = follow(search, word);
		}
		text += n;
	}
	return r;
}

/* `bash -lc TEXT` is the same to its author as `-c TEXT`. */
static const char *shell_text(const char *const *argv)
{
	static const char *const shells[] = { "sh", "bash", "dash", "zsh" };
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (str_is(name, shells[i]) && argv[1] && argv[1][0] == '-' && argv[1][1] != '-' &&
		    argv[1][strlen(argv[1]) - 1] == 'c')
			return argv[2];
	return NULL;
}

static int follow_request(struct search *search)
{
	const struct toolchain_request *request = search->request;
	const char *text = request->text;
	int r = 0;

	if (request->argv && request->argv[0]) {
		r = follow_first(search, request->argv[0]);
		text = shell_text(request->argv);
	}
	return r >= 0 && text ? follow_text(search, text) : r;
}

int toolchain_find(const struct toolchain_request *request, struct arena *arena,
		   struct toolchain *ret_toolchain)
{
	struct search search = { .request = request,
				 .plan = request->plan,
				 .arena = arena,
				 .path = program_variable(request->caller_env, "PATH"),
				 .home = program_variable(request->caller_env, "HOME") };
	char home[PATH_MAX], real_home[PATH_MAX];
	int r;

	search.parts = arena_array(arena, PARTS_MAX + 1, sizeof *search.parts);
	search.paths = arena_array(arena, TOOLCHAIN_MAX + 1, sizeof *search.paths);
	search.env = arena_array(arena, ENV_MAX + 1, sizeof *search.env);
	if (!search.parts || !search.paths || !search.env)
		return -ENOMEM;
	/* Without a trailing slash, or it would be compared wrongly. */
	if (search.home && search.home[0] == '/' &&
	    path_normalize(search.home, home, sizeof home) >= 0)
		search.home = home;
	else
		search.home = NULL;
	/* Programs are followed through links, so where home really is counts too. */
	search.real_home = search.home ? realpath(search.home, real_home) : NULL;
	r = follow_request(&search);
	if (r < 0)
		return r;
	*ret_toolchain = (struct toolchain){ search.parts, search.paths, search.env };
	return 0;
}
