/*
 * Read: lines of a text file, or an image
 *
 * The file comes as a stream and only what is asked for is kept, so a line far down a long file
 * costs its reading and no memory. All lines are counted, up to a bound: a model that knows how
 * many there are does not guess.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "serve/base64.h"
#include "serve/mcp_image.h"
#include "serve/mcp_text.h"
#include "serve/mcp_tool.h"

enum {
	SNIFF_BYTES = 8000,      /* in which a NUL means: no text; as git judges */
	IMAGE_BYTES = 5 << 20,   /* clients take no larger ones */
	COUNT_BYTES = 256 << 20, /* beyond, lines are not counted */
};

enum kind { UNKNOWN, TEXT, IMAGE, BINARY };

struct reading {
	enum kind kind;
	const struct mcp_image *image;
	uint64_t from, most; /* lines that are wanted, counted from 1 */
	uint64_t bytes;      /* that came */
	uint64_t line;       /* the one that the next byte belongs to */
	bool is_in_line;     /* … and it is not its first */
	struct buf kept;
	size_t line_at; /* in `kept`: where the current line begins */
	uint64_t last;  /* the last line that is kept */
	bool is_full;   /* no more is kept */
	bool is_cut;    /* a single line is longer than all there is room for */
	bool is_uncounted;
};

static void sniff(struct reading *reading, const char *bytes, size_t size)
{
	reading->kind = memchr(bytes, 0, size < SNIFF_BYTES ? size : SNIFF_BYTES) ? BINARY : TEXT;
	reading->image = mcp_image_of(bytes, size);
	if (reading->image) {
		reading->kind = IMAGE;
		reading->kept.max = IMAGE_BYTES;
	}
}

/* A piece of the current line, which is wanted. */
static void keep(struct reading *reading, const char *bytes, size_t size)
{
	size_t room = buf_room(&reading->kept);

	if (size <= room) {
		if (buf_add(&reading->kept, bytes, size) < 0)
			reading->is_full = true;
		return;
	}
	reading->is_full = true;
	if (reading->line_at > 0) {
		buf_truncate(&reading->kept, reading->line_at);
		reading->last = reading->line - 1;
		return;
	}
	reading->is_cut = true;
	reading->last = reading->line;
	if (buf_add(&reading->kept, bytes, room) == 0)
		buf_truncate(&reading->kept,
			     buf_size(&reading->kept) - mcp_text_torn(buf_at(&reading->kept),
								      buf_size(&reading->kept)));
}

static bool is_wanted(const struct reading *reading)
{
	return !reading->is_full && reading->line >= reading->from &&
	       reading->line - reading->from < reading->most;
}

static void add_lines(struct reading *reading, const char *at, size_t size)
{
	while (size > 0) {
		const char *end = memchr(at, '\n', size);
		size_t length = end ? (size_t)(end - at) + 1 : size;

		if (is_wanted(reading)) {
			if (!reading->is_in_line)
				reading->line_at = buf_size(&reading->kept);
			keep(reading, at, length);
			if (!reading->is_full)
				reading->last = reading->line;
		}
		reading->line += end != NULL;
		reading->is_in_line = !end;
		at += length;
		size -= length;
	}
}

static int on_bytes(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct reading *reading = data;

	(void)stream;
	if (reading->kind == UNKNOWN && size > 0)
		sniff(reading, bytes, size);
	reading->bytes += size;
	if (reading->kind == BINARY)
		return 1;
	if (reading->kind == IMAGE)
		return buf_add(&reading->kept, bytes, size) < 0;
	add_lines(reading, bytes, size);
	reading->is_uncounted = reading->bytes > COUNT_BYTES && !is_wanted(reading);
	return reading->is_uncounted;
}

static uint64_t total_lines(const struct reading *reading)
{
	return reading->line - 1 + reading->is_in_line;
}

static int say_text(struct mcp_call *call, const struct reading *reading)
{
	const char *path = mcp_arg(call, "path");
	uint64_t total = total_lines(reading);
	const char *at_least = reading->is_uncounted ? "at least " : "";

	if (total > 0 && reading->from > total)
		return mcp_fail(call, CSN_INVALID,
				"offset %" PRIu64 " is beyond the end: %.200s has %" PRIu64
				" lines",
				reading->from, path, total);
	mcp_text(call, buf_at(&reading->kept), buf_size(&reading->kept));
	mcp_give_bytes(call, "text", buf_at(&reading->kept), buf_size(&reading->kept));
	mcp_give_int(call, "first_line", total ? reading->from : 0);
	mcp_give_int(call, "last_line", reading->last);
	mcp_give_int(call, "total_lines", total);
	if (total == 0)
		mcp_note(call, "(%.200s is empty)", path);
	else if (reading->is_cut)
		mcp_note(call,
			 "[showing the first %zu bytes of line %" PRIu64 " of %s%" PRIu64
			 "; Bash can show the rest, as: cut -c 50000-]",
			 buf_size(&reading->kept), reading->last, at_least, total);
	else if (reading->from > 1 || reading->last < total)
		mcp_note(call, "[showing lines %" PRIu64 "–%" PRIu64 " of %s%" PRIu64 "%s]",
			 reading->from, reading->last, at_least, total,
			 reading->last < total ? "; offset and limit show others" : "");
	return 0;
}

static int say_damaged(struct mcp_call *call, const struct reading *reading)
{
	mcp_say(call,
		"(%.200s begins as an %s of %" PRIu64 " bytes; it is damaged, or larger than %d "
		"pixels a side, and is not shown)",
		mcp_arg(call, "path"), reading->image->type, reading->bytes, MCP_IMAGE_SIDE);
	mcp_give_text(call, "text", "");
	mcp_give_bool(call, "binary", true);
	mcp_give_int(call, "bytes", reading->bytes);
	return 0;
}

static int say_image(struct mcp_call *call, const struct reading *reading)
{
	char *text;

	if (!reading->image->is_whole(buf_at(&reading->kept), buf_size(&reading->kept)))
		return say_damaged(call, reading);
	text = base64_text(buf_at(&reading->kept), buf_size(&reading->kept));
	if (!text)
		return mcp_fail(call, CSN_ENOMEM, "there is no memory for the image");
	json_array_append_new(call->content, json_pack("{s:s, s:s, s:s}", "type", "image", "data",
						       text, "mimeType", reading->image->type));
	free(text);
	mcp_give_text(call, "text", "");
	mcp_give_text(call, "image", reading->image->type);
	mcp_give_int(call, "bytes", reading->bytes);
	return 0;
}

/* What cannot be shown, with its size, which only the whole file has. */
static int say_other(struct mcp_call *call, const struct reading *reading)
{
	const char *path = mcp_arg(call, "path");
	csn_path_request request = { .call = mcp_call_id(call, 0), .path = path };
	csn_stat_result *stat;
	uint64_t size = reading->bytes;

	if (csn_stat(call->sandbox, &request, &stat, NULL) == 0) {
		size = stat->size;
		csn_free(stat);
	}
	if (reading->kind == IMAGE)
		mcp_say(call,
			"(%.200s is an %s of %" PRIu64 " bytes, too large to be shown: at most %d)",
			path, reading->image->type, size, IMAGE_BYTES);
	else
		mcp_say(call,
			"(%.200s is a binary file of %" PRIu64
			" bytes; Bash has file, xxd and strings where they are installed)",
			path, size);
	mcp_give_text(call, "text", "");
	mcp_give_bool(call, "binary", true);
	mcp_give_int(call, "bytes", size);
	return 0;
}

int mcp_read(struct mcp_call *call)
{
	struct reading reading = { .from = (uint64_t)mcp_arg_int(call, "offset", 1),
				   .most = (uint64_t)mcp_arg_int(call, "limit", MCP_LINES),
				   .line = 1 };
	csn_read_request request = { .call = mcp_call_id(call, 0),
				     .path = mcp_arg(call, "path"),
				     .on_output = on_bytes,
				     .data = &reading };
	csn_bytes *bytes = NULL;
	bool is_stopped;
	int r;

	buf_init(&reading.kept, MCP_TEXT_BYTES);
	r = csn_read(call->sandbox, &request, &bytes, &call->err);
	is_stopped = r == -CSN_CANCELLED && (reading.kind != TEXT || reading.is_uncounted);
	if (r == 0)
		csn_free(bytes);
	if (is_stopped && reading.kind != TEXT)
		r = say_other(call, &reading);
	else if (is_stopped || (r == 0 && reading.kind != IMAGE))
		r = say_text(call, &reading);
	else if (r == 0)
		r = say_image(call, &reading);
	buf_done(&reading.kept);
	return r;
}
