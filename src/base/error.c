/*
 * The one place where an error sentence is made. vsnprintf() into the caller's
 * array is the whole mechanism: no allocation, no locale, no errno lookup here
 * beyond "%m", which glibc and musl expand themselves.
 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

int csn_fail(struct csn_error *err, int code, const char *stage, const char *format, ...)
{
	va_list args;

	assert(code < 0);
	if (!err)
		return code;
	err->code = -code;
	snprintf(err->stage, sizeof err->stage, "%s", stage);
	va_start(args, format);
	vsnprintf(err->text, sizeof err->text, format, args);
	va_end(args);
	return code;
}
