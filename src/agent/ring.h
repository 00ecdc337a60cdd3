/*
 * ring - the newest output of a command that nobody listens to
 *
 * A row of records in a fixed number of bytes: of which stream, how long, the bytes, in the order
 * in which they were read. What no longer fits pushes out the oldest records. A reader keeps a
 * place of its own; one that was overtaken goes on with what is there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RING_SIZE = 1 << 20,    /* headers included */
	RING_SMALL = 256 << 10, /* the same, where there are many */
	RING_RECORD = 16 << 10,
	RING_HEAD = 4 /* before each record */
};

struct ring {
	size_t size;    /* set before the first add; 0: RING_SIZE */
	uint8_t *bytes; /* as many, NULL until something is added */
	uint64_t head;  /* where the oldest record begins; counts up, modulo the size */
	uint64_t last;  /* where the newest begins, if there is one */
	uint64_t tail;  /* behind it */
	uint64_t total; /* bytes of content ever added */
	uint64_t cut;   /* bytes of content no longer here */
};

/* A reader's place. Zeroed: the oldest there is. */
struct ring_place {
	uint64_t record;
	size_t read; /* bytes of it */
};

/* Frees the bytes; a zeroed ring is an empty one. */
void ring_done(struct ring *ring);

/* Memory in use; pages that were never written cost nothing. */
static inline size_t ring_bytes(const struct ring *ring)
{
	return ring->tail < ring->size ? (size_t)ring->tail : ring->size;
}

/* Adds bytes of a stream, at most RING_RECORD. 0, or -ENOMEM: they are counted as cut. */
int ring_add(struct ring *ring, unsigned stream, const void *data, size_t size);

/* Copies at most `size` bytes of one record from `place` on, which moves on. Returns how many and
 * whose they are; 0: nothing is there now. */
size_t ring_read(const struct ring *ring, struct ring_place *place, unsigned *ret_stream,
		 void *ret_data, size_t size);
