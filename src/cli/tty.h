/*
 * tty - the caller's terminal while a command inside has one of its own
 *
 * Life: tty_enter() makes it raw, so that keys go to the command's own terminal uninterpreted;
 * tty_leave() gives it back as it was. Both may be called again, and do nothing where there is no
 * terminal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "cli/cli.h"

struct tty {
	int fd; /* -1: none, or as it was */
	struct termios saved;
};

/* Does `--tty` ask for one; unsaid, are stdin, stdout and stderr all one? */
bool tty_is_wanted(const struct cli_options *options);

/* Makes a terminal raw; on anything else -1 is what `tty` holds then. */
void tty_enter(struct tty *tty, int fd);
void tty_leave(struct tty *tty);

/* Raw again, where somebody else may have had it; how it was before is still known. */
void tty_again(const struct tty *tty);

/* Its size, 24 rows by 80 columns where there is none. */
void tty_size(int fd, uint16_t *ret_rows, uint16_t *ret_columns);

/* Descriptor `fd`, or -1 where the caller closed it: main() filled its number with what fails. */
int tty_unless_closed(int fd);
