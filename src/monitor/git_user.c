/*
 * Reads `name` and `email` of section `user` from git's configuration files, and nothing else.
 *
 * The workspace's file was written by whoever wrote the project, so it is bounded, opened without
 * following a link, and what it says goes back to where it came from: into the sandbox. Running
 * git itself instead would let that file name programs.
 */
#include "monitor/git_user.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "os/sys.h"

enum { FILE_MAX = 64 << 10 };

struct cursor {
	const char *at, *end;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && is_blank(*c->at))
		c->at++;
}

static void skip_line(struct cursor *c)
{
	while (c->at < c->end && *c->at != '\n')
		c->at++;
	c->at += c->at < c->end;
}

/* A word of letters; "" if it is too long or none. */
static void read_word(struct cursor *c, char *ret_word, size_t size)
{
	const char *start = c->at;
	size_t n;

	while (c->at < c->end && (*c->at | 32) >= 'a' && (*c->at | 32) <= 'z')
		c->at++;
	n = (size_t)(c->at - start);
	if (n >= size)
		n = 0;
	memcpy(ret_word, start, n);
	ret_word[n] = 0;
}

/* "[user]"; a section with a name of its own is another one. Stops behind the bracket. */
static bool read_section(struct cursor *c)
{
	char word[16];
	bool is_user;

	c->at++;
	skip_blanks(c);
	read_word(c, word, sizeof word);
	skip_blanks(c);
	is_user = strcasecmp(word, "user") == 0 && c->at < c->end && *c->at == ']';
	while (c->at < c->end && *c->at != ']' && *c->at != '\n')
		c->at++;
	c->at += c->at < c->end && *c->at == ']';
	return is_user;
}

/* One character of a value behind a backslash; 0: none that git knows. */
static char unescape(char c)
{
	static const char from[] = "ntb\"\\", to[] = "\n\t\b\"\\";
	const char *at = c ? strchr(from, c) : NULL;

	return at ? to[at - from] : 0;
}

/* A value up to the end of its line: quotes, escapes, comments; blanks at its end do not count. */
static bool read_value(struct cursor *c, char *ret_text, size_t size)
{
	size_t n = 0, keep = 0;
	bool is_quoted = false;

	for (; c->at < c->end && *c->at != '\n'; c->at++) {
		char byte = *c->at;

		if (!is_quoted && (byte == '#' || byte == ';'))
			break;
		if (byte == '"') {
			is_quoted = !is_quoted;
			keep = n;
			continue;
		}
		if (byte == '\\') {
			byte = ++c->at < c->end ? unescape(*c->at) : 0;
			if (!byte)
				return false;
		}
		if (n + 1 >= size)
			return false;
		ret_text[n++] = byte;
		if (is_quoted || !is_blank(byte))
			keep = n;
	}
	ret_text[keep] = 0;
	return !is_quoted && keep > 0;
}

/* Fit for a variable and a commit: text of one line. */
static bool is_fit(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	return *text && str_is_utf8(text, strlen(text));
}

static void set(char *field, size_t size, const char *text)
{
	if (text && strlen(text) < size && is_fit(text))
		memcpy(field, text, strlen(text) + 1);
}

static void read_variable(struct cursor *c, struct git_user *user)
{
	char key[16], value[sizeof user->name];

	read_word(c, key, sizeof key);
	skip_blanks(c);
	if (c->at == c->end || *c->at != '=')
		return;
	c->at++;
	skip_blanks(c);
	if (!read_value(c, value, sizeof value))
		return;
	if (strcasecmp(key, "name") == 0)
		set(user->name, sizeof user->name, value);
	if (strcasecmp(key, "email") == 0)
		set(user->email, sizeof user->email, value);
}

void git_user_parse(const char *text, size_t size, struct git_user *user)
{
	struct cursor c = { text, text + size };
	bool is_user = false;

	while (c.at < c.end) {
		skip_blanks(&c);
		if (c.at < c.end && *c.at == '[') {
			is_user = read_section(&c);
			skip_blanks(&c);
		}
		if (is_user)
			read_variable(&c, user);
		skip_line(&c);
	}
}

/* Takes `fd`, which may be negative. */
static void read_fd(int fd_taken, struct git_user *user)
{
	_cleanup_fd_ int fd = fd_taken;
	char text[FILE_MAX];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	n = fd_read_all(fd, text, sizeof text);
	if (n > 0)
		git_user_parse(text, (size_t)n, user);
}

enum { FLAGS = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY };

/* A file of the caller's own: links in it are his. */
static void read_file(const char *folder, const char *name, struct git_user *user)
{
	char path[PATH_MAX];

	if (folder && snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name) <
			      (int)sizeof path)
		read_fd(open(path, FLAGS), user);
}

/* A link in the project could name any file of the caller's. */
static void read_project(const char *workspace, struct git_user *user)
{
	_cleanup_fd_ int fd = -1;

	if (workspace)
		fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		read_fd(sys_openat2(fd, ".git/config", FLAGS,
				    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS),
			user);
}

void git_user_find(const char *const *environment, const char *workspace, struct git_user *ret_user)
{
	const char *home = program_variable(environment, "HOME");
	const char *config = program_variable(environment, "XDG_CONFIG_HOME");
	const char *global = program_variable(environment, "GIT_CONFIG_GLOBAL");
	struct git_user user = { 0 };

	set(user.email, sizeof user.email, program_variable(environment, "EMAIL"));
	read_file("", "/etc/gitconfig", &user);
	if (global) {
		read_file("", global, &user);
	} else {
		read_file(config && *config ? config : home,
			  config && *config ? "git/config" : ".config/git/config", &user);
		read_file(home, ".gitconfig", &user);
	}
	read_project(workspace, &user);
	set(user.name, sizeof user.name, program_variable(environment, "GIT_AUTHOR_NAME"));
	set(user.email, sizeof user.email, program_variable(environment, "GIT_AUTHOR_EMAIL"));
	*ret_user = user;
}
