/*
 * emit - writes terms straight into a buf, without building a tree
 *
 * The counterpart of term_decode() on hot paths and in the agent. Sizes are said before
 * the contents, as the format demands: emit_tuple(b, 3) is followed by three terms. A struct
 * emit remembers the first failure, so that callers check once, at emit_end().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct term;

struct emit {
	struct buf *buf; /* borrowed */
	size_t frame;    /* offset (from buf start) of the frame's length, set by emit_begin */
	int error;       /* first failure, 0 so far */
};

/* Starts a frame: 4 bytes of length (filled by emit_end) and the version byte. */
struct emit emit_begin(struct buf *buf);

/* Ends it: 0, -E2BIG or -ENOMEM. On any failure since emit_begin the partial frame is removed. */
int emit_end(struct emit *emit);

/*
 * The same of a frame that ends in a binary of which only the head was emitted: its `size` bytes
 * follow in the stream, and are the caller's to send. Saves the copy of bulk data.
 */
int emit_end_before(struct emit *emit, size_t size);
void emit_binary_head(struct emit *emit, size_t size);

/*
 * A binary that is filled in place: where at most `max` bytes go, NULL on failure; then how many
 * there are. Nothing is emitted in between.
 */
void *emit_space(struct emit *emit, size_t max);
void emit_space_end(struct emit *emit, size_t size);

/* Takes the unfinished frame back. */
void emit_drop(struct emit *emit);

/*
 * What follows appends one term or the head of one. Failures are remembered in `error`;
 * nothing is written after the first.
 */
void emit_tuple(struct emit *emit, uint32_t arity);
void emit_map(struct emit *emit, uint32_t pairs);
/* `count` terms and emit_nil() follow, for 0 too. */
void emit_list(struct emit *emit, uint32_t count);
void emit_nil(struct emit *emit);
void emit_atom(struct emit *emit, const char *name); /* at most 255 bytes of UTF-8 */
void emit_int(struct emit *emit, int64_t value);
void emit_binary(struct emit *emit, const void *data, size_t size);
void emit_text(struct emit *emit, const char *text); /* a binary */
void emit_bool(struct emit *emit, int value);
void emit_float(struct emit *emit, double value);

/* {failed, Ref, Reason, Detail}, which every side says: a call's answer, with an atom and a text.
 */
void emit_failed(struct emit *emit, int64_t ref, const char *reason, const char *detail);

/* Bytes of the format itself, for what has no call here. */
void emit_raw(struct emit *emit, const void *data, size_t size);

/* A whole tree, at most term_limits.depth deep (-E2BIG), as term_encode() writes it. */
void emit_term(struct emit *emit, const struct term *term);
