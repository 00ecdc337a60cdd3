/*
 * What a fact is called, how it becomes text and JSON, and which noise is expected.
 *
 * The texts in a fact were chosen by untrusted code: names of files, programs, hosts. They
 * are cleaned when they are taken over (fact_text), so that neither a terminal nor a JSON
 * reader can be steered by them. The sentence for a model is made in fact_say.c.
 */
#include "monitor/fact.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

static const struct {
	const char *name;
	bool may_kill; /* the others end a run by themselves, or never do */
} events[FACT_EVENT_COUNT] = {
	[FACT_NETWORK_ACCESS] = { "NetworkAccessViolation", true },
	[FACT_FILESYSTEM_WRITE] = { "FilesystemWriteViolation", true },
	[FACT_FILESYSTEM_READ] = { "FilesystemReadViolation", true },
	[FACT_TIMEOUT] = { "TimeoutViolation", false },
	[FACT_PROCESS_LIMIT] = { "ProcessLimitViolation", true },
	[FACT_SYSCALL] = { "SyscallViolation", true },
	[FACT_MEMORY_LIMIT] = { "MemoryLimitViolation", false },
	[FACT_OUTPUT_LIMIT] = { "OutputLimitViolation", false },
	[FACT_SCRATCH_LIMIT] = { "ScratchLimitViolation", true },
	[FACT_STRICT_UNAVAILABLE] = { "StrictModeUnavailable", false },
	[FACT_STRICT_REQUIRED] = { "StrictModeRequired", false },
	[FACT_POLICY_OVERRIDE] = { "PolicyOverride", false },
};

static const char *const sources[SOURCE_COUNT] = {
	[SOURCE_SECCOMP] = "seccomp", [SOURCE_LANDLOCK] = "landlock", [SOURCE_CGROUP] = "cgroup",
	[SOURCE_PROXY] = "proxy",     [SOURCE_CLOCK] = "clock",       [SOURCE_COUNTER] = "counter",
	[SOURCE_MONITOR] = "monitor", [SOURCE_AGENT] = "agent",       [SOURCE_GUEST] = "guest",
};

const char *fact_event_name(enum fact_event event)
{
	return (unsigned)event < FACT_EVENT_COUNT ? events[event].name : "unknown";
}

const char *fact_source_name(enum fact_source source)
{
	return (unsigned)source < SOURCE_COUNT ? sources[source] : "unknown";
}

bool fact_event_may_kill(enum fact_event event)
{
	return (unsigned)event < FACT_EVENT_COUNT && events[event].may_kill;
}

void fact_init(struct fact *ret_fact, enum fact_event event, enum fact_source source)
{
	memset(ret_fact, 0, sizeof *ret_fact);
	ret_fact->event = event;
	ret_fact->source = source;
	ret_fact->count = 1;
	ret_fact->is_certain = true;
}

/* How many bytes the character at `at` has: 0 if it is not one that may be shown. */
static size_t character(const unsigned char *at, size_t left)
{
	size_t size = *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;

	if (*at < 0x20 || *at == 0x7f || size > left || !str_is_utf8(at, size))
		return 0;
	/* U+0080 .. U+009F are control characters too: some terminals obey them. */
	if (at[0] == 0xc2 && at[1] < 0xa0)
		return 0;
	return size;
}

void fact_text(char *ret_text, size_t size, const void *data, size_t length)
{
	static const char more[] = "...";
	const unsigned char *at = data;
	size_t room = size - sizeof more, done = 0, i = 0;

	while (i < length && at[i]) {
		size_t n = character(at + i, length - i);

		if (done + (n ? n : 1) > room) {
			memcpy(ret_text + done, more, sizeof more);
			return;
		}
		if (n)
			memcpy(ret_text + done, at + i, n);
		else
			ret_text[done] = '?';
		done += n ? n : 1;
		i += n ? n : 1;
	}
	ret_text[done] = 0;
}

void fact_print(char *ret_text, size_t size, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fact_text(ret_text, size, text, strlen(text));
}

/* Is `name` one of the components of `path`? */
static bool has_component(const char *path, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = path; (at = strstr(at, name)); at++) {
		if ((at == path || at[-1] == '/') && (at[length] == 0 || at[length] == '/'))
			return true;
	}
	return false;
}

void fact_mark_expected(struct fact *fact)
{
	static const char *const noise[] = { "__pycache__", ".pytest_cache", "index.lock" };

	if (fact->event != FACT_FILESYSTEM_WRITE)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(noise); i++) {
		if (has_component(fact->detail.path, noise[i]))
			fact->is_expected = true;
	}
}

/*
 * Two registers tell what was asked (a socket's family, an ioctl's number); later ones are
 * pointers or, beyond the call's own arguments, whatever was left there, so every call of a
 * loop would differ.
 */
static bool same_args(const struct fact_detail *a, const struct fact_detail *b)
{
	return a->has_args == b->has_args &&
	       (!a->has_args || (a->args[0] == b->args[0] && a->args[1] == b->args[1]));
}

bool fact_is_same(const struct fact *a, const struct fact *b)
{
	const struct fact_detail *x = &a->detail, *y = &b->detail;

	return a->event == b->event && a->source == b->source && x->port == y->port &&
	       x->path_unknown == y->path_unknown && str_is(x->path, y->path) &&
	       str_is(x->syscall, y->syscall) && str_is(a->comm, b->comm) && str_is(x->to, y->to) &&
	       str_is(x->address, y->address) && str_is(x->host, y->host) &&
	       str_is(x->text, y->text) && same_args(x, y);
}

/* Every text that becomes JSON goes through here; false: out of memory. */
static bool put_text(json_t *object, const char *key, const char *text,
		     const struct redactor *redactor)
{
	if (!*text)
		return true;
	return json_object_set_new(object, key,
				   redactor ? redact_text(redactor, text, strlen(text))
					    : json_string(text)) == 0;
}

static bool put_time(json_t *object, const char *key, int64_t wall_ms)
{
	char text[CLOCK_TEXT];

	clock_format(wall_ms, text);
	return json_object_set_new(object, key, json_string(text)) == 0;
}

/* Registers as text: JSON readers lose bits of large numbers. */
static bool put_args(json_t *object, const struct fact_detail *detail)
{
	json_t *args = json_array();
	bool is_good = args != NULL;

	for (size_t i = 0; i < ARRAY_SIZE(detail->args); i++) {
		char text[24];

		snprintf(text, sizeof text, "0x%llx", (unsigned long long)detail->args[i]);
		is_good = is_good && json_array_append_new(args, json_string(text)) == 0;
	}
	if (!is_good) {
		json_decref(args);
		return false;
	}
	return json_object_set_new(object, "args", args) == 0;
}

static bool fill_detail(json_t *object, const struct fact_detail *detail,
			const struct redactor *redactor)
{
	const struct {
		const char *key, *text;
	} texts[] = {
		{ "syscall", detail->syscall }, { "path", detail->path }, { "to", detail->to },
		{ "address", detail->address }, { "host", detail->host }, { "text", detail->text },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!put_text(object, texts[i].key, texts[i].text, redactor))
			return false;
	}
	if (detail->path_unknown && json_object_set_new(object, "path", json_null()) < 0)
		return false;
	if (detail->port && json_object_set_new(object, "port", json_integer(detail->port)) < 0)
		return false;
	return !detail->has_args || put_args(object, detail);
}

static bool fill_texts(json_t *object, const struct fact *fact, const struct redactor *redactor)
{
	return put_text(object, "event", fact_event_name(fact->event), NULL) &&
	       put_text(object, "source", fact_source_name(fact->source), NULL) &&
	       put_text(object, "comm", fact->comm, redactor) &&
	       put_text(object, "rule", fact->rule, redactor) &&
	       put_text(object, "say", fact->say, redactor);
}

static bool fill_numbers(json_t *object, const struct fact *fact)
{
	if (fact->count > 1 && !put_time(object, "last_time", fact->last_ms))
		return false;
	if (fact->is_expected && json_object_set_new(object, "expected", json_true()) < 0)
		return false;
	return put_time(object, "time", fact->time_ms) &&
	       json_object_set_new(object, "pid",
				   fact->pid ? json_integer(fact->pid) : json_null()) == 0 &&
	       json_object_set_new(object, "count", json_integer((json_int_t)fact->count)) == 0 &&
	       json_object_set_new(object, "certain", json_boolean(fact->is_certain)) == 0;
}

static bool fill(json_t *object, const struct fact *fact, const struct redactor *redactor)
{
	json_t *detail = json_object();

	return json_object_set_new(object, "detail", detail) == 0 &&
	       fill_detail(detail, &fact->detail, redactor) && fill_texts(object, fact, redactor) &&
	       fill_numbers(object, fact);
}

json_t *fact_json(const struct fact *fact, const struct redactor *redactor)
{
	json_t *object = json_object();

	if (object && !fill(object, fact, redactor)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

void fact_timeout(struct fact *ret_fact, const char *clock, uint64_t limit_ms)
{
	char limit[32];

	fact_init(ret_fact, FACT_TIMEOUT, SOURCE_CLOCK);
	str_format_duration(limit_ms, limit, sizeof limit);
	ret_fact->detail.limit_ms = limit_ms;
	fact_print(ret_fact->rule, sizeof ret_fact->rule, "limits.%s: %s", clock, limit);
	fact_print(ret_fact->detail.text, sizeof ret_fact->detail.text, "%s", clock);
}

void fact_output_limit(struct fact *ret_fact, uint64_t limit_bytes)
{
	char limit[32];

	fact_init(ret_fact, FACT_OUTPUT_LIMIT, SOURCE_COUNTER);
	str_format_size(limit_bytes, limit, sizeof limit);
	fact_print(ret_fact->rule, sizeof ret_fact->rule, "limits.output");
	fact_print(ret_fact->detail.text, sizeof ret_fact->detail.text, "limit %s", limit);
}
