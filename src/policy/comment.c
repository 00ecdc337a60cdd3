/*
 * A key that a policy file shows in a comment, set in its place
 *
 * The file of `policy init` lists every key commented out. A value added elsewhere would leave
 * that line behind, and whoever uncomments it later has the key twice. Comments are no part of the
 * tree, so lines are compared: only those that begin with `#` in the first column count. A line
 * that only looks like one (in a text of several lines) gives a file that its caller refuses.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "policy/set.h"

enum { NAME_TEXT = 64, LINE_TEXT = 160 };

/* One line of the file, from its first byte to the newline or the end. */
struct line {
	size_t start, end;
	size_t next; /* where the following one starts: a first line may be empty */
};

static bool next_line(const struct edit *e, struct line *line)
{
	const uint8_t *newline;

	line->start = line->next;
	if (line->start >= e->file->size)
		return false;
	newline = memchr(e->bytes + line->start, '\n', e->file->size - line->start);
	line->end = newline ? (size_t)(newline - e->bytes) : e->file->size;
	line->next = line->end + 1;
	return true;
}

/* Where the value begins if the line is `#`, `indent` or more blanks, `name:`; else 0. */
static size_t shows(const struct edit *e, const struct line *line, size_t indent, const char *name)
{
	size_t at = line->start + 1, n = strlen(name), blanks = 0;

	if (line->start == line->end || e->bytes[line->start] != '#')
		return 0;
	while (at < line->end && e->bytes[at] == ' ') {
		at++;
		blanks++;
	}
	if (indent ? blanks < indent : blanks > 0)
		return 0;
	if (line->end - at <= n || memcmp(e->bytes + at, name, n) != 0 || e->bytes[at + n] != ':')
		return 0;
	at += n + 1;
	return at == line->end || e->bytes[at] == ' ' ? at : 0;
}

/* The end of a value: the blanks before a comment, or the line's end. */
static size_t value_end(const struct edit *e, const struct line *line, size_t at)
{
	for (; at + 1 < line->end; at++)
		if (e->bytes[at] == ' ' && e->bytes[at + 1] == '#')
			break;
	at = at + 1 < line->end ? at : line->end;
	while (at > line->start && e->bytes[at - 1] == ' ')
		at--;
	return at;
}

/* `#name: old`, its value at `at`, becomes `before`, the value, `after`; a comment behind stays. */
static int replace(const struct edit *e, const struct line *line, size_t at, const char *before,
		   const char *after)
{
	size_t end = value_end(e, line, at);

	return edit_splice(e, line->start, end > at ? end : at, before, after);
}

/* Does the section end before this line? Blank lines and keys of the file's own level end it. */
static bool is_behind(const struct edit *e, const struct line *line)
{
	const uint8_t *at = e->bytes + line->start;
	size_t n = line->end - line->start;

	return n == 0 || (at[0] != ' ' && at[0] != '#') || (at[0] == '#' && n > 1 && at[1] != ' ');
}

/* Where the value begins in the comment for `name` below a section's head; 0: none. */
static size_t find_below(const struct edit *e, const char *name, struct line *line)
{
	size_t at;

	while (next_line(e, line) && !is_behind(e, line)) {
		at = shows(e, line, 2, name);
		if (at)
			return at;
	}
	return 0;
}

/* A section that is a comment itself: its head loses the `#`, other lines stay comments. */
static int open_section(const struct edit *e, const struct line *head, const char *name)
{
	struct line line = *head;
	size_t at = find_below(e, name, &line), rest = head->start + 1;
	size_t from = at ? line.start : head->end, to = at ? value_end(e, &line, at) : head->end;
	int code = buf_add(e->out, e->bytes, head->start);

	if (code == 0)
		code = buf_add(e->out, e->bytes + rest, from - rest);
	if (code == 0)
		code = buf_printf(e->out, "%s  %s: ", at ? "" : "\n", name);
	if (code == 0)
		code = edit_add_value(e);
	return code < 0 ? code
			: buf_add(e->out, e->bytes + (to < at ? at : to),
				  e->file->size - (to < at ? at : to));
}

/* A section that is set: its head is where its first key's line begins or above. */
static int edit_below(const struct edit *e, const struct node *section, const char *name)
{
	char before[LINE_TEXT];
	struct line line = { 0 };
	size_t at = 0;

	if (section->is_flow || !section->first)
		return -ENOENT;
	for (unsigned i = 0; i < section->key_mark.line; i++)
		if (!next_line(e, &line))
			return -ENOENT;
	at = find_below(e, name, &line);
	if (!at)
		return -ENOENT;
	snprintf(before, sizeof before, "%*s%s: ", (int)section->first->key_mark.column - 1, "",
		 name);
	return replace(e, &line, at, before, "");
}

/* `#section:` or `#section: {…}`, where the section is not set. */
static int edit_section(const struct edit *e, const char *section, const char *name)
{
	struct line line = { 0 };
	char before[LINE_TEXT];
	size_t at;

	while (next_line(e, &line)) {
		at = shows(e, &line, 0, section);
		if (!at)
			continue;
		if (value_end(e, &line, at) <= at)
			return open_section(e, &line, name);
		snprintf(before, sizeof before, "%s: {%s: ", section, name);
		return replace(e, &line, at, before, "}");
	}
	return -ENOENT;
}

/* `#key: …`, of the file's own level. */
static int edit_plain(const struct edit *e)
{
	struct line line = { 0 };
	char before[LINE_TEXT];
	size_t at;

	snprintf(before, sizeof before, "%s: ", e->key->path);
	while (next_line(e, &line)) {
		at = shows(e, &line, 0, e->key->path);
		if (at)
			return replace(e, &line, at, before, "");
	}
	return -ENOENT;
}

int edit_comment(const struct edit *e)
{
	const struct node *root = e->policy->root, *section;
	size_t n = key_section(e->key);
	char name[NAME_TEXT];

	if (e->policy->values[e->key - policy_keys].is_set || e->key->kind > KIND_LIST ||
	    root->is_flow || root->first->key_mark.column != 1)
		return -ENOENT;
	if (!n)
		return edit_plain(e);
	snprintf(name, sizeof name, "%.*s", (int)n, e->key->path);
	section = node_get(root, name);
	return section ? edit_below(e, section, e->key->path + n + 1)
		       : edit_section(e, name, e->key->path + n + 1);
}
