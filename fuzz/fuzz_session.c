/* What an evaluator writes. The first byte says whether it was ready; the rest arrives in two
 * pieces. Every eval has one answer at most, and none comes twice. */
#include "medium/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int start(void *data, struct csn_error *err)
{
	(void)data;
	(void)err;
	return 0;
}

static void stop(void *data)
{
	(void)data;
}

static void gate(void *data, const struct term *name, const struct term *args)
{
	(void)data;
	(void)name;
	(void)args;
}

static void answer(void *data, const struct session_answer *what)
{
	(void)what;
	if (++*(int *)data > 1)
		__builtin_trap();
}

static void emit_env(void *data, struct emit *emit)
{
	(void)data;
	emit_map(emit, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int answers = 0;
	const struct session_host host = { start, stop, gate, answer, emit_env, &answers };
	struct session *session = session_new(&host);

	if (!session || size == 0)
		goto out;
	session_eval(session, &(struct session_order){ .ref = 1, .code = "x", .size = 1 }, 0, NULL);
	if (data[0] & 1)
		session_input(session, "\0\0\0\10\203w\5ready", 12, 1);
	session_input(session, data + 1, (size - 1) / 2, 1);
	session_input(session, data + 1 + (size - 1) / 2, size - 1 - (size - 1) / 2, 1);
	session_clock(session, 60000);
	if (answers != 1)
		__builtin_trap();
out:
	session_free(session);
	return 0;
}
