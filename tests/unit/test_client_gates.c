/*
 * Gates as functions of the host's, by a real monitor and by a hostile one: what a function is
 * given, what its answer becomes, and that neither a slow one, a flood nor the end of either side
 * costs more than it should.
 */
#include "base/buf.h"
#include "base/str.h"
#include "client_agent.h"
#include "wire/frame.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

enum { WAIT_S = 60, RESULT_MAX = 256 << 10 };

static csn_sandbox *sandbox;
static csn_error err;
static char caisson[4096];
static char folder[] = "/tmp/caisson-gates-XXXXXX"; /* the workspace */

/* ---- functions ------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static int running, most, calls;
static bool is_held; /* `hold` waits while this is set */

static struct timespec soon(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_S;
	return end;
}

static void enter(void)
{
	pthread_mutex_lock(&lock);
	calls++;
	running++;
	most = running > most ? running : most;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&lock);
}

static void leave(void)
{
	pthread_mutex_lock(&lock);
	running--;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&lock);
}

/* Until so many calls have begun. */
static void wait_calls(int count)
{
	struct timespec end = soon();

	pthread_mutex_lock(&lock);
	while (calls < count)
		CHECK(pthread_cond_timedwait(&news, &lock, &end) == 0);
	pthread_mutex_unlock(&lock);
}

static void hold_them(bool held)
{
	pthread_mutex_lock(&lock);
	is_held = held;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&lock);
}

static int on_echo(void *data, const char *args, size_t size, csn_gate_call *call)
{
	(void)data;
	CHECK(strlen(args) == size);
	enter();
	usleep(1000);
	leave();
	return csn_gate_answer(call, args, size);
}

static int on_hold(void *data, const char *args, size_t size, csn_gate_call *call)
{
	struct timespec end = soon();

	(void)data;
	(void)size;
	(void)args;
	enter();
	pthread_mutex_lock(&lock);
	while (is_held)
		CHECK(pthread_cond_timedwait(&news, &lock, &end) == 0);
	pthread_mutex_unlock(&lock);
	leave();
	return csn_gate_answer(call, "held", 4);
}

static int on_refuse(void *data, const char *args, size_t size, csn_gate_call *call)
{
	(void)size;
	(void)args;
	CHECK(csn_gate_answer(call, "not this", 8) == 0);
	return csn_gate_refuse(call, data);
}

static int on_fail(void *data, const char *args, size_t size, csn_gate_call *call)
{
	(void)data;
	(void)size;
	(void)args;
	(void)call;
	return -CSN_ENOENT;
}

static int on_nothing(void *data, const char *args, size_t size, csn_gate_call *call)
{
	(void)data;
	(void)size;
	(void)args;
	(void)call;
	return 0;
}

static int on_big(void *data, const char *args, size_t size, csn_gate_call *call)
{
	size_t extra = strstr(args, "more") != NULL;
	char *bytes = malloc(RESULT_MAX + 1);
	int r;

	(void)data;
	(void)size;
	memset(bytes, 'b', RESULT_MAX + 1);
	r = csn_gate_answer(call, bytes, RESULT_MAX + extra);
	CHECK(r == (extra ? -CSN_E2BIG : 0));
	CHECK(csn_gate_answer(call, "x", 1) == -CSN_INVALID);
	free(bytes);
	return 0;
}

/* A verb of the same sandbox, while a call of it waits for this. */
static int on_verb(void *data, const char *args, size_t size, csn_gate_call *call)
{
	csn_exec_request request = { .command = "printf inner" };
	csn_exec_result *result;
	int r = csn_exec(sandbox, &request, &result, NULL);

	(void)data;
	(void)size;
	(void)args;
	if (r < 0)
		return r;
	r = csn_gate_answer(call, result->output.data, result->output.size);
	csn_free(result);
	return r;
}

static int verb_ended;

/* One that only the end of the sandbox ends. */
static int on_forever(void *data, const char *args, size_t size, csn_gate_call *call)
{
	csn_exec_request request = { .command = "sleep 1000" };
	csn_exec_result *result = NULL;

	(void)data;
	(void)size;
	(void)args;
	(void)call;
	enter();
	verb_ended = csn_exec(sandbox, &request, &result, NULL);
	csn_free(result);
	leave();
	return verb_ended;
}

static char sentence[] = "not today";
static const csn_gate gates[] = {
	{ .name = "echo",
	  .schema = "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"integer\"}}}",
	  .call = on_echo },
	{ .name = "hold", .call = on_hold },
	{ .name = "refuse", .call = on_refuse, .data = sentence },
	{ .name = "fail", .call = on_fail },
	{ .name = "nothing", .call = on_nothing },
	{ .name = "big", .call = on_big },
	{ .name = "verb", .call = on_verb },
	{ .name = "forever", .call = on_forever },
};

/* ---- a real monitor ------------------------------------------------------------------------- */

/* The policy's one %s is the workspace. */
static const char *write_policy(const char *format)
{
	static char path[sizeof folder + 8];
	FILE *file;

	snprintf(path, sizeof path, "%s.yaml", folder);
	file = fopen(path, "w");
	CHECK(file);
	for (const char *at = format; *at; at++) {
		if (at[0] == '%')
			fputs(folder, file);
		else if (at == format || at[-1] != '%')
			fputc(*at, file);
	}
	CHECK(fclose(file) == 0);
	return path;
}

/* NULL: without one. */
static void open_by(const char *policy)
{
	csn_options options = { .program = caisson,
				.workspace = folder,
				.no_record = true,
				.gates = gates,
				.gate_count = ARRAY_SIZE(gates) };

	alarm(2 * WAIT_S);
	program_path("src/cli/caisson", caisson, sizeof caisson);
	unsetenv("CAISSON_BACKEND");
	CHECK(mkdtemp(folder));
	options.policy = policy ? write_policy(policy) : NULL;
	sandbox = csn_open(&options, &err);
	if (policy)
		unlink(options.policy);
	if (!sandbox)
		printf("# %s: %s\n", csn_code_name(err.code), err.text);
	if (!sandbox && err.code == CSN_TIER_UNAVAILABLE)
		SKIP("a wall: there is none here");
	CHECK(sandbox);
}

static void shut(void)
{
	csn_close(sandbox);
	CHECK(rmdir(folder) == 0);
}

/* What a command said on both streams, and its status; the text is freed with the process. */
static const char *say(const char *command, int *ret_status)
{
	csn_exec_request request = { .command = command };
	csn_exec_result *result;
	int r = csn_exec(sandbox, &request, &result, &err);
	char *text;

	if (r < 0)
		printf("# %s: %s\n", command, err.text);
	CHECK(r == 0);
	*ret_status = result->exit_code;
	text = strdup(result->output.size ? result->output.data : result->errors.data);
	csn_free(result);
	return text;
}

static void answers(void)
{
	int status;

	open_by(NULL);
	CHECK_STR(say("caisson-gate echo '{\"id\": 7}'", &status), "{\"id\":7}");
	CHECK(status == 0);
	CHECK_STR(say("caisson-gate nothing", &status), "");
	CHECK(status == 0);
	CHECK(strstr(say("caisson-gate refuse", &status), "not today") && status == 1);
	CHECK(strstr(say("caisson-gate fail", &status), "enoent") && status == 1);
	CHECK(strstr(say("caisson-gate echo '{\"id\": \"x\"}'", &status), "id") && status == 1);
	CHECK(strstr(say("caisson-gate other", &status), "unknown gate: other") && status == 1);
	CHECK_STR(say("caisson-gate big | wc -c", &status), "262144\n");
	CHECK(strstr(say("caisson-gate big '{\"more\": 1}'", &status), "longer than 262144"));
	CHECK(status == 1);
	CHECK_STR(say("caisson-gate verb", &status), "inner");
	shut();
}

static void *hold_one(void *data)
{
	int status;

	(void)data;
	CHECK(strstr(say("caisson-gate hold", &status), "held") && status == 0);
	return NULL;
}

/* While one function runs another call of a gate waits, and every other call goes on. */
static void two_at_once(void)
{
	pthread_t threads[2];
	int status;

	open_by(NULL);
	hold_them(true);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, hold_one, NULL) == 0);
	wait_calls(1);
	CHECK_STR(say("printf on", &status), "on");
	hold_them(false);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(calls == 2 && most == 1);
	shut();
}

/* More than run at once, and nobody is left without an answer. */
static void flood(void)
{
	int status;

	open_by(NULL);
	CHECK_STR(say("for i in $(seq 40); do while ! caisson-gate echo \"{\\\"id\\\": $i}\" "
		      ">>/tmp/out 2>/dev/null; do sleep 0.05; done & done; wait; "
		      "tr '}' '\\n' </tmp/out | grep -c id",
		      &status),
		  "40\n");
	CHECK(calls == 40 && most == 1);
	shut();
}

/* Nobody reads but the thread of gates: the command that asks was detached. */
static void alone(void)
{
	csn_exec_request request = { .command = "caisson-gate echo", .detach = true, .tag = "a" };
	csn_exec_result *result;

	open_by(NULL);
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	csn_free(result);
	wait_calls(1);
	shut();
}

/* An answer that comes when the gate's time is over goes nowhere; the next is its own. */
static void late(void)
{
	int status;

	open_by("version: 1\nworkspace: {path: %s}\ngates: [{name: hold, timeout: 300ms}, echo, "
		"refuse, fail, nothing, big, verb, forever]\n");
	hold_them(true);
	CHECK(strstr(say("caisson-gate hold", &status), "took too long") && status == 1);
	hold_them(false);
	CHECK_STR(say("caisson-gate echo '{\"id\": 2}'", &status), "{\"id\":2}");
	shut();
}

/* A function that waits for a call of its own does not hold up the end. */
static void close_meanwhile(void)
{
	csn_exec_request request = { .command = "caisson-gate forever",
				     .detach = true,
				     .tag = "a" };
	csn_exec_result *result;

	open_by(NULL);
	CHECK(csn_exec(sandbox, &request, &result, &err) == 0);
	csn_free(result);
	wait_calls(1);
	shut();
	CHECK(running == 0 && verb_ended == -CSN_LOST);
}

/* A child of the host's closes what it got of it; the sandbox and its gates go on. */
static void forked(void)
{
	int status;
	pid_t pid;

	open_by(NULL);
	pid = fork();
	if (pid == 0) {
		csn_close(sandbox);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_STR(say("caisson-gate echo", &status), "{}");
	shut();
}

/* Nothing is started for what is none. */
static void no_gates(void)
{
	csn_gate odd[] = { { .name = "a=b", .call = on_echo },
			   { .name = "a" },
			   { .call = on_echo } };
	csn_gate bad = { .name = "a", .schema = "{\"type\": 3}", .call = on_echo };
	csn_options options = { .program = caisson, .no_record = true, .gate_count = 1 };

	program_path("src/cli/caisson", caisson, sizeof caisson);
	CHECK(!csn_open(&options, &err) && err.code == CSN_INVALID);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		options.gates = &odd[i];
		CHECK(!csn_open(&options, &err) && err.code == CSN_INVALID);
	}
	options.gates = &bad;
	CHECK(!csn_open(&options, &err));
	printf("# %s\n", err.text);
	CHECK(strstr(err.text, "schema") || strstr(err.text, "type"));
}

/* ---- a monitor that is not ours ------------------------------------------------------------- */

enum { FLOOD = 300, QUEUED = 64 };

static char own_path[4096];

static void put(struct buf *out, struct emit *emit)
{
	CHECK(emit_end(emit) == 0);
	for (size_t sent = 0; sent < buf_size(out);) {
		ssize_t n = write(3, (const char *)buf_at(out) + sent, buf_size(out) - sent);

		CHECK(n > 0);
		sent += (size_t)n;
	}
	buf_clear(out);
}

static void put_ready(struct buf *out)
{
	struct emit emit = emit_begin(out);

	emit_tuple(&emit, 2);
	emit_atom(&emit, "ready");
	emit_map(&emit, 3);
	emit_atom(&emit, "version");
	emit_int(&emit, 1);
	emit_atom(&emit, "enforces");
	emit_nil(&emit);
	emit_atom(&emit, "verbs");
	emit_list(&emit, 1);
	emit_atom(&emit, "exec");
	emit_nil(&emit);
	put(out, &emit);
}

static void put_call(struct buf *out, int64_t ref, const char *name)
{
	struct emit emit = emit_begin(out);

	emit_tuple(&emit, 4);
	emit_atom(&emit, "gate_call");
	emit_int(&emit, ref);
	emit_text(&emit, name);
	emit_text(&emit, "{}");
	put(out, &emit);
}

static void put_bye(struct buf *out, const char *reason)
{
	struct emit emit = emit_begin(out);

	emit_tuple(&emit, 2);
	emit_atom(&emit, "bye");
	emit_map(&emit, 1);
	emit_atom(&emit, "reason");
	emit_text(&emit, reason);
	put(out, &emit);
}

/* Reads until `text` came so often. */
static void read_until(const char *text, int count)
{
	size_t size = strlen(text), matched = 0;
	char bytes[4096];

	while (count > 0) {
		ssize_t n = read(3, bytes, sizeof bytes);

		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++) {
			matched = bytes[i] == text[matched] ? matched + 1 : bytes[i] == text[0];
			if (matched < size)
				continue;
			count--;
			matched = 0;
		}
	}
}

/* This program as `caisson monitor --fd 3 --backend WHAT`: it calls gates as none would. */
static int be_monitor(const char *what)
{
	_cleanup_buf_ struct buf out;

	alarm(WAIT_S);
	buf_init(&out, 1 << 20);
	put_ready(&out);
	if (str_is(what, "flood")) {
		for (int i = 1; i <= FLOOD; i++)
			put_call(&out, i, "hold");
		read_until("ask again", FLOOD - QUEUED - 1);
		put_bye(&out, "each was answered");
	} else {
		put_call(&out, 1, what);
		read_until("never", 1);
	}
	return 0;
}

static void open_hostile(const char *what, size_t gate_count)
{
	csn_options options = { .program = own_path,
				.backend = what,
				.gates = gate_count ? gates : NULL,
				.gate_count = gate_count };
	csn_exec_request request = { .command = "true" };
	csn_exec_result *result;

	alarm(2 * WAIT_S);
	sandbox = csn_open(&options, &err);
	if (sandbox) /* else it came with `ready` */
		CHECK(csn_exec(sandbox, &request, &result, &err) == -CSN_LOST);
	CHECK(err.code == CSN_LOST);
	printf("# %s\n", err.text);
}

static void hostile(void)
{
	hold_them(true);
	open_hostile("flood", ARRAY_SIZE(gates));
	CHECK_STR(err.text, "each was answered");
	hold_them(false);
	csn_close(sandbox);
	CHECK(running == 0 && calls <= 1);
	open_hostile("nobody", ARRAY_SIZE(gates)); /* was not offered */
	CHECK(strstr(err.text, "gate_call came out of turn"));
	csn_close(sandbox);
	open_hostile("echo", 0); /* nor was any */
	CHECK(strstr(err.text, "gate_call came out of turn"));
	csn_close(sandbox);
}

static void sizes(void)
{
	if (sizeof(void *) != 8)
		SKIP("lp64: sizes are written down for it");
	CHECK(sizeof(csn_gate) == 64 && sizeof(csn_options) == 184);
}

static const struct tap_test tests[] = {
	{ "answers", answers },
	{ "two at once", two_at_once },
	{ "a flood", flood },
	{ "no call is under way", alone },
	{ "late", late },
	{ "closed meanwhile", close_meanwhile },
	{ "a fork", forked },
	{ "what is no gate", no_gates },
	{ "a hostile monitor", hostile },
	{ "sizes of structs", sizes },
};

int main(int argc, char **argv)
{
	if (argc > 5 && str_is(argv[1], "monitor"))
		return be_monitor(argv[5]);
	CHECK(readlink("/proc/self/exe", own_path, sizeof own_path - 1) > 0);
	return tap_main(tests, ARRAY_SIZE(tests));
}
