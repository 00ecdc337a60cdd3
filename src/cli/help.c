/*
 * Help, the manual page, docs/cli.md, version: the table of commands told four times
 *
 * The synopsis of a flag is written in one function, so that no form can differ from
 * another; tests/cli/test_cli_help.py still compares them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/out.h"

enum { INDENT = 2, FLAG_COLUMN = 34, MIN_WIDTH = 50, MAX_WIDTH = 100, FLAG_TEXT = 96 };

/* "-w, --workspace PATH[:ro|rw|cow]" */
static void flag_text(const struct cli_flag *flag, char *ret_text, size_t size)
{
	char letter[8] = "";

	if (flag->letter)
		snprintf(letter, sizeof letter, "-%c, ", flag->letter);
	snprintf(ret_text, size, "%s--%s%s%s", letter, flag->name, flag->arg ? " " : "",
		 flag->arg ? flag->arg : "");
}

/* As wide as its terminal, and never so wide that lines are hard to follow. */
static int help_width(FILE *file)
{
	struct winsize size = { 0 };
	bool has_size = isatty(fileno(file)) && ioctl(fileno(file), TIOCGWINSZ, &size) == 0;

	return has_size && size.ws_col >= MIN_WIDTH && size.ws_col < MAX_WIDTH ? size.ws_col
									       : MAX_WIDTH;
}

static void print_row(FILE *file, const char *left, const char *right, int column)
{
	int used = fprintf(file, "%*s%s", INDENT, "", left) - (int)strlen(left) + out_width(left);

	if (used + 1 >= column) { /* two blanks at least */
		fputc('\n', file);
		used = 0;
	}
	fprintf(file, "%*s", column - used, "");
	/* The first line goes on where the cursor stands. */
	for (const char *at = right; *at;) {
		int room = help_width(file) - column, length = (int)strlen(at), end = length;

		if (length > room) {
			for (end = room; end > 0 && at[end] != ' '; end--)
				;
			end = end ? end : length;
		}
		fprintf(file, "%.*s\n", end, at);
		at += end + (at[end] == ' ');
		if (*at)
			fprintf(file, "%*s", column, "");
	}
}

static void print_usage(FILE *file, const struct cli_command *command)
{
	fprintf(file, "caisson %s [FLAGS]%s%s\n", command->name, *command->usage ? " " : "",
		command->usage);
}

/* A summary stands alone as a sentence in pages; the rest of it follows from the caller. */
static void print_capital(const struct cli_command *command)
{
	putchar(toupper((unsigned char)command->summary[0]));
}

static void print_command(FILE *file, const struct cli_command *command)
{
	const struct cli_flag *flag;
	char text[FLAG_TEXT];

	print_usage(file, command);
	fputc('\n', file);
	out_wrap(file, command->summary, INDENT, help_width(file));
	if (*command->text) {
		fputc('\n', file);
		out_wrap(file, command->text, INDENT, help_width(file));
	}
	fputs("\nFlags:\n", file);
	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++) {
		flag_text(flag, text, sizeof text);
		print_row(file, text, flag->what, FLAG_COLUMN);
	}
}

static void print_all(FILE *file)
{
	fputs("caisson COMMAND [FLAGS] …\n\n"
	      "Runs untrusted commands behind walls and says what they did, what they tried,\n"
	      "and what stopped them.\n\n",
	      file);
	for (const struct cli_command *c = cli_commands; c->name; c++)
		print_row(file, c->name, c->summary, 18);
	fputs("\n`caisson help COMMAND` lists a command's flags.\n", file);
}

void cli_print_help(const struct cli_command *command, bool is_error)
{
	FILE *file = is_error ? stderr : stdout;

	if (command)
		print_command(file, command);
	else
		print_all(file);
}

void cli_print_group(const char *group, bool is_error)
{
	FILE *file = is_error ? stderr : stdout;
	size_t length = strlen(group);

	for (const struct cli_command *c = cli_commands; c->name; c++)
		if (strncmp(c->name, group, length) == 0 && c->name[length] == ' ')
			print_row(file, c->name, c->summary, 18);
	fprintf(file, "\n`caisson help %s COMMAND` lists a command's flags.\n", group);
}

/* ---- the manual page ---------------------------------------------------------------- */

/* Text for roff: hyphens as minus, no line that looks like a request. */
static void roff(const char *text)
{
	for (const char *at = text; *at; at++) {
		if ((*at == '.' || *at == '\'') && (at == text || at[-1] == '\n'))
			fputs("\\&", stdout);
		if (str_starts(at, "\n\n")) {
			fputs("\n.PP\n", stdout);
			at++;
		} else if (str_starts(at, "…")) {
			fputs("\\&...", stdout);
			at += strlen("…") - 1;
		} else if (*at == '-') {
			fputs("\\-", stdout);
		} else if (*at == '\\') {
			fputs("\\e", stdout);
		} else if (*at == '`') {
			fputs("\\(ga", stdout);
		} else {
			fputc(*at, stdout);
		}
	}
}

static void man_command(const struct cli_command *command)
{
	const struct cli_flag *flag;
	char text[FLAG_TEXT];

	printf(".SS caisson %s\n.B caisson %s\n[FLAGS]%s", command->name, command->name,
	       *command->usage ? " " : "");
	roff(command->usage);
	puts("\n.PP");
	print_capital(command);
	roff(command->summary + 1);
	puts(".");
	if (*command->text) {
		puts(".PP");
		roff(command->text);
		puts("");
	}
	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++) {
		flag_text(flag, text, sizeof text);
		fputs(".TP\n.B ", stdout);
		roff(text);
		puts("");
		roff(flag->what);
		puts("");
	}
}

struct man_row {
	const char *name;
	const char *what;
};

static const struct man_row man_files[] = {
	{ "caisson.yaml", "the policy of a project, searched here and above" },
	{ "$XDG_CONFIG_HOME/caisson/trusted",
	  "the policy files that were trusted, with their text; without the variable "
	  "~/.config/caisson/trusted" },
	{ "$XDG_STATE_HOME/caisson/runs",
	  "records of runs, kept for 7 days; without the variable ~/.local/state/caisson/runs" },
	{ "$XDG_RUNTIME_DIR/caisson",
	  "names of sandboxes that stay and of pools: sockets and locks; without the variable "
	  "/run/caisson for root, /tmp/caisson-UID for others" },
	{ NULL, NULL },
};

static const struct man_row man_variables[] = {
	{ "HOME, XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR", "where the files below are" },
	{ "CAISSON_BACKEND",
	  "the wall for commands without --backend, within what the policy permits" },
	{ "NO_COLOR", "if it is set, there are no colours" },
	{ NULL, NULL },
};

static const struct man_row man_statuses[] = {
	{ "0", "done" },
	{ "1", "it failed, or it found nothing or left something out, where the command says so" },
	{ "2", "the command line makes no sense" },
	{ "any other", "run, exec and shell end with the status of what they ran, or 124 to 137 as "
		       "described for run. They, up, pool start and monitor have 125 for every "
		       "failure of their own, a command line that makes no sense too" },
	{ "wait", "without --port and --line the command's own, so 1 and 2 may be the command's" },
	{ NULL, NULL },
};

static void man_rows(const char *title, const struct man_row *row)
{
	printf(".SH %s\n", title);
	for (; row->name; row++) {
		fputs(".TP\n.I ", stdout);
		roff(row->name);
		puts("");
		roff(row->what);
		puts("");
	}
}

static void print_man(void)
{
	printf(".TH CAISSON 1 \"\" \"caisson %s\" \"User Commands\"\n.SH NAME\n", CAISSON_VERSION);
	puts("caisson \\- run untrusted commands behind walls\n.SH SYNOPSIS\n.B caisson\n"
	     "COMMAND [FLAGS] \\&...\n.SH DESCRIPTION");
	puts("Runs untrusted commands behind walls and says what they did, what they tried,\n"
	     "and what stopped them.\n.SH COMMANDS");
	for (const struct cli_command *c = cli_commands; c->name; c++)
		man_command(c);
	man_rows("EXIT STATUS", man_statuses);
	man_rows("ENVIRONMENT", man_variables);
	man_rows("FILES", man_files);
}

/* ---- docs/cli.md ---------------------------------------------------------------------- */

/* A table cell: '|' would end it. */
static void cell(const char *text)
{
	for (; *text; text++)
		if (*text == '|')
			fputs("\\|", stdout);
		else
			fputc(*text, stdout);
}

static void markdown_command(const struct cli_command *command)
{
	const struct cli_flag *flag;
	char text[FLAG_TEXT];

	printf("\n## caisson %s\n\n```\n", command->name);
	print_usage(stdout, command);
	puts("```\n");
	print_capital(command);
	printf("%s.\n", command->summary + 1);
	if (*command->text)
		printf("\n%s\n", command->text);
	puts("\n| flag | meaning |\n| --- | --- |");
	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++) {
		flag_text(flag, text, sizeof text);
		fputs("| `", stdout);
		cell(text);
		fputs("` | ", stdout);
		cell(flag->what);
		puts(" |");
	}
}

static void print_markdown(void)
{
	puts("# The command line\n\nMade by `caisson help --markdown`; change the table in "
	     "`src/cli/commands.c`, not this page.");
	for (const struct cli_command *c = cli_commands; c->name; c++)
		markdown_command(c);
}

/* A command that is none: its group's list, or the near name. */
static int help_unknown(struct cli *cli)
{
	bool is_group = cli_is_group(cli->args[0]);
	struct csn_error err = { 0 };
	const char *near;
	char typed[64];

	snprintf(typed, sizeof typed, "%s%s%s", cli->args[0], is_group ? " " : "",
		 is_group ? cli->args[1] : "");
	near = cli_nearest_command(typed);
	csn_fail(&err, -EINVAL, "usage", "there is no command \"%s\"; %s%s%s", typed,
		 near ? "did you mean \"" : "`caisson help` lists them", near ? near : "",
		 near ? "\"?" : "");
	return cli_misuse(cli, &err);
}

int cli_help(struct cli *cli)
{
	const struct cli_command *command;
	int words;

	if (cli->options.man)
		print_man();
	else if (cli->options.markdown)
		print_markdown();
	else if (cli->arg_count == 0)
		cli_print_help(NULL, false);
	else if ((command = cli_command_find(cli->arg_count, cli->args, &words)))
		cli_print_help(command, false);
	else if (cli->arg_count == 1 && cli_is_group(cli->args[0]))
		cli_print_group(cli->args[0], false);
	else
		return help_unknown(cli);
	return CLI_OK;
}

int cli_version(struct cli *cli)
{
	if (cli->options.json)
		return out_json(json_pack("{s:s, s:s}", "version", CAISSON_VERSION, "result_schema",
					  "caisson.result/1"));
	printf("caisson %s\n", CAISSON_VERSION);
	return CLI_OK;
}
