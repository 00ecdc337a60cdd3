/*
 * completion - scripts for shells, printed from the table of commands
 *
 * A script holds the table as data and a few functions that find the place in the line, so
 * that a press of TAB starts no process of ours, but for the ids of runs. One file per shell
 * knows its language; what can be offered for a value is here, the same for all.
 */
#pragma once

#include "cli/cli.h"

/* Print one shell's script on stdout. */
void completion_bash(void);
void completion_zsh(void);
void completion_fish(void);

/*
 * How a shell gets what it offers:
 *   none words keys file folder workspace mount variable run command program
 * "words" and "keys" come with a list: offer_print(). `text` is a flag's `arg` or a command's
 * `usage`.
 */
const char *offer_name(enum cli_offer offer, const char *text);

/* The list of "words", or of "keys" ("tier= limits.command="), each followed by a blank. */
void offer_print(enum cli_offer offer, const char *text);

/* What may stand after a key, for "keys": "tier=local tier=virtual ", each followed by a blank. */
void offer_print_pairs(enum cli_offer offer);

/* The same for a flag; "" for one without a value. */
const char *offer_of_flag(const struct cli_flag *flag);

/* The same for the words of a command, 0: the first, 1: later ones; "none" where none may stand. */
const char *offer_of_word(const struct cli_command *command, int later);

/*
 * Prints the words that start commands, each once, followed by a blank; `second` after the
 * group's name ("policy"), or all first words with NULL.
 */
void completion_print_commands(const char *group);

/* Calls `each` once for every first word of a two-word command. */
void completion_each_group(void (*each)(const char *group));

/* Calls `each` once for every flag with a value: a name means the same in every command. */
void completion_each_valued(void (*each)(const struct cli_flag *flag));
