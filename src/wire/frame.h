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

enum {
	FRAME_HEAD = 4, /* bytes of the length, which it does not count */
	FRAME_MAX = 16 << 20,
	FRAME_PIECE = 64 << 10,   /* most bytes of one `data` */
	FRAME_WINDOW = 256 << 10, /* bytes of data that a call may send at first, either way */
	/* Bytes that a stream had better take at once: with its default a whole window does not
	   fit. */
	FRAME_STREAM = 2 * FRAME_WINDOW,
	FRAME_GATE_CALL_BYTES = 64 << 10,    /* most bytes of a gate's arguments */
	FRAME_GATE_RESULT_BYTES = 256 << 10, /* and of what it answers */
	FRAME_FORWARD_LINKS = 32,            /* most forwarded connections at once */
	FRAME_FORWARD_WINDOW = 128 << 10, /* bytes that a forwarded connection may send at first */
	FRAME_DATA_HEAD = 48 /* most bytes of a `data` frame before those of its binary */
};

/*
 * Looks for a whole frame at the front of `in`. 1 and its payload (borrowed, valid until
 * `in` changes; the caller consumes FRAME_HEAD + size bytes afterwards); 0: more bytes are needed;
 * -EMSGSIZE: the announced length is 0 or above `max`.
 */
int frame_peek(const struct buf *in, size_t max, const uint8_t **ret_payload, size_t *ret_size,
	       struct csn_error *err);

/* Who may send a message, as bits. */
enum frame_side {
	FROM_MONITOR = 1,
	FROM_AGENT = 2,
	FROM_OPENER = 4,      /* who has `caisson port` make a sandbox, and end it */
	FROM_PORT_CLIENT = 5, /* the same and his calls, which are the monitor's messages */
};

/*
 * One message of the protocol: {name, Arg…}. `args` is one letter per argument:
 * i non-negative integer (the first one is Ref), a atom, b binary, m map whose keys are
 * atoms, d binary or the atom eof. A bound of 0 is none.
 */
struct frame_message {
	const char *name;
	const char *args;
	const char *shape; /* as the documentation writes it: "{cancel, Ref}" */
	enum frame_side side;
	uint32_t max_bytes;   /* a longer frame of this kind is refused before it is decoded */
	const char *what;     /* one line for docs/protocol.md */
	const char *atoms;    /* what `a` may be, separated by blanks; NULL: any atom */
	uint64_t max_integer; /* of each integer but Ref */
	uint64_t max_binary;  /* bytes */
	const struct frame_key *keys; /* of the map, where it is always the same one; or NULL */
};

/* Indexes into frame_messages, in its order. */
enum frame_index {
	FRAME_INIT,
	FRAME_CALL,
	FRAME_DATA_IN,
	FRAME_WINDOW_IN,
	FRAME_SIGNAL,
	FRAME_RESIZE,
	FRAME_CANCEL,
	FRAME_STOP,
	FRAME_GATE_RESULT,
	FRAME_FORWARD_DATA_IN,
	FRAME_FORWARD_END_IN,
	FRAME_FORWARD_WINDOW_IN,
	FRAME_FORWARD_CLOSE_IN,
	FRAME_READY,
	FRAME_REPLY,
	FRAME_FAILED,
	FRAME_DATA_OUT,
	FRAME_WINDOW_OUT,
	FRAME_FACT,
	FRAME_GATE_CALL,
	FRAME_FORWARD_OPEN,
	FRAME_FORWARD_DATA_OUT,
	FRAME_FORWARD_END_OUT,
	FRAME_FORWARD_WINDOW_OUT,
	FRAME_FORWARD_CLOSE_OUT,
	FRAME_BYE,
	FRAME_OPEN,
	FRAME_CLOSE,
};

extern const struct frame_message frame_messages[];
extern const size_t frame_message_count;

/*
 * Checks a decoded frame against the table: known name, right side, right shape. Returns
 * the message's index, or -EBADMSG with a reason.
 */
int frame_check(const struct term *term, enum frame_side side, struct csn_error *err);

/*
 * The same for what can be seen before decoding: name, side, number of arguments, and
 * whether a message of this name may be `size` bytes long. A message must begin in the
 * short form, 131 104 N and an atom. Index, or -EBADMSG with a reason.
 */
int frame_sniff(const uint8_t *payload, size_t size, enum frame_side side, struct csn_error *err);

/*
 * frame_sniff(), term_decode() and frame_check(): what a receiver does with a payload.
 * Index, -EBADMSG with a reason, or -ENOMEM. The term lives in the arena; the bytes of `data` stay
 * in the payload, without a NUL, because a copy of each costs as much as its way through the
 * kernel.
 */
int frame_decode(struct arena *arena, struct term_input payload, enum frame_side side,
		 struct term *ret_term, struct csn_error *err);

/* A `data` frame that has begun, of which the bytes may not have come. */
struct frame_data {
	int index;
	struct term term; /* checked; its binary is empty */
	size_t head;      /* bytes of the frame before those of its binary */
	size_t size;      /* of those: 1 to FRAME_PIECE */
};

/*
 * Is that what `in` begins with? For who passes such bytes on and need not see them. The term lives
 * in the arena. False says nothing else of the frame: what is not told here, also what is
 * malformed, is frame_decode()'s to judge when it is whole.
 */
bool frame_data_begun(const struct buf *in, enum frame_side side, struct arena *arena,
		      struct frame_data *ret_data);

/*
 * One key of a map. Types as above, and: I non-negative integer or the atom null, t binary
 * without zero bytes, p path (t, not empty), B boolean, L list of t, A list of atoms,
 * M map from t (not empty, no '=') to t, R list of maps. `max` is the largest integer, or
 * most bytes (of a whole L or M), or most elements (A, R); 0: no bound.
 */
struct frame_key {
	const char *name;
	char type;
	bool required;
	uint64_t max;
	const char *what;
	const struct frame_key *keys; /* of m, or of each map in R; NULL: any atoms */
};

/* What a type letter means, in words ("a boolean"); NULL for an unknown letter. */
const char *frame_type_name(char type);

/* The table of one verb: what {call, Ref, Verb, Map} may carry and what the reply carries. */
struct frame_verb {
	const char *name;
	const char *what;
	const struct frame_key *args;   /* ends with a NULL name */
	const struct frame_key *result; /* ends with a NULL name */
	const char *notes;              /* for docs/protocol.md, in its lines; or NULL */
};

extern const struct frame_verb frame_verbs[];
extern const size_t frame_verb_count;

/*
 * A client asks a monitor with the same messages. These verbs the monitor answers itself, `exec`
 * with its account; `ready` says which of them it has.
 */
extern const struct frame_verb frame_client_verbs[];
extern const size_t frame_client_verb_count;

/* The map of an agent's `fact`: a detached command ended. */
extern const struct frame_key frame_ended[];

/* One violation: the map of a monitor's `fact`, and of each in exec's account. */
extern const struct frame_key frame_violation[];

/* The map of {open, Ref, Map}, which its receiver checks, and those of the replies to `open` and
 * `close`. */
extern const struct frame_key frame_open[], frame_opened[], frame_closed[];

/* The verb of an atom, or NULL: the answer is then `failed` with not_supported. */
const struct frame_verb *frame_find_verb(const struct term *atom);

/* The same of what a client may ask of a monitor: its own verbs, `exec` as it takes it, else the
 * agent's. */
const struct frame_verb *frame_find_client_verb(const struct term *atom);

/*
 * Checks a verb's argument map (or result map) against its table. 0 or -EBADMSG. What
 * one key asks of another (argv or command, not both) is the handler's to check.
 */
int frame_check_map(const struct frame_key *keys, const struct term *map, struct csn_error *err);
