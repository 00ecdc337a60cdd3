/* Records into a buffer, the buffer into the pipe; see writer.h. Nothing is sent before the end:
 * an answer has at most ANSWER_BYTES, and a refusal makes what was found before it void. */
#include "search/writer.h"

#include <string.h>

#include "base/fd.h"

void writer_init(struct writer *writer, int fd)
{
	*writer = (struct writer){ .fd = fd };
	buf_init(&writer->buf, ANSWER_BYTES);
}

static int full(struct writer *writer)
{
	writer->is_truncated = true;
	return -1;
}

static int add(struct writer *writer, enum answer_kind kind, const void *data, size_t size)
{
	struct answer_head head = { kind, (uint32_t)size };

	if (buf_add(&writer->buf, &head, sizeof head) < 0 || buf_add(&writer->buf, data, size) < 0)
		return full(writer);
	return 0;
}

int writer_path(struct writer *writer, const char *path, size_t size)
{
	size_t cost = size + ANSWER_PATH_BYTES;

	if (writer->paths == ANSWER_ITEMS || writer->paths_bytes + cost > ANSWER_PATHS_BYTES)
		return full(writer);
	writer->paths++;
	writer->paths_bytes += cost;
	return add(writer, ANSWER_PATH, path, size);
}

int writer_binary(struct writer *writer, const char *path, size_t size)
{
	size_t cost = size + ANSWER_PATH_BYTES;

	if (writer->binaries == ANSWER_ITEMS || writer->binaries_bytes + cost > ANSWER_PATHS_BYTES)
		return full(writer);
	writer->binaries++;
	writer->binaries_bytes += cost;
	return add(writer, ANSWER_BINARY, path, size);
}

void writer_file(struct writer *writer, const char *path, size_t size)
{
	writer->file = path;
	writer->file_size = size;
}

int writer_line(struct writer *writer, const struct writer_line *line)
{
	size_t size = line->size < ANSWER_LINE ? line->size : ANSWER_LINE;
	size_t cost = writer->file_size + size + ANSWER_ITEM_BYTES;
	struct answer_head head = { line->kind, (uint32_t)(sizeof(struct answer_line) + size) };
	struct answer_line number = { line->number };

	if (writer->lines == ANSWER_ITEMS || writer->lines_bytes + cost > ANSWER_LINES_BYTES)
		return full(writer);
	if (writer->file && add(writer, ANSWER_FILE, writer->file, writer->file_size) < 0)
		return -1;
	writer->file = NULL;
	writer->lines++;
	writer->lines_bytes += cost;
	if (buf_add(&writer->buf, &head, sizeof head) < 0 ||
	    buf_add(&writer->buf, &number, sizeof number) < 0 ||
	    buf_add(&writer->buf, line->text, size) < 0)
		return full(writer);
	return 0;
}

int writer_end(struct writer *writer, uint64_t skipped, const struct refusal *refusal)
{
	struct answer_end end = { writer->is_truncated, skipped };
	char text[sizeof refusal->detail + 64];
	int r;

	if (refusal->reason) {
		size_t reason = strlen(refusal->reason) + 1, detail = strlen(refusal->detail);

		memcpy(text, refusal->reason, reason);
		memcpy(text + reason, refusal->detail, detail);
		buf_clear(&writer->buf);
		r = add(writer, ANSWER_REFUSED, text, reason + detail);
	} else {
		r = add(writer, ANSWER_END, &end, sizeof end);
	}
	if (r == 0)
		r = fd_write_all(writer->fd, buf_at(&writer->buf), buf_size(&writer->buf));
	buf_done(&writer->buf);
	return r;
}
