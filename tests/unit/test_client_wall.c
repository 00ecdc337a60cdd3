/*
 * A wall of the host's own, between the library and a real monitor: what each function is given,
 * what its answers become, and that no mistake, silence or end of either side costs more than it
 * should.
 */
#include "base/clock.h"
#include "client/link.h"
#include "client/wall.h"
#include "client_agent.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static csn_sandbox *sandbox;
static csn_error err;
static char caisson[4096];

static const char *const sealed[] = { "fs-write", "syscalls", "privilege",
				      "identity", "net-none", NULL };
static const char *const events[] = { "NetworkAccessViolation", NULL };

/* ---- a wall --------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t served_by;
static char told[256];
static int ended_with;

static void say(const char *text)
{
	pthread_mutex_lock(&lock);
	served_by = pthread_self();
	snprintf(told, sizeof told, "%s", text);
	pthread_mutex_unlock(&lock);
}

static char *what(char text[sizeof told])
{
	pthread_mutex_lock(&lock);
	memcpy(text, told, sizeof told);
	pthread_mutex_unlock(&lock);
	return text;
}
static int how_it_ended(void)
{
	int how;

	pthread_mutex_lock(&lock);
	how = ended_with;
	pthread_mutex_unlock(&lock);
	return how;
}

#define TOLD() what((char[sizeof told]){ 0 })

static int on_read(void *data, const csn_read_request *request, csn_answer *answer)
{
	char piece[100000];

	(void)data;
	memset(piece, 'r', sizeof piece);
	if (strcmp(request->path, "none") == 0)
		return -CSN_ENOENT;
	if (strcmp(request->path, "odd") == 0)
		return csn_answer_fail(answer, CSN_LOST, "what it may not say \033[0m");
	if (strcmp(request->path, "twice") == 0)
		csn_answer_fail(answer, CSN_EACCES, "once");
	for (int i = 0; strcmp(request->path, "big") == 0 && i < 20; i++)
		CHECK(csn_answer_data(answer, CSN_STDOUT, piece, sizeof piece) == 0);
	if (strcmp(request->path, "small") == 0)
		return csn_answer_data(answer, CSN_STDOUT, "abcdef", 6);
	return 0;
}

static int on_write(void *data, const csn_write_request *request, csn_answer *answer)
{
	char piece[5000], text[64];
	size_t size = 0;
	ptrdiff_t n;

	(void)data;
	while ((n = csn_answer_input(answer, piece, sizeof piece)) > 0)
		size += (size_t)n;
	snprintf(text, sizeof text, "write %s %zu %o", request->path, size, request->mode);
	say(text);
	return (int)n;
}

static int on_edit(void *data, const csn_edit_request *request, csn_answer *answer)
{
	csn_edit_result result = { 1, { "new", 3 } };

	(void)data;
	CHECK(request->old_size == 1 && request->new_size == 0);
	return csn_answer_edit(answer, &result);
}

static int on_stat(void *data, const csn_path_request *request, csn_answer *answer)
{
	csn_stat_result result = { "symlink", 7, 0644, -5, "there" };

	(void)data;
	if (strcmp(request->path, "old") != 0)
		result.mtime_ms = 5;
	if (strcmp(request->path, "odd") == 0)
		result.type = NULL;
	return csn_answer_stat(answer, &result);
}

static int on_list(void *data, const csn_path_request *request, csn_answer *answer)
{
	csn_entry entries[12000];
	csn_list_result result = { entries, 12000, false };

	(void)data;
	for (int i = 0; i < 12000; i++)
		entries[i] = (csn_entry){ strcmp(request->path, "odd") ? "name" : "", "file", 3 };
	return csn_answer_list(answer, &result);
}

static int on_move(void *data, const csn_move_request *request, csn_answer *answer)
{
	char text[64];

	(void)data;
	snprintf(text, sizeof text, "move %s %s", request->path, request->to);
	say(text);
	CHECK(csn_answer_exit(answer, 0, 0) == -CSN_INVALID);
	return 0;
}

static int on_glob(void *data, const csn_glob_request *request, csn_answer *answer)
{
	static const char *const paths[] = { "a", "b", "c", NULL };
	csn_glob_result result = { paths, 3, false, 4 };

	(void)data;
	CHECK(request->limit == 2 && !request->cwd);
	return csn_answer_glob(answer, &result);
}

static int on_grep(void *data, const csn_grep_request *request, csn_answer *answer)
{
	csn_match match = { "a", 3, { "line", 4 }, false };
	static const char *const binary[] = { "b", NULL };
	csn_grep_result result = { &match, 1, binary, 1, true, 0 };

	(void)data;
	if (!request->ignore_case)
		return csn_answer_fail(answer, CSN_INVALID_REGEX, "at 3");
	return csn_answer_grep(answer, &result);
}

static int echo(csn_answer *answer)
{
	char piece[3000];
	ptrdiff_t n;
	int r = 0;

	while (r == 0 && (n = csn_answer_input(answer, piece, sizeof piece)) > 0)
		r = csn_answer_data(answer, CSN_STDOUT, piece, (size_t)n);
	return r < 0 ? r : csn_answer_exit(answer, 3, 0);
}

static int wait_long(csn_answer *answer)
{
	int r;

	say("waits");
	do
		r = csn_answer_wait(answer, 20000);
	while (r == SIGTERM); /* deaf to the soft end */
	pthread_mutex_lock(&lock);
	ended_with = r;
	pthread_mutex_unlock(&lock);
	return r > 0 ? csn_answer_exit(answer, 0, r) : r;
}

static int flood(csn_answer *answer)
{
	char piece[70000];
	int r = 0;

	memset(piece, 'f', sizeof piece);
	for (int i = 0; r == 0 && i < 40; i++)
		r = csn_answer_data(answer, CSN_STDERR, piece, sizeof piece);
	return r < 0 ? r : csn_answer_exit(answer, 0, 0);
}

static int violate(csn_answer *answer)
{
	csn_violation violation = { .event = events[0], .address = "10.0.0.1" };

	CHECK(csn_answer_violation(answer, &violation) == 0);
	violation.event = "SyscallViolation"; /* which nobody declared */
	CHECK(csn_answer_violation(answer, &violation) == 0);
	return csn_answer_exit(answer, 0, 0);
}

static int reenter(csn_answer *answer)
{
	csn_read_request request = { .path = "small" };
	csn_bytes *bytes;
	csn_sandbox *own;
	int r;

	pthread_mutex_lock(&lock); /* which a host needs as well */
	own = sandbox;
	pthread_mutex_unlock(&lock);
	r = csn_read(own, &request, &bytes, NULL);

	return csn_answer_exit(answer, -r, 0);
}

static int on_exec(void *data, const csn_exec_request *request, csn_answer *answer)
{
	const char *command = request->command ? request->command : request->argv[0];
	char text[64];

	(void)data;
	snprintf(text, sizeof text, "exec %s %s", command, request->cwd ? request->cwd : "-");
	say(text);
	if (strcmp(command, "echo") == 0)
		return echo(answer);
	if (strcmp(command, "wait") == 0)
		return wait_long(answer);
	if (strcmp(command, "flood") == 0)
		return flood(answer);
	if (strcmp(command, "violate") == 0)
		return violate(answer);
	if (strcmp(command, "reenter") == 0)
		return reenter(answer);
	if (strcmp(command, "odd") == 0)
		return csn_answer_exit(answer, 999, 0);
	if (strcmp(command, "busy") == 0) {
		usleep(300000);
		say("was busy");
	}
	if (strcmp(command, "env") == 0)
		for (const char *const *item = request->env; *item; item++)
			csn_answer_data(answer, CSN_STDOUT, *item, strlen(*item));
	return strcmp(command, "silent") == 0 ? 0 : csn_answer_exit(answer, 0, 0);
}

static const csn_wall whole = { .enforces = sealed,
				.observes = events,
				.read = on_read,
				.write = on_write,
				.edit = on_edit,
				.exec = on_exec,
				.stat = on_stat,
				.list = on_list,
				.move = on_move,
				.glob = on_glob,
				.grep = on_grep };

static csn_sandbox *open_it(const csn_wall *wall)
{
	csn_options options = { .program = caisson, .no_record = true, .wall = wall };
	csn_sandbox *opened;

	program_path("src/cli/caisson", caisson, sizeof caisson);
	CHECK(chdir("/tmp") == 0);
	unsetenv("CAISSON_BACKEND");
	err = (csn_error){ 0 };
	opened = csn_open(&options, &err);
	pthread_mutex_lock(&lock);
	sandbox = opened;
	pthread_mutex_unlock(&lock);
	if (!opened)
		printf("# %s: %s\n", csn_code_name(err.code), err.text);
	return opened;
}

static csn_exec_result *run(const char *command, uint32_t timeout_ms)
{
	csn_exec_request request = { .command = command, .call.timeout_ms = timeout_ms };
	csn_exec_result *result = NULL;
	int r = csn_exec(sandbox, &request, &result, &err);

	if (r < 0)
		printf("# %s: %s: %s\n", command, csn_code_name(r), err.text);
	return r < 0 ? NULL : result;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static int read_it(const char *path, uint64_t length, size_t *ret_size)
{
	csn_read_request request = { .path = path, .length = length };
	csn_bytes *bytes;
	int r = csn_read(sandbox, &request, &bytes, &err);

	if (r < 0)
		return r;
	*ret_size = bytes->size;
	csn_free(bytes);
	return 0;
}

static void files(void)
{
	static char large[700000];
	csn_write_request write_it = { .path = "x", .bytes = "abc", .size = 3, .mode = 0600 };
	csn_edit_request edit = { .path = "x", .old_text = "a", .new_text = "" };
	csn_edit_result *edited;
	size_t size = 0;

	CHECK(open_it(&whole));
	CHECK(read_it("small", 0, &size) == 0 && size == 6);
	CHECK(read_it("small", 4, &size) == 0 && size == 4); /* more than was asked for */
	CHECK(read_it("empty", 0, &size) == 0 && size == 0);
	CHECK(read_it("big", 0, &size) == 0 && size == 2000000);
	CHECK(read_it("big", 150000, &size) == 0 && size == 150000);
	CHECK(csn_write(sandbox, &write_it, &err) == 0);
	CHECK_STR(TOLD(), "write x 3 600");
	pthread_mutex_lock(&lock);
	CHECK(!pthread_equal(served_by, pthread_self()));
	pthread_mutex_unlock(&lock);
	write_it.bytes = large;
	write_it.size = sizeof large;
	CHECK(csn_write(sandbox, &write_it, &err) == 0);
	CHECK_STR(TOLD(), "write x 700000 600");
	write_it.size = 0;
	CHECK(csn_write(sandbox, &write_it, &err) == 0);
	CHECK_STR(TOLD(), "write x 0 600");
	CHECK(csn_edit(sandbox, &edit, &edited, &err) == 0 && edited->content.size == 3);
	csn_free(edited);
	csn_close(sandbox);
}

static void lists(void)
{
	csn_path_request path = { .path = "x" };
	csn_move_request move = { .path = "a", .to = "b" };
	csn_glob_request glob = { .pattern = "*", .limit = 2 };
	csn_grep_request grep = { .pattern = "x", .ignore_case = true };
	csn_stat_result *stat;
	csn_list_result *list;
	csn_glob_result *globbed;
	csn_grep_result *found;

	CHECK(open_it(&whole));
	CHECK(csn_stat(sandbox, &path, &stat, &err) == 0 && stat->size == 7);
	CHECK_STR(stat->target, "there");
	csn_free(stat);
	CHECK(csn_list(sandbox, &path, &list, &err) == 0);
	CHECK(list->count == 10000 && list->truncated);
	csn_free(list);
	CHECK(csn_move(sandbox, &move, &err) == 0);
	CHECK_STR(TOLD(), "move a b");
	CHECK(csn_glob(sandbox, &glob, &globbed, &err) == 0);
	CHECK(globbed->count == 2 && globbed->truncated && globbed->skipped == 4);
	csn_free(globbed);
	CHECK(csn_grep(sandbox, &grep, &found, &err) == 0);
	CHECK(found->count == 1 && found->matches[0].line.size == 4 && found->binary_count == 1);
	csn_free(found);
	grep.ignore_case = false;
	CHECK(csn_grep(sandbox, &grep, &found, &err) == -CSN_INVALID_REGEX);
	CHECK_STR(err.text, "at 3");
	csn_close(sandbox);
}

/* A mistake of the host's costs its call; the next one is answered. */
static void failures(void)
{
	csn_path_request path = { .path = "odd" }, old = { .path = "old" };
	csn_stat_result *stat;
	csn_list_result *list;
	size_t size = 0;

	CHECK(open_it(&whole));
	CHECK(!csn_has_verb(sandbox, "remove") && csn_has_verb(sandbox, "read"));
	CHECK(csn_remove(sandbox, &path, &err) == -CSN_NOT_SUPPORTED);
	CHECK(read_it("none", 0, &size) == -CSN_ENOENT);
	CHECK(read_it("odd", 0, &size) == -CSN_EIO);
	CHECK_STR(err.text, "what it may not say ?[0m");
	CHECK(read_it("twice", 0, &size) == -CSN_EACCES);
	CHECK(csn_stat(sandbox, &path, &stat, &err) == -CSN_EIO && strstr(err.text, "none: "));
	CHECK(csn_stat(sandbox, &old, &stat, &err) == -CSN_EIO);
	CHECK(csn_list(sandbox, &path, &list, &err) == -CSN_EIO);
	CHECK(!run("silent", 0) && err.code == CSN_EIO && strstr(err.text, "no answer"));
	CHECK(!run("odd", 0) && err.code == CSN_EIO);
	CHECK(read_it("small", 0, &size) == 0);
	csn_close(sandbox);
}

static void commands(void)
{
	static char input[600000];
	static const char *const argv[] = { "echo", "a b", NULL };
	csn_exec_request request = { .argv = argv, .input = input, .input_size = sizeof input };
	csn_exec_result *result;

	CHECK(open_it(&whole));
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	CHECK(result->exit_code == 3 && result->stdout_bytes == sizeof input);
	csn_free(result);
	CHECK((result = run("flood", 0)) && result->stderr_bytes == 2800000);
	csn_free(result);
	CHECK((result = run("env", 0)) && strstr(result->output.data, "PATH="));
	csn_free(result);
	CHECK((result = run("violate", 0)) && result->violation_count == 1);
	CHECK_STR(result->violations[0].address, "10.0.0.1");
	CHECK_STR(result->violations[0].rule, "csn_wall.observes");
	CHECK(!result->violations[0].certain);
	csn_free(result);
	CHECK((result = run("reenter", 0)) && result->exit_code == CSN_INVALID);
	csn_free(result);
	request = (csn_exec_request){ .command = "echo", .detach = true };
	CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_NOT_SUPPORTED);
	csn_close(sandbox);
}

static void *await_end(void *data)
{
	return run(data, 20000);
}

static void wait_for(const char *text)
{
	for (int i = 0; i < 500 && strcmp(TOLD(), text) != 0; i++)
		usleep(10000);
	CHECK_STR(TOLD(), text);
}

static void clocks(void)
{
	csn_exec_result *result;
	uint64_t start;

	CHECK(open_it(&whole));
	start = clock_now_ms();
	CHECK((result = run("wait", 200)) && result->reason == CSN_REASON_TIMEOUT);
	csn_free(result);
	CHECK(clock_now_ms() - start < 5000);
	csn_close(sandbox); /* and waits for the function */
	CHECK(how_it_ended() == -CSN_CANCELLED);
}

static void meddled(void)
{
	csn_exec_request request = { .command = "wait" };
	csn_exec_result *result;
	pthread_t thread;
	void *done;

	CHECK(open_it(&whole));
	CHECK(pthread_create(&thread, NULL, await_end, "wait") == 0);
	wait_for("waits");
	CHECK(csn_signal(sandbox, 1, SIGUSR1, &err) == 0);
	pthread_join(thread, &done);
	CHECK((result = done) && result->signal == SIGUSR1);
	csn_free(result);
	request.call.id = csn_call_id(sandbox);
	say("");
	CHECK(pthread_create(&thread, NULL, await_end, "wait") == 0);
	wait_for("waits");
	CHECK(csn_cancel(sandbox, request.call.id + 1, &err) == 0);
	pthread_join(thread, &done);
	CHECK((result = done) && result->reason == CSN_REASON_CANCELLED);
	csn_free(result);
	csn_close(sandbox);
}

/* One that waits for its turn is answered while another is under way. */
static void queued(void)
{
	csn_read_request request = { .path = "small" };
	csn_exec_result *result;
	csn_bytes *bytes;
	pthread_t thread;
	uint64_t start;
	void *done;

	CHECK(open_it(&whole));
	CHECK(pthread_create(&thread, NULL, await_end, "wait") == 0);
	wait_for("waits");
	start = clock_now_ms();
	request.call.timeout_ms = 200;
	CHECK(csn_read(sandbox, &request, &bytes, &err) == -CSN_ETIMEDOUT);
	CHECK(clock_now_ms() - start < 3000);
	CHECK(csn_cancel(sandbox, 1, &err) == 0);
	pthread_join(thread, &done);
	CHECK((result = done) && result->reason == CSN_REASON_CANCELLED);
	csn_free(result);
	request.call.timeout_ms = 0;
	CHECK(csn_read(sandbox, &request, &bytes, &err) == 0);
	csn_free(bytes);
	csn_close(sandbox);
}

static void *close_it(void *data)
{
	csn_close(data);
	return NULL;
}

/* As a host must not, but may: a call is under way, in a function that looks and in one that does
 * not. The sandbox ends under it, by its monitor's death. */
static void closed(void)
{
	static const char *const commands_[] = { "wait", "busy" };
	pthread_t thread;
	void *done;

	for (int i = 0; i < 2; i++) {
		char expected[32];

		CHECK(open_it(&whole));
		say("");
		snprintf(expected, sizeof expected, "%s", i ? "exec busy -" : "waits");
		CHECK(pthread_create(&thread, NULL, await_end, (void *)(uintptr_t)commands_[i]) ==
		      0);
		wait_for(expected);
		kill(sandbox->monitor, SIGKILL);
		pthread_join(thread, &done);
		CHECK(!done && err.code == CSN_LOST);
		CHECK(pthread_create(&thread, NULL, close_it, sandbox) == 0);
		pthread_join(thread, NULL);
		CHECK(i || how_it_ended() == -CSN_LOST);
	}
}

/* As a monitor does. */
static void send_call(int fd, int64_t ref, const char *verb, const char *path)
{
	_cleanup_buf_ struct buf out;
	struct emit emit;

	buf_init(&out, 1 << 16);
	emit = emit_begin(&out);
	emit_tuple(&emit, 4);
	emit_atom(&emit, "call");
	emit_int(&emit, ref);
	emit_atom(&emit, verb);
	emit_map(&emit, strcmp(verb, "exec") ? 1 : 2);
	emit_atom(&emit, strcmp(verb, "exec") ? "path" : "command");
	emit_text(&emit, path);
	if (strcmp(verb, "exec") == 0) {
		emit_atom(&emit, "stdin");
		emit_atom(&emit, "true");
	}
	CHECK(emit_end(&emit) == 0);
	CHECK(send(fd, buf_at(&out), buf_size(&out), MSG_NOSIGNAL) == (ssize_t)buf_size(&out));
}

static void send_data(int fd, int64_t ref, size_t size)
{
	static char bytes[FRAME_PIECE];
	_cleanup_buf_ struct buf out;
	struct emit emit;

	buf_init(&out, 1 << 17);
	emit = emit_begin(&out);
	emit_tuple(&emit, 4);
	emit_atom(&emit, "data");
	emit_int(&emit, ref);
	emit_atom(&emit, "stdin");
	emit_binary(&emit, bytes, size);
	CHECK(emit_end(&emit) == 0);
	CHECK(send(fd, buf_at(&out), buf_size(&out), MSG_NOSIGNAL) == (ssize_t)buf_size(&out));
}

/* What csn_close() itself ends: its thread waits for the function. */
static void closed_meanwhile(void)
{
	struct wall *wall;
	int fd;

	CHECK(wall_start(&whole, &wall, &fd, &err) == 0);
	send_init(fd, "/tmp");
	send_call(fd, 1, "exec", "busy");
	wait_for("exec busy -");
	wall_end(wall);
	CHECK_STR(TOLD(), "was busy");
	close(fd);
	CHECK(open_it(&whole));
	csn_close(sandbox);
}

static void refused(void)
{
	static const char *const less[] = { "fs-write", "syscalls", "identity", "net-none", NULL };
	static const char *const none[] = { "fs-cow", NULL };
	csn_options options = { .program = caisson, .no_record = true };
	csn_wall wall = whole;

	wall.enforces = less;
	CHECK(!open_it(&wall) && err.code == CSN_TIER_UNAVAILABLE);
	CHECK(strstr(err.text, "does not enforce: privilege") && strstr(err.text, "csn_wall"));
	wall.enforces = none;
	CHECK(!open_it(&wall) && strstr(err.text, "csn_wall.enforces names \"fs-cow\""));
	wall = whole;
	wall.observes = none;
	CHECK(!open_it(&wall) && strstr(err.text, "csn_wall.observes names"));
	options.wall = &whole;
	options.tier = "balanced";
	CHECK(!csn_open(&options, &err) && err.code == CSN_TIER_UNAVAILABLE);
	CHECK(strstr(err.text, "reaches tier auto and balanced is asked for"));
	options.tier = NULL;
	options.workspace = "/tmp:cow";
	CHECK(!csn_open(&options, &err));
	options.workspace = NULL;
	options.backend = "local";
	CHECK(!csn_open(&options, &err));
	options.backend = "process";
	CHECK(!csn_open(&options, &err) && strstr(err.text, "wall of its own"));
	options.backend = "host";
	CHECK(!csn_open(&options, &err));
	options.backend = NULL;
	options.pool = "any";
	CHECK(!csn_open(&options, &err) && err.code == CSN_INVALID);
	options = (csn_options){ .program = caisson, .no_record = true, .backend = "host" };
	CHECK(!csn_open(&options, &err));
}

/* A child of the host's closes what it got of it, and the sandbox goes on. */
static void forked(void)
{
	size_t size;
	int status;
	pid_t pid;

	CHECK(open_it(&whole));
	pid = fork();
	if (pid == 0) {
		csn_close(sandbox);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(read_it("small", 0, &size) == 0 && size == 6);
	csn_close(sandbox);
}

/* ---- hostile, as a monitor that is not ours -------------------------------------------------- */

static int ended(int fd)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

static void hostile(void)
{
	static const char *const frames[] = { "\x7f\xff\xff\xff", "\0\0\0\2\x83j",
					      "\0\0\0\4\x83h\1w", NULL };
	static const size_t sizes[] = { 4, 6, 8 };
	struct wall *wall;
	int fd;

	alarm(20); /* one that goes on is a failure */
	for (int i = 0; frames[i]; i++) {
		CHECK(wall_start(&whole, &wall, &fd, &err) == 0);
		send_init(fd, "/tmp");
		CHECK(send(fd, frames[i], sizes[i], MSG_NOSIGNAL) == (ssize_t)sizes[i]);
		CHECK(ended(fd));
		wall_end(wall);
		close(fd);
	}
	CHECK(wall_start(&whole, &wall, &fd, &err) == 0);
	send_call(fd, 1, "read", "small"); /* before init */
	CHECK(ended(fd));
	wall_end(wall);
	close(fd);
	CHECK(wall_start(&whole, &wall, &fd, &err) == 0);
	send_init(fd, "/tmp");
	send_call(fd, 1, "exec", "wait");
	wait_for("waits");
	for (int i = 0; i < FRAME_WINDOW / FRAME_PIECE; i++)
		send_data(fd, 1, FRAME_PIECE);
	send_data(fd, 1, 1); /* beyond its window */
	CHECK(ended(fd));
	wall_end(wall);
	close(fd);
	CHECK(how_it_ended() == -CSN_LOST);
	CHECK(wall_start(&whole, &wall, &fd, &err) == 0);
	send_init(fd, "/tmp");
	send_init(fd, "/tmp");
	CHECK(ended(fd));
	wall_end(wall);
	close(fd);
}

/* More than it keeps is refused at once, while a call is under way. */
static void crowded(void)
{
	char bytes[65536];
	size_t size = 0;
	struct wall *wall;
	int fd;

	alarm(20);
	CHECK(wall_start(&whole, &wall, &fd, &err) == 0);
	send_init(fd, "/tmp");
	send_call(fd, 1, "exec", "wait");
	wait_for("waits");
	for (int64_t ref = 2; ref < 70; ref++)
		send_call(fd, ref, "read", "small");
	while (size < 6 || !memmem(bytes, size, "eagain", 6)) {
		ssize_t n = read(fd, bytes + size, sizeof bytes - size);

		CHECK(n > 0);
		size += (size_t)n;
	}
	CHECK(!memmem(bytes, size, "abcdef", 6));
	shutdown(fd, SHUT_RDWR);
	wall_end(wall);
	close(fd);
}

static const struct tap_test tests[] = {
	{ "reads, writes, edits", files },
	{ "paths and lines", lists },
	{ "answers that are none", failures },
	{ "commands", commands },
	{ "time", clocks },
	{ "signals and cancels", meddled },
	{ "a call behind another", queued },
	{ "a monitor that dies during a call", closed },
	{ "closed while it serves", closed_meanwhile },
	{ "refused where the plan needs more", refused },
	{ "a fork's child", forked },
	{ "a monitor that lies", hostile },
	{ "more calls than it keeps", crowded },
};

TAP_MAIN(tests)
