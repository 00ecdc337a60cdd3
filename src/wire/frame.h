/*
 * frame - length-prefixed terms on a byte stream, and the tables of messages
 *
 * A frame is 4 bytes of big-endian length and one external term, at most FRAME_MAX bytes
 * (CONTRACTS, section 6). A reader is fed whatever bytes arrive and hands out whole
 * frames; an oversized length is an error before anything is buffered for it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "wire/term.h"

enum { FRAME_MAX = 16 << 20, FRAME_PIECE = 64 << 10 };

/*
 * Looks for a whole frame at the front of `in`. 1 and its payload (borrowed, valid until
 * `in` changes; the caller consumes 4 + size bytes afterwards); 0: more bytes are needed;
 * -EMSGSIZE: the announced length is 0 or above `max`.
 */
int frame_peek(const struct buf *in, size_t max, const uint8_t **ret_payload, size_t *ret_size,
	       struct csn_error *err);

/* Who may send a message. */
enum frame_side { FROM_MONITOR = 1, FROM_AGENT = 2 };

/* One message of the protocol: {name, Arg…}. `args` is one letter per argument:
 * i non-negative integer (Ref and counts), a atom, b binary, m map, d binary or atom eof. */
struct frame_message {
	const char *name;
	const char *args;
	enum frame_side side;
	uint32_t max_bytes; /* a longer frame of this kind is refused undecoded where the name can
			       be seen */
	const char *what;   /* one line for docs/protocol.md */
};

extern const struct frame_message frame_messages[];
extern const size_t frame_message_count;

/*
 * Checks a decoded frame against the table: known name, right side, right shape. Returns
 * the message's index, or -EBADMSG with a reason.
 */
int frame_check(const struct term *term, enum frame_side side, struct csn_error *err);

/* One key of a verb's argument or result map. */
struct frame_key {
	const char *name;
	char type; /* as above, and: B boolean, L list of binaries, M map of binaries */
	bool required;
	uint64_t max; /* largest integer, or most bytes */
	const char *what;
};

/* The table of one verb: what {call, Ref, Verb, Map} may carry and what the reply carries. */
struct frame_verb {
	const char *name;
	const struct frame_key *args;   /* ends with a NULL name */
	const struct frame_key *result; /* ends with a NULL name */
};

extern const struct frame_verb frame_verbs[];
extern const size_t frame_verb_count;

/* Checks a verb's argument map (or result map) against its table. 0 or -EBADMSG. */
int frame_check_map(const struct frame_key *keys, const struct term *map, struct csn_error *err);
