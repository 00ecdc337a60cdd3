/*
 * The way out of a refusal: the commands that permit it, and the file for who writes by hand
 *
 * A command is printed only if it can be pasted as it is: every word as a shell takes it back. A
 * value that no command sets is left to the lines for the file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "policy/decide.h"

static int add_word(struct buf *buf, const char *word)
{
	char text[WAY_TEXT];
	int code = str_shell_word(word, text, sizeof text);

	return code < 0 ? code : buf_add_text(buf, text);
}

/* " KEY=VALUE": what `policy set` can write; -EINVAL for a map. */
static int add_setting(const struct key *key, const struct plan *plan, struct buf *buf)
{
	_cleanup_buf_ struct buf word;
	int code;

	buf_init(&word, WAY_TEXT);
	if (key->kind >= KIND_ENV)
		return -EINVAL;
	code = buf_printf(&word, "%s=", key->path);
	if (code == 0)
		code = key_show(key, plan, SHOW_NAMES, &word);
	if (code == 0)
		code = buf_add_byte(buf, ' ');
	return code < 0 ? code : add_word(buf, buf_text(&word));
}

/* `init` only where no file is; it stands in the project, wherever the caller is. */
static int add_start(const struct decision *d, struct buf *buf)
{
	const struct policy_facts *facts = d->facts;
	const char *project = facts->project ? facts->project : "";
	char path[POLICY_PATH_MAX];
	int code;

	if (d->policy)
		code = buf_add_text(buf, "caisson policy set");
	else
		code = buf_add_text(buf, "caisson policy init");
	if (code == 0 && d->policy && facts->policy_is_explicit) {
		code = buf_add_text(buf, " --policy ");
		if (code == 0)
			code = add_word(buf, d->policy->name);
	}
	if (code == 0 && !d->policy && !str_is(project, facts->cwd)) {
		snprintf(path, sizeof path, "%s/caisson.yaml", str_is(project, "/") ? "" : project);
		code = buf_add_byte(buf, ' ');
		if (code == 0)
			code = add_word(buf, path);
	}
	return code < 0 || d->policy ? code : buf_add_text(buf, " && caisson policy set");
}

/* "`caisson policy set …`, or "; nothing where no command says it. */
static void add_command(const struct decision *d, const bool *wanted, struct buf *buf)
{
	_cleanup_buf_ struct buf command;
	int code;

	buf_init(&command, COMMAND_TEXT);
	code = add_start(d, &command);
	for (size_t id = 0; code == 0 && id < KEY_COUNT; id++)
		if (wanted[id])
			code = add_setting(&policy_keys[id], d->plan, &command);
	if (code == 0 && d->policy && !d->facts->policy_is_explicit && !d->is_trusted)
		code = buf_add_text(&command, " && caisson policy trust");
	if (code == 0)
		buf_printf(buf, "`%s`, or ", buf_text(&command));
}

const char *decide_way(const struct decision *d, const bool wanted[KEY_COUNT],
		       char ret_text[WAY_TEXT])
{
	const char *project = d->facts->project ? d->facts->project : "";
	char name[WAY_NAME];
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, WAY_TEXT);
	add_command(d, wanted, &buf);
	str_escape(d->policy ? d->policy->name : project, false, name, sizeof name);
	if (!d->policy)
		buf_printf(&buf,
			   "write into %s/caisson.yaml, then run `caisson policy trust`:\n"
			   "version: 1",
			   str_is(name, "/") ? "" : name);
	else if (d->facts->policy_is_explicit)
		buf_printf(&buf, "let %s say:", name);
	else
		buf_printf(&buf, "let %s say this, then run `caisson policy trust`:", name);
	snprintf(ret_text, WAY_TEXT, "%s", buf_text(&buf) ? buf_text(&buf) : "");
	return ret_text;
}
