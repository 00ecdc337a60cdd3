/*
 * caisson - runs untrusted commands behind walls and returns a typed account
 *
 * Finds the command in the table, parses its flags, calls it. Everything else has a file of
 * its own, named after the command.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

enum { MAX_COMMANDS = 64 };

/* A first word that is no command: a slip, or a program that lacks its `run`. */
static int unknown_command(const char *word)
{
	const char *names[MAX_COMMANDS], *near;
	size_t count = 0;

	for (const struct cli_command *c = cli_commands; c->name && count < MAX_COMMANDS; c++)
		names[count++] = c->name;
	near = cli_nearest(word, names, count);
	if (near)
		fprintf(stderr, "caisson: there is no command \"%s\"; did you mean \"%s\"?\n", word,
			near);
	else if (word[0] == '-')
		fprintf(stderr,
			"caisson: flags stand after the command; `caisson help` lists both\n");
	else
		fprintf(stderr,
			"caisson: there is no command \"%s\"; to run a program: caisson run -- "
			"%s\n",
			word, word);
	return CLI_USAGE;
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
		status = cli_misuse(&cli, &err);
	} else {
		status = command->run(&cli);
	}
	cli_done(&cli);
	if (fflush(stdout) != 0 && status == CLI_OK) {
		fprintf(stderr, "caisson: cannot write the output: %s\n", strerror(errno));
		status = CLI_FAILED;
	}
	return status;
}

int main(int argc, char **argv)
{
	static char help[] = "help", version[] = "version";
	const struct cli_command *command;
	int words;

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
	if (!cli_is_group(argv[1]))
		return unknown_command(argv[1]);
	if (argc > 2 && argv[2][0] != '-')
		fprintf(stderr, "caisson: there is no command \"%s %s\"\n", argv[1], argv[2]);
	words = argc > 2 && (str_is(argv[2], "--help") || str_is(argv[2], "-h"));
	cli_print_group(argv[1], !words);
	return words ? CLI_OK : CLI_USAGE;
}
