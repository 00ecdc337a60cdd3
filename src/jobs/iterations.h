/*
 * iterations - logs/iterations.jsonl: one line an iteration, made of the chain's
 *
 *   {"iteration","time","line","cost_usd","tokens","wall_ms","summary"}
 *
 * `line` is the chain's seq, so that after a kill what is missing can be told and added. The sums
 * are the job's up to there.
 */
#pragma once

#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

/* Opens it for appending, cuts a last line that has no end, and finds the last `line`: 0 in an
 * empty one. A descriptor or a negative errno. */
int iterations_open(int logs_fd, struct csn_error *err);
uint64_t iterations_last(int fd);

/* Adds a line for the report `payload` of the chain's line `seq`, written at `time`. 0 or -errno.
 */
int iterations_add(int fd, uint64_t seq, const char *time, const json_t *payload);
