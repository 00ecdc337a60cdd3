/* The library's errors, as a table: number, name, errno. See code.h. */
#include "client/code.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/errno_name.h"
#include "base/str.h"

/* Those of errno are named in base/errno_name.c; a test compares. */
static const struct {
	enum csn_code code;
	int error;
} errors[] = {
	{ CSN_E2BIG, E2BIG },
	{ CSN_EACCES, EACCES },
	{ CSN_EAGAIN, EAGAIN },
	{ CSN_EBADF, EBADF },
	{ CSN_EBADMSG, EBADMSG },
	{ CSN_EBUSY, EBUSY },
	{ CSN_ECHILD, ECHILD },
	{ CSN_EDQUOT, EDQUOT },
	{ CSN_EEXIST, EEXIST },
	{ CSN_EFBIG, EFBIG },
	{ CSN_EINTR, EINTR },
	{ CSN_EINVAL, EINVAL },
	{ CSN_EIO, EIO },
	{ CSN_EISDIR, EISDIR },
	{ CSN_ELIBBAD, ELIBBAD },
	{ CSN_ELOOP, ELOOP },
	{ CSN_EMFILE, EMFILE },
	{ CSN_EMLINK, EMLINK },
	{ CSN_EMSGSIZE, EMSGSIZE },
	{ CSN_ENAMETOOLONG, ENAMETOOLONG },
	{ CSN_ENFILE, ENFILE },
	{ CSN_ENODEV, ENODEV },
	{ CSN_ENOENT, ENOENT },
	{ CSN_ENOEXEC, ENOEXEC },
	{ CSN_ENOMEM, ENOMEM },
	{ CSN_ENOSPC, ENOSPC },
	{ CSN_ENOSYS, ENOSYS },
	{ CSN_ENOTDIR, ENOTDIR },
	{ CSN_ENOTEMPTY, ENOTEMPTY },
	{ CSN_ENOTSUP, ENOTSUP },
	{ CSN_ENOTTY, ENOTTY },
	{ CSN_ENXIO, ENXIO },
	{ CSN_EOVERFLOW, EOVERFLOW },
	{ CSN_EPERM, EPERM },
	{ CSN_EPIPE, EPIPE },
	{ CSN_EPROTO, EPROTO },
	{ CSN_EROFS, EROFS },
	{ CSN_ESPIPE, ESPIPE },
	{ CSN_ESRCH, ESRCH },
	{ CSN_ESTALE, ESTALE },
	{ CSN_ETIMEDOUT, ETIMEDOUT },
	{ CSN_ETXTBSY, ETXTBSY },
	{ CSN_EXDEV, EXDEV },
};

static const struct {
	enum csn_code code;
	const char *name;
} names[] = {
	{ CSN_OK, "ok" },
	{ CSN_NOT_SUPPORTED, "not_supported" },
	{ CSN_INVALID, "invalid" },
	{ CSN_CANCELLED, "cancelled" },
	{ CSN_LOST, "lost" },
	{ CSN_INVALID_REGEX, "invalid_regex" },
	{ CSN_COMMAND_LOST, "command_lost" },
	{ CSN_MATCH_LIMIT, "match_limit" },
	{ CSN_INVALID_PATTERN, "invalid_pattern" },
	{ CSN_TIER_UNAVAILABLE, "TierUnavailable" },
	{ CSN_STRICT_UNAVAILABLE, "StrictModeUnavailable" },
	{ CSN_STRICT_REQUIRED, "StrictModeRequired" },
	{ CSN_APPROVAL_REQUIRED, "ApprovalRequired" },
	{ CSN_APPROVAL_DENIED, "ApprovalDenied" },
};

CSN_API const char *csn_code_name(int code)
{
	if (code < 0 && code > -1000)
		code = -code;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if ((int)names[i].code == code)
			return names[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if ((int)errors[i].code == code)
			return errno_name(errors[i].error);
	return "unknown";
}

CSN_API bool csn_is_refusal(const csn_error *error)
{
	bool is_policys = str_is(error->stage, "policy");

	switch (error->code) {
	case CSN_TIER_UNAVAILABLE:
	case CSN_STRICT_UNAVAILABLE:
	case CSN_STRICT_REQUIRED:
	case CSN_APPROVAL_REQUIRED:
	case CSN_APPROVAL_DENIED:
		return true;
	case CSN_EPERM:
	case CSN_EACCES:
		return is_policys;
	default:
		return false;
	}
}

enum csn_code code_of_errno(int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].error == error)
			return errors[i].code;
	return CSN_EIO;
}

enum csn_code code_of_name(const char *name)
{
	for (size_t i = 1; i < ARRAY_SIZE(names); i++)
		if (str_is(names[i].name, name))
			return names[i].code;
	if (str_is(name, "timeout"))
		return CSN_ETIMEDOUT;
	return code_of_errno(errno_number(name));
}

int code_fail(csn_error *err, enum csn_code code, const char *stage, const char *format, ...)
{
	char text[sizeof err->text];
	va_list args;

	if (!err)
		return -(int)code;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	err->code = (int)code;
	snprintf(err->stage, sizeof err->stage, "%s", stage);
	str_escape(text, false, err->text, sizeof err->text); /* csn_fail() says why */
	return -(int)code;
}

int code_pass(csn_error *err, enum csn_code code, const struct csn_error *below)
{
	return code_fail(err, code, below->stage, "%s", below->text);
}

void code_text(char *ret_text, size_t size, const void *data, size_t length)
{
	const uint8_t *at = data;
	size_t used = 0, step;
	unsigned code;

	for (; length > 0; at += step, length -= step) {
		bool is_good;

		step = str_safe_length(at, length);
		is_good = step > 0;
		if (!is_good)
			step = str_decode(at, length, &code);
		step = step > 0 ? step : 1;
		if (used + step + 1 > size)
			break;
		if (is_good)
			memcpy(ret_text + used, at, step);
		else
			ret_text[used] = '?';
		used += is_good ? step : 1;
	}
	ret_text[used] = 0;
}
