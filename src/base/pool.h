/*
 * pool - how a pool of prepared sandboxes is asked for one
 *
 * A pool's socket lies in `pools` beside the sandboxes' own (place.h). Whoever connects sends one
 * request: what he would have said to `caisson monitor` or `caisson up`, his folder, environment,
 * umask and resource limits: what a process inherits from who starts it. It is answered by one
 * byte; the connection is then the sandbox's stream, as that of `caisson monitor --fd`. Both ends
 * are of one build: the magic says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { POOL_BYTES = 2 << 20, POOL_WORDS = 4096, POOL_LIMITS = 16, POOL_NO_UMASK = 0777 };

#define POOL_MAGIC "csnpool3"

enum pool_wish {
	POOL_OPEN = 'O', /* the sandbox lives as long as this stream */
	POOL_UP = 'U',   /* its first word is a name: it stays */
	POOL_STOP = 'S', /* the end of the pool; the stream ends when it has begun */
};

enum pool_answer {
	POOL_TAKEN = 'y',
	POOL_DIFFERS = 'n', /* it was prepared for something else: a struct csn_error follows */
	POOL_FAILED = 'e',  /* there is no such sandbox at all: a struct csn_error follows */
};

/* What goes over the socket first; then `words` and `variables` texts, each with its NUL, and the
 * folder. */
struct pool_head {
	char magic[8];
	uint32_t wish;
	uint32_t size; /* of the texts together */
	uint32_t words;
	uint32_t variables;
	struct {
		uint64_t soft, hard;
	} limits[POOL_LIMITS]; /* by the kernel's numbers, RLIMIT_CPU is the first */
	uint32_t umask;        /* POOL_NO_UMASK where /proc does not tell */
	uint32_t unused;
};

/* Is it one of this build's, and within its bounds? */
bool pool_is_head(const struct pool_head *head);

/* A request's texts; the lists end with NULL and are owned, the texts borrowed. */
struct pool_texts {
	char **words;
	char **variables;
	const char *cwd; /* absolute */
};

/* Parts `texts`, head->size bytes and a NUL. 0, or -EBADMSG (out of memory too): nothing to end. */
int pool_parse(const struct pool_head *head, char *texts, struct pool_texts *ret_texts);
void pool_texts_done(struct pool_texts *texts);

/* The folder of the pools' sockets, made if it is missing; descriptor or -errno with a sentence. */
int pool_place(struct csn_error *err);

/*
 * Asks pool `name`; `words` end with NULL. 1 and the stream (or, for POOL_STOP, what ends with it);
 * 0: there is none, or it has none that fits (`err` says why): start one without it; -errno with a
 * sentence: it would fail as well.
 */
int pool_ask(const char *name, enum pool_wish wish, const char *const *words, int *ret_fd,
	     struct csn_error *err);
