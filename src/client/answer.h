/*
 * answer - what a function of the host's wall says, as frames
 *
 * One answer a call: each csn_answer_…() writes its frame at once, and a reply is checked against
 * the verb's table before it goes, so that a host's mistake costs a call and not the sandbox.
 */
#pragma once

#include "client/wall.h"

struct csn_answer {
	struct wall *wall;
	struct wall_call *call;
	bool is_given;
	bool is_bytes;    /* its input came whole: no window is told */
	bool is_streamed; /* of read: more than one piece */
	struct buf kept;  /* of read: the content, while it may fit into the reply */
	uint64_t size;    /* of read: bytes so far */
	uint64_t most;    /* of read: bytes; of glob and grep: entries */
};

/* After the function, which returned `r`: what it did not say itself. */
void answer_end(struct csn_answer *answer, int r);

/* Is it `name`'s? */
bool answer_is(const struct csn_answer *answer, const char *name);
