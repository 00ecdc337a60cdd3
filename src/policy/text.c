/*
 * What the texts of a policy and of flags may look like: paths, patterns, names, hosts.
 *
 * Control characters are refused everywhere: these texts end in logs, in mount tables and
 * in other programs' configuration, where a newline starts a line of the attacker's own.
 */
#include "policy/keys.h"

#include <string.h>

#include "base/path.h"
#include "base/str.h"

enum { MAX_TEXT = 4095, MAX_NAME = 128, MAX_HOST = 253 };

bool text_is_word(const char *text)
{
	size_t n = 0;

	for (; text[n]; n++)
		if ((unsigned char)text[n] < 0x20 || text[n] == 0x7f || n >= MAX_TEXT)
			return false;
	return n > 0;
}

/* Is ".." one of its components? */
static bool climbs(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.')
			return true;
		path += n + strspn(path + n, "/");
	}
	return false;
}

bool text_is_path(const char *text)
{
	return text_is_word(text);
}

bool text_is_pattern(const char *text)
{
	return text_is_word(text) && text[0] != '/' && !climbs(text);
}

bool text_is_relative(const char *text)
{
	return text_is_pattern(text) && !str_is(text, ".");
}

/* Folders that the wall itself lays out; the first component decides. */
bool text_is_inside(const char *text)
{
	static const char *const taken[] = { "proc", "sys", "dev",  "usr",
					     "etc",  "bin", "sbin", "boot" };
	char path[MAX_TEXT + 1];

	if (str_is(text, "host"))
		return true;
	if (!text_is_word(text) || climbs(text) || path_normalize(text, path, sizeof path) < 0)
		return false;
	if (path[1] == 0)
		return false;
	path[1 + strcspn(path + 1, "/")] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (str_is(path + 1, taken[i]))
			return false;
	/* /lib, /lib32, /lib64, /libx32 and what comes next. */
	return !str_starts(path + 1, "lib");
}

bool text_is_feature(const char *text)
{
	const char *const list[] = { text, NULL };
	uint64_t bits = plan_features(list);

	/* A copy-on-write layer is ours to look through afterwards; theirs we cannot find. */
	return bits != 0 && bits != FEATURE_FS_COW;
}

bool text_is_observation(const char *text)
{
	static const char *const events[] = { "NetworkAccessViolation",  "FilesystemWriteViolation",
					      "FilesystemReadViolation", "SyscallViolation",
					      "ProcessLimitViolation",   "MemoryLimitViolation",
					      "ScratchLimitViolation",   NULL };

	return plan_has(events, text);
}

bool text_is_name(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char more[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	size_t n = strspn(text, more);

	return n > 0 && n <= MAX_NAME && text[n] == 0 && strchr(letters, text[0]);
}

bool text_is_forward(const char *text)
{
	struct plan_forward forward;

	return text_is_word(text) && plan_forward_read(text, &forward) == 0 &&
	       (forward.at_port || (text_is_inside(forward.at) && !strchr(forward.at, '\n')));
}

bool text_is_host(const char *text)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789.-_";
	size_t n = strspn(text, allowed);
	uint64_t port;

	if (n == 0 || n > MAX_HOST || text[0] == '-' || text[0] == '.')
		return false;
	if (text[n] == 0)
		return true;
	return text[n] == ':' && str_parse_u64(text + n + 1, 65535, &port) == 0 && port > 0;
}

/* Ends as an argument of a container engine: it must not read as a flag. */
bool text_is_image(const char *text)
{
	return text_is_word(text) && text[0] != '-' && !strchr(text, ' ');
}
