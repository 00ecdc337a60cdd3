/*
 * term - Erlang external terms, bounded
 *
 * The values that cross a wall. A decoder takes bytes that untrusted code may have
 * written: depth, element count and total size are limited before anything is allocated,
 * everything lives in one arena whose quota is the memory limit, atoms are texts (no
 * table grows), pids, ports and references are opaque bytes, functions and compressed
 * terms are refused. The format is Erlang's documented "External Term Format", version
 * byte 131.
 *
 * A term is immutable once built. Pointers inside it borrow from its arena, and what
 * term_decode() puts into `bytes` is followed by a NUL that `size` does not count.
 * Decoding normalizes: one value has one form, so two keys of a map that differ only in
 * how they were written are found to be equal and refused. (What is opaque stays as it was
 * written, and 0.0 is not -0.0.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum term_type {
	TERM_INT,    /* fits int64_t */
	TERM_BIGINT, /* does not fit: sign byte (0 or 1), then the magnitude, little endian */
	TERM_FLOAT,
	TERM_ATOM, /* UTF-8 without NUL, at most 255 characters */
	TERM_BINARY,
	TERM_BITS, /* bit string whose last byte is partly used; opaque */
	TERM_TUPLE,
	TERM_LIST,     /* proper list; a STRING_EXT decodes to one */
	TERM_IMPROPER, /* list with a non-nil tail: the last item is the tail */
	TERM_MAP,      /* items: key, value, key, value …; keys unique */
	TERM_OPAQUE    /* pid, port, reference: re-encoded byte for byte */
};

struct term {
	enum term_type type;
	union {
		int64_t integer;
		double real;
		struct {
			const uint8_t *data;
			size_t size;
		} bytes; /* ATOM, BINARY, BITS, BIGINT, OPAQUE (without version byte) */
		struct {
			const struct term *items; /* `count` terms (2 per pair in a MAP) */
			size_t count;
			const struct term *const
				*sorted; /* MAP from term_decode: its keys in order */
		};
	};
	uint8_t bits; /* BITS: used bits of the last byte */
};

struct term_limits {
	size_t size; /* bytes of input */
	unsigned depth;
	size_t count; /* terms altogether */
};

/* What frames use: 16 MiB, depth 64, 262,144 terms. */
extern const struct term_limits term_limits;

/* Bytes to decode, borrowed. */
struct term_input {
	const void *data;
	size_t size;
	bool is_lasting; /* they outlive the term: its binaries point into them, without a NUL */
};

/*
 * Decodes exactly these bytes. 0; -EBADMSG with the reason ("depth", "trailing bytes",
 * "compressed term", …); -ENOMEM when the arena's quota is used up.
 */
int term_decode(struct arena *arena, struct term_input input, const struct term_limits *limits,
		struct term *ret_term, struct csn_error *err);

/*
 * Appends version byte and term. 0, -E2BIG, -ENOMEM; nothing is left behind on failure.
 * Recursion is bounded by `term_limits.depth`. A list of bytes becomes a STRING_EXT, as
 * Erlang writes it.
 */
int term_encode(struct buf *buf, const struct term *term);

/* Same value? Integers and floats are never equal to each other. */
bool term_equal(const struct term *a, const struct term *b);

/*
 * A total order for sorting, 0 for equal terms: by type, then by value; not Erlang's.
 * Maps that term_decode() did not make are only equal (0) or not (1).
 */
int term_compare(const struct term *a, const struct term *b);

/* Is it this atom? */
bool term_is_atom(const struct term *term, const char *name);

/* Looks an atom key up in a MAP; NULL if absent (or if `map` is not a map). */
const struct term *term_get(const struct term *map, const char *key);

/* Prints as Erlang would write it, for logs and errors; cut at `size`. */
void term_print(const struct term *term, char *ret_text, size_t size);
