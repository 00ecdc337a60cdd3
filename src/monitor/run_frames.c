/*
 * What the agent says and what we say to it. Everything that arrives was checked against the
 * message table (shape, size, side); here it is checked against the run's state: a frame out
 * of turn ends the sandbox as lost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "base/str.h"
#include "monitor/approval.h"
#include "monitor/run_private.h"
#include "monitor/told.h"
#include "os/agent_fds.h"
#include "os/sys.h"
#include "wire/frame.h"

/* ---- to the agent ------------------------------------------------------------------------ */

static size_t count_texts(const char *const *texts)
{
	size_t n = 0;

	while (texts && texts[n])
		n++;
	return n;
}

static void emit_env(struct emit *emit, char *const *env)
{
	size_t n = count_texts((const char *const *)env);

	emit_map(emit, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		size_t name = strcspn(env[i], "=");

		emit_binary(emit, env[i], name);
		emit_text(emit, env[i] + name + 1);
	}
}

static void emit_argv(struct emit *emit, const struct run_setup *setup)
{
	size_t n = count_texts(setup->argv);

	if (setup->text) {
		emit_atom(emit, "command");
		emit_text(emit, setup->text);
		return;
	}
	emit_atom(emit, "argv");
	emit_list(emit, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		emit_text(emit, setup->argv[i]);
	emit_nil(emit);
}

static const struct {
	const char *profile;
	const char *reads; /* the same with every open watched */
	const char *alone; /* without a listener: what would be shown to us is decided there */
	const char *net;   /* the same where commands have to connect to a port */
} variants[] = { { "command", "command-reads", "command-alone", "command-alone-net" },
		 { "landlock", "landlock-reads", "landlock-alone", "landlock-alone" } };

const char *run_profile(const struct run *run)
{
	const char *profile = run->backend->profile;

	if (run->plan->network == NETWORK_ENGINE)
		return "command-alone-net";
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		if (!str_is(variants[i].profile, profile))
			continue;
		if (run->wall.listeners < 0 && plan_forwards_ports(run->plan))
			return variants[i].net;
		if (run->wall.listeners < 0)
			return variants[i].alone;
		return run->plan->observe_reads ? variants[i].reads : profile;
	}
	return profile;
}

/* Limits of the command alone: the agent needs more descriptors than a strict plan leaves. */
void run_emit_limits(struct emit *emit, const struct plan_limits *limits)
{
	bool has_files = limits->open_files != PLAN_UNLIMITED;

	emit_atom(emit, "limits");
	emit_map(emit, has_files ? 1 : 0);
	if (has_files) {
		emit_atom(emit, "open_files");
		emit_int(emit, (int64_t)limits->open_files);
	}
}

static void emit_bool_key(struct emit *emit, const char *key, bool value)
{
	emit_atom(emit, key);
	emit_bool(emit, value);
}

int run_send_init(struct run *run)
{
	struct emit emit = channel_frame(&run->channel);
	const char *workspace = run->plan->workspace.host ? run->plan->workspace.at : "/tmp";
	/* Of somebody else's program it is not asked: not all know the key. */
	bool is_ahead = run_stays(run) && !run_is_declared(run);

	emit_tuple(&emit, 2);
	emit_atom(&emit, "init");
	emit_map(&emit, 3u + is_ahead + (run->gates ? 2 : 0) + (run->forwards != NULL));
	if (run->forwards)
		run_emit_forwards(&emit, run);
	if (run->gates)
		run_emit_gates(&emit, run);
	if (is_ahead)
		emit_bool_key(&emit, "ahead", true);
	emit_atom(&emit, "workspace");
	emit_text(&emit, workspace);
	emit_atom(&emit, "profile");
	emit_text(&emit, run_profile(run));
	emit_bool_key(&emit, "listener", run->wall.listeners >= 0);
	return channel_send(&run->channel, &emit);
}

static struct winsize window_size(int fd)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	if (fd >= 0)
		ioctl(fd, TIOCGWINSZ, &size);
	return size;
}

/*
 * The monitor's clocks end a command. But the kernel holds us for as long as the command wants
 * whenever we look up a name in a folder it keeps locked (unlink() of a file that others write),
 * so the agent, which looks up nothing, has a later clock of its own. tests/cli/test_run_endings.py
 */
static uint64_t agent_timeout(const struct plan_limits *limits)
{
	enum { LATER_MS = 2000 };
	static const uint64_t most = UINT64_C(365) * 24 * 3600 * 1000;
	uint64_t ms =
		limits->budget_ms < limits->command_ms ? limits->budget_ms : limits->command_ms;

	return ms < most - LATER_MS ? ms + LATER_MS : PLAN_UNLIMITED;
}

int run_send_call(struct run *run)
{
	const struct run_setup *setup = run->setup;
	bool has_tty = setup->tty_fd >= 0;
	struct winsize size = window_size(setup->tty_fd);
	uint64_t late_ms = agent_timeout(&run->plan->limits);
	struct emit emit = channel_frame(&run->channel);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "call");
	emit_int(&emit, RUN_REF);
	emit_atom(&emit, "exec");
	emit_map(&emit, (has_tty ? 9u : 6u) + (late_ms != PLAN_UNLIMITED) + (setup->owner != NULL));
	if (setup->owner)
		emit_bool_key(&emit, "report", true);
	run_emit_limits(&emit, &run->plan->limits);
	emit_argv(&emit, setup);
	emit_atom(&emit, "cwd");
	emit_text(&emit, run->cwd);
	emit_atom(&emit, "env");
	emit_env(&emit, run->env);
	emit_bool_key(&emit, "stdin", setup->stdin_fd >= 0);
	emit_bool_key(&emit, "last", true); /* the wall comes down while we learn of it */
	if (late_ms != PLAN_UNLIMITED) {
		emit_atom(&emit, "timeout_ms");
		emit_int(&emit, (int64_t)late_ms);
	}
	if (has_tty) {
		emit_bool_key(&emit, "tty", true);
		emit_atom(&emit, "rows");
		emit_int(&emit, size.ws_row);
		emit_atom(&emit, "cols");
		emit_int(&emit, size.ws_col);
	}
	return channel_send(&run->channel, &emit) < 0
		       ? csn_fail(&run->error, -E2BIG, "exec",
				  "arguments and environment together are too long: at most 2 MiB")
		       : 0;
}

static void send_numbers(struct run *run, const char *name, const int64_t *values, uint32_t count)
{
	struct emit emit = channel_frame(&run->channel);

	emit_tuple(&emit, count + 1);
	emit_atom(&emit, name);
	for (uint32_t i = 0; i < count; i++)
		emit_int(&emit, values[i]);
	channel_send(&run->channel, &emit);
}

void run_send_signal(struct run *run, int signal)
{
	const int64_t values[] = { RUN_REF, signal };

	send_numbers(run, "signal", values, 2);
}

void run_send_window(struct run *run, size_t bytes)
{
	const int64_t values[] = { RUN_REF, (int64_t)bytes };

	send_numbers(run, "window", values, 2);
}

void run_send_resize(struct run *run)
{
	struct winsize size = window_size(run->setup->tty_fd);
	const int64_t values[] = { RUN_REF, size.ws_row, size.ws_col };

	if (run->setup->tty_fd >= 0)
		send_numbers(run, "resize", values, 3);
}

static void send_input(struct run *run, const void *data, size_t size)
{
	struct emit emit = channel_frame(&run->channel);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "data");
	emit_int(&emit, RUN_REF);
	emit_atom(&emit, "stdin");
	if (size > 0)
		emit_binary(&emit, data, size);
	else
		emit_atom(&emit, "eof");
	channel_send(&run->channel, &emit);
}

void run_pump_input(struct run *run)
{
	char data[FRAME_PIECE];
	size_t want = run->input_window < FRAME_PIECE ? (size_t)run->input_window : FRAME_PIECE;
	ssize_t n = read(run->setup->stdin_fd, data, want);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		run->is_input_open = false;
		send_input(run, NULL, 0);
		return;
	}
	run->input_window -= n;
	send_input(run, data, (size_t)n);
}

/* ---- from the agent ------------------------------------------------------------------------ */

static int out_of_turn(struct csn_error *err, const char *what)
{
	return csn_fail(err, -EBADMSG, "wire", "the agent sent %s out of turn", what);
}

/* What must be known and on record before the program is executed; the wall is complete. */
static void watch_and_log(struct run *run)
{
	if (run->is_watched)
		return;
	run->is_watched = true;
	limits_watch(&run->limits, run->wall.pid, run->scratch_dir[0] ? run->scratch_dir : NULL);
	run_log_lockdown(run);
	run_log_exec(run);
}

static int on_ready(struct run *run, const struct term *items, struct csn_error *err)
{
	int r = run_check_ready(run, &items[1], err);

	if (r >= 0)
		r = run_check_listening(run, &items[1], err);
	if (r < 0)
		return r;
	if (run->is_ready)
		return out_of_turn(err, "ready");
	run->is_ready = true;
	run->phase_us[PHASE_READY] = run_elapsed_us(run, clock_now_us());
	if (run->wall.listeners < 0) {
		run->is_executing = true;
		run->phase_us[PHASE_EXEC] = run->phase_us[PHASE_READY];
	}
	/* Now, while the agent starts the command, and not when the command waits for us. */
	watch_and_log(run);
	if (!run->is_held)
		return 0;
	r = approval_look_again(run->setup, run->backend, err);
	return r < 0 ? r : run_send_call(run);
}

static int64_t integer_or(const struct term *map, const char *key, int64_t otherwise)
{
	const struct term *term = term_get(map, key);

	return term && term->type == TERM_INT ? term->integer : otherwise;
}

static void copy_atom(const struct term *map, const char *key, char *ret_text, size_t size)
{
	const struct term *term = term_get(map, key);

	if (term)
		snprintf(ret_text, size, "%.*s", (int)term->bytes.size,
			 (const char *)term->bytes.data);
}

static void take_exec_failure(struct run *run)
{
	int error = errno_number(run->exec_error);

	run->ending = run->ending == END_NONE ? END_START_FAILED : run->ending;
	run->exit_code = error == ENOENT ? 127 : 126;
	if (str_is(run->exec_stage, "cwd"))
		csn_fail(&run->error, error ? -error : -EIO, "cwd",
			 "%.70s cannot be started in: %s%s%.90s", run->cwd,
			 error ? strerror(error) : run->exec_error,
			 error == EACCES ? "; let others enter it: chmod o+x " : "",
			 error == EACCES && run->setup->host_cwd ? run->setup->host_cwd : "");
	else if (strcmp(run->exec_stage, "exec") != 0)
		csn_fail(&run->error, error ? -error : -EIO, "exec",
			 "the command's %s step failed: %s", run->exec_stage, run->exec_error);
	else
		run_say_exec_failure(run, error);
}

static int on_reply(struct run *run, const struct term *items, struct csn_error *err)
{
	const struct frame_verb *verb = frame_find_verb(
		&(struct term){ .type = TERM_ATOM, .bytes = { (const uint8_t *)"exec", 4 } });
	const struct term *timed_out;
	int r;

	if (items[1].integer != RUN_REF || run->is_replied || !run->is_ready)
		return out_of_turn(err, "a reply");
	r = frame_check_map(verb->result, &items[2], err);
	if (r < 0)
		return r;
	timed_out = term_get(&items[2], "timed_out");
	if (timed_out && term_is_atom(timed_out, "true"))
		run_clocks(run, clock_now_ms()); /* the clock that we were kept from looking at */
	run->is_replied = true;
	limits_saw_oom(&run->limits); /* before the wall goes */
	run->phase_us[PHASE_END] = run_elapsed_us(run, clock_now_us());
	run->exit_code = (int)integer_or(&items[2], "exit_code", -1);
	run->signal = (int)integer_or(&items[2], "signal", 0);
	run->cpu_us = (uint64_t)(integer_or(&items[2], "user_us", 0) +
				 integer_or(&items[2], "system_us", 0));
	run->max_rss = (uint64_t)integer_or(&items[2], "max_rss_bytes", 0);
	copy_atom(&items[2], "error", run->exec_error, sizeof run->exec_error);
	copy_atom(&items[2], "stage", run->exec_stage, sizeof run->exec_stage);
	if (run->exec_error[0])
		take_exec_failure(run);
	return 0;
}

static int on_failed(struct run *run, const struct term *items, struct csn_error *err)
{
	if (items[1].integer != RUN_REF || run->is_replied || !run->is_ready)
		return out_of_turn(err, "a failure");
	run->is_replied = true;
	csn_fail(&run->error, -EIO, "exec", "the agent refused the command: %.*s",
		 (int)items[3].bytes.size, (const char *)items[3].bytes.data);
	run_lose(run);
	return 0;
}

static int on_data(struct run *run, const struct term *items, struct csn_error *err)
{
	struct sink *sink = term_is_atom(&items[2], "stderr") ? &run->err : &run->out;
	uint64_t left = run->plan->limits.output_bytes - run->out.total - run->err.total;
	size_t size = items[3].bytes.size;

	if (items[1].integer != RUN_REF || run->is_replied || !run->is_ready)
		return out_of_turn(err, "data");
	if (run->setup->owner)
		return run_owner_data(run, items, err);
	if (term_is_atom(&items[2], "report"))
		return out_of_turn(err, "a report");
	if (buf_size(&sink->queue) + size > RUN_WINDOW + FRAME_PIECE)
		return csn_fail(err, -EBADMSG, "wire", "the agent overran its window");
	if (run->ending == END_OUTPUT)
		return 0;
	if (size > left) {
		struct fact fact;

		size = (size_t)left;
		fact_output_limit(&fact, run->plan->limits.output_bytes);
		violations_add(&run->violations, &fact);
		run_end(run, END_OUTPUT, false);
	}
	if (sink_add(sink, items[3].bytes.data, size) < 0)
		return csn_fail(err, -ENOMEM, "output", "out of memory");
	if (sink->fd < 0 || sink->is_gone)
		run_send_window(run, size);
	return 0;
}

static int on_window(struct run *run, const struct term *items, struct csn_error *err)
{
	(void)err;
	run->input_window += items[2].integer;
	if (run->input_window > RUN_WINDOW)
		run->input_window = RUN_WINDOW;
	return 0;
}

static int on_ignored(struct run *run, const struct term *items, struct csn_error *err)
{
	(void)run;
	(void)items;
	(void)err;
	return 0;
}

static int on_fact(struct run *run, const struct term *items, struct csn_error *err)
{
	(void)err;
	told_fact(run, &items[1], &run->violations);
	return 0;
}

static int on_gate_call(struct run *run, const struct term *items, struct csn_error *err)
{
	if (!run->gates || !run->is_ready)
		return out_of_turn(err, "a gate's call");
	return gates_call(run->gates, items, err);
}

static int on_forward(struct run *run, int index, const struct term *items, struct csn_error *err)
{
	if (!run->forwards || !run->is_ready)
		return out_of_turn(err, "a forwarded connection");
	return forwards_frame(run->forwards, index, items, err);
}

typedef int (*frame_handler)(struct run *run, const struct term *items, struct csn_error *err);

static const frame_handler handlers[] = {
	[FRAME_READY] = on_ready,   [FRAME_REPLY] = on_reply,         [FRAME_FAILED] = on_failed,
	[FRAME_DATA_OUT] = on_data, [FRAME_WINDOW_OUT] = on_window,   [FRAME_FACT] = on_fact,
	[FRAME_BYE] = on_ignored,   [FRAME_GATE_CALL] = on_gate_call,
};

int run_handle_frame(void *data, int index, const struct term *items, struct csn_error *err)
{
	if (forwards_are_meant(index))
		return on_forward(data, index, items, err);
	if (index < 0 || (size_t)index >= sizeof handlers / sizeof *handlers || !handlers[index])
		return out_of_turn(err, "a message of ours");
	return handlers[index](data, items, err);
}

/* ---- the listener ---------------------------------------------------------------------------- */

/* The number of a descriptor in another process, whose it is, and, from the kernel, which process.
 */
static int receive_listener(int socket_fd, struct agent_listener *ret_listener, pid_t *ret_pid)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { ret_listener, sizeof *ret_listener };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	struct ucred credentials;
	struct cmsghdr *header;

	ssize_t n = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n == 0)
		return -EPIPE;
	if (n != sizeof *ret_listener || (message.msg_flags & MSG_TRUNC))
		return -EBADMSG;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_CREDENTIALS)
		return -EBADMSG;
	memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
	*ret_pid = credentials.pid;
	return credentials.pid > 0 ? 0 : -EBADMSG;
}

int run_fetch_listener(struct run *run, int *ret_listener, int64_t *ret_ref)
{
	_cleanup_fd_ int pidfd = -1;
	struct agent_listener listener;
	int r;
	pid_t pid;

	r = receive_listener(run->wall.listeners, &listener, &pid);
	if (r == -EPIPE) { /* the wall ended; its own account says why */
		run->wall.listeners = fd_close(run->wall.listeners);
		return r;
	}
	if (r < 0)
		return csn_fail(&run->error, r, "notify", "no listener was announced");
	pidfd = sys_pidfd_open(pid);
	r = pidfd < 0 ? pidfd : sys_pidfd_getfd(pidfd, listener.number);
	if (r < 0)
		return csn_fail(&run->error, r, "notify",
				"cannot take the command's listener (%s): another process's "
				"descriptors are closed to us here, by a security module or a "
				"container's filter",
				errno_name(-r));
	*ret_listener = r;
	*ret_ref = listener.ref;
	return 0;
}

struct notify_setup run_notify_setup(struct run *run, struct violations *violations)
{
	return (struct notify_setup){
		.plan = run->plan,
		.profile = run_profile(run),
		.violations = violations,
		.hidden = run->hidden,
		.shows = run->backend->shows,
		.toolchains = run->toolchains,
		.as_uid = geteuid() == 0 ? run->wall.kernel_uid : 0,
		.scratch_fd = run->limits.scratch_fd,
		.has_own_view = run->backend->has_view,
	};
}

void run_take_listener(struct run *run)
{
	struct notify_setup setup;
	int64_t ref = 0;
	int listener = -1, r;

	/* The command may be quicker than its agent's word that it is ready. */
	watch_and_log(run);
	setup = run_notify_setup(run, &run->violations);
	r = run_fetch_listener(run, &listener, &ref);
	if (r == -EPIPE)
		return;
	if (r >= 0 && (run->has_listener || ref != RUN_REF)) {
		fd_close(listener);
		r = csn_fail(&run->error, -EBADMSG, "notify",
			     "a listener was announced out of turn");
	}
	if (r < 0 || notify_new(listener, &setup, &run->notify, &run->error) < 0 ||
	    approval_look_again(run->setup, run->backend, &run->error) < 0) {
		run_lose(run);
		return;
	}
	run->is_executing = run->has_listener = true;
	run->limits.next_tick_ms = clock_now_ms() + LIMITS_TICK_MS;
	run->phase_us[PHASE_EXEC] = run_elapsed_us(run, clock_now_us());
	if (write(run->wall.listeners, &ref, sizeof ref) != sizeof ref)
		run_lose(run);
	run_write_state(run);
}
