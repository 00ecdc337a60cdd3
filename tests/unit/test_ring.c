/* The ring of a detached command's output: order, what is cut, readers that are overtaken. */
#include "agent/ring.h"

#include "tap.h"

#include <string.h>

static struct ring ring;
static char data[RING_RECORD];

/* Reads up to `size` bytes; checks the stream. */
static size_t get(struct ring_place *place, unsigned stream, size_t size)
{
	unsigned got_stream = 99;
	size_t n = ring_read(&ring, place, &got_stream, data, size);

	CHECK(n == 0 || got_stream == stream);
	return n;
}

static void order(void)
{
	struct ring_place place = { 0 };

	CHECK(get(&place, 0, 10) == 0);
	CHECK(ring_add(&ring, 0, "ab", 2) == 0 && ring_add(&ring, 0, "cd", 2) == 0);
	CHECK(get(&place, 0, 3) == 3 && memcmp(data, "abc", 3) == 0);
	CHECK(get(&place, 0, 3) == 1 && data[0] == 'd');
	CHECK(get(&place, 0, 3) == 0);
	CHECK(ring_add(&ring, 0, "e", 1) == 0); /* the record that was read to its end grows */
	CHECK(get(&place, 0, 3) == 1 && data[0] == 'e');
	CHECK(ring_add(&ring, 1, "f", 1) == 0 && ring_add(&ring, 0, "", 0) == 0);
	CHECK(get(&place, 1, 3) == 1 && data[0] == 'f');
	CHECK(get(&place, 0, 3) == 0);
	CHECK(ring.total == 6 && ring.cut == 0);
	ring_done(&ring);
	CHECK(!ring.bytes && ring.total == 0);
}

/* Every length of record, around the end of the ring many times. */
static void around(void)
{
	static char piece[RING_RECORD];
	struct ring_place reader = { 0 }, late = { 0 };
	uint64_t read = 0, rest = 0;
	unsigned stream;
	size_t n;

	for (uint64_t i = 0; i < 5000; i++) {
		size_t size = (size_t)(i * 2654435761u % RING_RECORD) + 1;

		memset(piece, (int)(i % 251), size);
		CHECK(ring_add(&ring, (unsigned)(i % 3), piece, size) == 0);
		while ((n = ring_read(&ring, &reader, &stream, data, sizeof data)) > 0) {
			CHECK(stream == i % 3 && data[0] == (char)(i % 251));
			CHECK(memcmp(data, data + 1, n - 1) == 0);
			read += n;
		}
		CHECK(ring.tail - ring.head <= RING_SIZE);
	}
	CHECK(read == ring.total);
	while ((n = ring_read(&ring, &late, &stream, data, 777)) > 0)
		rest += n;
	CHECK(rest == ring.total - ring.cut && rest > RING_SIZE - 2 * RING_RECORD);
}

/* One that stands in the middle of a record goes on with the oldest that is left. */
static void overtaken(void)
{
	static char piece[RING_RECORD];
	struct ring_place place = { 0 };
	unsigned stream;

	CHECK(ring_add(&ring, 0, "old", 3) == 0 && get(&place, 0, 1) == 1);
	memset(piece, 'n', sizeof piece);
	for (int i = 0; i < 100; i++)
		CHECK(ring_add(&ring, 1, piece, sizeof piece) == 0);
	CHECK(ring_read(&ring, &place, &stream, data, 1) == 1 && data[0] == 'n' && stream == 1);
	CHECK(place.record == ring.head);
}

static void single_bytes(void)
{
	struct ring_place place = { 0 };
	uint64_t read = 0;
	unsigned stream;

	for (int i = 0; i < 1000000; i++)
		CHECK(ring_add(&ring, (unsigned)i % 2, &"ab"[i % 2], 1) == 0);
	while (ring_read(&ring, &place, &stream, data, sizeof data) == 1) {
		CHECK(data[0] == "ab"[stream]);
		read++;
	}
	CHECK(read == RING_SIZE / (RING_HEAD + 1) && ring.cut == 1000000 - read);
}

static const struct tap_test tests[] = {
	{ "what was added is read in its order", order },
	{ "records go around the end", around },
	{ "a reader that was overtaken goes on", overtaken },
	{ "bytes of changing streams are bounded too", single_bytes },
};

TAP_MAIN(tests)
