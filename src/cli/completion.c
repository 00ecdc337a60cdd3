/*
 * Completion scripts for bash, zsh and fish, printed from the table
 *
 * Each script holds the table as data and one small function, so that a press of TAB starts
 * no process of ours.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

/* Text inside single quotes of a POSIX shell. */
static void quoted(const char *text)
{
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			fputc(*text, stdout);
}

/* "none|loopback" as "none loopback"; "" for a flag without choices. */
static void print_choices(const struct cli_flag *flag)
{
	if (!cli_flag_is_choice(flag))
		return;
	for (const char *at = flag->arg; *at; at++)
		fputc(*at == '|' ? ' ' : *at, stdout);
}

/* Does the value name a file or a folder? By its word in the table. */
static bool takes_path(const struct cli_flag *flag)
{
	return cli_flag_has_value(flag) &&
	       (str_starts(flag->arg, "FILE") || str_starts(flag->arg, "DIR") ||
		str_starts(flag->arg, "PATH") || str_starts(flag->arg, "HOST:AT"));
}

/* The words that start commands, each once; `second` after `group`, or the first words with NULL.
 */
static void print_words(const char *group)
{
	size_t length = group ? strlen(group) : 0, part;
	const char *last = "";

	for (const struct cli_command *c = cli_commands; c->name; c++) {
		if (group && (strncmp(c->name, group, length) != 0 || c->name[length] != ' '))
			continue;
		part = strcspn(c->name, " ");
		if (group)
			printf("%s ", c->name + length + 1);
		else if (strncmp(last, c->name, part + 1) != 0)
			printf("%.*s ", (int)part, c->name);
		last = c->name;
	}
}

/* Calls `each` once for every first word of a two-word command. */
static void each_group(void (*each)(const char *group))
{
	char group[32], last[32] = "";

	for (const struct cli_command *c = cli_commands; c->name; c++) {
		if (!strchr(c->name, ' '))
			continue;
		snprintf(group, sizeof group, "%.*s", (int)strcspn(c->name, " "), c->name);
		if (!str_is(group, last))
			each(group);
		snprintf(last, sizeof last, "%s", group);
	}
}

/* ---- bash ------------------------------------------------------------------------------ */

static void bash_group(const char *group)
{
	printf("\t%s) words='", group);
	print_words(group);
	puts("' ;;");
}

static void bash_flags(const struct cli_command *command)
{
	const struct cli_flag *flag;

	printf("\t'%s') flags='", command->name);
	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++) {
		printf("--%s ", flag->name);
		if (flag->letter)
			printf("-%c ", flag->letter);
	}
	printf("'; ends=%d ;;\n", command->takes_argv);
}

/* Values do not differ between commands: one case per flag that has any. */
static void bash_values(void)
{
	const struct cli_flag *flag;
	char seen[1024] = " ", key[64];

	for (const struct cli_command *c = cli_commands; c->name; c++)
		for (size_t i = 0; (flag = cli_flag_at(c, i)); i++) {
			snprintf(key, sizeof key, " --%s ", flag->name);
			if (!cli_flag_has_value(flag) || strstr(seen, key))
				continue;
			snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s", key + 1);
			printf("\t--%s", flag->name);
			if (flag->letter)
				printf("|-%c", flag->letter);
			fputs(") kind=", stdout);
			fputs(cli_flag_is_choice(flag) ? "choice; words='"
			      : takes_path(flag)       ? "path; words='"
						       : "text; words='",
			      stdout);
			print_choices(flag);
			puts("' ;;");
		}
}

static void print_bash(void)
{
	puts("# bash completion of caisson; made by `caisson completion bash`\n"
	     "_caisson_value()\n{\n\tkind= words=\n\tcase \"$1\" in");
	bash_values();
	puts("\tesac\n}\n_caisson_flags()\n{\n\tflags= ends=0\n\tcase \"$1\" in");
	for (const struct cli_command *c = cli_commands; c->name; c++)
		bash_flags(c);
	puts("\tesac\n}\n_caisson_group()\n{\n\twords=\n\tcase \"$1\" in");
	each_group(bash_group);
	fputs("\tesac\n}\n_caisson()\n{\n"
	      "\tlocal cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
	      "\tlocal command=\"${COMP_WORDS[1]}\" at=2 words= flags= kind= ends=0 i\n"
	      "\tCOMPREPLY=()\n"
	      "\tif [ \"$COMP_CWORD\" -le 1 ]; then\n"
	      "\t\tCOMPREPLY=($(compgen -W '",
	      stdout);
	print_words(NULL);
	puts("' -- \"$cur\"))\n\t\treturn\n\tfi\n"
	     "\t_caisson_group \"$command\"\n"
	     "\tif [ -n \"$words\" ]; then\n"
	     "\t\tif [ \"$COMP_CWORD\" -eq 2 ]; then\n"
	     "\t\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n\t\t\treturn\n\t\tfi\n"
	     "\t\tcommand=\"$command ${COMP_WORDS[2]}\" at=3\n\tfi\n"
	     "\t_caisson_flags \"$command\"\n"
	     "\t# After the first word that is no flag, `run` completes the command's own words.\n"
	     "\tfor ((i = at; ends && i < COMP_CWORD; i++)); do\n"
	     "\t\tcase \"${COMP_WORDS[i]}\" in\n"
	     "\t\t--) _command_offset $((i + 1)) 2>/dev/null || COMPREPLY=($(compgen -f -- "
	     "\"$cur\")); "
	     "return ;;\n"
	     "\t\t-*) _caisson_value \"${COMP_WORDS[i]}\"; [ -n \"$kind\" ] && i=$((i + 1)) ;;\n"
	     "\t\t*) _command_offset $i 2>/dev/null || COMPREPLY=($(compgen -f -- \"$cur\")); "
	     "return ;;\n"
	     "\t\tesac\n\tdone\n"
	     "\t_caisson_value \"$prev\"\n"
	     "\tcase \"$kind\" in\n"
	     "\tchoice) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
	     "\tpath) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
	     "\ttext) ;;\n"
	     "\t*) case \"$cur\" in\n"
	     "\t\t-*) COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\")) ;;\n"
	     "\t\t*) COMPREPLY=($(compgen -f -- \"$cur\"))\n"
	     "\t\t\t[ \"$ends\" = 1 ] && COMPREPLY+=($(compgen -c -- \"$cur\")) ;;\n"
	     "\t\tesac ;;\n"
	     "\tesac\n}\ncomplete -o filenames -F _caisson caisson");
}

/* ---- zsh ------------------------------------------------------------------------------- */

/* Text of an _arguments spec: ':', '[' and ']' are its own. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (strchr(":[]\\", *text))
			fputc('\\', stdout);
		if (*text == '\'')
			fputs("'\\'", stdout);
		fputc(*text, stdout);
	}
}

static void zsh_flag(const struct cli_flag *flag)
{
	bool repeats = flag->kind == CLI_LIST || flag->kind == CLI_LIMIT;

	for (int letter = 0; letter < 1 + (flag->letter != 0); letter++) {
		printf(" '%s%s", repeats ? "*" : "", letter ? "-" : "--");
		if (letter)
			fputc(flag->letter, stdout);
		else
			fputs(flag->name, stdout);
		fputs(letter || !cli_flag_has_value(flag) ? "[" : "=[", stdout);
		zsh_text(flag->what);
		fputs("]", stdout);
		if (cli_flag_has_value(flag)) {
			fputs(":", stdout);
			zsh_text(flag->arg);
			fputs(cli_flag_is_choice(flag) ? ":("
			      : takes_path(flag)       ? ":_files"
						       : ": ",
			      stdout);
			print_choices(flag);
			fputs(cli_flag_is_choice(flag) ? ")" : "", stdout);
		}
		fputs("'", stdout);
	}
}

static void zsh_group(const char *group)
{
	printf("\t%s) (( CURRENT == 3 )) && { compadd ", group);
	print_words(group);
	puts("; return }; shift words; (( CURRENT-- )); words[1]=\"caisson $cmd ${words[1]}\"; "
	     "cmd=\"$cmd ${words[1]##* }\" ;;");
}

static void print_zsh(void)
{
	const struct cli_flag *flag;

	puts("#compdef caisson\n# zsh completion of caisson; made by `caisson completion zsh`\n"
	     "_caisson()\n{\n\tlocal cmd=$words[2]\n\tif (( CURRENT == 2 )); then");
	fputs("\t\tcompadd ", stdout);
	print_words(NULL);
	puts("\n\t\treturn\n\tfi\n\tshift words; (( CURRENT-- ))\n\tcase $cmd in");
	each_group(zsh_group);
	puts("\tesac\n\tcase $cmd in");
	for (const struct cli_command *c = cli_commands; c->name; c++) {
		printf("\t'%s') _arguments -s", c->name);
		for (size_t i = 0; (flag = cli_flag_at(c, i)); i++)
			zsh_flag(flag);
		puts(c->takes_argv ? " '*::command:_normal' ;;" : " '*:file:_files' ;;");
	}
	puts("\tesac\n}\n_caisson \"$@\"");
}

/* ---- fish ------------------------------------------------------------------------------ */

static void fish_flag(const struct cli_command *command, const struct cli_flag *flag)
{
	printf("complete -c caisson -n '__caisson_is %s' -l %s", command->name, flag->name);
	if (flag->letter)
		printf(" -s %c", flag->letter);
	if (cli_flag_is_choice(flag)) {
		fputs(" -x -a '", stdout);
		print_choices(flag);
		fputs("'", stdout);
	} else if (cli_flag_has_value(flag)) {
		fputs(takes_path(flag) ? " -r -F" : " -x", stdout);
	}
	fputs(" -d '", stdout);
	quoted(flag->what);
	puts("'");
}

static void fish_command(const struct cli_command *command)
{
	const char *blank = strchr(command->name, ' ');
	const struct cli_flag *flag;

	if (blank)
		printf("complete -c caisson -f -n '__caisson_is %.*s' -a %s -d '",
		       (int)(blank - command->name), command->name, blank + 1);
	else
		printf("complete -c caisson -f -n '__caisson_is' -a %s -d '", command->name);
	quoted(command->summary);
	puts("'");
	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++)
		fish_flag(command, flag);
}

static void fish_group(const char *group)
{
	printf("complete -c caisson -f -n '__caisson_is' -a %s\n", group);
}

static void print_fish(void)
{
	puts("# fish completion of caisson; made by `caisson completion fish`\n"
	     "function __caisson_is\n"
	     "\tset -l words (commandline -opc)\n"
	     "\tset -e words[1]\n"
	     "\tset -l count (count $argv)\n"
	     "\tif test $count -eq 0\n\t\ttest (count $words) -eq 0; return\n\tend\n"
	     "\ttest (count $words) -ge $count; and test \"$words[1..$count]\" = \"$argv\"\nend");
	each_group(fish_group);
	for (const struct cli_command *c = cli_commands; c->name; c++)
		fish_command(c);
}

int cli_completion(struct cli *cli)
{
	static const struct {
		const char *shell;
		void (*print)(void);
	} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
	struct csn_error err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (str_is(shells[i].shell, cli->args[0])) {
			shells[i].print();
			return CLI_OK;
		}
	csn_fail(&err, -EINVAL, "usage",
		 "there is no completion for \"%s\"; there is for bash, zsh and fish",
		 cli->args[0]);
	return cli_misuse(cli, &err);
}
