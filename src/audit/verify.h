/*
 * verify - reading a chain back
 *
 * What is read may have been written by anybody: lines are bounded, JSON is bounded in depth by
 * the parser, and nothing of it is believed before its hash is checked.
 */
#pragma once

#include "audit/audit.h"
#include "audit/sha.h"

struct finding {
	uint64_t line; /* 1-based, 0: everything is good */
	char reason[256];
	bool is_cut; /* the last line has no end: a crash or a full disk, not a change */
};

struct chain_end {
	uint64_t seq;        /* of the last good line */
	char head[SHA_HEX];  /* its hash */
	uint64_t size;       /* bytes up to its end */
	uint64_t watch_seq;  /* in: remember the hash of this line, 0: none */
	char watch[SHA_HEX]; /* out: that hash, "" if the chain is shorter */
};

/*
 * Reads a chain from the descriptor's position to its end or to the first bad line. 0 with both
 * results, or a negative errno when it cannot be read.
 */
int verify_chain(int fd, struct chain_end *end, struct finding *ret_finding);

/* Continues a chain in an existing file that ends where `end` says. Takes `fd`, opened O_APPEND. */
void chain_resume(struct chain *chain, int fd, const struct chain_end *end);
