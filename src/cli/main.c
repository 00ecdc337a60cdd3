/*
 * caisson - runs untrusted commands behind walls and returns a typed account
 *
 * Finds the command in the table, parses its flags, calls it. Everything else has a file of
 * its own, named after the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cli/up.h"
#include "cli/walls.h"
#include "policy/keys.h"

enum { MAX_COMMANDS = 64, WORD_TEXT = 256 };

const char *cli_nearest_command(const char *typed)
{
	static char groups[MAX_COMMANDS][32];
	const char *names[2 * MAX_COMMANDS];
	size_t count = 0, group = 0;

	for (const struct cli_command *c = cli_commands; c->name && group < MAX_COMMANDS; c++) {
		names[count++] = c->name;
		snprintf(groups[group], sizeof groups[group], "%.*s", (int)strcspn(c->name, " "),
			 c->name);
		names[count++] = groups[group++];
	}
	return cli_nearest(typed, names, count);
}

/* A first word that is no command: a slip, or a program that lacks its `run`. */
static int unknown_command(const char *word)
{
	const char *near = cli_nearest_command(word);
	char program[WORD_TEXT];

	if (!near && word[0] == '-') {
		fputs("caisson: flags stand after the command; `caisson help` lists both\n",
		      stderr);
		return CLI_USAGE;
	}
	fputs("caisson: there is no command \"", stderr);
	out_text(stderr, word);
	if (near)
		fprintf(stderr, "\"; did you mean \"%s\"?\n", near);
	else
		fprintf(stderr, "\"; to run a program: caisson run -- %s\n",
			str_shell_word(word, program, sizeof program) < 0 ? "PROGRAM" : program);
	return CLI_USAGE;
}

/* "policy" alone or with a second word that it does not have. */
static int group_only(int argc, char **argv)
{
	bool asks = argc > 1 && (str_is(argv[1], "--help") || str_is(argv[1], "-h"));
	char typed[64];
	const char *near;

	if (argc > 1 && argv[1][0] != '-') {
		snprintf(typed, sizeof typed, "%s %s", argv[0], argv[1]);
		near = cli_nearest_command(typed);
		fputs("caisson: there is no command \"", stderr);
		out_text(stderr, typed);
		fprintf(stderr, "\"%s%s%s\n\n", near ? "; did you mean \"" : "", near ? near : "",
			near ? "\"?" : "");
	}
	cli_print_group(argv[0], !asks);
	return asks ? CLI_OK : CLI_USAGE;
}

/* --env NAME lends the caller's variable: a slip in the name must not look like an empty value. The
 * library's monitor says nothing on its host's stderr. */
static void tell_unset(const struct cli *cli)
{
	const struct cli_list *env = &cli->options.env;

	for (size_t i = 0; i < env->count; i++) {
		if (cli->options.quiet || str_is(cli->command->name, "monitor") ||
		    !text_is_name(env->items[i]) || getenv(env->items[i]))
			continue;
		fputs("caisson: --env ", stderr);
		out_text(stderr, env->items[i]);
		fputs(" is not set here, so not there either\n", stderr);
	}
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
	struct cli cli = { .command = command };
	struct csn_error err = { 0 };
	int status, r;

	r = cli_parse(&cli, argc, argv, &err);
	if (cli.options.help) {
		cli_print_help(command, false);
		status = CLI_OK;
	} else if (r < 0) {
		if (str_is(command->name, "monitor"))
			up_refuse(&cli.options, &err);
		status = cli_misuse(&cli, &err);
	} else {
		walls_take_variable(&cli);
		tell_unset(&cli);
		status = command->run(&cli);
	}
	cli_done(&cli);
	if (fflush(stdout) != 0 && status == CLI_OK) {
		/* A reader who has enough, as head(1), is no news to anybody. */
		if (errno != EPIPE)
			fprintf(stderr, "caisson: cannot write the output: %s\n", strerror(errno));
		status = CLI_FAILED;
	}
	return status;
}

/*
 * A number among the first three that the caller closed would go to the next file opened, a socket
 * or a group's folder, and be taken for a standard stream. It is filled with what fails as a
 * closed one does: reading fails on the first, writing on the others.
 */
static void fill_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
	static char help[] = "help", version[] = "version";
	const struct cli_command *command;
	int words;

	fill_standard_fds();
	if (argc < 2) {
		cli_print_help(NULL, true);
		return CLI_USAGE;
	}
	if (str_is(argv[1], "--help") || str_is(argv[1], "-h"))
		argv[1] = help;
	if (str_is(argv[1], "--version") || str_is(argv[1], "-V"))
		argv[1] = version;
	command = cli_command_find(argc - 1, argv + 1, &words);
	if (command)
		return run_command(command, argc - 1 - words, argv + 1 + words);
	if (cli_is_group(argv[1]))
		return group_only(argc - 1, argv + 1);
	return unknown_command(argv[1]);
}
