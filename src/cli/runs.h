/*
 * runs - recorded runs, as the commands read them
 *
 * The audit room keeps and checks records; here they are found by id or its end and their
 * results read. A result is our own file, but its texts (command, paths, program names) are
 * not: they are escaped where they are printed.
 */
#pragma once

#include <jansson.h>

#include "audit/audit.h"
#include "base/error.h"
#include "cli/cli.h"

struct run {
	int root_fd; /* the run root, owned; -1: none */
	char root[4096];
	char id[RUN_ID_SIZE];
	json_t *result; /* owned, NULL until run_read_result() */
};

#define _cleanup_run_ __attribute__((cleanup(run_done)))
#define RUN_NONE ((struct run){ .root_fd = -1 })

/* Opens the run root of --run-dir or the default one. -ENOENT: there are no records yet. */
int run_open_root(const struct cli *cli, struct run *run, struct csn_error *err);

/* Opens the root and finds the run that `name` (an id, an end of one, "" for the last) means. */
int run_open(const struct cli *cli, const char *name, struct run *run, struct csn_error *err);

/* Reads result.json into `run->result`. -ENOENT with a sentence for a running or lost run. */
int run_read_result(struct run *run, struct csn_error *err);
void run_done(struct run *run);

/* A text in a JSON object, "" if it is not there or no text. */
const char *run_text(const json_t *object, const char *key);

/* Does a hide pattern match the path, or a folder above it? Relative to the workspace. */
bool run_pattern_covers(const char *pattern, const char *path);

/* "exited 1", "timeout (command)", "signal SIGSEGV", "cancelled (SIGINT)", "lost". */
void run_describe_end(const json_t *result, char *ret_text, size_t size);
