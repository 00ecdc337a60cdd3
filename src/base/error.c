/*
 * The one place where an error sentence is made: vsnprintf() into an array, no allocation, no
 * locale, no errno lookup here beyond "%m", which glibc and musl expand themselves.
 *
 * A sentence often carries a name that untrusted code has chosen. It is escaped here, so that
 * whoever prints, logs or sends it on has nothing to remember: one that forgot would let a file's
 * name move the reader's cursor, or begin a line that looks like ours. tests/unit/test_error.c
 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/str.h"

__attribute__((format(printf, 3, 0))) static void say(struct csn_error *err, bool keeps_lines,
						      const char *format, va_list args)
{
	char text[sizeof err->text];

	vsnprintf(text, sizeof text, format, args);
	str_escape(text, keeps_lines, err->text, sizeof err->text);
}

int csn_fail(struct csn_error *err, int code, const char *stage, const char *format, ...)
{
	va_list args;

	assert(code < 0);
	if (!err)
		return code;
	va_start(args, format);
	say(err, false, format, args);
	va_end(args);
	err->code = -code;
	snprintf(err->stage, sizeof err->stage, "%s", stage);
	return code;
}

int csn_fail_lines(struct csn_error *err, int code, const char *stage, const char *format, ...)
{
	va_list args;

	assert(code < 0);
	if (!err)
		return code;
	va_start(args, format);
	say(err, true, format, args);
	va_end(args);
	err->code = -code;
	snprintf(err->stage, sizeof err->stage, "%s", stage);
	return code;
}
