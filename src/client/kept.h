/*
 * kept - output that is kept for a result: all of it up to a bound, else its first and last half
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "caisson.h"

struct kept {
	struct buf head, tail;
	size_t half; /* of each */
	uint64_t total;
};

enum { KEPT_DEFAULT = 1 << 20, KEPT_MAX = 64 << 20 };

/* At most `size` bytes, 0: KEPT_DEFAULT. Allocates nothing. */
void kept_init(struct kept *kept, size_t size);
void kept_done(struct kept *kept);

/* 0 or -ENOMEM. */
int kept_add(struct kept *kept, const void *data, size_t size);

/* A copy in the arena. 0 or -ENOMEM. */
int kept_output(const struct kept *kept, struct arena *arena, csn_output *ret_output);
