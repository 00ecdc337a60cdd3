/* See call.h. */
#include "cli/call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/errno_name.h"
#include "base/fd.h"
#include "base/str.h"

int call_verb(const struct cli *cli, call_fn verb)
{
	return call_named(cli, cli->args[0], verb);
}

/* The errno that the library's code is named after; its own kinds have none. */
static int errno_of(int code)
{
	int number = errno_number(csn_code_name(code));

	return number ? -number : -EIO;
}

int call_named(const struct cli *cli, const char *name, call_fn verb)
{
	csn_error failure = { 0 };
	csn_sandbox *sandbox = csn_attach(name, &failure);
	int status = sandbox ? verb(cli, sandbox, &failure) : -1;

	csn_close(sandbox);
	return status < 0 ? call_failed(cli, &failure) : status;
}

int call_failed(const struct cli *cli, const csn_error *failure)
{
	struct csn_error err = { 0 };

	csn_fail(&err, errno_of(failure->code), failure->stage, "%s", failure->text);
	return str_is(err.stage, "usage") ? cli_misuse(cli, &err) : cli_fail(cli, &err);
}

int call_misuse(csn_error *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err->text, sizeof err->text, format, args);
	va_end(args);
	snprintf(err->stage, sizeof err->stage, "usage");
	err->code = CSN_INVALID;
	return -1;
}

int call_number(const char *flag, const char *text, uint64_t *ret_value, csn_error *err)
{
	if (text && str_parse_u64(text, INT64_MAX, ret_value) < 0)
		return call_misuse(err, "--%s takes a number, as --%s 100", flag, flag);
	return 0;
}

int call_time(const char *flag, const char *text, uint32_t *ret_ms, csn_error *err)
{
	uint64_t ms = 0;

	if (text && (str_parse_duration(text, &ms) < 0 || ms == 0 || ms > INT32_MAX))
		return call_misuse(err, "--%s takes a time, as --%s 45s; or 500ms, 3m", flag, flag);
	*ret_ms = (uint32_t)ms;
	return 0;
}

int call_output(void *data, enum csn_stream stream, const void *bytes, size_t size)
{
	(void)data;
	return fd_write_all(stream == CSN_STDERR ? STDERR_FILENO : STDOUT_FILENO, bytes, size);
}

ptrdiff_t call_input(void *data, void *ret_bytes, size_t size)
{
	ssize_t n;

	(void)data;
	do
		n = read(STDIN_FILENO, ret_bytes, size);
	while (n < 0 && errno == EINTR);
	return n;
}
