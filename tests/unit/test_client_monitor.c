/*
 * The library and a monitor that a table plays: what it is told, what it makes of an account, and
 * that no lie of the other side costs more than the sandbox. The monitor is a thread, or this
 * program started as `caisson monitor`.
 */
#include "caisson.h"

#include "base/str.h"
#include "client/code.h"
#include "tap.h"
#include "wire/emit.h"
#include "wire/frame.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

static csn_sandbox *sandbox;
static csn_error err;
static int stream; /* the monitor's end */
static char own_path[4096];

/* A frame around the text of a term, as a literal. */
static void say(int fd, const char *body, size_t size)
{
	size_t n = size + 1;
	const uint8_t head[] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
				 (uint8_t)n, 131 };

	CHECK(write(fd, head, sizeof head) == sizeof head);
	CHECK(write(fd, body, size) == (ssize_t)size);
}
#define SAY(text) say(stream, (text), sizeof(text) - 1)

static void say_emit(int fd, struct emit *emit)
{
	CHECK(emit_end(emit) == 0);
	CHECK(write(fd, buf_at(emit->buf), buf_size(emit->buf)) == (ssize_t)buf_size(emit->buf));
	buf_clear(emit->buf);
}

static void say_ready(int fd, int version)
{
	static const char *const verbs[] = { "exec", "read", "write",  "stat",  "glob", "grep",
					     "list", "diff", "commit", "mount", "edit", "stats" };
	_cleanup_buf_ struct buf out;
	struct emit emit;

	buf_init(&out, 1 << 16);
	emit = emit_begin(&out);
	emit_tuple(&emit, 2);
	emit_atom(&emit, "ready");
	emit_map(&emit, 3);
	emit_atom(&emit, "version");
	emit_int(&emit, version);
	emit_atom(&emit, "enforces");
	emit_list(&emit, 1);
	emit_atom(&emit, "read_only_root");
	emit_nil(&emit);
	emit_atom(&emit, "verbs");
	emit_list(&emit, ARRAY_SIZE(verbs));
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		emit_atom(&emit, verbs[i]);
	emit_nil(&emit);
	say_emit(fd, &emit);
}

static int make_pair(void)
{
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	stream = pair[1];
	return pair[0];
}

/* The monitor says everything before it is asked: the first call is number 1. */
static void open_scripted(void)
{
	int fd = make_pair();

	say_ready(stream, 1);
	sandbox = csn_adopt(fd, &err);
	CHECK(sandbox);
	CHECK(csn_enforces(sandbox, "read_only_root") && !csn_enforces(sandbox, "peace"));
}

/* ---- lies ----------------------------------------------------------------------------------- */

#define ATOM(text, size) "w" size text
#define BYTES(text) (text), sizeof(text) - 1

static const struct lie {
	const char *body;
	size_t size;
	const char *why; /* part of the sentence */
} lies[] = {
	{ BYTES("h\2w\5readyt\0\0\0\0"), "version" },
	{ BYTES("h\3w\5replya\2t\0\0\0\0"), "reply came out of turn" },
	{ BYTES("h\3w\5replya\1t\0\0\0\0"), "stat" },
	{ BYTES("h\3w\5replya\1t\0\0\0\1w\4typea\1"), "stat" },
	{ BYTES("h\4w\4dataa\1w\6stdoutm\0\0\0\1x"), "data came out of turn" },
	{ BYTES("h\4w\4dataa\1w\3eyem\0\0\0\1x"), "eye" },
	{ BYTES("h\4w\6failada\1w\3eiom\0\0\0\0"), "" },
	{ BYTES("h\1w\4stop"), "not this side" },
	{ BYTES("h\2w\4factt\0\0\0\0"), "missing" },
	{ BYTES("\377"), "" },
	{ BYTES("h\3w\5replya\1P\0\0\0\1"), "" },
};

static void lie_once(const struct lie *lie)
{
	csn_path_request request = { .path = "x" };
	csn_stat_result *result = NULL;
	int r;

	open_scripted();
	say(stream, lie->body, lie->size);
	r = csn_stat(sandbox, &request, &result, &err);
	printf("# %s: %s\n", csn_code_name(r), err.text);
	CHECK(r == -CSN_LOST && err.code == CSN_LOST && !result);
	CHECK(strstr(err.text, lie->why));
	CHECK(csn_stat(sandbox, &request, &result, &err) == -CSN_LOST);
	csn_close(sandbox);
	close(stream);
}

static void test_lies(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++)
		lie_once(&lies[i]);
}

static void test_lengths(void)
{
	csn_path_request request = { .path = "x" };
	csn_stat_result *result = NULL;

	open_scripted();
	CHECK(write(stream, "\1\0\0\0", 4) == 4); /* 16 MiB: more than any message */
	CHECK(csn_stat(sandbox, &request, &result, &err) == -CSN_LOST);
	printf("# %s\n", err.text);
	csn_close(sandbox);
}

/* More output than the window has room for is not kept: the sandbox is lost. */
static void *flood(void *data)
{
	static char frame[8192];
	struct emit emit;
	struct buf out;

	usleep(50000); /* the call begins */
	buf_init(&out, 1 << 16);
	for (int i = 0; i < 4096; i++) {
		emit = emit_begin(&out);
		emit_tuple(&emit, 4);
		emit_atom(&emit, "data");
		emit_int(&emit, *(int64_t *)data);
		emit_atom(&emit, "stdout");
		emit_binary(&emit, frame, sizeof frame);
		emit_end(&emit);
		if (send(stream, buf_at(&out), buf_size(&out), MSG_NOSIGNAL) < 0)
			break;
		buf_clear(&out);
	}
	buf_done(&out);
	return NULL;
}

static int sleep_once(void *data, enum csn_stream kind, const void *bytes, size_t size)
{
	(void)kind;
	(void)bytes;
	if (*(size_t *)data == 0)
		usleep(300000);
	*(size_t *)data += size;
	return 0;
}

static void *wait_for_a_stat(void *data)
{
	csn_path_request path = { .path = "x" };
	csn_stat_result *st = NULL;

	(void)data;
	CHECK(csn_stat(sandbox, &path, &st, NULL) == -CSN_LOST && !st);
	return NULL;
}

/* While a callback sleeps, another thread reads: what the first one's window has no room for. */
static void test_flood(void)
{
	size_t bytes = 0;
	csn_exec_request request = { .command = "x", .on_output = sleep_once, .data = &bytes };
	csn_exec_result *result = NULL;
	pthread_t threads[2];

	open_scripted();
	request.call.id = csn_call_id(sandbox);
	CHECK(pthread_create(&threads[0], NULL, wait_for_a_stat, NULL) == 0);
	usleep(50000);
	CHECK(pthread_create(&threads[1], NULL, flood, &request.call.id) == 0);
	CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_LOST);
	printf("# %zu bytes, %s\n", bytes, err.text);
	CHECK(bytes <= 2 * FRAME_WINDOW && strstr(err.text, "data came out of turn"));
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	csn_close(sandbox);
}

static void test_versions(void)
{
	int fd = make_pair();

	say_ready(stream, 2);
	CHECK(!csn_adopt(fd, &err) && err.code == CSN_LOST);
	CHECK(strstr(err.text, "version 2"));
	fd = make_pair();
	SAY("h\2w\3byet\0\0\0\3w\4codem\0\0\0\17TierUnavailablew\5stagem\0\0\0\6policy"
	    "w\4textm\0\0\0\7no\33wall");
	CHECK(!csn_adopt(fd, &err) && err.code == CSN_TIER_UNAVAILABLE);
	CHECK_STR(err.stage, "policy");
	CHECK_STR(err.text, "no?wall");
	CHECK_STR(csn_code_name(err.code), "TierUnavailable");
}

/* ---- an account ----------------------------------------------------------------------------- */

static void put_text(struct emit *emit, const char *key, const char *text)
{
	emit_atom(emit, key);
	emit_text(emit, text);
}

static void put_int(struct emit *emit, const char *key, int64_t value)
{
	emit_atom(emit, key);
	emit_int(emit, value);
}

static void put_violation(struct emit *emit, const char *path)
{
	emit_map(emit, 6);
	put_text(emit, "event", "FilesystemWriteViolation");
	put_text(emit, "rule", "workspace.mode");
	put_text(emit, "say", "the workspace is read-only");
	put_text(emit, "path", path);
	put_int(emit, "count", 3);
	emit_atom(emit, "certain");
	emit_bool(emit, true);
}

static void say_account(const char *reason)
{
	static const char *const numbers[] = { "exit_code",      "signal",          "wall_us",
					       "cpu_us",         "stdout_bytes",    "stderr_bytes",
					       "mem_peak_bytes", "output_cut_bytes" };
	_cleanup_buf_ struct buf out;
	struct emit emit;

	buf_init(&out, 1 << 16);
	emit = emit_begin(&out);
	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, 1);
	emit_map(&emit, ARRAY_SIZE(numbers) + 3);
	emit_atom(&emit, "reason");
	emit_atom(&emit, reason);
	emit_atom(&emit, "clock");
	emit_atom(&emit, "budget");
	emit_atom(&emit, "exit_code");
	emit_atom(&emit, "null");
	for (int i = 1; i < (int)ARRAY_SIZE(numbers); i++)
		put_int(&emit, numbers[i], 10 + i);
	emit_atom(&emit, "violations");
	emit_list(&emit, 2);
	put_violation(&emit, "/etc/passwd");
	put_violation(&emit, "b");
	emit_nil(&emit);
	say_emit(stream, &emit);
}

static void say_fact(const char *path)
{
	_cleanup_buf_ struct buf out;
	struct emit emit;

	buf_init(&out, 1 << 16);
	emit = emit_begin(&out);
	emit_tuple(&emit, 2);
	emit_atom(&emit, "fact");
	put_violation(&emit, path);
	say_emit(stream, &emit);
}

static int hear(void *data, const csn_violation *violation)
{
	CHECK_STR(violation->event, "FilesystemWriteViolation");
	CHECK(violation->certain && violation->count == 3 && !violation->host);
	++*(int *)data;
	return 0;
}

/* The monitor answers when it is asked: the call is running when a fact comes. */
static void *account_thread(void *data)
{
	char request[4096];

	CHECK(read(stream, request, sizeof request) > 0);
	for (int i = 0; i < 1000; i++)
		say_fact("b");
	say_account(data);
	return NULL;
}

static csn_exec_result *exec_account(const char *reason, csn_violation_fn on_violation, int *heard)
{
	csn_exec_request request = { .command = "x", .on_violation = on_violation, .data = heard };
	csn_exec_result *result = NULL;
	pthread_t thread;

	open_scripted();
	CHECK(pthread_create(&thread, NULL, account_thread, (void *)(uintptr_t)reason) == 0);
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	pthread_join(thread, NULL);
	csn_close(sandbox);
	close(stream);
	return result; /* it outlives the sandbox */
}

static void test_account(void)
{
	int heard = 0;
	csn_exec_result *result = exec_account("timeout", hear, &heard);

	CHECK(result->reason == CSN_REASON_TIMEOUT);
	CHECK_STR(result->clock, "budget");
	CHECK(result->exit_code == -1 && result->signal == 11 && result->wall_us == 12);
	CHECK(result->cpu_us == 13 && result->stdout_bytes == 14 && result->stderr_bytes == 15);
	CHECK(result->mem_peak_bytes == 16 && result->output_cut_bytes == 17);
	CHECK(result->violation_count == 2);
	CHECK_STR(result->violations[0].path, "/etc/passwd");
	CHECK_STR(result->violations[1].say, "the workspace is read-only");
	printf("# heard %d of 1000\n", heard);
	CHECK(heard >= 64 && heard <= 1000);
	csn_free(result);
	result = exec_account("abducted", NULL, NULL);
	CHECK(result->reason == 0);
	CHECK_STR(result->reason_name, "abducted");
	csn_free(result);
}

/* ---- changes -------------------------------------------------------------------------------- */

/* Answers two calls when they are asked. */
static void *change_thread(void *data)
{
	char request[4096];
	ssize_t n = read(stream, request, sizeof request);

	(void)data;
	CHECK(n > 0 && memmem(request, (size_t)n, "w\4diff", 6) &&
	      memmem(request, (size_t)n, "m\0\0\0\3a/b", 8));
	SAY("h\4w\4dataa\1w\6stdoutm\0\0\0\3+x\n");
	SAY("h\3w\5replya\1t\0\0\0\2w\11truncatedw\5falsew\7changes"
	    "l\0\0\0\1t\0\0\0\2w\4pathm\0\0\0\3a/bw\6changew\5addedj");
	CHECK(read(stream, request, sizeof request) > 0);
	SAY("h\3w\5replya\2t\0\0\0\2w\7appliedjw\4left"
	    "l\0\0\0\1t\0\0\0\3w\4pathm\0\0\0\3a/bw\6changew\5addedw\6reasonm\0\0\0\4hookj");
	return NULL;
}

static void test_changes(void)
{
	const char *const paths[] = { "a/b", NULL };
	csn_changes_request request = { .paths = paths };
	csn_commit_result *commit;
	csn_diff_result *diff;
	pthread_t thread;

	open_scripted();
	CHECK(pthread_create(&thread, NULL, change_thread, NULL) == 0);
	CHECK(csn_diff(sandbox, &request, &diff, &err) == 0);
	CHECK(diff->count == 1 && !diff->truncated && !diff->changes[0].kind);
	CHECK_STR(diff->changes[0].path, "a/b");
	CHECK_STR(diff->changes[0].change, "added");
	CHECK_STR(diff->text.data, "+x\n");
	csn_free(diff);
	request.paths = NULL;
	CHECK(csn_commit(sandbox, &request, &commit, &err) == 0);
	CHECK(commit->applied_count == 0 && commit->left_count == 1);
	CHECK_STR(commit->left[0].reason, "hook");
	csn_free(commit);
	pthread_join(thread, NULL);
	csn_close(sandbox);
}

/* Every number of the same value but one, which is null. */
static void say_stats(const char *null_key)
{
	static const char *const texts[] = { "sandbox_id", "tier", "backend",
					     "workspace",  "mode", "means" };
	static const char *const numbers[] = { "started_ms",    "commands",        "idle_ms",
					       "idle_limit_ms", "mem_bytes",       "mem_limit",
					       "processes",     "processes_limit", "cpu_us",
					       "scratch_bytes", "scratch_limit" };
	_cleanup_buf_ struct buf out;
	struct emit emit;

	buf_init(&out, 1 << 16);
	emit = emit_begin(&out);
	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, 1);
	emit_map(&emit, ARRAY_SIZE(texts) + ARRAY_SIZE(numbers));
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		emit_atom(&emit, texts[i]);
		emit_text(&emit, str_is(texts[i], "workspace") ? "" : texts[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		emit_atom(&emit, numbers[i]);
		if (str_is(numbers[i], null_key))
			emit_atom(&emit, "null");
		else
			emit_int(&emit, (int64_t)i + 1);
	}
	say_emit(stream, &emit);
}

static void *stats_thread(void *data)
{
	char request[4096];

	CHECK(read(stream, request, sizeof request) > 0);
	say_stats(data);
	return NULL;
}

static void test_stats(void)
{
	csn_stats_result *stats = NULL;
	pthread_t thread;

	open_scripted();
	CHECK(pthread_create(&thread, NULL, stats_thread, "cpu_us") == 0);
	CHECK(csn_stats(sandbox, NULL, &stats, &err) == 0);
	pthread_join(thread, NULL);
	CHECK_STR(stats->sandbox_id, "sandbox_id");
	CHECK_STR(stats->tier, "tier");
	CHECK_STR(stats->backend, "backend");
	CHECK_STR(stats->mode, "mode");
	CHECK_STR(stats->means, "means");
	CHECK(!stats->workspace && stats->cpu_us == CSN_NONE);
	CHECK(stats->started_ms == 1 && stats->commands == 2 && stats->idle_ms == 3);
	CHECK(stats->idle_limit_ms == 4 && stats->mem_bytes == 5 && stats->mem_limit == 6);
	CHECK(stats->processes == 7 && stats->processes_limit == 8);
	CHECK(stats->scratch_bytes == 10 && stats->scratch_limit == 11);
	csn_free(stats);
	csn_close(sandbox);
	/* A time that nobody knows is no answer. */
	stats = NULL;
	open_scripted();
	CHECK(pthread_create(&thread, NULL, stats_thread, "started_ms") == 0);
	CHECK(csn_stats(sandbox, NULL, &stats, &err) == -CSN_LOST && !stats);
	pthread_join(thread, NULL);
	csn_close(sandbox);
}

static void *lose_command(void *data)
{
	char request[4096];

	(void)data;
	CHECK(read(stream, request, sizeof request) > 0);
	SAY("h\4w\6faileda\1w\4lostm\0\0\0\1x");
	return NULL;
}

/* A command that is lost takes nothing else with it. */
static void test_command_lost(void)
{
	csn_exec_request request = { .command = "x" };
	csn_exec_result *result = NULL;
	pthread_t thread;

	open_scripted();
	CHECK(pthread_create(&thread, NULL, lose_command, NULL) == 0);
	CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_COMMAND_LOST && !result);
	CHECK_STR(err.stage, "exec");
	CHECK(csn_cancel(sandbox, csn_call_id(sandbox), &err) == 0);
	pthread_join(thread, NULL);
	csn_close(sandbox);
}

/* ---- silence -------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *answer_cancel(void *data)
{
	char request[4096];
	ssize_t n = read(stream, request, sizeof request);

	(void)data;
	CHECK(n > 0 && memmem(request, (size_t)n, "stat", 4));
	n = read(stream, request, sizeof request);
	CHECK(n > 0 && memmem(request, (size_t)n, "cancel", 6));
	SAY("h\4w\6faileda\1w\11cancelledm\0\0\0\1x");
	return NULL;
}

static void test_out_of_time(void)
{
	csn_path_request request = { .path = "x", .call.timeout_ms = 200 };
	csn_stat_result *result = NULL;
	double start = now();
	pthread_t thread;

	open_scripted();
	CHECK(pthread_create(&thread, NULL, answer_cancel, NULL) == 0);
	CHECK(csn_stat(sandbox, &request, &result, &err) == -CSN_ETIMEDOUT && !result);
	CHECK(now() - start >= 0.198 && now() - start < 5); /* clocks of a millisecond */
	pthread_join(thread, NULL);
	csn_close(sandbox);
}

/* ---- starting a monitor --------------------------------------------------------------------- */

/* This program as `caisson monitor --fd 3 FLAGS`. */
static int be_monitor(int argc, char **argv)
{
	char frame[64];
	int last = 0;

	for (int fd = 0; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			last = fd;
	if (argc < 5 || last != 3 || getpgrp() != getpid() || !str_is(argv[2], "--fd"))
		return 9;
	if (str_is(argv[4], "--policy")) {
		fprintf(stderr, "caisson: %s:1:2: no such key\nsee caisson policy\n", argv[5]);
		return 125;
	}
	if (str_is(argv[4], "--backend"))
		sleep(20);
	if (!str_is(argv[4], "--limit") || argc != 9 || !str_is(argv[8], "--no-record"))
		return 8;
	say_ready(3, 1);
	if (read(3, frame, sizeof frame) <= 0)
		return 7;
	stream = 3;
	SAY("h\2w\3byet\0\0\0\0");
	return 0;
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void test_open(void)
{
	const char *const limits[] = { "memory=1GiB", "processes=9", NULL };
	csn_options options = { .program = own_path, .limits = limits, .no_record = true };
	int before = count_fds(), inherited;

	inherited = dup(0); /* not close-on-exec: the monitor must not get it */
	sandbox = csn_open(&options, &err);
	printf("# %s\n", err.text);
	CHECK(sandbox && csn_has_verb(sandbox, "exec"));
	csn_close(sandbox);
	close(inherited);
	CHECK(count_fds() == before);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	options.limits = NULL;
	options.policy = "p.yaml";
	CHECK(!csn_open(&options, &err) && strstr(err.text, "p.yaml:1:2: no such key see caisson"));
	options = (csn_options){ .program = own_path, .backend = "x", .start_timeout_ms = 200 };
	options.program = "/nowhere/caisson";
	CHECK(!csn_open(&options, &err) && err.code == CSN_ENOENT);
	CHECK(!csn_attach("no/such/socket", &err) && err.code == CSN_ENOENT);
	CHECK(!csn_attach("..", &err) && err.code == CSN_INVALID);
	CHECK(count_fds() == before);
}

static void test_slow_open(void)
{
	csn_options options = { .program = own_path, .backend = "x", .start_timeout_ms = 200 };
	double start = now();

	CHECK(!csn_open(&options, &err) && err.code == CSN_ETIMEDOUT && now() - start < 10);
	printf("# %s, %.1f s\n", err.text, now() - start);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Each reason that the table of messages names between backticks is one of ours. */
static void reasons(void)
{
	const char *at = frame_messages[FRAME_FAILED].what, *end;
	int count = 0;
	char name[64];

	for (; (at = strchr(at, '`')) && (end = strchr(++at, '`')); at = end + 1, count++) {
		snprintf(name, sizeof name, "%.*s", (int)(end - at), at);
		printf("# %s\n", name);
		CHECK(code_of_name(name) != CSN_EIO);
	}
	CHECK(count >= 8);
}

static void test_codes(void)
{
	int named = 0;

	CHECK_STR(csn_code_name(-CSN_ENOENT), "enoent");
	CHECK_STR(csn_code_name(0), "ok");
	CHECK_STR(csn_code_name(-2147483647 - 1), "unknown");
	CHECK_STR(csn_version(), "0.1.0");
	for (int code = 1; code < 100; code++) {
		const char *name = csn_code_name(code);

		if (str_is(name, "unknown"))
			continue;
		CHECK((int)code_of_name(name) == code);
		named++;
	}
	CHECK(named == 43 + 13);
	CHECK(code_of_name("eworld") == CSN_EIO);
	reasons();
	for (int error = 1; error < 134; error++)
		CHECK(!str_is(csn_code_name((int)code_of_errno(error)), "unknown"));
}

/* What a host was compiled with must fit the library it runs with. */
static void test_layout(void)
{
	CHECK(sizeof(csn_error) == 512);
	if (sizeof(void *) != 8)
		SKIP("lp64: sizes are written down for it");

	CHECK(sizeof(csn_call) == 16 && sizeof(csn_options) == 184);
	CHECK(sizeof(csn_exec_request) == 184 && sizeof(csn_read_request) == 88);
}

static const struct tap_test tests[] = {
	{ "lies end the sandbox", test_lies },
	{ "a length beyond all messages", test_lengths },
	{ "a flood", test_flood },
	{ "versions, and a word at the start", test_versions },
	{ "an account", test_account },
	{ "changes", test_changes },
	{ "what it is and uses", test_stats },
	{ "a command is lost", test_command_lost },
	{ "out of time", test_out_of_time },
	{ "a monitor is started", test_open },
	{ "a monitor that does not get ready", test_slow_open },
	{ "names of errors", test_codes },
	{ "sizes of structs", test_layout },
};

int main(int argc, char **argv)
{
	if (argc > 1 && str_is(argv[1], "monitor"))
		return be_monitor(argc, argv);
	CHECK(readlink("/proc/self/exe", own_path, sizeof own_path - 1) > 0);
	return tap_main(tests, ARRAY_SIZE(tests));
}
