/* caisson cp: which side is which, and what both directions share; see cp.h. */
#include "cli/cp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/call.h"
#include "cli/out.h"
#include "os/sys.h"

enum { LEFT_TEXT = 16 << 10 };

/* ---- paths ---------------------------------------------------------------------------------- */

static bool add(char *path, const char *name)
{
	size_t length = strlen(path), more = strlen(name);
	bool has_slash = length > 0 && path[length - 1] == '/';

	if (length + !has_slash + more >= CP_PATH)
		return false;
	snprintf(path + length, CP_PATH - length, "%s%s", has_slash ? "" : "/", name);
	return true;
}

bool cp_enter(struct cp *cp, const char *name, struct cp_level *ret_level)
{
	const struct cp_level level = { strlen(cp->inside), strlen(cp->host) };

	if (cp->depth >= CP_DEPTH) {
		cp_say_inside(cp, "folders deeper than %d are not copied", CP_DEPTH);
		return false;
	}
	if (!add(cp->inside, name)) {
		cp_say_inside(cp, "a path beneath it is too long");
		return false;
	}
	add(cp->host, name); /* too long: it is only said */
	cp->depth++;
	*ret_level = level;
	return true;
}

void cp_leave(struct cp *cp, const struct cp_level *level)
{
	cp->inside[level->inside] = cp->host[level->host] = 0;
	cp->depth--;
}

void cp_last_name(const char *path, char *ret_name, size_t size)
{
	size_t length = strlen(path), start;

	while (length > 0 && path[length - 1] == '/')
		length--;
	for (start = length; start > 0 && path[start - 1] != '/';)
		start--;
	snprintf(ret_name, size, "%.*s", (int)(length - start), path + start);
	if (!*ret_name || str_is(ret_name, ".."))
		snprintf(ret_name, size, ".");
}

/* ---- what is said --------------------------------------------------------------------------- */

static void say(struct cp *cp, const char *path, const char *format, va_list args)
{
	char text[512];

	cp->has_failed = true;
	vsnprintf(text, sizeof text, format, args);
	fprintf(stderr, "caisson: ");
	if (path == cp->inside)
		fprintf(stderr, "%s:", cp->name);
	out_text(stderr, path);
	fprintf(stderr, ": ");
	out_text(stderr, text);
	fprintf(stderr, "\n");
}

void cp_say_inside(struct cp *cp, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(cp, cp->inside, format, args);
	va_end(args);
}

void cp_say_host(struct cp *cp, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(cp, cp->host, format, args);
	va_end(args);
}

void cp_leave_out(struct cp *cp)
{
	const char *path = cp->inside + cp->named;

	cp->has_failed = true;
	cp->left_count++;
	path += strspn(path, "/");
	if (cp->left_named + 1 < cp->left_count || buf_size(&cp->left) >= LEFT_TEXT / 2)
		return;
	if ((cp->left_named == 0 || buf_add_text(&cp->left, ", ") == 0) &&
	    escape_add(&cp->left, path, strlen(path), false) == 0)
		cp->left_named++;
}

static void tell_left_out(struct cp *cp)
{
	size_t more = cp->left_count - cp->left_named;

	if (cp->left_count == 0)
		return;
	fprintf(stderr, "caisson: left out, because programs here would run it: %.*s",
		(int)buf_size(&cp->left), (const char *)buf_at(&cp->left));
	if (more)
		fprintf(stderr, " and %zu more", more);
	fputs("; what is to be there, copy by its own name\n", stderr);
}

void cp_say_error(struct cp *cp, const csn_error *err)
{
	cp->is_lost |= err->code == CSN_LOST;
	cp_say_inside(cp, "%s", err->text[0] ? err->text : csn_code_name(err->code));
}

/* ---- both sides ----------------------------------------------------------------------------- */

csn_stat_result *cp_stat(struct cp *cp, csn_error *err)
{
	csn_path_request request = { .path = cp->inside };
	csn_stat_result *result = NULL;

	if (csn_stat(cp->sandbox, &request, &result, err) < 0)
		cp->is_lost |= err->code == CSN_LOST;
	return result;
}

/* How much of a path comes before its last name: all of `a/..`, nothing of `.`. */
static size_t folder_length(const char *path)
{
	size_t length = strlen(path), end;

	while (length > 0 && path[length - 1] == '/')
		length--;
	for (end = length; length > 0 && path[length - 1] != '/';)
		length--;
	return end - length == 2 && strncmp(path + length, "..", 2) == 0 ? end : length;
}

/* Where a command inside may write, it may put a link into the way of who copies later. */
int cp_host_folder(struct cp *cp, const char *path, char *ret_name, size_t size)
{
	char folder[CP_PATH];
	int fd;

	if (strlen(path) >= sizeof folder || strlen(path) >= size) {
		cp_say_host(cp, "the path is too long");
		return -1;
	}
	cp_last_name(path, ret_name, size);
	snprintf(folder, sizeof folder, "%.*s", (int)folder_length(path), path);
	if (!*folder)
		snprintf(folder, sizeof folder, "%s", *path == '/' ? "/" : ".");
	fd = sys_openat2(AT_FDCWD, folder, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (fd == -ELOOP)
		cp_say_host(cp, "the path goes through a symbolic link, which a command inside may "
				"have made: give the path without it, as `realpath` prints it");
	else if (fd < 0)
		cp_say_host(cp, "%s", strerror(-fd));
	return fd < 0 ? -1 : fd;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* "NAME:PATH" with a name before its first colon and no '/' in it. */
static const char *sandbox_path(const char *word, char *ret_name, size_t size)
{
	const char *colon = strchr(word, ':');
	size_t length = colon ? (size_t)(colon - word) : 0;

	if (length == 0 || length >= size || memchr(word, '/', length))
		return NULL;
	snprintf(ret_name, size, "%.*s", (int)length, word);
	return colon + 1;
}

static int copy(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	char name[128], other[128];
	const char *from = sandbox_path(cli->args[0], name, sizeof name);
	const char *to = sandbox_path(cli->args[1], from ? other : name, sizeof name);
	const char *inside = from ? from : to, *host = from ? cli->args[1] : cli->args[0];
	struct cp cp = { .sandbox = sandbox, .name = name };

	if (strlen(inside) >= CP_PATH || strlen(host) >= CP_PATH || !*host)
		return call_misuse(err, "a path is empty, or longer than %d bytes", CP_PATH - 1);
	buf_init(&cp.left, LEFT_TEXT);
	snprintf(cp.inside, sizeof cp.inside, "%s", *inside ? inside : ".");
	snprintf(cp.host, sizeof cp.host, "%s", host);
	if (from)
		cp_out(&cp, host);
	else
		cp_in(&cp, host);
	tell_left_out(&cp);
	buf_done(&cp.left);
	if (cli->options.json)
		out_json(json_pack("{s:b}", "complete", !cp.has_failed));
	return cp.has_failed ? CLI_FAILED : CLI_OK;
}

int cli_cp(struct cli *cli)
{
	struct csn_error err = { 0 };
	char name[128], other[128];
	const char *from = sandbox_path(cli->args[0], name, sizeof name);
	const char *to = sandbox_path(cli->args[1], from ? other : name, sizeof name);

	if (!from != !to)
		return call_named(cli, name, copy);
	csn_fail(&err, -EINVAL, "usage",
		 from ? "one side is the host's: write ./NAME for a file with a colon in its name"
		      : "one side is NAME:PATH, a path in the sandbox NAME");
	return cli_misuse(cli, &err);
}
