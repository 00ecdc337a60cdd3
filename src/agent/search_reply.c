/* Two passes over the records: the first checks and counts, since a list begins with its length;
 * the second emits. See search_reply.h. */
#include "agent/search_reply.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "search/answer.h"

enum { PATH_BYTES = 4095 };

struct record {
	enum answer_kind kind;
	const char *data;
	size_t size;
	const char *file; /* the path that a line is in */
	size_t file_size;
	uint64_t number;
};

struct reader {
	const uint8_t *at;
	size_t left;
	struct record record;
};

/* What an answer holds. */
struct summary {
	uint32_t paths, lines, binaries;
	struct answer_end end;
	const char *reason, *detail; /* NULL: not refused */
	bool is_over;
};

static bool is_path(const char *data, size_t size)
{
	return size > 0 && size <= PATH_BYTES && !memchr(data, 0, size);
}

/* The next record in reader->record: 1; 0: there is none; -EBADMSG. */
static int next(struct reader *reader)
{
	struct record *record = &reader->record;
	struct answer_head head;
	struct answer_line line;

	if (reader->left == 0)
		return 0;
	if (reader->left < sizeof head)
		return -EBADMSG;
	memcpy(&head, reader->at, sizeof head);
	if (head.size > reader->left - sizeof head)
		return -EBADMSG;
	record->kind = head.kind;
	record->data = (const char *)reader->at + sizeof head;
	record->size = head.size;
	reader->at += sizeof head + head.size;
	reader->left -= sizeof head + head.size;
	if (head.kind == ANSWER_FILE) {
		record->file = record->data;
		record->file_size = record->size;
	}
	if (head.kind != ANSWER_MATCH && head.kind != ANSWER_CONTEXT)
		return 1;
	if (record->size < sizeof line || record->size - sizeof line > ANSWER_LINE || !record->file)
		return -EBADMSG;
	memcpy(&line, record->data, sizeof line);
	record->number = line.number;
	record->data += sizeof line;
	record->size -= sizeof line;
	return line.number <= INT64_MAX ? 1 : -EBADMSG;
}

static int count_refused(struct summary *summary, const struct record *record)
{
	const char *end = memchr(record->data, 0, record->size);

	if (!end || end == record->data || !str_is_utf8(record->data, (size_t)(end - record->data)))
		return -EBADMSG;
	summary->reason = record->data;
	summary->detail = end + 1;
	summary->is_over = true;
	return 0;
}

static int count_end(struct summary *summary, const struct record *record)
{
	if (record->size != sizeof summary->end)
		return -EBADMSG;
	memcpy(&summary->end, record->data, sizeof summary->end);
	summary->is_over = true;
	return summary->end.skipped <= INT64_MAX ? 0 : -EBADMSG;
}

static int count(struct summary *summary, const struct record *record)
{
	if (summary->is_over)
		return -EBADMSG;
	switch (record->kind) {
	case ANSWER_PATH:
		summary->paths++;
		return is_path(record->data, record->size) ? 0 : -EBADMSG;
	case ANSWER_BINARY:
		summary->binaries++;
		return is_path(record->data, record->size) ? 0 : -EBADMSG;
	case ANSWER_FILE:
		return is_path(record->data, record->size) ? 0 : -EBADMSG;
	case ANSWER_MATCH:
	case ANSWER_CONTEXT:
		summary->lines++;
		return 0;
	case ANSWER_REFUSED:
		return count_refused(summary, record);
	case ANSWER_END:
		return count_end(summary, record);
	}
	return -EBADMSG;
}

/* ---- emitting ------------------------------------------------------------------------------- */

static struct reader read_from(const struct buf *answer)
{
	return (struct reader){ .at = buf_at(answer), .left = buf_size(answer) };
}

static void emit_paths(struct emit *emit, const struct buf *answer, enum answer_kind kind,
		       uint32_t size)
{
	struct reader reader = read_from(answer);

	emit_list(emit, size);
	while (next(&reader) > 0)
		if (reader.record.kind == kind)
			emit_binary(emit, reader.record.data, reader.record.size);
	emit_nil(emit);
}

static void emit_line(struct emit *emit, const struct record *record)
{
	bool is_context = record->kind == ANSWER_CONTEXT;

	emit_map(emit, is_context ? 4 : 3);
	emit_atom(emit, "path");
	emit_binary(emit, record->file, record->file_size);
	emit_atom(emit, "line_number");
	emit_int(emit, (int64_t)record->number);
	emit_atom(emit, "line");
	emit_binary(emit, record->data, record->size);
	if (is_context) {
		emit_atom(emit, "is_context");
		emit_bool(emit, true);
	}
}

static void emit_lines(struct emit *emit, const struct buf *answer, uint32_t size)
{
	struct reader reader = read_from(answer);

	emit_list(emit, size);
	while (next(&reader) > 0)
		if (reader.record.kind == ANSWER_MATCH || reader.record.kind == ANSWER_CONTEXT)
			emit_line(emit, &reader.record);
	emit_nil(emit);
}

static int summarize(const struct buf *answer, bool is_grep, struct summary *ret_summary)
{
	struct reader reader = read_from(answer);
	struct summary summary = { 0 };
	int r;

	while ((r = next(&reader)) > 0) {
		r = count(&summary, &reader.record);
		if (r < 0)
			break;
	}
	if (r < 0 || !summary.is_over)
		return -EBADMSG;
	if (summary.paths > ANSWER_ITEMS || summary.lines > ANSWER_ITEMS ||
	    summary.binaries > ANSWER_ITEMS || (is_grep ? summary.paths : summary.lines) > 0)
		return -EBADMSG;
	*ret_summary = summary;
	return 0;
}

static void refuse(struct agent *agent, int64_t ref, const struct summary *summary,
		   const struct buf *answer)
{
	const char *end = (const char *)buf_at(answer) + buf_size(answer);
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "failed");
	emit_int(&emit, ref);
	emit_atom(&emit, summary->reason);
	emit_binary(&emit, summary->detail, (size_t)(end - summary->detail));
	agent_send(agent, &emit);
}

int search_reply(struct agent *agent, int64_t ref, bool is_grep, const struct buf *answer)
{
	struct summary summary;
	struct emit emit;
	int r = summarize(answer, is_grep, &summary);

	if (r < 0)
		return r;
	if (summary.reason) {
		refuse(agent, ref, &summary, answer);
		return 0;
	}
	emit = agent_frame(agent);
	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, ref);
	emit_map(&emit, is_grep ? 4 : 3);
	emit_atom(&emit, is_grep ? "matches" : "paths");
	if (is_grep) {
		emit_lines(&emit, answer, summary.lines);
		emit_atom(&emit, "binary");
		emit_paths(&emit, answer, ANSWER_BINARY, summary.binaries);
	} else {
		emit_paths(&emit, answer, ANSWER_PATH, summary.paths);
	}
	emit_atom(&emit, "truncated");
	emit_bool(&emit, summary.end.is_truncated != 0);
	emit_atom(&emit, "skipped");
	emit_int(&emit, (int64_t)summary.end.skipped);
	agent_send(agent, &emit);
	return 0;
}
