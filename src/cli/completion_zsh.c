/*
 * Completion for zsh: a spec of _arguments per command
 *
 * The same text serves as the file `_caisson` on $fpath and sourced from a start-up file.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/completion.h"

/* Text of a spec inside single quotes: ':', '[', ']' and '\' are its own. */
static void print_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'') {
			fputs("'\\''", stdout);
			continue;
		}
		if (strchr(":[]\\", *text))
			fputc('\\', stdout);
		fputc(*text, stdout);
	}
}

/* The action of a spec for what offer_name() says; "words" is a list in place. */
static void print_action(enum cli_offer offer, const char *text, const char *name)
{
	static const struct {
		const char *name, *action;
	} actions[] = {
		{ "none", " " },
		{ "file", "_files" },
		{ "folder", "_path_files -/" },
		{ "workspace", "_caisson_workspace" },
		{ "mount", "_caisson_mount" },
		{ "variable", "_parameters -g \"*export*\"" },
		{ "run", "_caisson_runs" },
		{ "command", "_caisson_commands" },
	};

	if (str_is(name, "words")) {
		fputc('(', stdout);
		offer_print(offer, text);
		fputc(')', stdout);
	}
	if (str_is(name, "keys"))
		fputs(offer == OFFER_LIMIT ? "_caisson_limits" : "_caisson_settings", stdout);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (str_is(name, actions[i].name))
			fputs(actions[i].action, stdout);
}

/* One spelling of a flag: " '(-w --workspace)--workspace=[what]:PATH:action'". */
static void print_spelling(const struct cli_flag *flag, bool is_letter)
{
	bool has_value = cli_flag_has_value(flag);

	fputs(" '", stdout);
	if (flag->kind == CLI_LIST || (flag->kind == CLI_LIMIT && !flag->value))
		fputc('*', stdout);
	else if (flag->letter)
		printf("(-%c --%s)", flag->letter, flag->name);
	if (is_letter)
		printf("-%c%s[", flag->letter, has_value ? "+" : "");
	else
		printf("--%s%s[", flag->name, has_value ? "=" : "");
	print_text(flag->what);
	fputc(']', stdout);
	if (has_value) {
		fputc(':', stdout);
		print_text(flag->arg);
		fputc(':', stdout);
		print_action(flag->offer, flag->arg, offer_of_flag(flag));
	}
	fputc('\'', stdout);
}

static void print_flags(const struct cli_command *command)
{
	const struct cli_flag *flag;

	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++) {
		print_spelling(flag, false);
		if (flag->letter)
			print_spelling(flag, true);
	}
}

static void print_words(const struct cli_command *command)
{
	const char *first = offer_of_word(command, 0), *later = offer_of_word(command, 1);

	if (command->takes_argv) {
		fputs(" '(-)1:command:_command_names -e' '*::arguments:_normal'", stdout);
		return;
	}
	if (!str_is(first, "none")) {
		fputs(" '1:word:", stdout);
		print_action(command->offers[0], command->usage, first);
		fputc('\'', stdout);
	}
	if (!str_is(later, "none")) {
		fputs(" '*:word:", stdout);
		print_action(command->offers[1], "", later);
		fputc('\'', stdout);
	}
}

static void print_command(const struct cli_command *command)
{
	printf("\t'%s') _arguments -s -S", command->name);
	print_flags(command);
	print_words(command);
	puts(" ;;");
}

/* "'init:write a commented policy file' …" for _describe. */
static void print_described(const char *group)
{
	size_t length = strlen(group);

	for (const struct cli_command *c = cli_commands; c->name; c++) {
		if (strncmp(c->name, group, length) != 0 || c->name[length] != ' ')
			continue;
		printf(" '%s:", c->name + length + 1);
		print_text(c->summary);
		fputc('\'', stdout);
	}
}

static void print_group(const char *group)
{
	printf("\t%s) words_here=(", group);
	print_described(group);
	puts(" ) ;;");
}

static void print_group_name(const char *group)
{
	printf(" '%s:", group);
	completion_print_commands(group);
	fputc('\'', stdout);
}

static void print_keys(const char *name, enum cli_offer offer)
{
	printf("_caisson_%s()\n{\n\tif [[ $PREFIX == *=* ]]; then\n\t\tcompadd -- ", name);
	offer_print_pairs(offer);
	fputs("\n\telse\n\t\tcompadd -S '' -- ", stdout);
	offer_print(offer, "");
	puts("\n\tfi\n}");
}

static const char helpers[] =
	"_caisson_workspace()\n"
	"{\n"
	"\tif compset -P '*:'; then compadd -- ro rw cow; else _path_files -/; fi\n"
	"}\n"
	"_caisson_mount()\n"
	"{\n"
	"\tif compset -P '*:*:'; then compadd -- ro rw; else compset -P '*:'; _files; fi\n"
	"}\n"
	"_caisson_runs()\n"
	"{\n"
	"\tlocal folder=${(Q)opt_args[--run-dir]}\n"
	"\tlocal -a ids\n"
	"\tids=(${(f)\"$(command caisson runs ls -q ${folder:+--run-dir=$folder} 2>/dev/null)\"})\n"
	"\tcompadd -V runs -a ids\n"
	"}\n"
	"_caisson_commands()\n"
	"{\n"
	"\tlocal -a words_here\n"
	"\t_caisson_group ''\n"
	"\t_describe -t commands command words_here\n"
	"}\n";

static const char driver[] = "_caisson()\n"
			     "{\n"
			     "\tlocal command=$words[2]\n"
			     "\tlocal -a words_here line\n"
			     "\tlocal -A opt_args\n"
			     "\tif (( CURRENT == 2 )); then\n"
			     "\t\t_caisson_commands\n"
			     "\t\treturn\n"
			     "\tfi\n"
			     "\t_caisson_group \"$command\"\n"
			     "\tif (( $#words_here )); then\n"
			     "\t\tif (( CURRENT == 3 )); then\n"
			     "\t\t\t_describe -t commands command words_here\n"
			     "\t\t\treturn\n"
			     "\t\tfi\n"
			     "\t\tcommand=\"$command $words[3]\"\n"
			     "\t\tshift words; (( CURRENT-- ))\n"
			     "\tfi\n"
			     "\tshift words; (( CURRENT-- ))\n"
			     "\tcase $command in\n";

void completion_zsh(void)
{
	puts("#compdef caisson\n# zsh completion of caisson; made by `caisson completion zsh`");
	print_keys("limits", OFFER_LIMIT);
	print_keys("settings", OFFER_SETTING);
	fputs(helpers, stdout);
	fputs("_caisson_group()\n{\n\twords_here=()\n\tcase $1 in\n\t'') words_here=(", stdout);
	for (const struct cli_command *c = cli_commands; c->name; c++)
		if (!strchr(c->name, ' ')) {
			printf(" '%s:", c->name);
			print_text(c->summary);
			fputc('\'', stdout);
		}
	completion_each_group(print_group_name);
	puts(" ) ;;");
	completion_each_group(print_group);
	puts("\tesac\n}");
	fputs(driver, stdout);
	for (const struct cli_command *c = cli_commands; c->name; c++)
		print_command(c);
	puts("\tesac\n}\n"
	     "if [[ $funcstack[1] == _caisson ]]; then _caisson \"$@\"; else compdef _caisson "
	     "caisson; fi");
}
