/*
 * changes_out - the changes of a copy-on-write workspace, as commands print them
 *
 * The same for a finished run and for a sandbox that lives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

/*
 * Prints a part of a diff's text (monitor/copy_diff.h): with colours and escaped on a terminal,
 * and raw elsewhere so that patch(1) can read it. Whole lines, but for the last part. 0 or -errno.
 */
int changes_print_text(const struct cli *cli, const void *bytes, size_t size);

/* "A path", or "  path left out: reason"; `name` is safe to print, the reason is ours. */
void changes_print_committed(const struct cli *cli, char letter, const char *name,
			     const char *reason);

/* "3 files belong to others …": what the copy cannot change, on stderr, for people; ends with NULL
 * or after `named`. Nothing for a `count` of 0. */
void changes_say_foreign(const struct cli *cli, uint64_t count, const char *const *names,
			 size_t named);

/* Does a sandbox of this name live? Else it may be a run's id. In changes.c. */
bool changes_is_living(const char *name);
