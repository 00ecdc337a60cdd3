/* A code session against evaluators that lie: every frame out of turn, too long, or malformed ends
 * that evaluator and the eval, and the next eval starts afresh with the last binding. */
#include "base/str.h"
#include "medium/session.h"
#include "tap.h"
#include "wire/frame.h"

#include <errno.h>

struct host {
	struct session *session;
	int started, stopped, answers, gates;
	bool is_good, is_done;
	char reason[160], value[64], gate[32];
};

static int start(void *data, struct csn_error *err)
{
	struct host *host = data;

	(void)err;
	host->started++;
	return 0;
}

static void stop(void *data)
{
	((struct host *)data)->stopped++;
}

static void gate(void *data, const struct term *name, const struct term *args)
{
	struct host *host = data;

	(void)args;
	host->gates++;
	snprintf(host->gate, sizeof host->gate, "%.*s", (int)name->bytes.size,
		 (const char *)name->bytes.data);
}

static void answer(void *data, const struct session_answer *what)
{
	struct host *host = data;

	host->answers++;
	host->is_good = what->value != NULL;
	host->is_done = what->is_done;
	if (what->value)
		term_print(what->value, host->value, sizeof host->value);
	snprintf(host->reason, sizeof host->reason, "%.*s", (int)what->reason.bytes.size,
		 (const char *)what->reason.bytes.data);
}

static void emit_env(void *data, struct emit *emit)
{
	(void)data;
	emit_map(emit, 0);
}

static void open_session(struct host *host)
{
	const struct session_host calls = { start, stop, gate, answer, emit_env, host };

	*host = (struct host){ 0 };
	host->session = session_new(&calls);
	CHECK(host->session);
}

static void eval(struct host *host, int64_t ref)
{
	struct session_order order = { .ref = ref, .code = "x", .size = 1, .timeout_ms = 1000 };

	CHECK(session_eval(host->session, &order, 0, NULL) == 0);
}

#define SAY(host, body) say((host), (body), sizeof(body) - 1)

/* A payload's body, after its version byte. */
static void say(struct host *host, const char *body, size_t size)
{
	char frame[256] = { 0, 0, (char)((size + 1) >> 8), (char)(size + 1), (char)131 };

	memcpy(frame + 5, body, size);
	/* Byte by byte: a frame may come in any pieces. */
	for (size_t i = 0; i < size + 5; i++)
		session_input(host->session, frame + i, 1, 10);
}

#define READY "w\5ready"
#define OK(ref, value) "h\6w\13eval_resulta" ref "t\0\0\0\0a" value "w\5falsem\0\0\0\0"

/* What was sent to the evaluator: does it contain these bytes? Forgotten then. */
static bool sent(struct host *host, const char *bytes, size_t size)
{
	struct buf *out = session_out(host->session);
	bool has = buf_size(out) && memmem(buf_at(out), buf_size(out), bytes, size);

	buf_clear(out);
	return has;
}

static void test_turns(void)
{
	struct host host;

	open_session(&host);
	eval(&host, 1);
	CHECK(host.started == 1 && sent(&host, "w\4init", 6));
	SAY(&host, READY);
	CHECK(sent(&host, "w\4evala\1m\0\0\0\1x", 14));
	SAY(&host, OK("\1", "\7"));
	CHECK(host.answers == 1 && host.is_good && !host.is_done);
	CHECK_STR(host.value, "7");
	eval(&host, 2);
	CHECK(host.started == 1);
	SAY(&host, "h\4w\11gate_calla\2m\0\0\0\4echol\0\0\0\1a\5j");
	CHECK(host.gates == 1 && host.answers == 1);
	CHECK_STR(host.gate, "echo");
	session_observe(host.session, "echo", &(struct term){ .type = TERM_INT, .integer = 5 },
			false);
	CHECK(sent(&host, "w\13gate_resulta\2", 15));
	SAY(&host, "h\6w\13eval_resulta\2t\0\0\0\0a\5w\4truem\0\0\0\0");
	CHECK(host.answers == 2 && host.is_done && host.stopped == 0);
	CHECK(session_eval(host.session, &(struct session_order){ .ref = 3 }, 0,
			   &(struct csn_error){ 0 }) == -ESTALE);
	session_free(host.session);
}

/* Each ends the evaluator, and says so. */
static void test_faults(void)
{
	static const struct {
		bool is_ready; /* said first */
		const char *body;
		size_t size;
	} table[] = {
#define FAULT(ready, text) { ready, text, sizeof(text) - 1 }
		FAULT(false, OK("\1", "\7")), /* before it was ready */
		FAULT(true, READY),           /* twice */
		FAULT(true, OK("\2", "\7")),  /* another Ref */
		FAULT(true, "h\6w\13eval_resultm\0\0\0\1xt\0\0\0\0a\7w\5falsem\0\0\0\0"),
		FAULT(true, "h\6w\13eval_resulta\1t\0\0\0\0a\7w\5maybem\0\0\0\0"),
		FAULT(true, "h\6w\13eval_resulta\1a\0a\7w\5falsem\0\0\0\0"), /* no binding */
		FAULT(true, "h\6w\13eval_resulta\1t\0\0\0\0a\7w\5falsea\0"), /* no output */
		FAULT(true, "h\6w\13eval_resulta\1t\0\0\0\0a\7w\5false"),    /* cut */
		FAULT(true, "h\5w\13eval_resulta\1t\0\0\0\0a\7w\5false"),    /* arity */
		FAULT(true, "h\4w\11gate_calla\2a\7j"), /* a name that is none */
		FAULT(true, "h\2w\4inita\1"),           /* ours */
		FAULT(true, "h\1w\7unknown"),
		FAULT(true, "a\1"),
		FAULT(true, ""),
		FAULT(true, "P\0\0\0\1x"), /* compressed */
		FAULT(true, "h\6w\13eval_resulta\1t\0\0\0\0l\377\377\377\377a\1"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct host host;

		open_session(&host);
		eval(&host, 1);
		if (table[i].is_ready)
			SAY(&host, READY);
		say(&host, table[i].body, table[i].size);
		if (host.answers != 1 || host.is_good || host.stopped != 1)
			printf("# row %zu: %d answers\n", i, host.answers);
		CHECK(host.answers == 1 && !host.is_good && host.stopped == 1);
		CHECK(str_starts(host.reason, "the evaluator broke the protocol: "));
		/* The session goes on. */
		eval(&host, 2);
		CHECK(host.started == 2);
		SAY(&host, READY);
		SAY(&host, OK("\2", "\7"));
		CHECK(host.answers == 2 && host.is_good);
		session_free(host.session);
	}
}

/* A length beyond any frame is refused before a byte of it is kept. */
static void test_length(void)
{
	struct host host;

	open_session(&host);
	eval(&host, 1);
	session_input(host.session, "\377\377\377\377", 4, 10);
	CHECK(host.answers == 1 && host.stopped == 1);
	session_free(host.session);
}

#define NEWS "h\2w\20gate_observationt\0\0\0\0"
#define TELEMETRY "h\4w\11telemetryjjj"

/* What asks for nothing is taken, in bounds: of one eval, its start included, and never between. */
static void test_news(void)
{
	struct host host;

	open_session(&host);
	for (int i = 1; i <= 2; i++) {
		eval(&host, i);
		if (i == 1)
			SAY(&host, READY);
		for (int news = 0; news < SESSION_NEWS; news += 2) {
			SAY(&host, NEWS);
			SAY(&host, TELEMETRY);
		}
		CHECK(host.answers == i - 1 && host.stopped == 0);
		if (i == 1)
			SAY(&host, OK("\1", "\7"));
	}
	SAY(&host, TELEMETRY); /* one too many */
	CHECK(host.answers == 2 && !host.is_good && host.stopped == 1);
	CHECK(str_starts(host.reason, "the evaluator broke the protocol: "));
	eval(&host, 3);
	SAY(&host, NEWS);
	SAY(&host, READY);
	SAY(&host, OK("\3", "\7"));
	CHECK(host.answers == 3 && host.is_good && host.stopped == 1);
	SAY(&host, NEWS); /* nothing was asked of it */
	CHECK(host.answers == 3 && host.stopped == 2 && !session_is_up(host.session));
	session_free(host.session);
}

static void test_gate_twice(void)
{
	struct host host;

	open_session(&host);
	eval(&host, 1);
	SAY(&host, READY);
	for (int i = 0; i < 2; i++)
		SAY(&host, "h\4w\11gate_calla\1m\0\0\0\4echoj");
	CHECK(host.gates == 1 && host.answers == 1 && host.stopped == 1);
	/* Too late: nobody waits. */
	session_observe(host.session, "echo", &(struct term){ .type = TERM_INT }, false);
	CHECK(buf_size(session_out(host.session)) == 0);
	session_free(host.session);
}

static void test_timeout(void)
{
	struct host host;

	open_session(&host);
	eval(&host, 1);
	SAY(&host, READY);
	SAY(&host, "h\6w\13eval_resulta\1t\0\0\0\1m\0\0\0\1va\11a\7w\5falsem\0\0\0\0");
	eval(&host, 2);
	CHECK(session_clock(host.session, 999) == 1000);
	/* Not armed again by a gate. */
	SAY(&host, "h\4w\11gate_calla\2m\0\0\0\4echoj");
	CHECK(session_clock(host.session, 999) == 1000);
	session_clock(host.session, 1000);
	CHECK(host.answers == 2 && host.stopped == 1);
	CHECK_STR(host.reason, SESSION_TIMED_OUT);
	eval(&host, 3);
	CHECK(host.started == 2 && sent(&host, "m\0\0\0\1va\11", 8)); /* its binding */
	/* The start has a clock of its own, of 5 s at least. */
	CHECK(session_clock(host.session, 4999) == 5000);
	session_clock(host.session, 5000);
	CHECK(host.answers == 3 && host.stopped == 2);
	session_free(host.session);
}

static void test_exit(void)
{
	struct host host;

	open_session(&host);
	eval(&host, 1);
	SAY(&host, READY);
	session_exited(host.session, "gone");
	CHECK(host.answers == 1 && host.stopped == 0);
	CHECK_STR(host.reason, "gone");
	SAY(&host, READY); /* of the dead one: nobody listens */
	CHECK(host.answers == 1);
	eval(&host, 2);
	SAY(&host, "h\2w\12init_errorm\0\0\0\3why");
	CHECK(host.answers == 2 && strstr(host.reason, "why"));
	session_free(host.session);
}

/* Whatever term the evaluator chose for a gate's Ref comes back as it was. */
static void test_foreign_ref(void)
{
	struct host host;

	open_session(&host);
	eval(&host, 1);
	SAY(&host, READY);
	SAY(&host, "h\4w\11gate_callh\2a\1a\2m\0\0\0\4echoj");
	CHECK(sent(&host, "eval", 4));
	session_observe(host.session, "echo", &(struct term){ .type = TERM_INT }, false);
	CHECK(sent(&host, "w\13gate_resulth\2a\1a\2", 19));
	session_free(host.session);
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "an eval, a gate, done", test_turns },
		{ "every lie ends the evaluator, not the session", test_faults },
		{ "an endless frame", test_length },
		{ "news, too much of it, and out of turn", test_news },
		{ "two gates at once", test_gate_twice },
		{ "the total, and the start", test_timeout },
		{ "an evaluator that ends", test_exit },
		{ "a Ref of the evaluator's", test_foreign_ref },
	};

	return tap_main(tests, ARRAY_SIZE(tests));
}
