/*
 * call - what the commands that call a verb of a sandbox that stays have in common
 *
 * Each is one call of libcaisson on the sandbox whose NAME is the first word.
 */
#pragma once

#include "caisson.h"
#include "cli/cli.h"

/* One call: the command's status, or negative with a sentence in `err`. */
typedef int (*call_fn)(const struct cli *cli, csn_sandbox *sandbox, csn_error *err);

/* Joins the sandbox, calls, leaves; prints what failed. Returns the exit status. */
int call_verb(const struct cli *cli, call_fn verb);
/* The same where the name is not the first word. */
int call_named(const struct cli *cli, const char *name, call_fn verb);

/* Prints what failed, of the library's. Returns the exit status. */
int call_failed(const struct cli *cli, const csn_error *failure);

/* -1 with a sentence about a flag. */
__attribute__((format(printf, 2, 3))) int call_misuse(csn_error *err, const char *format, ...);

/* The number, size or time that a flag says; unsaid: unchanged. 0 or -1 with a sentence. */
int call_number(const char *flag, const char *text, uint64_t *ret_value, csn_error *err);
int call_time(const char *flag, const char *text, uint32_t *ret_ms, csn_error *err);

/* Callbacks of calls that read our standard input and write our output and errors. */
int call_output(void *data, enum csn_stream stream, const void *bytes, size_t size);
ptrdiff_t call_input(void *data, void *ret_bytes, size_t size);
