/*
 * Version managers: a table of those whose shims cannot find their program inside.
 *
 * The manager's files are the caller's, but a file with a version in it may come with a project:
 * a version is one name in the manager's folder, never a path, and only chooses among what the
 * caller installed. Nothing is executed to find out.
 */
#include "monitor/shim.h"

#include <dirent.h>
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

enum { FILE_MAX = 16 << 10, ENTRIES_MAX = 512, FOLDERS_MAX = 64 };

/* A manager whose proxies work inside, given its folder. */
static const struct proxy {
	const char *real;     /* the program all proxies are links to */
	const char *variable; /* names the folder */
	const char *folder;   /* beneath HOME, without the variable */
	const char *parts[SHIM_PARTS];
	const char *passed; /* the caller's own choice of a version */
	const char *fixed;
} proxies[] = {
	/* What is not installed cannot be fetched without a network: said at once, not tried. */
	{ "rustup",
	  "RUSTUP_HOME",
	  ".rustup",
	  { "toolchains", "settings.toml" },
	  "RUSTUP_TOOLCHAIN",
	  "RUSTUP_AUTO_INSTALL=0" },
};

/* Managers with FOLDER/SHIMS/NAME and FOLDER/INSTALLS/TOOL/VERSION/bin/NAME. */
static const struct manager {
	const char *shims;
	const char *installs;
} managers[] = {
	{ "/shims/", "installs" },  /* asdf, mise */
	{ "/bin/", "tools/image" }, /* volta */
};

/* pyenv and its kin work as they are; a version that the caller chose by variable goes along. */
static const char *const passed[] = { "PYENV_VERSION", "RBENV_VERSION", "NODENV_VERSION",
				      "GOENV_VERSION", "JENV_VERSION" };

/* Where versions are written down: in the folder here and above; in HOME; in the manager's. */
static const char *const here[] = { ".tool-versions", "mise.toml", ".mise.toml" };
static const char *const at_home[] = { ".tool-versions", ".config/mise/config.toml" };
static const char own_file[] = "tools/user/platform.json";

/* ---- proxies --------------------------------------------------------------------------- */

static bool add_variable(const struct shim_request *request, struct shim *shim, const char *name,
			 const char *value)
{
	size_t i = 0;

	if (!value)
		return true;
	while (i < SHIM_ENV - 2 && shim->env[i])
		i++;
	shim->env[i] = arena_printf(request->arena, "%s=%s", name, value);
	return shim->env[i];
}

static int fill_proxy(const struct shim_request *request, const struct proxy *proxy,
		      struct shim *shim)
{
	const char *given = program_variable(request->env, proxy->variable);
	char root[PATH_MAX];
	bool is_good = true;

	if (given ? path_normalize(given, root, sizeof root) < 0
		  : !request->home ||
			    path_join(request->home, proxy->folder, root, sizeof root) < 0)
		return 0;
	for (size_t i = 0; i < SHIM_PARTS && proxy->parts[i]; i++) {
		shim->parts[i] = arena_printf(request->arena, "%s/%s", root, proxy->parts[i]);
		is_good &= shim->parts[i] != NULL;
	}
	shim->env[0] = proxy->fixed;
	is_good &= add_variable(request, shim, proxy->variable, root);
	is_good &= add_variable(request, shim, proxy->passed,
				program_variable(request->env, proxy->passed));
	return is_good ? 0 : -ENOMEM;
}

/* ---- versions -------------------------------------------------------------------------- */

struct choice {
	const struct shim_request *request;
	const char *name; /* of the program */
	const char *root; /* the manager's folder */
	char found[PATH_MAX];
	unsigned count; /* of installed versions that have the program */
	bool is_chosen; /* by a file */
};

/* A version in text of the form `tool 1.2`, `tool = "1.2"` or `"runtime": "1.2"` a line. */
static bool version_in(const char *text, const char *tool, char *ret_version)
{
	static const char before[] = " \t=:\"'[";
	bool is_node = str_is(tool, "node");

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *key = line + strspn(line, "\n \t\"'{");
		size_t n = strcspn(key, " \t=:\"'\n");
		const char *value = key + n;

		line = key;
		if (!(n == strlen(tool) && memcmp(key, tool, n) == 0) &&
		    !(is_node && n == strlen("runtime") && memcmp(key, "runtime", n) == 0))
			continue;
		value += strspn(value, before);
		n = strcspn(value, " \t\"',[]{}#\r\n/");
		if (n == 0 || n > NAME_MAX || value[0] == '.')
			continue;
		snprintf(ret_version, NAME_MAX + 1, "%.*s", (int)n, value);
		return true;
	}
	return false;
}

static bool version_of_file(const char *folder, const char *file, const char *tool,
			    char *ret_version)
{
	char path[PATH_MAX], text[FILE_MAX];
	_cleanup_fd_ int fd = -1;
	struct stat st;
	ssize_t n;

	if (path_join(folder, file, path, sizeof path) < 0)
		return false;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = fd_read_all(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	return version_in(text, tool, ret_version);
}

/* The version that is in force for a tool, as its manager would see it from here. */
static bool version_wanted(const struct choice *choice, const char *tool, char *ret_version)
{
	const struct shim_request *request = choice->request;
	char folder[PATH_MAX];

	snprintf(folder, sizeof folder, "%s", request->cwd);
	for (int i = 0; i < FOLDERS_MAX && folder[0]; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(here); j++)
			if (version_of_file(folder, here[j], tool, ret_version))
				return true;
		*strrchr(folder, '/') = 0;
	}
	for (size_t j = 0; request->home && j < ARRAY_SIZE(at_home); j++)
		if (version_of_file(request->home, at_home[j], tool, ret_version))
			return true;
	return version_of_file(choice->root, own_file, tool, ret_version);
}

/* Calls `look` with each folder of a folder, no links; bounded. */
static void each_folder(struct choice *choice, const char *path,
			void (*look)(struct choice *choice, const char *folder))
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	char folder[PATH_MAX];
	struct stat st;

	for (int i = 0; dir && i < ENTRIES_MAX && (entry = readdir(dir)); i++) {
		if (entry->d_name[0] == '.' ||
		    path_join(path, entry->d_name, folder, sizeof folder) < 0)
			continue;
		if (lstat(folder, &st) == 0 && S_ISDIR(st.st_mode))
			look(choice, folder);
	}
	if (dir)
		closedir(dir);
}

static bool program_of(const struct choice *choice, const char *version, char *ret_path)
{
	return snprintf(ret_path, PATH_MAX, "%s/bin/%s", version, choice->name) < PATH_MAX &&
	       program_is(ret_path);
}

static void look_at_version(struct choice *choice, const char *folder)
{
	char path[PATH_MAX];

	if (choice->is_chosen || !program_of(choice, folder, path))
		return;
	choice->count++;
	snprintf(choice->found, sizeof choice->found, "%s", path);
}

static void look_at_tool(struct choice *choice, const char *folder)
{
	char version[NAME_MAX + 1], path[PATH_MAX], program[PATH_MAX];

	if (choice->is_chosen)
		return;
	if (version_wanted(choice, strrchr(folder, '/') + 1, version) &&
	    path_join(folder, version, path, sizeof path) == 0 &&
	    program_of(choice, path, program)) {
		choice->is_chosen = true;
		snprintf(choice->found, sizeof choice->found, "%s", program);
		return;
	}
	each_folder(choice, folder, look_at_version);
}

/* What a shim of a manager would start: the version that a file names, or the only one. */
static int fill_managed(const struct shim_request *request, const struct manager *manager,
			const char *program, struct shim *shim)
{
	const char *name = strrchr(program, '/') + 1, *shims;
	char root[PATH_MAX], installs[PATH_MAX];
	struct choice choice = { .request = request, .name = name, .root = root };

	shims = name - strlen(manager->shims);
	if (shims <= program || !str_starts(shims, manager->shims))
		return 0;
	snprintf(root, sizeof root, "%.*s", (int)(shims - program), program);
	if (path_join(root, manager->installs, installs, sizeof installs) < 0)
		return 0;
	each_folder(&choice, installs, look_at_tool);
	if (!choice.is_chosen && choice.count != 1)
		return 0;
	shim->program = arena_text(request->arena, choice.found);
	return shim->program ? 0 : -ENOMEM;
}

int shim_look(const struct shim_request *request, const char *program, const char *real,
	      struct shim *ret_shim)
{
	const char *base = strrchr(real, '/') + 1;
	struct shim shim = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(proxies); i++)
		if (str_is(base, proxies[i].real))
			r = fill_proxy(request, &proxies[i], &shim);
	for (size_t i = 0; r >= 0 && !shim.program && i < ARRAY_SIZE(managers); i++)
		r = fill_managed(request, &managers[i], program, &shim);
	for (size_t i = 0; r >= 0 && strstr(program, "/shims/") && i < ARRAY_SIZE(passed); i++)
		if (!add_variable(request, &shim, passed[i],
				  program_variable(request->env, passed[i])))
			r = -ENOMEM;
	if (r >= 0)
		*ret_shim = shim;
	return r;
}
