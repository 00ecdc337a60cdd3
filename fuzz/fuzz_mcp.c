/* What a client of the MCP server sends, as lines; and any bytes on their way into an answer. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "serve/mcp_lines.h"
#include "serve/mcp_text.h"

enum { LINE = 64, KEPT = 32, PIPE = 60000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_lines(const uint8_t *data, size_t size)
{
	struct mcp_lines lines;
	const char *line;
	int ends[2];
	ssize_t n;

	size = size < PIPE ? size : PIPE;
	if (pipe(ends) < 0 || write(ends[1], data, size) != (ssize_t)size)
		abort();
	close(ends[1]);
	mcp_lines_init(&lines, LINE);
	while (mcp_lines_read(&lines, ends[0]) > 0 || buf_size(&lines.in) > 0)
		while ((n = mcp_lines_next(&lines, &line)) != -EAGAIN)
			assert(n == -EMSGSIZE || !memchr(line, '\n', (size_t)n));
	mcp_lines_done(&lines);
	close(ends[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf text = { .max = 4096 };
	json_t *string = mcp_string(data, size);
	struct mcp_ends ends;
	uint64_t cut;

	assert(string && str_is_utf8(json_string_value(string), json_string_length(string)));
	json_decref(string);
	take_lines(data, size);
	mcp_lines_is_bounded((const char *)data, size);
	mcp_ends_init(&ends, KEPT);
	for (size_t at = 0; at < size; at += 7)
		assert(mcp_ends_add(&ends, data + at, size - at < 7 ? size - at : 7) == 0);
	assert(mcp_ends_take(&ends, &text, &cut) == 0 && cut <= size);
	assert(size > KEPT || (cut == 0 && buf_size(&text) == size));
	mcp_ends_done(&ends);
	return 0;
}
