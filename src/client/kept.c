/* Kept output: a head that fills up, then a tail whose front is dropped; see kept.h. */
#include "client/kept.h"

#include <errno.h>
#include <string.h>

void kept_init(struct kept *kept, size_t size)
{
	size = size == 0 ? KEPT_DEFAULT : size < KEPT_MAX ? size : KEPT_MAX;
	*kept = (struct kept){ .half = (size + 1) / 2 };
	buf_init(&kept->head, kept->half);
	buf_init(&kept->tail, 2 * kept->half + (64 << 10)); /* its front is dropped rarely */
}

void kept_done(struct kept *kept)
{
	buf_done(&kept->head);
	buf_done(&kept->tail);
}

int kept_add(struct kept *kept, const void *data, size_t size)
{
	size_t room = buf_room(&kept->head), first = size < room ? size : room;
	const uint8_t *rest = (const uint8_t *)data + first;
	size_t left = size - first;

	if (first > 0 && buf_add(&kept->head, data, first) < 0)
		return -ENOMEM;
	kept->total += size;
	if (left > kept->half) {
		rest += left - kept->half;
		left = kept->half;
	}
	if (left > buf_room(&kept->tail))
		buf_consume(&kept->tail, buf_size(&kept->tail) - kept->half);
	return left > 0 && buf_add(&kept->tail, rest, left) < 0 ? -ENOMEM : 0;
}

int kept_output(const struct kept *kept, struct arena *arena, csn_output *ret_output)
{
	size_t head = buf_size(&kept->head), tail = buf_size(&kept->tail);
	size_t skip = tail > kept->half ? tail - kept->half : 0;
	char *data = arena_alloc(arena, head + tail - skip + 1);

	if (!data)
		return -ENOMEM;
	if (head > 0)
		memcpy(data, buf_at(&kept->head), head);
	if (tail > 0)
		memcpy(data + head, buf_at(&kept->tail) + skip, tail - skip);
	*ret_output = (csn_output){ .data = data,
				    .size = head + tail - skip,
				    .total = kept->total,
				    .cut_bytes = kept->total - (head + tail - skip),
				    .cut_at = head };
	return 0;
}
