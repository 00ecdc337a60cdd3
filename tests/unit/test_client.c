/* The library with a real agent at the other end: verbs, streams, cancels, an end at any time. */
#include "client_agent.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

static csn_sandbox *sandbox;
static csn_error err;

static csn_exec_result *run(const char *command)
{
	csn_exec_request request = { .command = command };
	csn_exec_result *result = NULL;
	int r = csn_exec(sandbox, &request, &result, &err);

	if (r < 0)
		printf("# %s: %s\n", csn_code_name(r), err.text);
	CHECK(r == 0 && result);
	return result;
}

static void commands(void)
{
	const char *const argv[] = { "/bin/sh", "-c", "echo $A; pwd; echo no >&2; exit 3", NULL };
	const char *const env[] = { "A=b=c", "PATH=/usr/bin:/bin", NULL };
	csn_exec_request request = { .argv = argv, .env = env, .cwd = "/usr" };
	csn_exec_result *result;

	sandbox = open_agent();
	CHECK(csn_has_verb(sandbox, "exec") && !csn_has_verb(sandbox, "fly"));
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(result->reason == CSN_REASON_EXITED && result->exit_code == 3 && result->signal == 0);
	CHECK_STR(result->reason_name, "exited");
	CHECK_STR(result->output.data, "b=c\n/usr\n");
	CHECK_STR(result->errors.data, "no\n");
	CHECK(result->stdout_bytes == 9 && result->output.cut_bytes == 0 && !result->clock);
	CHECK(result->violation_count == 0 && result->mem_peak_bytes > 0);
	csn_free(result);
	result = run("kill -9 $$");
	CHECK(result->reason == CSN_REASON_SIGNALED && result->signal == 9);
	CHECK(result->exit_code == -1);
	csn_free(result);
	csn_close(sandbox);
}

static void refused(void)
{
	const char *const nothing[] = { "/nowhere", NULL }, *const bad_env[] = { "A", NULL };
	csn_exec_request request = { .argv = nothing };
	csn_exec_result *result = NULL;
	csn_mount_request mount = { .host = "/usr", .at = "/x" };

	sandbox = open_agent();
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(result->reason == CSN_REASON_START_FAILED && result->error == CSN_ENOENT);
	CHECK(result->stage && result->exit_code == -1);
	csn_free(result);
	result = NULL;
	request.command = "echo";
	CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_INVALID && !result);
	request.argv = NULL;
	request.env = bad_env;
	CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_INVALID);
	CHECK(strstr(err.text, "NAME=VALUE"));
	CHECK(csn_mount(sandbox, &mount, &err) == -CSN_NOT_SUPPORTED);
	CHECK(csn_mount(sandbox, &mount, NULL) == -CSN_NOT_SUPPORTED);
	csn_close(sandbox);
}

/* A call that the other side would refuse as a frame must not end the others. */
static void too_large(void)
{
	static char text[3 << 20];
	csn_edit_request edit = { .path = "x", .old_text = text, .new_text = text };
	csn_edit_result *result = NULL;

	memset(text, 'a', sizeof text - 1);
	sandbox = open_agent();
	CHECK(csn_edit(sandbox, &edit, &result, &err) == -CSN_E2BIG && !result);
	edit.new_text = "";
	CHECK(csn_edit(sandbox, &edit, &result, &err) == -CSN_INVALID);
	printf("# %s\n", err.text);
	csn_free(run("true"));
	csn_close(sandbox);
}

/* ---- streams -------------------------------------------------------------------------------- */

struct tally {
	size_t bytes, calls, stop_at;
	uint64_t sum;
};

static int count_output(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	struct tally *tally = data;

	CHECK(stream == CSN_STDOUT && size > 0);
	for (size_t i = 0; i < size; i++)
		tally->sum += ((const unsigned char *)bytes)[i];
	tally->bytes += size;
	tally->calls++;
	return tally->stop_at && tally->bytes >= tally->stop_at;
}

static ptrdiff_t make_input(void *data, void *ret_bytes, size_t size)
{
	struct tally *tally = data;
	size_t left = tally->stop_at - tally->bytes, n = left < size ? left : size;

	memset(ret_bytes, 'y', n);
	tally->bytes += n;
	return (ptrdiff_t)n;
}

static void streams(void)
{
	static char input[3 << 20];
	struct tally tally = { 0 };
	csn_exec_request request = { .command = "cat",
				     .input = input,
				     .input_size = sizeof input,
				     .on_output = count_output,
				     .data = &tally };
	csn_exec_result *result;

	memset(input, 'z', sizeof input);
	sandbox = open_agent();
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(tally.bytes == sizeof input && tally.sum == (uint64_t)'z' * sizeof input);
	CHECK(result->exit_code == 0 && result->output.size == 0);
	csn_free(result);
	request.on_output = NULL;
	request.keep_bytes = 1000;
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(result->output.size == 1000 && result->output.cut_at == 500);
	CHECK(result->output.total == sizeof input);
	CHECK(result->output.cut_bytes == sizeof input - 1000);
	csn_free(result);
	result = run("seq 1 200000");
	CHECK(strncmp(result->output.data, "1\n2\n", 4) == 0);
	CHECK_STR(result->output.data + result->output.size - 7, "200000\n");
	CHECK(result->output.size == 1 << 20);
	csn_free(result);
	csn_close(sandbox);
}

static void input_from_a_callback(void)
{
	struct tally source = { .stop_at = 700001 };
	csn_exec_request request = { .command = "wc -c", .on_input = make_input, .data = &source };
	csn_exec_result *result;

	sandbox = open_agent();
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK_STR(result->output.data, "700001\n");
	csn_free(result);
	/* Nobody reads it: it must neither hang nor be asked for more than the windows hold. */
	source = (struct tally){ .stop_at = 100 << 20 };
	request.command = "exec <&-; sleep 0.2; echo over";
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK_STR(result->output.data, "over\n");
	csn_free(result);
	csn_close(sandbox);
}

static void callback_refuses(void)
{
	struct tally tally = { .stop_at = 100000 };
	csn_exec_request request = { .command = "yes", .on_output = count_output, .data = &tally };
	csn_exec_result *result;
	size_t calls;

	sandbox = open_agent();
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(result->reason == CSN_REASON_CANCELLED);
	calls = tally.calls;
	CHECK(tally.bytes < 100000 + (64 << 10));
	csn_free(result);
	csn_free(run("true"));
	CHECK(tally.calls == calls);
	csn_close(sandbox);
}

static void terminal(void)
{
	csn_exec_request request = {
		.command = "stty size; test -t 1", .has_tty = true, .rows = 33, .columns = 77
	};
	csn_exec_result *result;

	sandbox = open_agent();
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK_STR(result->output.data, "33 77\r\n");
	CHECK(result->exit_code == 0);
	csn_free(result);
	csn_close(sandbox);
}

/* ---- cancels and clocks --------------------------------------------------------------------- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *cancel_later(void *data)
{
	csn_error ours;

	usleep(200000);
	CHECK(csn_cancel(sandbox, *(uint64_t *)data, &ours) == 0);
	return NULL;
}

static void cancelled(void)
{
	csn_exec_request request = { .command = "sleep 20" };
	csn_exec_result *result;
	double start = now();
	pthread_t thread;

	sandbox = open_agent();
	request.call.id = csn_call_id(sandbox);
	CHECK(pthread_create(&thread, NULL, cancel_later, &request.call.id) == 0);
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	pthread_join(thread, NULL);
	CHECK(result->reason == CSN_REASON_CANCELLED && now() - start < 5);
	csn_free(result);
	csn_close(sandbox);
}

static void cancelled_before_it_begins(void)
{
	csn_exec_request request = { .command = "sleep 20" };
	csn_exec_result *result = NULL;

	sandbox = open_agent();
	request.call.id = csn_call_id(sandbox);
	CHECK(csn_cancel(sandbox, request.call.id, &err) == 0);
	CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_CANCELLED && !result);
	request.call.id += 1; /* nobody gave that out */
	CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_INVALID);
	csn_close(sandbox);
}

static void times_out(void)
{
	csn_exec_request request = { .command = "echo begun; sleep 20", .call.timeout_ms = 300 };
	csn_exec_result *result = NULL;
	double start = now();

	sandbox = open_agent();
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(result->reason == CSN_REASON_TIMEOUT && now() - start < 5);
	CHECK_STR(result->clock, "command");
	CHECK_STR(result->output.data, "begun\n");
	csn_free(result);
	csn_close(sandbox);
}

static void signals(void)
{
	uint64_t id;

	sandbox = open_agent();
	id = csn_call_id(sandbox);
	CHECK(csn_signal(sandbox, id, SIGTERM, &err) == 0); /* nothing runs: nothing happens */
	CHECK(csn_signal(sandbox, id, 65, &err) == -CSN_INVALID);
	CHECK(csn_resize(sandbox, id, 10, 20, &err) == 0);
	csn_free(run("true"));
	csn_close(sandbox);
}

/* ---- many at once --------------------------------------------------------------------------- */

enum { ROUNDS = 200 };

struct worker {
	pthread_t thread;
	struct worker *other;
	uint64_t id; /* of its call now; for the other to cancel */
	unsigned cancelled;
};

static void *work(void *data)
{
	struct worker *worker = data;
	csn_error ours = { 0 };

	for (int i = 0; i < ROUNDS; i++) {
		csn_exec_request request = { .command = i % 4 ? "echo hello"
							      : "sleep 0.3; echo hello" };
		csn_exec_result *result = NULL;
		uint64_t victim = __atomic_load_n(&worker->other->id, __ATOMIC_ACQUIRE);
		int r;

		request.call.id = csn_call_id(sandbox);
		__atomic_store_n(&worker->id, request.call.id, __ATOMIC_RELEASE);
		if (victim)
			CHECK(csn_cancel(sandbox, victim, &ours) == 0);
		r = csn_exec(sandbox, &request, &result, &ours);
		CHECK(r == 0 || r == -CSN_CANCELLED);
		if (r < 0 || result->reason == CSN_REASON_CANCELLED)
			worker->cancelled++;
		else if (result->reason == CSN_REASON_EXITED)
			CHECK_STR(result->output.data, "hello\n");
		csn_free(result);
	}
	__atomic_store_n(&worker->id, 0, __ATOMIC_RELEASE);
	return NULL;
}

static void two_threads(void)
{
	struct worker workers[2] = { { .other = &workers[1] }, { .other = &workers[0] } };

	sandbox = open_agent();
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(workers[i].thread, NULL);
	printf("# cancelled: %u and %u\n", workers[0].cancelled, workers[1].cancelled);
	CHECK(workers[0].cancelled + workers[1].cancelled > 0);
	csn_free(run("true"));
	csn_close(sandbox);
}

static int sleep_a_little(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	(void)stream;
	(void)bytes;
	usleep(20000);
	*(size_t *)data += size;
	return 0;
}

static void *be_slow(void *data)
{
	csn_exec_request request = { .command = "head -c 2000000 /dev/zero",
				     .on_output = sleep_a_little,
				     .data = data };
	csn_exec_result *result = NULL;

	CHECK(csn_exec(sandbox, &request, &result, NULL) == 0);
	csn_free(result);
	return NULL;
}

/* A callback that takes its time holds its own call up, not the others. */
static void slow_callback(void)
{
	size_t bytes = 0;
	pthread_t thread;
	int calls = 0;

	sandbox = open_agent();
	CHECK(pthread_create(&thread, NULL, be_slow, &bytes) == 0);
	for (; pthread_tryjoin_np(thread, NULL) != 0; calls++)
		csn_free(run("true"));
	printf("# %d calls beside it\n", calls);
	CHECK(bytes == 2000000 && calls > 5);
	csn_close(sandbox);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void *kill_later(void *data)
{
	usleep(*(unsigned *)data);
	kill(client_agent, SIGKILL);
	return NULL;
}

static void lost_at_any_time(void)
{
	for (unsigned us = 0; us < 60000; us += 3000) {
		csn_exec_request request = { .command = "while :; do echo x; done",
					     .input = "x",
					     .input_size = 1 };
		csn_exec_result *result = NULL;
		pthread_t thread;

		sandbox = open_agent();
		CHECK(pthread_create(&thread, NULL, kill_later, &us) == 0);
		CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_LOST && !result);
		CHECK(err.code == CSN_LOST && err.text[0]);
		pthread_join(thread, NULL);
		CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_LOST);
		CHECK(csn_cancel(sandbox, csn_call_id(sandbox), &err) == -CSN_LOST);
		csn_close(sandbox);
	}
}

static void after_a_fork(void)
{
	csn_exec_request request = { .command = "true" };
	csn_exec_result *result = NULL;
	int status;
	pid_t pid;

	sandbox = open_agent();
	pid = fork();
	if (pid == 0) {
		CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_INVALID);
		csn_close(sandbox);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	csn_free(run("true"));
	csn_close(sandbox);
}

/* ---- files ---------------------------------------------------------------------------------- */

static char folder[] = "/tmp/caisson-client-XXXXXX";

/* The folder is made at the first name. */
static const char *in_folder(const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *path = paths[next++ % 4];

	if (next == 1)
		CHECK(mkdtemp(folder));
	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

/* Removes it and ends the sandbox. */
static void leave(void)
{
	char command[300];

	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	csn_free(run(command));
	csn_close(sandbox);
}

static void files(void)
{
	static char large[3 << 20];
	csn_write_request write_it = { .path = in_folder("sub/a"), .bytes = "one two", .size = 7 };
	csn_read_request read_it = { .path = in_folder("sub/a") };
	csn_edit_request edit = { .path = in_folder("sub/a"), .old_text = "two", .new_text = "2" };
	struct tally tally = { 0 };
	csn_edit_result *edited;
	csn_bytes *bytes = NULL;

	sandbox = open_agent();
	CHECK(csn_write(sandbox, &write_it, &err) == 0);
	CHECK(csn_edit(sandbox, &edit, &edited, &err) == 0);
	CHECK(edited->occurrences == 1);
	CHECK_STR(edited->content.data, "one 2");
	csn_free(edited);
	CHECK(csn_edit(sandbox, &edit, &edited, &err) == 0 && edited->occurrences == 0);
	csn_free(edited);
	CHECK(csn_read(sandbox, &read_it, &bytes, &err) == 0);
	CHECK_STR(bytes->data, "one 2");
	csn_free(bytes);
	for (size_t i = 0; i < sizeof large; i++)
		large[i] = (char)(i * 7 + i / 4096);
	write_it =
		(csn_write_request){ .path = in_folder("b"), .bytes = large, .size = sizeof large };
	read_it.path = in_folder("b");
	CHECK(csn_write(sandbox, &write_it, &err) == 0);
	CHECK(csn_read(sandbox, &read_it, &bytes, &err) == 0);
	CHECK(bytes->size == sizeof large && memcmp(bytes->data, large, sizeof large) == 0);
	csn_free(bytes);
	read_it.on_output = count_output;
	read_it.data = &tally;
	CHECK(csn_read(sandbox, &read_it, &bytes, &err) == 0 && bytes->size == 0);
	CHECK(tally.bytes == sizeof large);
	csn_free(bytes);
	tally = (struct tally){ .stop_at = 100000 };
	CHECK(csn_read(sandbox, &read_it, &bytes, &err) == -CSN_CANCELLED);
	read_it = (csn_read_request){ .path = in_folder("b"), .offset = 10, .length = 5 };
	CHECK(csn_read(sandbox, &read_it, &bytes, &err) == 0);
	CHECK(bytes->size == 5 && memcmp(bytes->data, large + 10, 5) == 0);
	csn_free(bytes);
	CHECK(csn_read(sandbox, &(csn_read_request){ .path = "/nowhere" }, &bytes, &err) ==
	      -CSN_ENOENT);
	CHECK_STR(err.stage, "read");
	CHECK(csn_read(sandbox, &(csn_read_request){ 0 }, &bytes, &err) == -CSN_INVALID);
	leave();
}

static void too_long_to_read(void)
{
	csn_read_request request = { .path = in_folder("hole") };
	csn_bytes *bytes = NULL;
	int fd;

	fd = open(in_folder("hole"), O_CREAT | O_WRONLY, 0600);
	CHECK(ftruncate(fd, (64 << 20) + 1) == 0);
	close(fd);
	sandbox = open_agent();
	CHECK(csn_read(sandbox, &request, &bytes, &err) == -CSN_EFBIG && !bytes);
	printf("# %s\n", err.text);
	leave();
}

static void paths(void)
{
	csn_path_request path = { .path = "/usr" };
	csn_move_request move = { .path = "/tmp/nowhere", .to = "/tmp/there" };
	csn_stat_result *st;
	csn_list_result *list;

	sandbox = open_agent();
	CHECK(csn_stat(sandbox, &path, &st, &err) == 0);
	CHECK_STR(st->type, "directory");
	CHECK(st->mode == 0755 && !st->target && st->mtime_ms > 0);
	csn_free(st);
	CHECK(csn_move(sandbox, &move, &err) == -CSN_ENOENT);
	path.path = "/tmp/nowhere";
	if (csn_has_verb(sandbox, "remove"))
		CHECK(csn_remove(sandbox, &path, &err) == -CSN_ENOENT);
	path.path = "/usr";
	if (csn_has_verb(sandbox, "list")) {
		CHECK(csn_list(sandbox, &path, &list, &err) == 0);
		CHECK(list->count > 3 && !list->truncated);
		CHECK_STR(list->entries[0].name, "bin");
		CHECK_STR(list->entries[0].type, "directory");
		csn_free(list);
	}
	csn_close(sandbox);
}

static void search(void)
{
	csn_glob_request glob = {
		.pattern = "**/*.c", .cwd = folder, .limit = 10, .call.timeout_ms = 9000
	};
	csn_grep_request grep = {
		.pattern = "ab+C", .path = folder, .ignore_case = true, .call.timeout_ms = 9000
	};
	csn_glob_result *globbed;
	csn_grep_result *found;

	sandbox = open_agent();
	if (!csn_has_verb(sandbox, "glob") || !csn_has_verb(sandbox, "grep"))
		SKIP("glob: this agent has none");
	CHECK(csn_write(sandbox,
			&(csn_write_request){
				.path = in_folder("d/x.c"), .bytes = "1\nABBC\n3\n", .size = 9 },
			&err) == 0);
	CHECK(csn_glob(sandbox, &glob, &globbed, &err) == 0);
	CHECK(globbed->count == 1 && !globbed->paths[1] && !globbed->truncated);
	CHECK_STR(globbed->paths[0], "d/x.c");
	csn_free(globbed);
	CHECK(csn_grep(sandbox, &grep, &found, &err) == 0);
	CHECK(found->count == 1 && found->matches[0].line_number == 2);
	CHECK_STR(found->matches[0].line.data, "ABBC");
	csn_free(found);
	grep.pattern = "(";
	CHECK(csn_grep(sandbox, &grep, &found, &err) < 0);
	printf("# %s: %s\n", csn_code_name(err.code), err.text);
	leave();
}

/* ---- detached ------------------------------------------------------------------------------- */

static void detached(void)
{
	csn_exec_request request = { .command = "echo one; echo two >&2; sleep 20",
				     .detach = true,
				     .tag = "server" };
	csn_wait_request wait_it = { .tag = "server", .text = "one", .call.timeout_ms = 5000 };
	csn_logs_request logs = { .tag = "server" };
	csn_kill_request kill_it = { .tag = "server", .signal = 65 };
	csn_exec_result *result;
	csn_wait_result *waited;
	csn_logs_result *log;
	csn_ps_result *list;

	sandbox = open_agent();
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(result->detached && result->pid > 1 && result->reason == CSN_REASON_DETACHED);
	csn_free(result);
	CHECK(csn_wait(sandbox, &wait_it, &waited, &err) == 0);
	CHECK(waited->reached && waited->running && !waited->timed_out);
	CHECK_STR(waited->line.data, "one");
	csn_free(waited);
	CHECK(csn_ps(sandbox, NULL, &list, &err) == 0);
	CHECK(list->count == 1 && list->commands[0].detached && list->commands[0].exit_code == -1);
	CHECK_STR(list->commands[0].tag, "server");
	CHECK_STR(list->commands[0].state, "running");
	csn_free(list);
	wait_it = (csn_wait_request){ .tag = "server", .call.timeout_ms = 100 };
	CHECK(csn_wait(sandbox, &wait_it, &waited, &err) == 0);
	CHECK(!waited->reached && waited->timed_out && waited->running);
	csn_free(waited);
	CHECK(csn_kill(sandbox, &kill_it, &err) == -CSN_INVALID);
	kill_it.signal = 0;
	CHECK(csn_kill(sandbox, &kill_it, &err) == 0);
	wait_it.call.timeout_ms = 5000;
	CHECK(csn_wait(sandbox, &wait_it, &waited, &err) == 0);
	CHECK(waited->reached && !waited->running && waited->signal == SIGTERM);
	csn_free(waited);
	CHECK(csn_logs(sandbox, &logs, &log, &err) == 0);
	CHECK_STR(log->output.data, "one\n");
	CHECK_STR(log->errors.data, "two\n");
	CHECK(log->bytes == 8 && log->cut_bytes == 0 && !log->running);
	csn_free(log);
	logs.tag = "nobody";
	CHECK(csn_logs(sandbox, &logs, &log, &err) < 0);
	printf("# %s: %s\n", csn_code_name(err.code), err.text);
	CHECK(err.code == CSN_ENOENT);
	csn_close(sandbox);
}

static const struct tap_test tests[] = {
	{ "commands, their streams and endings", commands },
	{ "requests that are refused", refused },
	{ "a call that is too large", too_large },
	{ "megabytes in and out, and halves", streams },
	{ "input from a callback", input_from_a_callback },
	{ "a callback that wants no more", callback_refuses },
	{ "a terminal", terminal },
	{ "cancelled by another thread", cancelled },
	{ "cancelled before it begins", cancelled_before_it_begins },
	{ "out of time", times_out },
	{ "signals to nobody", signals },
	{ "two threads that cancel each other", two_threads },
	{ "a slow callback", slow_callback },
	{ "detached", detached },
	{ "lost at any time", lost_at_any_time },
	{ "after a fork", after_a_fork },
	{ "files", files },
	{ "a file that is too long", too_long_to_read },
	{ "paths", paths },
	{ "search", search },
};

TAP_MAIN(tests)
