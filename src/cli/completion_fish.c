/*
 * Completion for fish 3.1 and later: a line per flag and command
 *
 * Fish asks each line's condition; it remembers the answers within one press of TAB, so the
 * conditions are few and equal ones are spelled equally.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/completion.h"

/* Text inside single quotes. */
static void print_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', stdout);
		fputc(*text, stdout);
	}
}

/* The condition: the line has `command`, and from `least` to `most` words after it. */
static void print_start(const char *command, int least, int most)
{
	printf("complete -c caisson -n '__caisson_at %d %d%s%s'", least, most, *command ? " " : "",
	       command);
}

/* " -x -a '…'" for what offer_name() says. */
static void print_offer(enum cli_offer offer, const char *text, const char *name)
{
	static const struct {
		const char *name, *text;
	} offers[] = {
		{ "none", " -x" },
		{ "file", " -r -F" },
		{ "folder", " -x -a '(__fish_complete_directories (__caisson_value))'" },
		{ "workspace", " -x -a '(__caisson_workspace)'" },
		{ "mount", " -x -a '(__caisson_mount)'" },
		{ "variable", " -x -a '(set -nx)'" },
		{ "run", " -x -k -a '(__caisson_runs)'" },
		{ "command", " -x -a '(__caisson_commands)'" },
	};

	if (str_is(name, "words")) {
		fputs(" -x -a '", stdout);
		offer_print(offer, text);
		fputs("'", stdout);
	}
	if (str_is(name, "keys"))
		printf(" -x -a '(__caisson_%s)'", offer == OFFER_LIMIT ? "limits" : "settings");
	for (size_t i = 0; i < ARRAY_SIZE(offers); i++)
		if (str_is(name, offers[i].name))
			fputs(offers[i].text, stdout);
}

static void print_flag(const struct cli_command *command, const struct cli_flag *flag)
{
	/* A command of the host ends our flags. */
	print_start(command->name, 0, command->takes_argv ? 0 : 99);
	printf(" -l %s", flag->name);
	if (flag->letter)
		printf(" -s %c", flag->letter);
	if (cli_flag_has_value(flag))
		print_offer(flag->offer, flag->arg, offer_of_flag(flag));
	fputs(" -d '", stdout);
	print_text(flag->what);
	puts("'");
}

static void print_words(const struct cli_command *command)
{
	static const int places[2][2] = { { 0, 0 }, { 1, 99 } };

	for (int later = 0; later < 2; later++) {
		const char *name = offer_of_word(command, later);

		if (str_is(name, "none"))
			continue;
		print_start(command->name, places[later][0], places[later][1]);
		if (command->takes_argv)
			printf(" -x -a '(__caisson_program %d)'",
			       strchr(command->name, ' ') ? 2 : 1);
		print_offer(command->offers[later], command->usage, name);
		putchar('\n');
	}
}

static void print_command(const struct cli_command *command)
{
	const char *blank = strchr(command->name, ' ');
	const struct cli_flag *flag;
	char group[32] = "";

	if (blank)
		snprintf(group, sizeof group, "%.*s", (int)(blank - command->name), command->name);
	print_start(group, 0, 0);
	printf(" -a %s -d '", blank ? blank + 1 : command->name);
	print_text(command->summary);
	puts("'");
	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++)
		print_flag(command, flag);
	print_words(command);
}

static void print_group(const char *group)
{
	print_start("", 0, 0);
	printf(" -a %s -d '", group);
	completion_print_commands(group);
	puts("'");
}

static void print_keys(const char *name, enum cli_offer offer)
{
	printf("function __caisson_%s\n"
	       "\tif string match -q '*=*' -- (__caisson_value)\n"
	       "\t\tstring split -n ' ' '",
	       name);
	offer_print_pairs(offer);
	fputs("'\n\telse\n\t\tstring split -n ' ' '", stdout);
	offer_print(offer, "");
	puts("'\n\tend\nend");
}

static void print_valued(const struct cli_flag *flag)
{
	printf(" --%s", flag->name);
}

static void print_valued_letter(const struct cli_flag *flag)
{
	if (flag->letter)
		putchar(flag->letter);
}

static const char helpers[] =
	"# The line's words without flags and their values; after more than LIMIT words, all.\n"
	"function __caisson_plain -a limit\n"
	"\tset -l line (commandline -opc)\n"
	"\tset -l plain\n"
	"\tset -l value\n"
	"\tset -l closed\n"
	"\tset -e line[1]\n"
	"\tfor word in $line\n"
	"\t\tif test -n \"$closed\" -o (count $plain) -gt $limit\n"
	"\t\t\tset -a plain $word\n"
	"\t\telse if test -n \"$value\"\n"
	"\t\t\tset value\n"
	"\t\telse if test \"$word\" = --\n"
	"\t\t\tset closed 1\n"
	"\t\telse if contains -- $word $__caisson_valued; or string match -qr -- "
	"$__caisson_letters $word\n"
	"\t\t\tset value 1\n"
	"\t\telse if not string match -q -- '-?*' $word\n"
	"\t\t\tset -a plain $word\n"
	"\t\tend\n"
	"\tend\n"
	"\tset -q plain[1]; and printf '%s\\n' $plain\n"
	"end\n"
	"# Does the line have COMMAND, and from LEAST to MOST words after it?\n"
	"function __caisson_at -a least most\n"
	"\tset -l plain (__caisson_plain 99)\n"
	"\tset -e argv[1..2]\n"
	"\tset -l size (count $argv)\n"
	"\tset -l more (math (count $plain) - $size)\n"
	"\ttest $more -ge $least -a $more -le $most; or return 1\n"
	"\ttest $size -eq 0; or test \"$plain[1..$size]\" = \"$argv\"\n"
	"end\n"
	"# What is typed of a value, as `--flag=VALUE` or as a word.\n"
	"function __caisson_value\n"
	"\tset -l token (commandline -ct)\n"
	"\tstring replace -r -- '^--[a-z-]*=' '' \"$token\"\n"
	"end\n"
	"function __caisson_workspace\n"
	"\tset -l value (__caisson_value)\n"
	"\tif string match -q '*:*' -- $value\n"
	"\t\tprintf '%s\\n' (string replace -r ':[^:]*$' '' -- $value):{ro,rw,cow}\n"
	"\telse\n"
	"\t\t__fish_complete_directories \"$value\"\n"
	"\tend\n"
	"end\n"
	"function __caisson_mount\n"
	"\tset -l value (__caisson_value)\n"
	"\tset -l part (string split -m 1 : -- $value)\n"
	"\tif string match -q '*:*:*' -- $value\n"
	"\t\tprintf '%s\\n' (string replace -r ':[^:]*$' '' -- $value):{ro,rw}\n"
	"\telse if set -q part[2]\n"
	"\t\tprintf '%s\\n' $part[1]:(__fish_complete_path \"$part[2]\")\n"
	"\telse\n"
	"\t\t__fish_complete_path \"$value\"\n"
	"\tend\n"
	"end\n"
	"function __caisson_runs\n"
	"\tset -l folder (string match -r -g -- '--run-dir[ =]([^ ]+)' (commandline -pc))\n"
	"\tset -q folder[1]; and set folder --run-dir=$folder[1]\n"
	"\tcommand caisson runs ls -q $folder 2>/dev/null\n"
	"end\n"
	"# What the program that stands after SKIP words would be offered.\n"
	"function __caisson_program -a skip\n"
	"\tset -l words (__caisson_plain $skip)\n"
	"\tset -l token (commandline -ct)\n"
	"\tset -e words[1..$skip]\n"
	"\t# A program does not begin with a hyphen: what is typed is a flag of ours.\n"
	"\tset -q words[1]; or not string match -q -- '-*' \"$token\"; or return\n"
	"\tset -l line (string join ' ' -- (string escape -- $words) \"$token\")\n"
	"\tcomplete --do-complete=\"$line\"\n"
	"end\n";

void completion_fish(void)
{
	fputs("# fish completion of caisson; made by `caisson completion fish`\n"
	      "set -g __caisson_valued",
	      stdout);
	completion_each_valued(print_valued);
	/* "-n", and "-qn", but not "-nq": there "q" is the value. */
	fputs("\nset -l letters ", stdout);
	completion_each_valued(print_valued_letter);
	puts("\nset -g __caisson_letters \"^-[^-$letters]*[$letters]\\$\"");
	fputs(helpers, stdout);
	print_keys("limits", OFFER_LIMIT);
	print_keys("settings", OFFER_SETTING);
	fputs("function __caisson_commands\n\tstring split -n ' ' '", stdout);
	completion_print_commands(NULL);
	puts("'\nend\ncomplete -c caisson -f");
	completion_each_group(print_group);
	for (const struct cli_command *c = cli_commands; c->name; c++)
		print_command(c);
}
