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

/* Of a sandbox that stays "ended", where its end was asked for. "exited 1", "timeout (command)",
 * "signal SIGSEGV", "cancelled (SIGINT)", "lost". */
void run_describe_end(const json_t *result, char *ret_text, size_t size);

/*
 * "stopped after 45 s (limits.command)", "stopped: more than 10MiB of output (limits.output)":
 * an end that a limit or a reaction made. False, and nothing written, for any other.
 */
bool run_describe_stop(const json_t *result, char *ret_text, size_t size);

/* Prints the command as one line on stdout, escaped, cut to `columns` bytes; 0: whole. */
void run_print_command(const json_t *result, size_t columns);

enum { COMMAND_COLUMNS = 48, RUN_HIDDEN_TEXT = 8192 };

/* ".env, a.pem, …": the texts of a list, at most `most` of them (0: what has room); not escaped. */
void run_list_texts(const json_t *list, size_t most, char *ret_text, size_t size);

/* Of the two paths of a rename that was denied the one that its rule speaks of, else the first;
 * borrowed from the violation. In why.c. */
const char *run_blamed_path(const json_t *result, const json_t *violation);
