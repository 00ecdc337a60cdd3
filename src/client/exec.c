/*
 * exec: a command, its output and its account. A monitor's reply is an account; an agent's, where
 * nobody stands between, says less, and the reason is then what can be concluded from it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "client/call.h"
#include "client/kept.h"
#include "client/result.h"

static const char *const reasons[] = {
	[CSN_REASON_EXITED] = "exited",
	[CSN_REASON_SIGNALED] = "signaled",
	[CSN_REASON_TIMEOUT] = "timeout",
	[CSN_REASON_MEMORY] = "memory",
	[CSN_REASON_OUTPUT] = "output",
	[CSN_REASON_PROCESSES] = "processes",
	[CSN_REASON_SCRATCH] = "scratch",
	[CSN_REASON_VIOLATION] = "violation",
	[CSN_REASON_CANCELLED] = "cancelled",
	[CSN_REASON_LOST] = "lost",
	[CSN_REASON_START_FAILED] = "start_failed",
	[CSN_REASON_DETACHED] = "detached",
};

struct running {
	struct kept output, errors;
	const char *input;
	size_t input_left;
	int input_fd;
	bool is_full;
};

static int keep(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct running *running = data;
	int r = kept_add(stream == CSN_STDERR ? &running->errors : &running->output, bytes, size);

	running->is_full |= r < 0;
	return r;
}

static ptrdiff_t from_memory(void *data, void *ret_bytes, size_t size)
{
	struct running *running = data;
	size_t n = running->input_left < size ? running->input_left : size;

	if (n > 0)
		memcpy(ret_bytes, running->input, n);
	running->input += n;
	running->input_left -= n;
	return (ptrdiff_t)n;
}

/* poll() said that it can be read. A terminal that hung up is at its end, as it is for cat(1). */
static ptrdiff_t from_descriptor(void *data, void *ret_bytes, size_t size)
{
	const struct running *running = data;
	ssize_t n = read(running->input_fd, ret_bytes, size);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return CSN_INPUT_LATER;
	return n < 0 && errno == EIO ? 0 : n;
}

/* ---- the request ---------------------------------------------------------------------------- */

static uint32_t count_texts(const char *const *texts)
{
	uint32_t count = 0;

	while (texts && texts[count])
		count++;
	return count;
}

static void put_argv(struct emit *emit, const char *const *argv)
{
	uint32_t count = count_texts(argv);

	if (!argv)
		return;
	emit_atom(emit, "argv");
	emit_list(emit, count);
	for (uint32_t i = 0; i < count; i++)
		emit_text(emit, argv[i]);
	emit_nil(emit);
}

static void put_env(struct emit *emit, const char *const *env)
{
	uint32_t count = count_texts(env);

	if (!env)
		return;
	emit_atom(emit, "env");
	emit_map(emit, count);
	for (uint32_t i = 0; i < count; i++) {
		size_t name = strcspn(env[i], "=");

		emit_binary(emit, env[i], name);
		emit_text(emit, env[i] + name + 1);
	}
}

/* What would be another request than was meant: said before anything is sent. */
static int check(const csn_exec_request *request, csn_error *err)
{
	const char *const *env = request->env;

	if (!request->argv == !request->command)
		return code_fail(err, CSN_INVALID, "exec", "a command is either argv or command");
	for (; env && *env; env++)
		if (!strchr(*env, '=') || **env == '=')
			return code_fail(err, CSN_INVALID, "exec",
					 "env: \"%.60s\" is not NAME=VALUE", *env);
	if ((request->has_input_fd && request->input_fd < 0) ||
	    (request->on_ready && request->ready_fd < 0))
		return code_fail(err, CSN_INVALID, "exec", "a descriptor is not negative");
	return 0;
}

static uint32_t count_pairs(const csn_exec_request *request, bool has_input, uint32_t timeout_ms)
{
	return 1u + !!request->cwd + !!request->env + !!timeout_ms + request->has_tty +
	       !!request->rows + !!request->columns + has_input + request->detach + !!request->tag;
}

static int send_exec(struct call *call, const csn_exec_request *request, csn_error *err)
{
	uint32_t timeout_ms = call_timeout(call, &request->call);
	struct emit emit = call_frame(call, count_pairs(request, call->input, timeout_ms));

	put_argv(&emit, request->argv);
	call_put_text(&emit, "command", request->command);
	call_put_text(&emit, "cwd", request->cwd);
	put_env(&emit, request->env);
	call_put_int(&emit, "timeout_ms", timeout_ms);
	call_put_true(&emit, "tty", request->has_tty);
	call_put_int(&emit, "rows", request->rows);
	call_put_int(&emit, "cols", request->columns);
	call_put_true(&emit, "stdin", call->input);
	call_put_true(&emit, "detach", request->detach);
	call_put_text(&emit, "tag", request->tag);
	return call_send(call, &emit, err);
}

static void connect_streams(struct call *call, const csn_exec_request *request,
			    struct running *running)
{
	call->sink = request->on_output ? request->on_output : keep;
	call->sink_data = request->on_output ? request->data : running;
	call->on_violation = request->on_violation;
	call->violation_data = request->data;
	call->ready = request->on_ready;
	call->ready_data = request->data;
	call->ready_fd = request->ready_fd;
	call->input_fd = request->has_input_fd ? request->input_fd : -1;
	call->is_input_due = call->input_fd < 0;
	running->input_fd = call->input_fd;
	if (request->on_input) {
		call->input = request->on_input;
		call->input_data = request->data;
	} else if (request->has_input_fd) {
		call->input = from_descriptor;
		call->input_data = running;
	} else if (request->input) {
		running->input = request->input;
		running->input_left = request->input_size;
		call->input = from_memory;
		call->input_data = running;
	}
}

/* ---- the account ---------------------------------------------------------------------------- */

static enum csn_reason conclude(const struct call *call, const struct term *reply)
{
	if (term_get(reply, "error"))
		return CSN_REASON_START_FAILED;
	if (result_flag(reply, "detached"))
		return CSN_REASON_DETACHED;
	if (result_flag(reply, "timed_out") || call->is_late)
		return CSN_REASON_TIMEOUT;
	if (call->is_cancelled) /* its last output was dropped, even where it exited by itself */
		return CSN_REASON_CANCELLED;
	return result_int(reply, "signal", 0) == 0 ? CSN_REASON_EXITED : CSN_REASON_SIGNALED;
}

static void read_reason(const struct call *call, const struct term *reply, csn_exec_result *result)
{
	const char *name = result_text(reply, "reason");

	if (!name)
		result->reason = conclude(call, reply);
	for (int i = CSN_REASON_EXITED; name && i <= CSN_REASON_DETACHED; i++)
		if (str_is(reasons[i], name))
			result->reason = (enum csn_reason)i;
	result->reason_name = name ? name : reasons[result->reason];
	result->clock = result_text(reply, "clock");
	if (!name && result->reason == CSN_REASON_TIMEOUT)
		result->clock = "command";
}

static void read_account(const struct term *reply, csn_exec_result *result)
{
	const char *error = result_text(reply, "error");

	result->detached = result_flag(reply, "detached");
	result->pid = result_int(reply, "pid", 0);
	result->exit_code = result_int(reply, "exit_code", -1);
	result->signal = result_int(reply, "signal", 0);
	result->error = error ? (int)code_of_name(error) : 0;
	result->stage = result_text(reply, "stage");
	result->text = result_text(reply, "text");
	result->wall_us = result_u64(reply, "wall_us");
	result->cpu_us = term_get(reply, "cpu_us")
				 ? result_u64(reply, "cpu_us")
				 : result_u64(reply, "user_us") + result_u64(reply, "system_us");
	result->mem_peak_bytes = term_get(reply, "mem_peak_bytes")
					 ? result_u64(reply, "mem_peak_bytes")
					 : result_u64(reply, "max_rss_bytes");
	result->scope = term_get(reply, "scope") ? result_text(reply, "scope") : "command";
	result->stdout_bytes = result_u64(reply, "stdout_bytes");
	result->stderr_bytes = result_u64(reply, "stderr_bytes");
	result->output_cut_bytes = result_u64(reply, "output_cut_bytes");
}

static bool read_violations(const struct term *reply, csn_exec_result *result)
{
	const struct term *list = term_get(reply, "violations");
	csn_violation *violations;

	if (!list)
		return true;
	violations = result_array(result, list, sizeof *violations);
	if (!violations)
		return false;
	for (size_t i = 0; i < list->count; i++)
		result_violation(&list->items[i], &violations[i]);
	result->violations = violations;
	result->violation_count = list->count;
	return true;
}

static int exec_result(struct call *call, const struct running *running,
		       csn_exec_result **ret_result, csn_error *err)
{
	struct term reply = call->reply;
	csn_exec_result *result = result_new(call, sizeof *result);

	if (!result || running->is_full || !read_violations(&reply, result) ||
	    kept_output(&running->output, result_arena(result), &result->output) < 0 ||
	    kept_output(&running->errors, result_arena(result), &result->errors) < 0) {
		csn_free(result);
		return code_fail(err, CSN_ENOMEM, "exec", "there is no memory for the result");
	}
	read_reason(call, &reply, result);
	read_account(&reply, result);
	if (!term_get(&reply, "stdout_bytes")) {
		result->stdout_bytes = running->output.total;
		result->stderr_bytes = running->errors.total;
	}
	*ret_result = result;
	return 0;
}

CSN_API int csn_exec(csn_sandbox *sandbox, const csn_exec_request *request,
		     csn_exec_result **ret_result, csn_error *err)
{
	struct running running = { 0 };
	struct call call;
	int r = check(request, err);

	if (r == 0)
		r = call_begin(&call, sandbox, "exec", &request->call, err);
	if (r < 0)
		return r;
	kept_init(&running.output, request->keep_bytes);
	kept_init(&running.errors, request->keep_bytes);
	connect_streams(&call, request, &running);
	call.more_ms = CALL_MORE_MS;
	r = send_exec(&call, request, err);
	if (r == 0)
		r = call_finish(&call, err);
	if (r == 0)
		r = exec_result(&call, &running, ret_result, err);
	kept_done(&running.output);
	kept_done(&running.errors);
	call_end(&call);
	return r;
}
