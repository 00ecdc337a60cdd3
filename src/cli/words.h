/*
 * words - the flags of a command line as words again, for another program of ours
 */
#pragma once

#include "cli/cli.h"

enum { WORDS_MAX = 4096 }; /* more than a policy takes of all that may be repeated */

/* Begins as { 0 }. The texts are the caller's and outlive it. */
struct words {
	const char *at[WORDS_MAX + 1]; /* ends with NULL after words_end() */
	size_t count;                  /* counts what did not fit, too */
};

/* One word. */
void words_add(struct words *words, const char *word);

/* A flag and its value; neither, where the value is NULL. */
void words_add_value(struct words *words, const char *flag, const char *value);

/* A flag and its value, for each of the values. */
void words_add_values(struct words *words, const char *flag, const struct cli_list *values);

/* All that a command which starts a sandbox was told of it, but for its workspace and the mode of
 * that. */
void words_add_options(struct words *words, const struct cli_options *options);

/* 0, or -E2BIG with a sentence of `stage`: with a word less it could be a wider sandbox. */
int words_end(struct words *words, const char *stage, struct csn_error *err);
