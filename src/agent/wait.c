/*
 * `wait`: until a command has ended, listens on a port, or has written a line. A job that is
 * stepped when the command has news, a port's also by a clock.
 *
 * Lines are a hostile program's, and the expression is the caller's: both are bounded. An
 * expression is a POSIX ERE without back references, whose repetitions multiply to a bound, so
 * that compiling it takes little and matching is linear (musl).
 */
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands.h"
#include "agent/port.h"
#include "base/clock.h"
#include "base/str.h"

enum {
	LINE = 4096, /* longer ones are looked at in pieces of it */
	PIECES = 8,  /* of a record each, a step */
	PORT_LOOK_MS = 50,
	REPEATS_MAX = 1000
};

enum purpose { FOR_EXIT, FOR_PORT, FOR_LINE, FOR_TEXT };

struct line {
	size_t size;
	char text[LINE + 1];
};

struct wait {
	struct job job;
	uint64_t id;
	uint64_t until_ms; /* CLOCK_NEVER */
	uint64_t next_ms;  /* step it then, whatever happens */
	enum purpose purpose;
	bool forgets;
	bool has_looked;
	uint16_t port;
	bool has_regex;
	regex_t regex;
	char *text; /* to be found, or NULL */
	struct ring_place place;
	struct line lines[STREAMS_OUTPUTS];
	const struct line *found;
};

uint64_t wait_next_ms(const struct job *job)
{
	return ((const struct wait *)job)->next_ms;
}

static void done(struct job *job)
{
	struct wait *wait = (struct wait *)job;

	if (wait->has_regex)
		regfree(&wait->regex);
	free(wait->text);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool matches(const struct wait *wait, struct line *line)
{
	size_t size = line->size;

	if (wait->purpose == FOR_TEXT)
		return memmem(line->text, size, wait->text, strlen(wait->text)) != NULL;
	if (size > 0 && line->text[size - 1] == '\r') /* a terminal's */
		size--;
	line->text[size] = 0;
	for (char *zero; (zero = memchr(line->text, 0, size));)
		*zero = ' ';
	return regexec(&wait->regex, line->text, 0, NULL, 0) == 0;
}

/* A line without its end counts too: a prompt has none. */
static bool take(struct wait *wait, struct line *line, const char *data, size_t size)
{
	while (size > 0) {
		const char *end = memchr(data, '\n', size);
		size_t n = end ? (size_t)(end - data) : size;
		size_t room = LINE - line->size, part = n < room ? n : room;

		memcpy(line->text + line->size, data, part);
		line->size += part;
		if (matches(wait, line)) {
			wait->found = line;
			return true;
		}
		if (line->size == LINE || (end && part == n))
			line->size = 0;
		part += end && part == n; /* the newline */
		data += part;
		size -= part;
	}
	return false;
}

/* JOB_OVER: found. JOB_WAITS: all was read. */
static enum job_state read_lines(struct wait *wait, const struct exec *exec)
{
	char data[RING_RECORD];

	for (int i = 0; i < PIECES; i++) {
		unsigned stream;
		size_t n = ring_read(&exec->ring, &wait->place, &stream, data, sizeof data);

		if (n == 0)
			return JOB_WAITS;
		if (take(wait, &wait->lines[stream], data, n))
			return JOB_OVER;
	}
	return JOB_AGAIN;
}

/* ---- the job --------------------------------------------------------------------------------- */

static enum job_state reply(struct agent *agent, const struct wait *wait, const struct exec *exec,
			    bool is_reached, bool is_late)
{
	bool is_over = commands_is_over(agent, exec);
	struct emit emit = agent_frame(agent);

	emit_tuple(&emit, 3);
	emit_atom(&emit, "reply");
	emit_int(&emit, wait->job.ref);
	emit_map(&emit, 5 + (wait->found != NULL));
	emit_atom(&emit, "reached");
	emit_bool(&emit, is_reached);
	emit_atom(&emit, "timed_out");
	emit_bool(&emit, is_late);
	emit_atom(&emit, "running");
	emit_bool(&emit, !is_over);
	exec_emit_status(&emit, exec);
	if (wait->found) {
		emit_atom(&emit, "line");
		emit_binary(&emit, wait->found->text, wait->found->size);
	}
	agent_send(agent, &emit);
	if (is_over && wait->forgets)
		commands_forget(agent, wait->id);
	return JOB_OVER;
}

/* JOB_OVER: what was waited for is there; JOB_WAITS: not yet; or a negative errno. */
static int look(struct agent *agent, struct wait *wait, const struct exec *exec)
{
	bool is_open;
	int r;

	if (wait->purpose == FOR_EXIT)
		return commands_is_over(agent, exec) ? JOB_OVER : JOB_WAITS;
	if (wait->purpose != FOR_PORT)
		return (int)read_lines(wait, exec);
	r = port_is_open(wait->port, &is_open);
	return r < 0 ? r : is_open ? JOB_OVER : JOB_WAITS;
}

static enum job_state step(struct agent *agent, struct job *job)
{
	struct wait *wait = (struct wait *)job;
	const struct exec *exec = commands_by_id(agent, wait->id);
	uint64_t now_ms = clock_now_ms();
	int r;

	/* A port is looked for by the clock: its command may write without a pause. */
	if (exec && wait->purpose == FOR_PORT && now_ms < wait->next_ms && wait->has_looked &&
	    !commands_is_over(agent, exec))
		return JOB_WAITS;
	wait->has_looked = true;
	r = exec ? look(agent, wait, exec) : -ENOENT;
	if (r == -ENOENT) {
		agent_fail(agent, job->ref, "enoent", "the command was forgotten meanwhile");
		return JOB_OVER;
	}
	if (r < 0) {
		agent_fail(agent, job->ref, "not_supported",
			   "nothing tells here who listens: no /proc/net/tcp, no loopback");
		return JOB_OVER;
	}
	if (r == JOB_OVER)
		return reply(agent, wait, exec, true, false);
	if (r == JOB_WAITS && commands_is_over(agent, exec))
		return reply(agent, wait, exec, false, false);
	if (now_ms >= wait->until_ms)
		return reply(agent, wait, exec, false, true);
	wait->next_ms = wait->purpose == FOR_PORT && now_ms + PORT_LOOK_MS < wait->until_ms
				? now_ms + PORT_LOOK_MS
				: wait->until_ms;
	return (enum job_state)r;
}

const struct job_type wait_type = { .step = step, .done = done };

/* ---- the call -------------------------------------------------------------------------------- */

/* The larger number of "m,n}", at most one more than is allowed. */
static unsigned repeats(const char *at)
{
	unsigned largest = 1, number = 0;

	for (; *at && *at != '}'; at++) {
		number = *at >= '0' && *at <= '9' ? number * 10 + (unsigned)(*at - '0') : 0;
		if (number > REPEATS_MAX)
			return REPEATS_MAX + 1;
		largest = number > largest ? number : largest;
	}
	return largest;
}

/* Back references are exponential where they exist, repetitions of repetitions are copies. */
static bool is_modest(const char *pattern)
{
	unsigned product = 1;

	for (; *pattern; pattern++) {
		if (*pattern == '\\' && pattern[1] >= '1' && pattern[1] <= '9')
			return false;
		if (*pattern == '\\' && pattern[1])
			pattern++;
		else if (*pattern == '{')
			product *= repeats(pattern + 1);
		if (product > REPEATS_MAX)
			return false;
	}
	return true;
}

static const char *take_pattern(struct wait *wait)
{
	if (!is_modest(wait->text))
		return "the expression has a back reference, or too many repetitions";
	wait->has_regex = regcomp(&wait->regex, wait->text, REG_EXTENDED | REG_NOSUB) == 0;
	return wait->has_regex ? NULL : "the expression is no POSIX extended one";
}

/* NULL, or why not. */
static const char *take_purpose(struct wait *wait, const struct term *map)
{
	const struct term *port = term_get(map, "port"), *line = term_get(map, "line");
	const struct term *text = term_get(map, "text");

	if (!!port + !!line + !!text > 1)
		return "port, line or text, one of them";
	if (port) {
		wait->purpose = FOR_PORT;
		wait->port = (uint16_t)port->integer;
	}
	if (!line && !text)
		return NULL;
	wait->purpose = line ? FOR_LINE : FOR_TEXT;
	line = line ? line : text;
	wait->text = strndup((const char *)line->bytes.data, line->bytes.size);
	if (!wait->text)
		return "the agent has no memory";
	return wait->purpose == FOR_LINE ? take_pattern(wait) : NULL;
}

void wait_start(struct agent *agent, const struct call *call)
{
	const struct term *timeout = term_get(call->map, "timeout_ms");
	const struct term *forget = term_get(call->map, "forget");
	struct exec *exec = commands_named(agent, call);
	struct wait *wait = exec ? job_new(agent, call, &wait_type, sizeof *wait) : NULL;
	struct csn_error err = { 0 };
	const char *why;

	if (!wait)
		return;
	wait->id = exec->id;
	wait->until_ms = timeout ? clock_now_ms() + (uint64_t)timeout->integer : CLOCK_NEVER;
	wait->forgets = forget && term_is_atom(forget, "true");
	why = take_purpose(wait, call->map);
	if (!exec->is_detached)
		why = "the command is another call's, which tells its end";
	if (why) {
		csn_fail(&err, -EINVAL, "wait", "%s", why);
		job_fail(agent, &wait->job, &err);
	}
}
