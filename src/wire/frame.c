/*
 * Frames on a byte stream; see frame.h. A length is judged when its four bytes are
 * there, before anything is collected for it.
 */
#include "wire/frame.h"

#include <errno.h>

int frame_peek(const struct buf *in, size_t max, const uint8_t **ret_payload, size_t *ret_size,
	       struct csn_error *err)
{
	const uint8_t *at;
	size_t size;

	if (buf_size(in) < FRAME_HEAD)
		return 0;
	at = buf_at(in);
	size = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
	if (size == 0 || size > max)
		return csn_fail(err, -EMSGSIZE, "wire",
				"a frame of %zu bytes is refused: 1 to %zu are taken", size, max);
	if (buf_size(in) - FRAME_HEAD < size)
		return 0;
	*ret_payload = at + FRAME_HEAD;
	*ret_size = size;
	return 1;
}
