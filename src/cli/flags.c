/*
 * The parser of flags
 *
 * Knows kinds, not names: a flag's table entry says where its value goes. A refusal names
 * the flag and the way out, and the nearest existing name when an unknown one looks like a
 * slip. Nothing is abbreviated and nothing is guessed: a script that works today must not
 * change its meaning when a flag is added.
 */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

enum { NAME_MAX_LENGTH = 24, MAX_NAMES = 64 };

/* One command line being read. */
struct reader {
	struct cli *cli;
	char **argv;
	int argc;
	int next;
	bool has_failed; /* the first refusal is kept, later ones are dropped */
	struct csn_error *err;
};

bool cli_flag_has_value(const struct cli_flag *flag)
{
	return flag->kind != CLI_SWITCH && flag->kind != CLI_FIXED;
}

/* Is its value one of the words in `arg`? */
static bool is_choice(const struct cli_flag *flag)
{
	if (!flag->arg || !strchr(flag->arg, '|'))
		return false;
	for (const char *at = flag->arg; *at; at++)
		if (isupper((unsigned char)*at))
			return false;
	return true;
}

int cli_list_add(struct cli_list *list, const char *text)
{
	const char **items;

	items = reallocarray(list->items, list->count + 2, sizeof *items);
	if (!items)
		return -ENOMEM;
	items[list->count++] = text;
	items[list->count] = NULL;
	list->items = items;
	return 0;
}

/* Edit distance of two short words. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_LENGTH + 1], width = (unsigned)strlen(b), corner, above, best;

	if (strlen(a) > NAME_MAX_LENGTH || width > NAME_MAX_LENGTH)
		return NAME_MAX_LENGTH;
	for (unsigned i = 0; i <= width; i++)
		row[i] = i;
	for (unsigned y = 1; a[y - 1]; y++) {
		corner = row[0];
		row[0] = y;
		for (unsigned x = 1; x <= width; x++) {
			above = row[x];
			best = corner + (a[y - 1] != b[x - 1]);
			best = above + 1 < best ? above + 1 : best;
			row[x] = row[x - 1] + 1 < best ? row[x - 1] + 1 : best;
			corner = above;
		}
	}
	return row[width];
}

/* "rnu" for "run": two neighbours changed places, which is one slip. */
static bool is_swap(const char *a, const char *b)
{
	size_t i = 0;

	while (a[i] && a[i] == b[i])
		i++;
	return a[i] && a[i + 1] && a[i] == b[i + 1] && a[i + 1] == b[i] &&
	       str_is(a + i + 2, b + i + 2);
}

const char *cli_nearest(const char *word, const char *const *names, size_t count)
{
	const char *nearest = NULL;
	unsigned least = strlen(word) < 4 ? 1 : 2, d;

	for (size_t i = 0; i < count; i++) {
		d = is_swap(word, names[i]) ? 1 : distance(word, names[i]);
		if (d <= least && (!nearest || d < distance(word, nearest)))
			nearest = names[i];
	}
	if (nearest || strlen(word) < 3)
		return nearest;
	for (size_t i = 0; i < count; i++)
		if (str_starts(names[i], word))
			return names[i];
	return NULL;
}

static const struct cli_flag *find_long(const struct cli_command *command, const char *name,
					size_t length)
{
	const struct cli_flag *flag;

	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++)
		if (strlen(flag->name) == length && memcmp(flag->name, name, length) == 0)
			return flag;
	return NULL;
}

static const struct cli_flag *find_letter(const struct cli_command *command, char letter)
{
	const struct cli_flag *flag;

	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++)
		if (flag->letter == letter)
			return flag;
	return NULL;
}

__attribute__((format(printf, 2, 3))) static void refuse(struct reader *reader, const char *format,
							 ...)
{
	char text[sizeof reader->err->text];
	va_list list;

	if (reader->has_failed)
		return;
	reader->has_failed = true;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	csn_fail(reader->err, -EINVAL, "usage", "%s", text);
}

static void refuse_unknown(struct reader *reader, const char *word, size_t length)
{
	const struct cli_command *command = reader->cli->command;
	const char *names[MAX_NAMES], *near;
	char name[NAME_MAX_LENGTH + 1];
	const struct cli_flag *flag;
	size_t count = 0;

	for (size_t i = 0; count < MAX_NAMES && (flag = cli_flag_at(command, i)); i++)
		names[count++] = flag->name;
	snprintf(name, sizeof name, "%.*s", (int)length, word);
	near = cli_nearest(name, names, count);
	if (near)
		refuse(reader, "there is no flag --%s; did you mean --%s?", name, near);
	else
		refuse(reader, "there is no flag --%s; `caisson help %s` lists them", name,
		       command->name);
}

static void check_choice(struct reader *reader, const struct cli_flag *flag, const char *value)
{
	size_t length = strlen(value), part;

	for (const char *at = flag->arg; *at; at += part + (at[part] == '|')) {
		part = strcspn(at, "|");
		if (part == length && memcmp(at, value, part) == 0)
			return;
	}
	refuse(reader, "--%s is one of %s, not \"%s\"", flag->name, flag->arg, value);
}

static void set_text(struct reader *reader, const struct cli_flag *flag, const char *value)
{
	const char **target = (void *)((char *)&reader->cli->options + flag->target);

	if (*target && flag->kind == CLI_FIXED)
		refuse(reader, "--%s: already said by another flag (%s); keep one", flag->name,
		       *target);
	else if (*target)
		refuse(reader, "--%s is given twice; keep one", flag->name);
	*target = value;
}

/* Limits are kept as "KEY=VALUE", each key once however it was spelled. */
static void add_limit(struct reader *reader, const struct cli_flag *flag, const char *value)
{
	struct cli_list *limits = &reader->cli->options.limits;
	char *text = NULL;
	size_t key;

	if (!flag->value && (!strchr(value, '=') || value[0] == '='))
		return refuse(reader, "--limit takes KEY=VALUE, as in --limit command=10m");
	if (asprintf(&text, "%s%s%s", flag->value ? flag->value : "", flag->value ? "=" : "",
		     value) < 0)
		return refuse(reader, "out of memory");
	key = strcspn(text, "=") + 1;
	for (size_t i = 0; i < limits->count; i++)
		if (strncmp(limits->items[i], text, key) == 0)
			refuse(reader, "the limit \"%.*s\" is given twice; keep one", (int)key - 1,
			       text);
	if (cli_list_add(limits, text) < 0) {
		free(text);
		refuse(reader, "out of memory");
	}
}

static void take(struct reader *reader, const struct cli_flag *flag, const char *value)
{
	char *target = (char *)&reader->cli->options + flag->target;

	if (value && is_choice(flag))
		check_choice(reader, flag, value);
	if (value && !*value && flag->kind != CLI_LIMIT)
		refuse(reader, "--%s needs a value, not an empty text", flag->name);
	switch (flag->kind) {
	case CLI_SWITCH:
		*(bool *)target = true;
		break;
	case CLI_FIXED:
		set_text(reader, flag, flag->value);
		break;
	case CLI_TEXT:
		set_text(reader, flag, value);
		break;
	case CLI_LIST:
		if (cli_list_add((struct cli_list *)target, value) < 0)
			refuse(reader, "out of memory");
		break;
	case CLI_LIMIT:
		add_limit(reader, flag, value);
		break;
	}
}

/* The next word as the value of `flag`; a word that is itself a flag is a forgotten value. */
static const char *next_value(struct reader *reader, const struct cli_flag *flag)
{
	const char *word = reader->next < reader->argc ? reader->argv[reader->next] : NULL;

	if (word && str_starts(word, "--") && strcspn(word + 2, "=") > 0 &&
	    find_long(reader->cli->command, word + 2, strcspn(word + 2, "="))) {
		refuse(reader, "--%s needs a value, but %s follows; write --%s=%s if you mean that",
		       flag->name, word, flag->name, flag->arg);
		return NULL;
	}
	if (!word) {
		refuse(reader, "--%s needs a value: --%s %s", flag->name, flag->name, flag->arg);
		return NULL;
	}
	reader->next++;
	return word;
}

static void read_long(struct reader *reader, const char *word)
{
	size_t length = strcspn(word, "=");
	const struct cli_flag *flag = find_long(reader->cli->command, word, length);
	const char *value = word[length] ? word + length + 1 : NULL;

	if (!flag)
		return refuse_unknown(reader, word, length);
	if (!cli_flag_has_value(flag)) {
		if (value)
			return refuse(reader, "--%s takes no value", flag->name);
		return take(reader, flag, NULL);
	}
	if (!value)
		value = next_value(reader, flag);
	if (value)
		take(reader, flag, value);
}

/* "-q", "-qv", "-n none", "-nnone". */
static void read_letters(struct reader *reader, const char *word)
{
	const struct cli_flag *flag;
	const char *value;

	for (; *word; word++) {
		flag = find_letter(reader->cli->command, *word);
		if (!flag)
			return refuse(reader,
				      "there is no flag -%.1s; `caisson help %s` lists them",
				      isprint((unsigned char)*word) ? word : "?",
				      reader->cli->command->name);
		if (!cli_flag_has_value(flag)) {
			take(reader, flag, NULL);
			continue;
		}
		value = word[1] ? word + 1 : next_value(reader, flag);
		if (value)
			take(reader, flag, value);
		return;
	}
}

/* ":rwx" behind a path: a mode that is none, and not the end of a folder's name. */
static void refuse_mode(struct reader *reader, const char *text, const char *mode)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	struct stat st;

	if (*mode && strlen(mode) < 10 && !mode[strspn(mode, letters)] && stat(text, &st) < 0)
		refuse(reader, "--workspace %s: the mode is ro, rw or cow, not %s", text, mode);
}

/* PATH[:ro|rw|cow]: the mode after the last colon is a mode only if it is one of these. */
static void split_workspace(struct reader *reader)
{
	static const char *const modes[] = { "ro", "rw", "cow" };
	struct cli_options *options = &reader->cli->options;
	char *colon;

	if (!options->workspace || !(colon = strrchr(options->workspace, ':')))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!str_is(colon + 1, modes[i]))
			continue;
		if (options->workspace_mode && !str_is(options->workspace_mode, modes[i]))
			refuse(reader, "the workspace is asked for as %s and as %s; keep one",
			       modes[i], options->workspace_mode);
		if (colon == options->workspace)
			refuse(reader, "--workspace needs a path before \":%s\"", modes[i]);
		*colon = 0;
		options->workspace_mode = modes[i];
		return;
	}
	refuse_mode(reader, options->workspace, colon + 1);
}

static void check_args(struct reader *reader)
{
	const struct cli *cli = reader->cli;
	const struct cli_command *command = cli->command;

	if (cli->options.help)
		return;
	if (cli->arg_count < command->min_args)
		refuse(reader, "something is missing: caisson %s %s", command->name,
		       command->usage);
	if (command->max_args >= 0 && cli->arg_count > command->max_args)
		refuse(reader, "\"%s\" is one word too many: caisson %s %s",
		       cli->args[command->max_args], command->name, command->usage);
}

int cli_parse(struct cli *cli, int argc, char **argv, struct csn_error *err)
{
	struct reader reader = { .cli = cli, .argv = argv, .argc = argc, .err = err };
	const char *word;

	cli->args = calloc((size_t)argc + 1, sizeof *cli->args);
	if (!cli->args)
		return csn_fail(err, -ENOMEM, "usage", "out of memory");
	while (reader.next < argc) {
		word = argv[reader.next];
		if (str_is(word, "--") ||
		    (cli->command->takes_argv && (word[0] != '-' || !word[1]) &&
		     cli->arg_count >= cli->command->own_words))
			break;
		reader.next++;
		if (word[0] != '-' || !word[1])
			cli->args[cli->arg_count++] = argv[reader.next - 1];
		else if (word[1] == '-')
			read_long(&reader, word + 2);
		else
			read_letters(&reader, word + 1);
	}
	reader.next += reader.next < argc && str_is(argv[reader.next], "--");
	while (reader.next < argc)
		cli->args[cli->arg_count++] = argv[reader.next++];
	split_workspace(&reader);
	check_args(&reader);
	return reader.has_failed ? -EINVAL : 0;
}

void cli_done(struct cli *cli)
{
	struct cli_options *options = &cli->options;

	for (size_t i = 0; i < options->limits.count; i++)
		free((char *)options->limits.items[i]);
	free(options->limits.items);
	free(options->mounts.items);
	free(options->allow.items);
	free(options->env.items);
	free(options->tags.items);
	free(options->enforces.items);
	free(options->gates.items);
	free(options->forwards.items);
	free(options->observes.items);
	free(cli->args);
}
