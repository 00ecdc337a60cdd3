/*
 * POST …/exec: a command, as one answer or as a stream of events
 *
 *   output     {"stream": "stdout", "data": TEXT}     as it is written
 *   violation  as in the account
 *   end        the account, without the output
 *   error      a problem: nothing can be said of the command
 *
 * Its client's leaving cancels it, in both forms.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "serve/answer.h"
#include "serve/http_calls.h"
#include "serve/http_routes.h"
#include "serve/http_stream.h"

enum { KEEP_MAX = 16 << 20, ARGV_MAX = 4096, PIECE_MAX = 64 << 10, HELD_MAX = 3 };

#define AT(member) offsetof(csn_exec_request, member)

const struct field exec_fields[] = {
	{ "argv", FIELD_TEXTS, AT(argv), .max = ARGV_MAX, .what = "program and arguments" },
	{ "command", FIELD_TEXT, AT(command), .what = "or text for bash, sh where there is none" },
	{ "cwd", FIELD_TEXT, AT(cwd), .what = "a folder inside; else the workspace" },
	{ "env", FIELD_PAIRS, AT(env), .what = "variables, added to the sandbox's own" },
	{ "input", FIELD_BYTES, AT(input), AT(input_size), .what = "standard input" },
	{ "keep_bytes", FIELD_SIZE, AT(keep_bytes), .max = KEEP_MAX,
	  .what = "of each stream in the answer; 0: 1 MiB" },
	{ "detach", FIELD_BOOL, AT(detach),
	  .what = "outlives the call, which returns when it runs" },
	{ "tag", FIELD_TEXT, AT(tag), .what = "by which a detached one is found" },
	{ "timeout_ms", FIELD_U32, AT(call.timeout_ms),
	  .what = "less than the policy's limits.command" },
	{ NULL },
};

static bool take(struct request *request, csn_exec_request *exec)
{
	if (!calls_take(request, exec_fields, exec))
		return false;
	if ((exec->argv && exec->argv[0]) == (exec->command != NULL)) {
		reply_problem(request, 400, "invalid",
			      "give either argv, with a program, or command");
		return false;
	}
	return true;
}

/* ---- one answer ------------------------------------------------------------------------------ */

static void run_whole(struct request *request, csn_exec_request *exec)
{
	csn_exec_result *result = NULL;
	struct running running;
	csn_error err = { 0 };
	int r;

	if (!calls_begin(request, &running))
		return;
	exec->call.id = running.call.id;
	r = csn_exec(running.box->sandbox, exec, &result, &err);
	calls_end(&running, r);
	if (r < 0) {
		reply_error(request, &err);
		return;
	}
	reply_json(request, 200, answer_exec(result));
	csn_free(result);
}

/* ---- a stream -------------------------------------------------------------------------------- */

/* The end of a piece may be the first bytes of a character: they wait for the rest. */
struct held {
	char bytes[HELD_MAX];
	size_t size;
};

/* In the request's arena. */
struct streamed {
	struct stream *stream;
	struct running running;
	csn_exec_request exec;
	struct held held[CSN_TTY + 1];
	char piece[PIECE_MAX + HELD_MAX];
};

/* How many bytes at the end begin a character of UTF-8 without ending it. */
static size_t count_begun(const char *data, size_t size)
{
	for (size_t n = 1; n <= HELD_MAX && n <= size; n++) {
		unsigned char c = (unsigned char)data[size - n];
		size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if (c >= 0xc0)
			return length > n ? n : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

static int put(struct streamed *streamed, enum csn_stream which, size_t size)
{
	static const char *const names[] = {
		[CSN_STDOUT] = "stdout", [CSN_STDERR] = "stderr", [CSN_TTY] = "tty"
	};

	if (size == 0)
		return 0;
	return stream_put_json(streamed->stream, "output",
			       json_pack("{s:s, s:o}", "stream", names[which], "data",
					 answer_bytes(streamed->piece, size)));
}

static int on_output(void *data, enum csn_stream which, const void *bytes, size_t size)
{
	struct streamed *streamed = data;
	struct held *held = &streamed->held[which];
	int r = 0;

	while (r == 0 && size > 0) {
		size_t part = size < PIECE_MAX ? size : PIECE_MAX, total = held->size + part;

		memcpy(streamed->piece, held->bytes, held->size);
		memcpy(streamed->piece + held->size, bytes, part);
		held->size = count_begun(streamed->piece, total);
		memcpy(held->bytes, streamed->piece + total - held->size, held->size);
		r = put(streamed, which, total - held->size);
		bytes = (const char *)bytes + part;
		size -= part;
	}
	return r;
}

static int on_violation(void *data, const csn_violation *violation)
{
	struct streamed *streamed = data;

	return stream_put_json(streamed->stream, "violation", answer_violation(violation));
}

static void flush(struct streamed *streamed)
{
	for (int which = CSN_STDOUT; which <= CSN_TTY; which++) {
		struct held *held = &streamed->held[which];

		memcpy(streamed->piece, held->bytes, held->size);
		put(streamed, which, held->size);
	}
}

/* Who ends the sandbox does not wait for a client that reads slowly. */
static void hurry(void *data)
{
	stream_hurry(data);
}

static void produce(struct stream *stream, void *data)
{
	struct streamed *streamed = data;
	csn_exec_result *result = NULL;
	csn_error err = { 0 };
	int r;

	streamed->stream = stream;
	box_tell_end(&streamed->running.request->server->boxes, streamed->running.box,
		     &streamed->running.call, hurry, stream);
	r = csn_exec(streamed->running.box->sandbox, &streamed->exec, &result, &err);
	flush(streamed);
	if (r < 0)
		stream_put_json(stream, "error",
				json_pack("{s:s, s:s}", "code", csn_code_name(err.code), "detail",
					  err.text));
	else
		stream_put_json(stream, "end", answer_exec(result));
	if (r == 0)
		csn_free(result);
	calls_finish(&streamed->running, r);
}

static void cancel(void *data)
{
	struct streamed *streamed = data;

	calls_cancel(&streamed->running);
}

static void run_streamed(struct request *request, const csn_exec_request *exec)
{
	struct streamed *streamed = arena_alloc(&request->arena, sizeof *streamed);
	const struct stream_job job = { produce, cancel, streamed };

	if (!streamed) {
		reply_problem(request, 503, "enomem", "out of memory");
		return;
	}
	if (!calls_start(request, &streamed->running))
		return;
	streamed->exec = *exec;
	streamed->exec.call.id = streamed->running.call.id;
	streamed->exec.on_output = on_output;
	streamed->exec.on_violation = on_violation;
	streamed->exec.data = streamed;
	if (stream_reply(request, &job) < 0)
		calls_finish(&streamed->running, 0);
}

void exec_run(struct request *request)
{
	csn_exec_request exec = { 0 };

	if (!take(request, &exec))
		return;
	if (request_accepts(request, "text/event-stream"))
		run_streamed(request, &exec);
	else
		run_whole(request, &exec);
}
