/* The argument map of an exec call, as C strings; see command.h. */
#include "agent/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

static char *text_of(struct arena *arena, const struct term *term)
{
	return arena_copy(arena, term->bytes.data, term->bytes.size);
}

static char **read_list(struct arena *arena, const struct term *list)
{
	char **texts = arena_array(arena, list->count + 1, sizeof *texts);

	for (size_t i = 0; texts && i < list->count; i++) {
		texts[i] = text_of(arena, &list->items[i]);
		if (!texts[i])
			return NULL;
	}
	return texts;
}

/* A text is for bash, or sh where there is no bash. */
static char **shell_argv(struct arena *arena, const struct term *text)
{
	char **argv = arena_array(arena, 4, sizeof *argv);

	if (!argv)
		return NULL;
	argv[0] = arena_text(arena, faccessat(AT_FDCWD, "/bin/bash", X_OK, AT_EACCESS) == 0
					    ? "/bin/bash"
					    : "/bin/sh");
	argv[1] = arena_text(arena, "-c");
	argv[2] = text_of(arena, text);
	return argv[0] && argv[1] && argv[2] ? argv : NULL;
}

static char **read_env(struct arena *arena, const struct term *map)
{
	size_t pairs = map ? map->count / 2 : 0;
	char **env = arena_array(arena, pairs + 1, sizeof *env);

	for (size_t i = 0; env && i < pairs; i++) {
		const struct term *name = &map->items[2 * i], *value = name + 1;

		env[i] = arena_alloc(arena, name->bytes.size + value->bytes.size + 2);
		if (!env[i])
			return NULL;
		memcpy(env[i], name->bytes.data, name->bytes.size);
		env[i][name->bytes.size] = '=';
		if (value->bytes.size)
			memcpy(env[i] + name->bytes.size + 1, value->bytes.data, value->bytes.size);
	}
	return env;
}

static const char *find_path(char *const *env)
{
	for (; *env; env++)
		if (str_starts(*env, "PATH="))
			return *env + 5;
	return "/usr/local/bin:/usr/bin:/bin";
}

static bool flag(const struct term *map, const char *key)
{
	const struct term *term = term_get(map, key);

	return term && term_is_atom(term, "true");
}

static unsigned number(const struct term *map, const char *key)
{
	const struct term *term = term_get(map, key);

	return term ? (unsigned)term->integer : 0;
}

static bool is_supported(const struct term *limits)
{
	return !(limits && (term_get(limits, "data_bytes") || term_get(limits, "processes")));
}

/* Texts, copied; -ENOMEM when one is missing. */
static int read_texts(const struct term *map, struct arena *arena, struct command *ret_command)
{
	const struct term *argv = term_get(map, "argv"), *cwd = term_get(map, "cwd");
	const struct term *profile = term_get(map, "profile"), *tag = term_get(map, "tag");
	const struct term *image = term_get(map, "image");

	ret_command->argv =
		argv ? read_list(arena, argv) : shell_argv(arena, term_get(map, "command"));
	ret_command->env = read_env(arena, term_get(map, "env"));
	ret_command->cwd = cwd ? text_of(arena, cwd) : NULL;
	ret_command->profile = profile ? text_of(arena, profile) : NULL;
	ret_command->tag = tag ? text_of(arena, tag) : NULL;
	ret_command->image = image ? arena_copy(arena, image->bytes.data, image->bytes.size) : NULL;
	ret_command->image_size = image ? image->bytes.size : 0;
	if (!ret_command->argv || !ret_command->env || !image != !ret_command->image)
		return -ENOMEM;
	return !cwd == !ret_command->cwd && !profile == !ret_command->profile &&
			       !tag == !ret_command->tag
		       ? 0
		       : -ENOMEM;
}

int command_read(const struct term *map, struct arena *arena, struct command *ret_command)
{
	const struct term *argv = term_get(map, "argv"), *limits = term_get(map, "limits");
	const struct term *timeout = term_get(map, "timeout_ms");
	const struct term *files = limits ? term_get(limits, "open_files") : NULL;
	struct command command = {
		.open_files = files ? (uint64_t)files->integer : 0,
		.has_stdin = flag(map, "stdin"),
		.has_tty = flag(map, "tty"),
		.has_report = flag(map, "report"),
		.is_last = flag(map, "last"),
		.is_detached = flag(map, "detach"),
		.timeout_ms = timeout ? (uint64_t)timeout->integer : 0,
		.rows = number(map, "rows"),
		.cols = number(map, "cols"),
	};
	int r;

	if (!argv == !term_get(map, "command") || (argv && argv->count == 0))
		return -EINVAL;
	if (command.is_detached && (command.is_last || command.has_stdin || command.has_report))
		return -EINVAL;
	if (!is_supported(limits))
		return -EOPNOTSUPP;
	r = read_texts(map, arena, &command);
	if (r < 0)
		return r;
	command.path = find_path(command.env);
	*ret_command = command;
	return 0;
}
