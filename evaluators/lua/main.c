/*
 * caisson-lua: the evaluator of the medium `lua`, embedding Lua 5.4
 *
 * Frames on standard input and output: 4 bytes of length, one external term. It begins with
 * {init, Binding}, answers `ready`, and then evals until its input ends. Everything it holds is the
 * session's; the wall around it is its parent's to make.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "evaluator.h"
#include "medium/surface.h"
#include "wire/frame.h"

enum { READ_BYTES = 64 << 10, ARENA_BYTES = 96 << 20 };

static int flush(struct evaluator *evaluator)
{
	struct buf *out = &evaluator->out;

	while (buf_size(out) > 0) {
		ssize_t n = write(STDOUT_FILENO, buf_at(out), buf_size(out));

		if (n < 0 && errno != EINTR)
			return -errno;
		buf_consume(out, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

/* A whole frame at the front of `in`. */
static int await(struct evaluator *evaluator, const uint8_t **ret_payload, size_t *ret_size)
{
	for (;;) {
		int r = frame_peek(&evaluator->in, FRAME_MAX, ret_payload, ret_size, NULL);
		uint8_t *place;
		ssize_t n;

		if (r != 0)
			return r;
		place = buf_reserve(&evaluator->in, READ_BYTES);
		if (!place)
			return -ENOMEM;
		n = read(STDIN_FILENO, place, READ_BYTES);
		if (n == 0 || (n < 0 && errno != EINTR))
			return n == 0 ? -EPIPE : -errno;
		buf_grew(&evaluator->in, n > 0 ? (size_t)n : 0);
	}
}

int frames_talk(struct evaluator *evaluator, struct arena *arena, struct term *ret_term)
{
	const uint8_t *payload;
	size_t size;
	int r = flush(evaluator);

	if (r >= 0)
		r = await(evaluator, &payload, &size);
	if (r < 0)
		return r;
	r = term_decode(arena, (struct term_input){ payload, size }, &term_limits, ret_term, NULL);
	buf_consume(&evaluator->in, FRAME_HEAD + size);
	return r;
}

static bool is_message(const struct term *term, const char *name, size_t count)
{
	return term->type == TERM_TUPLE && term->count == count &&
	       term_is_atom(&term->items[0], name);
}

/* {init, Binding}, before anything else. */
static int begin(struct evaluator *evaluator)
{
	struct emit emit;
	struct term term;
	int r = frames_talk(evaluator, &evaluator->frame, &term);

	if (r < 0)
		return r;
	if (!is_message(&term, "init", 2))
		return -EBADMSG;
	r = evaluate_bind(evaluator, &term.items[1]);
	emit = emit_begin(&evaluator->out);
	if (r < 0) {
		emit_tuple(&emit, 2);
		emit_atom(&emit, "init_error");
		emit_text(&emit, "the variables of the session do not fit into memory");
	} else {
		emit_atom(&emit, "ready");
	}
	arena_done(&evaluator->frame);
	return emit_end(&emit);
}

static int serve(struct evaluator *evaluator)
{
	struct term term;
	int r = begin(evaluator);

	while (r >= 0) {
		r = frames_talk(evaluator, &evaluator->frame, &term);
		if (r >= 0)
			r = is_message(&term, "eval", 4) ? evaluate_code(evaluator, term.items)
							 : -EBADMSG;
		if (evaluator->over == OVER_LOST)
			r = -EPIPE;
		arena_done(&evaluator->frame);
		arena_done(&evaluator->reply);
	}
	return r;
}

int main(void)
{
	struct evaluator evaluator = { 0 };
	int r;

	buf_init(&evaluator.in, FRAME_MAX + FRAME_HEAD + READ_BYTES);
	buf_init(&evaluator.out, FRAME_MAX + FRAME_HEAD);
	buf_init(&evaluator.output, SURFACE_OUTPUT);
	arena_init(&evaluator.frame, ARENA_BYTES);
	arena_init(&evaluator.reply, ARENA_BYTES);
	r = ward_open(&evaluator);
	if (r >= 0)
		r = serve(&evaluator);
	if (r != -EPIPE)
		fprintf(stderr, "caisson-lua: %s\n", strerror(-r));
	/* Nothing is closed that the end of the process does not close, __close among it. */
	return r == -EPIPE ? 0 : 1;
}
