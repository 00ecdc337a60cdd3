/* See mcp_lines.h. What was searched for a newline is not searched again, however slowly it comes.
 */
#include "serve/mcp_lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 << 10, DEPTH_MAX = 64, VALUES_MAX = 200000 };

void mcp_lines_init(struct mcp_lines *lines, size_t max)
{
	*lines = (struct mcp_lines){ .seen = 0 };
	buf_init(&lines->in, max + PIECE);
}

void mcp_lines_done(struct mcp_lines *lines)
{
	buf_done(&lines->in);
}

ssize_t mcp_lines_read(struct mcp_lines *lines, int fd)
{
	uint8_t *at = buf_reserve(&lines->in, PIECE);
	ssize_t n;

	if (!at)
		return -ENOMEM;
	n = read(fd, at, PIECE);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	buf_grew(&lines->in, (size_t)n);
	lines->is_ended = n == 0;
	return n;
}

/* There is no newline in what came: it is kept, or passed over. */
static ssize_t await(struct mcp_lines *lines)
{
	size_t size = buf_size(&lines->in);

	lines->seen = size;
	if (!lines->is_skipping && size + PIECE <= lines->in.max)
		return -EAGAIN;
	buf_clear(&lines->in);
	lines->seen = 0;
	if (lines->is_skipping)
		return -EAGAIN;
	lines->is_skipping = true;
	return -EMSGSIZE;
}

ssize_t mcp_lines_next(struct mcp_lines *lines, const char **ret_line)
{
	for (;;) {
		size_t size = buf_size(&lines->in), length;
		const char *line = (const char *)buf_at(&lines->in), *end = NULL;
		bool was_skipping = lines->is_skipping;

		if (size > lines->seen)
			end = memchr(line + lines->seen, '\n', size - lines->seen);
		if (!end && !(lines->is_ended && size > 0))
			return await(lines);
		length = end ? (size_t)(end - line) : size;
		buf_consume(&lines->in, length + (end ? 1 : 0));
		lines->seen = 0;
		lines->is_skipping = false;
		if (was_skipping)
			continue;
		*ret_line = line;
		return (ssize_t)length;
	}
}

bool mcp_lines_is_bounded(const char *text, size_t size)
{
	size_t depth = 0, values = 0;
	bool is_string = false;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (is_string && c == '\\')
			i++;
		else if (c == '"')
			is_string = !is_string;
		else if (is_string)
			continue;
		else if (c == ',' || c == ':')
			values++;
		else if (c == '[' || c == '{')
			depth++, values++;
		else if ((c == ']' || c == '}') && depth > 0)
			depth--;
		if (depth > DEPTH_MAX || values > VALUES_MAX)
			return false;
	}
	return true;
}
