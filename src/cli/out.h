/*
 * out - what a person reads
 *
 * A path or a process name comes from untrusted code and may hold terminal escapes, so it
 * passes through escape_add() before it reaches stdout or stderr. Colours only on a
 * terminal, never with NO_COLOR or --no-color.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "base/escape.h"
#include "cli/cli.h"

enum out_color { OUT_PLAIN, OUT_BOLD, OUT_DIM, OUT_RED, OUT_GREEN, OUT_YELLOW };

/* Prints an escaped text. */
void out_text(FILE *file, const char *text);

/* The start of a colour and the end of it; "" where there are no colours. */
const char *out_color(const struct cli *cli, FILE *file, enum out_color color);
const char *out_plain(const struct cli *cli, FILE *file);

/* Prints `text` wrapped at `width` columns, every line indented; blank lines separate paragraphs.
 */
void out_wrap(FILE *file, const char *text, int indent, int width);

/* A text of somebody else's behind a label of ours. */
struct out_told {
	const char *label; /* with what stands between it and the text; printed as it is */
	const char *text;
	int indent;           /* of the first line */
	int hang;             /* of the others */
	const char *whole[2]; /* paths in it that no line may break, NULL: none */
};

/*
 * Prints it escaped, wrapped at the width of the terminal behind `file`, on one line where there is
 * none. What is in backquotes or quotes stands on one line: a command that is pasted ends at none.
 */
void out_tell(FILE *file, const struct out_told *told);

/* Columns that a UTF-8 text takes, one for each character. */
int out_width(const char *text);

/* cli_fail() with an object (borrowed) that --json prints, the error in it; not for a sandbox. */
int cli_fail_with(const struct cli *cli, const struct csn_error *err, json_t *more);

/* Says why a list is empty, and what would fill it, to a person: on stderr where it and stdout are
 * terminals, and nothing with --quiet or --json. `text` is a sentence of our own. */
void out_empty(const struct cli *cli, const char *text);

/* Prints a JSON value on stdout with a newline, and releases it. 0, or CLI_FAILED when out of
 * memory. */
int out_json(json_t *value);
