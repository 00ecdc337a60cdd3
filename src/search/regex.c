/*
 * Three ways to the next line, the fastest that gives the right answer; see regex.h:
 *
 *   the expression is a plain text      find it: that is the line
 *   every match holds a plain text      find it, ask the expression about that line
 *   it may scan                         run it over all that is there, then ask about the line
 *   else                                ask about each line
 *
 * Scanning skips no line: what matches a line alone also matches at that place in the whole, for
 * all expressions that literal.c lets scan, and the engine reports the leftmost match.
 *
 * Compiled to machine code, expressions run two to twenty times as fast. That takes memory which is
 * written, then executed; where a machine refuses it, the interpreter does the same work.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "search/regex.h"

#include <pcre2.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

static pcre2_match_context *new_limits(uint32_t steps, pcre2_jit_stack *stack)
{
	pcre2_match_context *limits = pcre2_match_context_create(NULL);

	if (!limits)
		return NULL;
	pcre2_set_match_limit(limits, steps);
	pcre2_set_heap_limit(limits, REGEX_HEAP_KIB);
	pcre2_jit_stack_assign(limits, NULL, stack);
	return limits;
}

static int refuse_pattern(struct refusal *refusal, int error, size_t at)
{
	PCRE2_UCHAR8 text[256];

	if (pcre2_get_error_message(error, text, sizeof text) < 0)
		text[0] = 0;
	return refuse(refusal, "invalid_regex", "byte %zu: %s", at, (const char *)text);
}

static int compile(struct regex *regex, const char *pattern, uint32_t options,
		   struct refusal *refusal)
{
	const uint32_t unicode = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF;
	bool is_utf8 = str_is_utf8(pattern, strlen(pattern));
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	int error = PCRE2_ERROR_NOMEMORY, ignored;
	size_t at = 0, nowhere;

	if (context) {
		pcre2_set_newline(context, PCRE2_NEWLINE_LF);
		regex->code =
			pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern),
				      options | (is_utf8 ? unicode : 0), &error, &at, context);
	}
	if (regex->code && is_utf8)
		regex->plain = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern), options,
					     &ignored, &nowhere, context);
	pcre2_compile_context_free(context);
	return regex->code ? 0 : refuse_pattern(refusal, error, at);
}

int regex_init(struct regex *regex, const char *pattern, bool is_caseless, struct refusal *refusal)
{
	uint32_t options = PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
	size_t newline = strcspn(pattern, "\n");

	*regex = (struct regex){ 0 };
	if (pattern[newline])
		return refuse(refusal, "invalid_regex", "byte %zu: no line holds a newline",
			      newline);
	if (compile(regex, pattern, options | (is_caseless ? PCRE2_CASELESS : 0), refusal) < 0)
		return -1;
	pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
	if (regex->plain)
		pcre2_jit_compile(regex->plain, PCRE2_JIT_COMPLETE);
	regex->data = pcre2_match_data_create(1, NULL);
	regex->stack = pcre2_jit_stack_create(32 << 10, REGEX_STACK, NULL);
	regex->limits = new_limits(REGEX_STEPS, regex->stack);
	regex->scan_limits = new_limits(REGEX_SCAN_STEPS, regex->stack);
	if (!regex->data || !regex->stack || !regex->limits || !regex->scan_limits)
		return refuse(refusal, "enomem", "out of memory");
	literal_read(pattern, &regex->literal);
	if (is_caseless) {
		regex->literal.size = 0;
		regex->literal.is_whole = false;
	}
	return 0;
}

void regex_done(struct regex *regex)
{
	pcre2_match_context_free(regex->limits);
	pcre2_match_context_free(regex->scan_limits);
	pcre2_match_data_free(regex->data);
	pcre2_jit_stack_free(regex->stack);
	pcre2_code_free(regex->code);
	pcre2_code_free(regex->plain);
}

/* Sets the line that holds offset `at`; a newline belongs to the line it ends. */
static void find_line(struct regex_text *text, size_t at)
{
	const char *begin = memrchr(text->data + text->from, '\n', at - text->from);
	const char *end = memchr(text->data + at, '\n', text->size - at);

	text->begin = begin ? (size_t)(begin - text->data) + 1 : text->from;
	text->end = end ? (size_t)(end - text->data) : text->size;
}

static bool is_ascii(const char *data, size_t size)
{
	unsigned char all = 0;

	for (size_t i = 0; i < size; i++)
		all |= (unsigned char)data[i];
	return all < 0x80;
}

static int match(const struct regex *regex, const char *data, size_t size, void *limits)
{
	const void *code = regex->plain && is_ascii(data, size) ? regex->plain : regex->code;

	return pcre2_match(code, (PCRE2_SPTR)data, size, 0, 0, regex->data, limits);
}

/* 1, 0, or -1: a bound was reached. */
static int ask(const struct regex *regex, const struct regex_text *text)
{
	int r = match(regex, text->data + text->begin, text->end - text->begin, regex->limits);

	return r >= 0 ? 1 : r == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

/* The offset of the next place worth asking about; SIZE_MAX: there is none. */
static size_t next_place(struct regex *regex, const struct regex_text *text)
{
	const char *from = text->data + text->from, *found;
	int r;

	if (regex->literal.size > 0) {
		found = literal_find(&regex->literal, from, text->size - text->from);
		return found ? (size_t)(found - text->data) : SIZE_MAX;
	}
	if (!regex->literal.may_scan)
		return text->from;
	r = match(regex, from, text->size - text->from, regex->scan_limits);
	if (r == PCRE2_ERROR_NOMATCH)
		return SIZE_MAX;
	if (r < 0) { /* too much at once: from here on line by line */
		regex->literal.may_scan = false;
		return text->from;
	}
	return text->from + pcre2_get_ovector_pointer(regex->data)[0];
}

int regex_next(struct regex *regex, struct regex_text *text)
{
	while (text->from < text->size) {
		size_t at = next_place(regex, text);
		int r;

		if (at >= text->size)
			return 0;
		find_line(text, at);
		r = regex->literal.is_whole ? 1 : ask(regex, text);
		text->from = text->end + 1;
		if (r != 0)
			return r;
	}
	return 0;
}
