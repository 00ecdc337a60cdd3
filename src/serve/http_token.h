/*
 * http_token - who may ask, and how much at once
 *
 * A token is at least 16 printable bytes without a blank. Only its SHA-256 is kept, and compared in
 * the same time whatever was sent. All tokens of a server have the same rights; each has counters
 * of its own, so that one of them cannot take the others' share.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { TOKENS_MAX = 64, TOKEN_HEX = 65 };

struct token {
	char sha256[TOKEN_HEX];
	unsigned calls;     /* that run */
	unsigned sandboxes; /* that were made with it and live */
	double allowance;   /* requests that it may make at once */
	uint64_t filled_us; /* when that was last true */
};

struct tokens {
	pthread_mutex_t lock;
	struct token items[TOKENS_MAX];
	unsigned count;
};

/* Without any. */
void tokens_init(struct tokens *tokens);
void tokens_done(struct tokens *tokens);

/*
 * Reads one token a line; empty lines and what begins with '#' are none. The file must be a regular
 * one of ours or root's that nobody else may read: -EPERM, -EINVAL with a sentence.
 */
int tokens_read(struct tokens *tokens, const char *path, struct csn_error *err);

/* Makes one of 256 random bits, as TOKEN_HEX bytes of text. 0 or -errno with a sentence. */
int tokens_make(struct tokens *tokens, char *ret_text, struct csn_error *err);

/* The one that `text` is, or NULL. */
struct token *tokens_find(struct tokens *tokens, const char *text);

/* Takes one request from its allowance, which grows by `rate` a second up to `rate`. */
bool token_may_ask(struct tokens *tokens, struct token *token, uint64_t rate);

/* Counts one more, unless there are `most`. */
bool token_take(struct tokens *tokens, unsigned *count, uint64_t most);
void token_give(struct tokens *tokens, unsigned *count);
