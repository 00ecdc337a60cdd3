/*
 * The folder a program needs to run. `python3` from a virtual environment is a link to an
 * interpreter elsewhere, a script's "#!" names another: each step adds the prefix (the parent
 * of a bin folder) that it lies in. Bounded: at most TOOLCHAIN_STEPS steps.
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
#include "base/str.h"

enum { TOOLCHAIN_STEPS = 6, TOOLCHAIN_MAX = 8 };

struct search {
	const struct plan *plan;
	struct arena *arena;
	const char *home;
	const char **prefixes;
	const char **paths;
	size_t count;
};

static const char *const system_folders[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64",
					      "/etc", "/dev", "/proc", "/sys", "/run",
					      "/var", "/tmp", "/boot" };

static const char *env_value(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* Is it seen inside anyway, or never to be shown? */
static bool is_covered(const struct search *search, const char *path)
{
	const struct plan_workspace *ws = &search->plan->workspace;

	for (size_t i = 0; i < ARRAY_SIZE(system_folders); i++)
		if (path_is_beneath(path, system_folders[i]))
			return true;
	return ws->host && path_is_beneath(path, ws->host);
}

/* The parent of the bin folder that holds `program`; false when there is none to show. */
static bool prefix_of(const struct search *search, const char *program, char *ret_prefix)
{
	const char *slash = strrchr(program, '/'), *bin;
	size_t n;

	if (!slash || slash == program)
		return false;
	for (bin = slash; bin > program && bin[-1] != '/'; bin--)
		;
	n = (size_t)(slash - bin);
	if (!((n == 3 && strncmp(bin, "bin", 3) == 0) || (n == 5 && strncmp(bin, "shims", 5) == 0)))
		return false;
	if (bin - program < 2)
		return false;
	n = (size_t)(bin - program) - 1;
	memcpy(ret_prefix, program, n);
	ret_prefix[n] = 0;
	/* Not a home directory, nor anything that contains one, nor a folder right beneath /. */
	if (search->home && path_is_beneath(search->home, ret_prefix))
		return false;
	return strchr(ret_prefix + 1, '/') || str_is(ret_prefix, "/opt") == false;
}

static int add(struct search *search, const char *program)
{
	char prefix[PATH_MAX];
	const char *slash = strrchr(program, '/');

	if (is_covered(search, program) || !prefix_of(search, program, prefix))
		return 0;
	for (size_t i = 0; i < search->count; i++)
		if (path_is_beneath(prefix, search->prefixes[i]))
			return 0;
	if (search->count == TOOLCHAIN_MAX)
		return 0;
	search->prefixes[search->count] = arena_text(search->arena, prefix);
	search->paths[search->count] =
		arena_copy(search->arena, program, (size_t)(slash - program));
	if (!search->prefixes[search->count] || !search->paths[search->count])
		return -ENOMEM;
	search->count++;
	return 0;
}

static bool find_program(const char *name, const char *path, char *ret_path)
{
	struct stat st;

	if (strchr(name, '/'))
		return name[0] == '/' && path_normalize(name, ret_path, PATH_MAX) >= 0;
	while (path && *path) {
		size_t n = strcspn(path, ":");

		if (n > 0 && path[0] == '/' &&
		    (size_t)snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)n, path, name) <
			    PATH_MAX &&
		    stat(ret_path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
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
	}
	snprintf(ret_name, PATH_MAX, "%.*s", (int)strcspn(at, " \t\r\n"), at);
}

/* One program: where it is named, where its links lead, and who interprets it. */
static int follow(struct search *search, const char *name, const char *path)
{
	char program[PATH_MAX], real[PATH_MAX], next[PATH_MAX];
	int r = 0;

	snprintf(next, sizeof next, "%s", name);
	for (int step = 0; r >= 0 && step < TOOLCHAIN_STEPS && next[0]; step++) {
		if (!find_program(next, path, program))
			return 0;
		r = add(search, program);
		if (r >= 0 && realpath(program, real))
			r = add(search, real);
		read_shebang(program, next);
	}
	return r;
}

int toolchain_find(const struct plan *plan, const char *const *argv, const char *const *caller_env,
		   struct arena *arena, struct toolchain *ret_toolchain)
{
	struct search search = { .plan = plan,
				 .arena = arena,
				 .home = env_value(caller_env, "HOME") };
	int r;

	search.prefixes = arena_array(arena, TOOLCHAIN_MAX + 1, sizeof *search.prefixes);
	search.paths = arena_array(arena, TOOLCHAIN_MAX + 1, sizeof *search.paths);
	if (!search.prefixes || !search.paths)
		return -ENOMEM;
	r = argv ? follow(&search, argv[0], env_value(caller_env, "PATH")) : 0;
	if (r < 0)
		return r;
	*ret_toolchain = (struct toolchain){ search.prefixes, search.paths };
	return 0;
}
