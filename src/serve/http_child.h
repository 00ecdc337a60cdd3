/* http_child - what another command of ours prints, for answers that are its work already */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/*
 * Runs `argv` (the first is a path) with no input, and adds what it writes to stdout to `out`, up
 * to its ceiling, for at most half a minute. Its status; then `err` holds what it wrote to stderr.
 * Negative: it was not started, or wrote too much, or took too long.
 */
int child_output(const char *const *argv, struct buf *out, struct csn_error *err);
