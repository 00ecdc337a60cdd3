/* Records around a ring of bytes; see ring.h. Places count up forever and are reduced only where
 * bytes are touched, so that an overtaken reader is one whose number is too small. */
#include "agent/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct head {
	uint16_t stream;
	uint16_t size;
};

_Static_assert(sizeof(struct head) == RING_HEAD, "as ring.h says");
_Static_assert(RING_RECORD <= UINT16_MAX, "a record's length fits");

void ring_done(struct ring *ring)
{
	free(ring->bytes);
	*ring = (struct ring){ 0 };
}

static void put(struct ring *ring, uint64_t at, const void *data, size_t size)
{
	size_t from = (size_t)(at % ring->size);
	size_t first = size < ring->size - from ? size : ring->size - from;

	memcpy(ring->bytes + from, data, first);
	if (first < size)
		memcpy(ring->bytes, (const uint8_t *)data + first, size - first);
}

static void get(const struct ring *ring, uint64_t at, void *ret_data, size_t size)
{
	size_t from = (size_t)(at % ring->size);
	size_t first = size < ring->size - from ? size : ring->size - from;

	memcpy(ret_data, ring->bytes + from, first);
	if (first < size)
		memcpy((uint8_t *)ret_data + first, ring->bytes, size - first);
}

static struct head head_at(const struct ring *ring, uint64_t at)
{
	struct head head;

	get(ring, at, &head, sizeof head);
	return head;
}

/* Oldest records go until `size` more bytes fit. */
static void make_room(struct ring *ring, size_t size)
{
	while (ring->tail + size - ring->head > ring->size) {
		struct head head = head_at(ring, ring->head);

		ring->cut += head.size;
		ring->head += sizeof head + head.size;
	}
}

/* Few bytes at a time must not cost a record each. False: it is another stream's, or full. */
static bool extend(struct ring *ring, unsigned stream, const void *data, size_t size)
{
	struct head head;

	if (ring->tail == ring->head)
		return false;
	head = head_at(ring, ring->last);
	if (head.stream != stream || head.size + size > RING_RECORD)
		return false;
	make_room(ring, size);
	put(ring, ring->tail, data, size);
	head.size = (uint16_t)(head.size + size);
	put(ring, ring->last, &head, sizeof head);
	ring->tail += size;
	return true;
}

int ring_add(struct ring *ring, unsigned stream, const void *data, size_t size)
{
	struct head head = { (uint16_t)stream, (uint16_t)size };

	if (!ring->size)
		ring->size = RING_SIZE;
	if (!ring->bytes)
		ring->bytes = malloc(ring->size);
	ring->total += size;
	if (!ring->bytes) {
		ring->cut += size;
		return -ENOMEM;
	}
	if (size == 0 || extend(ring, stream, data, size))
		return 0;
	make_room(ring, sizeof head + size);
	ring->last = ring->tail;
	put(ring, ring->tail, &head, sizeof head);
	put(ring, ring->tail + sizeof head, data, size);
	ring->tail += sizeof head + size;
	return 0;
}

size_t ring_read(const struct ring *ring, struct ring_place *place, unsigned *ret_stream,
		 void *ret_data, size_t size)
{
	struct head head;

	if (place->record < ring->head)
		*place = (struct ring_place){ .record = ring->head };
	while (place->record < ring->tail) {
		head = head_at(ring, place->record);
		if (place->read < head.size)
			break;
		if (place->record == ring->last) /* it may grow */
			return 0;
		*place = (struct ring_place){ .record = place->record + sizeof head + head.size };
	}
	if (place->record >= ring->tail)
		return 0;
	if (head.size - place->read < size)
		size = head.size - place->read;
	get(ring, place->record + sizeof head + place->read, ret_data, size);
	place->read += size;
	*ret_stream = head.stream;
	return size;
}
