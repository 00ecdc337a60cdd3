/* See refuse.h. The first reason is the cause; what fails after it is a consequence. */
#include "search/refuse.h"

#include <stdarg.h>
#include <stdio.h>

int refuse(struct refusal *refusal, const char *reason, const char *format, ...)
{
	va_list args;

	if (refusal->reason)
		return -1;
	refusal->reason = reason;
	va_start(args, format);
	vsnprintf(refusal->detail, sizeof refusal->detail, format, args);
	va_end(args);
	return -1;
}
