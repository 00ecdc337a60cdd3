/*
 * escape - a text of somebody else's, made safe to print
 *
 * A path or a program's name comes from untrusted code: it may hold what moves a terminal's
 * cursor, changes its colours or reorders text. What is escaped once stays the same when it is
 * escaped again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * Appends `size` bytes with everything that could move a cursor, change a colour or reorder
 * text as \xNN or \u{NNNN}: control characters, invalid UTF-8, bidirectional marks. A newline
 * is escaped too unless `keeps_lines`. 0 or -ENOMEM, -E2BIG.
 */
int escape_add(struct buf *buf, const void *data, size_t size, bool keeps_lines);
