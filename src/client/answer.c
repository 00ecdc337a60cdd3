/* What a host's wall answers; see answer.h. */
#include "client/answer.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

enum { CHECK_QUOTA = 64 << 20, DETAIL_MAX = 4000, NAME_MAX_BYTES = 255, EDIT_MAX = 1 << 20 };

bool answer_is(const struct csn_answer *answer, const char *name)
{
	return str_is(answer->call->verb->name, name);
}

/* Why nothing more need be said: 0, or -code. */
static int stopped(const struct csn_answer *answer)
{
	if (answer->wall->is_over)
		return -CSN_LOST;
	return answer->call->is_cancelled ? -CSN_CANCELLED : 0;
}

/* ---- failures -------------------------------------------------------------------------------- */

/* What is said of a sandbox is not the wall's to say. */
static bool may_fail_with(int code)
{
	return code > CSN_OK && code < CSN_TIER_UNAVAILABLE && code != CSN_LOST &&
	       code != CSN_COMMAND_LOST && !str_is(csn_code_name(code), "unknown");
}

CSN_API int csn_answer_fail(csn_answer *answer, int code, const char *sentence)
{
	char text[DETAIL_MAX];

	code = code < 0 ? -code : code;
	sentence = sentence ? sentence : "";
	if (answer->is_given)
		return -CSN_INVALID;
	if (!may_fail_with(code))
		code = CSN_EIO;
	code_text(text, sizeof text, sentence, strlen(sentence));
	answer->is_given = true;
	wall_fail(answer->wall, answer->call->ref, csn_code_name(code), text);
	return -code;
}

/* ---- replies -------------------------------------------------------------------------------- */

static bool may_reply(const struct csn_answer *answer, const char *verb)
{
	return !answer->is_given && answer_is(answer, verb);
}

static struct emit begin(struct csn_answer *answer, uint32_t pairs)
{
	struct emit emit = wall_frame(answer->wall, "reply", 3, answer->call->ref);

	emit_map(&emit, pairs);
	return emit;
}

/* What the monitor would make of it. */
static int check(const struct csn_answer *answer, const struct emit *emit, struct csn_error *why)
{
	const uint8_t *at = buf_at(emit->buf) + emit->frame + FRAME_HEAD;
	size_t size = buf_size(emit->buf) - emit->frame - FRAME_HEAD;
	_cleanup_arena_ struct arena arena;
	struct term frame;
	int r;

	arena_init(&arena, CHECK_QUOTA);
	if (emit->error < 0)
		return csn_fail(why, emit->error, "wall", "it is too long, or holds no text");
	r = frame_decode(&arena, (struct term_input){ at, size, false }, FROM_AGENT, &frame, why);
	return r < 0 ? r : frame_check_map(answer->call->verb->result, &frame.items[2], why);
}

static int finish(struct csn_answer *answer, struct emit *emit)
{
	struct csn_error why = { 0 };
	char text[sizeof why.text + 64];

	if (check(answer, emit, &why) >= 0) {
		answer->is_given = true;
		wall_send(answer->wall, emit);
		return 0;
	}
	emit_drop(emit);
	snprintf(text, sizeof text, "the wall's answer to %s is none: %s", answer->call->verb->name,
		 why.text);
	csn_answer_fail(answer, CSN_EIO, text);
	return -CSN_INVALID;
}

static void put_int(struct emit *emit, const char *key, uint64_t value)
{
	emit_atom(emit, key);
	emit_int(emit, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/* A text that is missing breaks the reply, which is then none. */
static void put_text(struct emit *emit, const char *key, const char *text)
{
	emit_atom(emit, key);
	if (text)
		emit_text(emit, text);
	else
		emit_nil(emit);
}

static void put_atom(struct emit *emit, const char *key, const char *text)
{
	emit_atom(emit, key);
	if (text && strlen(text) <= NAME_MAX_BYTES)
		emit_atom(emit, text);
	else
		emit_nil(emit);
}

static void put_bool(struct emit *emit, const char *key, bool value)
{
	emit_atom(emit, key);
	emit_bool(emit, value);
}

static void put_null_or(struct emit *emit, const char *key, int value, bool is_null)
{
	emit_atom(emit, key);
	if (is_null)
		emit_atom(emit, "null");
	else
		emit_int(emit, value);
}

CSN_API int csn_answer_exit(csn_answer *answer, int exit_code, int signal)
{
	static const char *const usage[] = { "user_us", "system_us", "max_rss_bytes" };
	struct emit emit;

	if (!may_reply(answer, "exec"))
		return -CSN_INVALID;
	emit = begin(answer, 2 + ARRAY_SIZE(usage));
	put_null_or(&emit, "exit_code", exit_code, signal != 0);
	put_null_or(&emit, "signal", signal, signal == 0);
	for (size_t i = 0; i < ARRAY_SIZE(usage); i++)
		put_int(&emit, usage[i], 0);
	return finish(answer, &emit);
}

CSN_API int csn_answer_edit(csn_answer *answer, const csn_edit_result *result)
{
	bool has_content = result->content.data && result->content.size <= EDIT_MAX;
	struct emit emit;

	if (!may_reply(answer, "edit"))
		return -CSN_INVALID;
	emit = begin(answer, 1 + has_content);
	put_int(&emit, "occurrences", result->occurrences);
	if (has_content) {
		emit_atom(&emit, "content");
		emit_binary(&emit, result->content.data, result->content.size);
	}
	return finish(answer, &emit);
}

CSN_API int csn_answer_stat(csn_answer *answer, const csn_stat_result *result)
{
	struct emit emit;

	if (!may_reply(answer, "stat"))
		return -CSN_INVALID;
	emit = begin(answer, 4 + (result->target != NULL));
	put_atom(&emit, "type", result->type);
	put_int(&emit, "size", result->size);
	put_int(&emit, "mode", result->mode);
	emit_atom(&emit, "mtime_ms");
	emit_int(&emit, result->mtime_ms);
	if (result->target)
		put_text(&emit, "target", result->target);
	return finish(answer, &emit);
}

static uint32_t at_most(const struct csn_answer *answer, size_t count)
{
	return (uint32_t)(count < answer->most ? count : answer->most);
}

CSN_API int csn_answer_list(csn_answer *answer, const csn_list_result *result)
{
	uint32_t count = at_most(answer, result->count);
	struct emit emit;

	if (!may_reply(answer, "list"))
		return -CSN_INVALID;
	emit = begin(answer, 2);
	emit_atom(&emit, "entries");
	emit_list(&emit, count);
	for (uint32_t i = 0; i < count; i++) {
		emit_map(&emit, 3);
		put_text(&emit, "name", result->entries[i].name);
		put_atom(&emit, "type", result->entries[i].type);
		put_int(&emit, "size", result->entries[i].size);
	}
	emit_nil(&emit);
	put_bool(&emit, "truncated", result->truncated || count < result->count);
	return finish(answer, &emit);
}

static void put_texts(struct emit *emit, const char *key, const char *const *texts, uint32_t count)
{
	emit_atom(emit, key);
	emit_list(emit, count);
	for (uint32_t i = 0; i < count; i++)
		emit_text(emit, texts[i] ? texts[i] : "");
	emit_nil(emit);
}

CSN_API int csn_answer_glob(csn_answer *answer, const csn_glob_result *result)
{
	uint32_t count = at_most(answer, result->count);
	struct emit emit;

	if (!may_reply(answer, "glob"))
		return -CSN_INVALID;
	emit = begin(answer, 3);
	put_texts(&emit, "paths", result->paths, count);
	put_bool(&emit, "truncated", result->truncated || count < result->count);
	put_int(&emit, "skipped", result->skipped);
	return finish(answer, &emit);
}

static void put_match(struct emit *emit, const csn_match *match)
{
	emit_map(emit, 4);
	put_text(emit, "path", match->path);
	put_int(emit, "line_number", match->line_number);
	emit_atom(emit, "line");
	emit_binary(emit, match->line.data, match->line.size);
	put_bool(emit, "is_context", match->is_context);
}

CSN_API int csn_answer_grep(csn_answer *answer, const csn_grep_result *result)
{
	uint32_t count = at_most(answer, result->count);
	struct emit emit;

	if (!may_reply(answer, "grep"))
		return -CSN_INVALID;
	emit = begin(answer, 4);
	emit_atom(&emit, "matches");
	emit_list(&emit, count);
	for (uint32_t i = 0; i < count; i++)
		put_match(&emit, &result->matches[i]);
	emit_nil(&emit);
	put_texts(&emit, "binary", result->binary, at_most(answer, result->binary_count));
	put_bool(&emit, "truncated", result->truncated || count < result->count);
	put_int(&emit, "skipped", result->skipped);
	return finish(answer, &emit);
}

/* ---- data ----------------------------------------------------------------------------------- */

static const char *const streams[] = {
	[CSN_STDOUT] = "stdout", [CSN_STDERR] = "stderr", [CSN_TTY] = "tty"
};

static int send_data(struct csn_answer *answer, enum csn_stream stream, const uint8_t *bytes,
		     size_t size)
{
	struct wall_call *call = answer->call;
	struct wall *wall = answer->wall;
	int r = stopped(answer);

	while (size > 0 && r == 0) {
		size_t n = size < FRAME_PIECE ? size : FRAME_PIECE;
		struct emit emit;

		if (call->window <= 0 || buf_size(&wall->out) > WALL_OUT_BUSY) {
			wall_pump(wall, -1);
			r = stopped(answer);
			continue;
		}
		n = (int64_t)n < call->window ? n : (size_t)call->window;
		emit = wall_frame(wall, "data", 4, call->ref);
		emit_atom(&emit, streams[stream]);
		emit_binary(&emit, bytes, n);
		wall_send(wall, &emit);
		call->window -= (int64_t)n;
		bytes += n;
		size -= n;
	}
	return r;
}

/* The first piece may be all. */
static int read_data(struct csn_answer *answer, const uint8_t *bytes, size_t size)
{
	uint64_t room = answer->most - answer->size;
	int r = 0;

	size = size < room ? size : (size_t)room;
	answer->size += size;
	if (!answer->is_streamed && buf_size(&answer->kept) + size <= FRAME_PIECE)
		return size && buf_add(&answer->kept, bytes, size) < 0 ? -CSN_ENOMEM : 0;
	if (!answer->is_streamed)
		r = send_data(answer, CSN_STDOUT, buf_at(&answer->kept), buf_size(&answer->kept));
	answer->is_streamed = true;
	return r < 0 ? r : send_data(answer, CSN_STDOUT, bytes, size);
}

CSN_API int csn_answer_data(csn_answer *answer, enum csn_stream stream, const void *bytes,
			    size_t size)
{
	if (answer->is_given || (int)stream < CSN_STDOUT || (int)stream > CSN_TTY)
		return -CSN_INVALID;
	if (answer_is(answer, "read") && stream == CSN_STDOUT)
		return read_data(answer, bytes, size);
	return answer_is(answer, "exec") ? send_data(answer, stream, bytes, size) : -CSN_INVALID;
}

static void end_read(struct csn_answer *answer)
{
	struct emit emit = begin(answer, answer->is_streamed ? 1 : 2);

	put_int(&emit, "size", answer->size);
	if (!answer->is_streamed) {
		emit_atom(&emit, "bytes");
		emit_binary(&emit, answer->size ? (const void *)buf_at(&answer->kept) : "",
			    buf_size(&answer->kept));
	}
	finish(answer, &emit);
}

static void grant(struct csn_answer *answer, size_t size)
{
	struct emit emit;

	if (answer->is_bytes || answer->call->is_input_over)
		return;
	emit = wall_frame(answer->wall, "window", 3, answer->call->ref);
	emit_int(&emit, (int64_t)size);
	wall_send(answer->wall, &emit);
}

CSN_API ptrdiff_t csn_answer_input(csn_answer *answer, void *ret_bytes, size_t size)
{
	struct wall_call *call = answer->call;
	int r = stopped(answer);

	if (answer->is_given)
		return -CSN_INVALID;
	while (r == 0 && buf_size(&call->input) == 0 && !call->is_input_over) {
		wall_pump(answer->wall, -1);
		r = stopped(answer);
	}
	if (r < 0)
		return r;
	size = size < buf_size(&call->input) ? size : buf_size(&call->input);
	if (size > 0) {
		memcpy(ret_bytes, buf_at(&call->input), size);
		buf_consume(&call->input, size);
		grant(answer, size);
	}
	return (ptrdiff_t)size;
}

/* ---- meanwhile ------------------------------------------------------------------------------ */

CSN_API int csn_answer_wait(csn_answer *answer, int wait_ms)
{
	uint64_t now_ms = clock_now_ms(), end_ms = now_ms + (uint64_t)(wait_ms < 0 ? 0 : wait_ms);
	struct wall_call *call = answer->call;
	int signal;

	for (;;) {
		uint64_t left = end_ms > now_ms ? end_ms - now_ms : 0;

		wall_pump(answer->wall, call->signal ? 0 : wait_ms < 0 ? -1 : (int)left);
		if (stopped(answer) < 0 || call->signal || (wait_ms >= 0 && left == 0))
			break;
		now_ms = clock_now_ms();
	}
	signal = call->signal;
	call->signal = 0;
	return stopped(answer) < 0 ? stopped(answer) : signal;
}

CSN_API int csn_answer_violation(csn_answer *answer, const csn_violation *violation)
{
	const struct {
		const char *key, *value;
	} texts[] = {
		{ "event", violation->event },     { "path", violation->path },
		{ "address", violation->address }, { "host", violation->host },
		{ "text", violation->text },
	};
	uint32_t count = 1;
	struct emit emit;

	if (answer->is_given || !violation->event)
		return -CSN_INVALID;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (texts[i].value && strlen(texts[i].value) > DETAIL_MAX)
			return -CSN_INVALID;
		count += texts[i].value != NULL;
	}
	while (buf_size(&answer->wall->out) > WALL_OUT_BUSY && stopped(answer) == 0)
		wall_pump(answer->wall, -1);
	if (stopped(answer) < 0)
		return stopped(answer);
	emit = wall_frame(answer->wall, "fact", 2, -1);
	emit_map(&emit, count);
	emit_atom(&emit, "ref");
	emit_int(&emit, answer->call->ref);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].value)
			put_text(&emit, texts[i].key, texts[i].value);
	wall_send(answer->wall, &emit);
	return 0;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Nothing, where that is the answer. */
static void end_plainly(struct csn_answer *answer)
{
	struct emit emit;

	if (answer_is(answer, "read")) {
		end_read(answer);
	} else if (answer->call->verb->result[0].name) {
		csn_answer_fail(answer, CSN_EIO, "the wall gave no answer");
	} else {
		emit = begin(answer, 0);
		finish(answer, &emit);
	}
}

void answer_end(struct csn_answer *answer, int r)
{
	if (answer->is_given)
		return;
	/* How a command ended that was cancelled is told by whoever cancelled it. */
	if (r < 0 && answer->call->is_cancelled && answer_is(answer, "exec"))
		csn_answer_exit(answer, 0, 9);
	else if (r < 0)
		csn_answer_fail(answer, r, "the wall could not do it");
	else
		end_plainly(answer);
}
