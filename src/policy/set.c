/*
 * One scalar or list of a file changed in place, everything else left as it was written.
 *
 * The tree knows the bytes of each value, so an edit is: the bytes before, the new value,
 * the bytes after. Nothing is emitted by a YAML writer, which would lose comments. The
 * result is read again before anybody sees it; an edit that went wrong changes nothing.
 * A key that only a comment shows, as in the file of `policy init`, replaces that comment.
 */
#include "policy/set.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

enum { ITEM_MAX = 512 };

static int refuse(const struct edit *e, const char *why)
{
	return csn_fail(e->err, -EINVAL, "policy", "%.120s: %s %s; edit the file by hand",
			e->file->name, e->key->path, why);
}

/*
 * Length of the text in quotes at `text`, with both, as a file may have it; 0: none. It is taken
 * over as it is: what `policy show` prints sets the same value again, backslashes and all.
 */
static size_t quoted_length(const char *text)
{
	char quote = text[0];
	size_t n = 1;

	if (quote != '"' && quote != '\'')
		return 0;
	for (; text[n] && (text[n] != quote || (quote == '\'' && text[n + 1] == quote)); n++) {
		if ((unsigned char)text[n] < ' ')
			return 0;
		n += (text[n] == '\\' && quote == '"') || text[n] == quote ? text[n + 1] != 0 : 0;
	}
	return text[n] ? n + 1 : 0;
}

/* One item of a list: "text", 'text' or a word up to the comma; *at goes behind it. */
static int add_item(const struct edit *e, const char **at)
{
	size_t quoted = quoted_length(*at), n = strcspn(*at, ",]"), size = n;
	char text[ITEM_MAX];
	int code;

	if (quoted) {
		code = quoted > 2 ? buf_add(e->out, *at, quoted) : -EINVAL;
		*at += quoted + strspn(*at + quoted, " ");
		return code;
	}
	while (size > 0 && (*at)[size - 1] == ' ')
		size--;
	if (size == 0 || size >= sizeof text || !(*at)[n] || strchr("\"'", **at))
		return -EINVAL;
	memcpy(text, *at, size);
	text[size] = 0;
	*at += n + strspn(*at + n, " ");
	return key_show_text(text, e->out);
}

/* "[a, b]" as YAML with each item quoted where it must be. */
static int add_list(const struct edit *e)
{
	const char *at = e->value;
	int code = *at == '[' ? buf_add_byte(e->out, '[') : -EINVAL;

	at += *at ? 1 : 0;
	at += strspn(at, " ");
	while (code == 0 && *at && *at != ']') {
		code = add_item(e, &at);
		if (code == 0 && *at == ',')
			code = buf_add_text(e->out, ", ");
		else if (code == 0 && *at != ']')
			code = -EINVAL;
		at += code == 0 && *at == ',' ? 1 + strspn(at + 1, " ") : 0;
	}
	if (code == -EINVAL || !str_is(at, "]"))
		return csn_fail(e->err, -EINVAL, "policy",
				"%.120s: %s: not a usable list, expected [] or [ITEM, ...], each "
				"%s",
				e->file->name, e->key->path, e->key->expected);
	return code < 0 ? code : buf_add_byte(e->out, ']');
}

/* The value as YAML: texts quoted where they must be, the rest as given, if it is a word. */
int edit_add_value(const struct edit *e)
{
	static const char word[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	bool is_null = e->key->is_valid == text_is_image && str_is(e->value, "null");

	if (e->key->kind == KIND_LIST)
		return add_list(e);
	if (e->key->kind == KIND_TEXT && quoted_length(e->value) == strlen(e->value) && *e->value)
		return buf_add_text(e->out, e->value);
	if (e->key->kind == KIND_TEXT && !is_null)
		return key_show_text(e->value, e->out);
	if (!*e->value || e->value[strspn(e->value, word)])
		return csn_fail(e->err, -EINVAL, "policy",
				"%.120s: %s: not a usable value, expected %s", e->file->name,
				e->key->path, e->key->expected);
	return buf_add_text(e->out, e->value);
}

/* bytes[0..from) + before + value + after + bytes[to..) */
int edit_splice(const struct edit *e, size_t from, size_t to, const char *before, const char *after)
{
	int code = buf_add(e->out, e->bytes, from);

	if (code == 0)
		code = buf_add_text(e->out, before);
	if (code == 0)
		code = edit_add_value(e);
	if (code == 0)
		code = buf_add_text(e->out, after);
	return code < 0 ? code : buf_add(e->out, e->bytes + to, e->file->size - to);
}

/* A new entry at the head of a map that is there: it needs no look at what follows. */
static int insert_into(const struct edit *e, const struct node *map, const char *name)
{
	char before[80] = "", after[80] = "", *at = before;
	size_t n = strlen(name), indent = map->first ? map->first->key_mark.column - 1 : 0;

	if (n + 3 > sizeof before || indent + 2 > sizeof after)
		return refuse(e, "has no room in its section");
	memcpy(at, name, n);
	memcpy(at + n, ": ", 3);
	if (map->is_flow) {
		memcpy(after, map->first ? ", " : "", map->first ? 3 : 1);
		return edit_splice(e, map->start + 1, map->start + 1, before, after);
	}
	after[0] = '\n';
	memset(after + 1, ' ', indent);
	return edit_splice(e, map->start, map->start, before, after);
}

/* A new key or section at the end of the file, in the column of the others. */
static int append(const struct edit *e)
{
	const struct node *root = e->policy->root;
	size_t n = key_section(e->key), indent = root->first->key_mark.column - 1;
	bool has_newline = e->file->size && e->bytes[e->file->size - 1] == '\n';
	int code = buf_add(e->out, e->bytes, e->file->size);

	if (code == 0 && !has_newline)
		code = buf_add_byte(e->out, '\n');
	if (code == 0 && n)
		code = buf_printf(e->out, "%*s%.*s:\n", (int)indent, "", (int)n, e->key->path);
	if (code == 0)
		code = buf_printf(e->out, "%*s%s: ", (int)(indent + (n ? 2 : 0)), "",
				  e->key->path + (n ? n + 1 : 0));
	if (code == 0)
		code = edit_add_value(e);
	return code < 0 ? code : buf_add_byte(e->out, '\n');
}

static int insert(const struct edit *e)
{
	const struct node *root = e->policy->root, *section = NULL;
	size_t n = key_section(e->key);
	char name[64] = "", path[96];

	if (n) {
		memcpy(name, e->key->path, n);
		section = node_get(root, name);
		if (section)
			return insert_into(e, section, e->key->path + n + 1);
	}
	if (!root->is_flow)
		return append(e);
	if (!n)
		return insert_into(e, root, e->key->path);
	/* {version: 1} and a key in a section that is not there: `section: {key: value}, `. */
	memcpy(path, name, n);
	memcpy(path + n, ": {", 4);
	memcpy(path + n + 3, e->key->path + n + 1, strlen(e->key->path + n + 1) + 1);
	memcpy(path + strlen(path), ": ", 3);
	return edit_splice(e, root->start + 1, root->start + 1, path, "}, ");
}

static int edit_value(const struct edit *e)
{
	const struct policy_value *old = &e->policy->values[e->key - policy_keys];

	if (e->key->kind > KIND_LIST)
		return refuse(e, "is a map or a list of maps");
	if (!old->is_set)
		return insert(e);
	if (!old->node->is_flow)
		return refuse(e, "is written as a block");
	return edit_splice(e, old->node->start, old->node->end, "", "");
}

/* What was written must be readable, with this key in it. */
static int check_result(const struct edit *e)
{
	struct policy *again = NULL;
	bool is_set;
	int code = policy_parse(e->file->name, buf_at(e->out), buf_size(e->out), &again, e->err);

	if (code < 0)
		return code;
	is_set = again->values[e->key - policy_keys].is_set;
	policy_free(again);
	return is_set ? 0 : refuse(e, "cannot be placed in this layout");
}

/* In place of the comment that shows the key; where that gives no good file, beside it. */
static int edit_file(const struct edit *e)
{
	int code = edit_comment(e);

	if (code == 0)
		code = check_result(e);
	if (code == 0)
		return 0;
	buf_clear(e->out);
	*e->err = (struct csn_error){ 0 };
	code = edit_value(e);
	return code < 0 ? code : check_result(e);
}

int policy_set(const struct policy_file *file, const char *key, const char *value,
	       struct buf *ret_yaml, struct csn_error *err)
{
	struct policy *policy = NULL;
	enum key_id id = key_find(key);
	_cleanup_buf_ struct buf out;
	struct edit e = { file, file->bytes, NULL, NULL, value, &out, err };
	char shown[NODE_SHOWN];
	int code;

	buf_init(&out, POLICY_MAX_BYTES);
	if (id == KEY_COUNT)
		return csn_fail(
			err, -EINVAL, "policy",
			"no key %s, expected one such as limits.command; caisson policy show "
			"lists them",
			node_show(key, shown));
	code = policy_parse(file->name, file->bytes, file->size, &policy, err);
	if (code < 0)
		return code;
	e.policy = policy;
	e.key = &policy_keys[id];
	code = edit_file(&e);
	if (code == 0)
		code = buf_add(ret_yaml, buf_at(&out), buf_size(&out));
	policy_free(policy);
	return code;
}
