/* Terms and frames from behind a wall. The first byte picks the side; a decoded term must
 * survive another round unchanged. */
#include "base/str.h"
#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena arena;
	_cleanup_buf_ struct buf in, out;
	const struct frame_verb *verb;
	struct term term, again;
	const uint8_t *payload;
	char text[128];
	size_t length;

	arena_init(&arena, 4 << 20);
	buf_init(&in, 1 << 20);
	buf_init(&out, 1 << 20);
	if (size == 0 || buf_add(&in, data + 1, size - 1) < 0)
		return 0;
	if (frame_peek(&in, 1 << 20, &payload, &length, NULL) == 1 && length > size - 5)
		__builtin_trap();
	if (term_decode(&arena, (struct term_input){ data + 1, size - 1 }, &term_limits, &term,
			NULL) == 0) {
		term_print(&term, text, sizeof text);
		if (term_encode(&out, &term) < 0 ||
		    term_decode(&arena, (struct term_input){ buf_at(&out), buf_size(&out) },
				&term_limits, &again, NULL) < 0 ||
		    !term_equal(&term, &again))
			__builtin_trap();
	}
	if (frame_decode(&arena, (struct term_input){ data + 1, size - 1 },
			 data[0] & 1 ? FROM_AGENT : FROM_PORT_CLIENT, &term, NULL) == FRAME_CALL &&
	    (verb = frame_find_verb(&term.items[2])))
		frame_check_map(verb->args, &term.items[3], NULL);
	return 0;
}
