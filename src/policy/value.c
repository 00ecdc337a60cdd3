/*
 * One value of a policy, from a node or from a flag's text, checked against its row in the
 * table of keys. One function per kind; each either fills the value or says what it found
 * and what it expected.
 */
#include "policy/file.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "policy/slip.h"

struct reading {
	const struct policy_source *source;
	const struct key *key;
	struct policy_value *value;
};

static int no_memory(const struct reading *r)
{
	return csn_fail(r->source->err, -ENOMEM, "policy",
			"%.200s: too many values for a policy, or out of memory; make it shorter",
			r->source->name);
}

/* "limits.cpus is "x", expected a number ...": for any node in the value. */
static int wrong(const struct reading *r, const struct node *node)
{
	static const char *const kinds[] = { NULL, "a list", "a map" };
	char shown[NODE_SHOWN], meant[SLIP_TEXT];

	if (node->kind != NODE_SCALAR)
		return node_fail(r->source->err, r->source->name, node->mark,
				 "%s is %s, expected %s", r->key->path, kinds[node->kind],
				 r->key->expected);
	if (slip_value(r->key, node->text, meant))
		return node_fail(r->source->err, r->source->name, node->mark,
				 "%s is \"%s\", expected %s; did you mean %s?", r->key->path,
				 node_show(node->text, shown), r->key->expected, meant);
	return node_fail(r->source->err, r->source->name, node->mark, "%s is \"%s\", expected %s",
			 r->key->path, node_show(node->text, shown), r->key->expected);
}

static bool is_null(const struct node *node)
{
	return node->is_plain &&
	       (!*node->text || str_is(node->text, "null") || str_is(node->text, "~") ||
		str_is(node->text, "Null") || str_is(node->text, "NULL"));
}

static bool is_truth(const struct node *node)
{
	return node->is_plain && (str_is(node->text, "true") || str_is(node->text, "false"));
}

/* A scalar that YAML means as text; a number will do, null and true will not. */
static bool is_text(const struct node *node)
{
	return node->kind == NODE_SCALAR && !is_null(node) && !is_truth(node);
}

static bool is_plain(const struct node *node)
{
	return node->kind == NODE_SCALAR && node->is_plain;
}

static int read_version(const struct reading *r, const struct node *node)
{
	if (!is_plain(node) || str_parse_u64(node->text, r->key->max, &r->value->number) < 0 ||
	    r->value->number < r->key->min)
		return wrong(r, node);
	return 0;
}

static int read_tier(const struct reading *r, const struct node *node)
{
	enum plan_tier tier;

	if (!is_text(node) || plan_tier_parse(node->text, &tier, &r->value->approval) < 0)
		return wrong(r, node);
	r->value->number = tier;
	return 0;
}

static int read_choice(const struct reading *r, const struct node *node)
{
	if (!is_text(node))
		return wrong(r, node);
	for (unsigned i = 0; r->key->choices[i]; i++) {
		if (str_is(node->text, r->key->choices[i])) {
			r->value->number = i;
			return 0;
		}
	}
	return wrong(r, node);
}

static int read_bool(const struct reading *r, const struct node *node)
{
	if (node->kind != NODE_SCALAR || !is_truth(node))
		return wrong(r, node);
	r->value->number = str_is(node->text, "true");
	return 0;
}

/* Thousandths of a CPU: digits, then up to three after a dot. */
static int parse_cpus(const char *text, uint64_t *ret_milli)
{
	size_t n = strspn(text, "0123456789");
	uint64_t whole, part = 0, factor = 1000;
	char digits[8] = { 0 };

	if (n == 0 || n >= sizeof digits)
		return -EINVAL;
	memcpy(digits, text, n);
	if (str_parse_u64(digits, 1000000, &whole) < 0)
		return -ERANGE;
	text += n;
	if (*text == '.') {
		n = strspn(++text, "0123456789");
		if (n == 0 || n > 3 || text[n] || str_parse_u64(text, 999, &part) < 0)
			return -EINVAL;
		for (; n > 0; n--)
			factor /= 10;
	} else if (*text) {
		return -EINVAL;
	}
	*ret_milli = whole * 1000 + part * factor;
	return 0;
}

static int parse_count(const char *text, uint64_t *ret_count)
{
	return str_parse_u64(text, UINT64_MAX - 1, ret_count);
}

static int parse_time(const char *text, uint64_t *ret_ms)
{
	if (str_is(text, "0")) {
		*ret_ms = 0;
		return 0;
	}
	return str_parse_duration(text, ret_ms);
}

static int read_number(const struct reading *r, const struct node *node)
{
	static int (*const parsers[KIND_COUNT_])(const char *, uint64_t *) = {
		[KIND_TIME] = parse_time,
		[KIND_SIZE] = str_parse_size,
		[KIND_COUNT] = parse_count,
		[KIND_CPUS] = parse_cpus,
	};
	bool is_bare = r->key->kind == KIND_COUNT || r->key->kind == KIND_CPUS;
	uint64_t number;

	if (!is_text(node) || (is_bare && !node->is_plain))
		return wrong(r, node);
	if (str_is(node->text, "none")) {
		/* "No idle limit" and "idle limit off" are one thing. */
		r->value->number = r->key->wider == WIDER_IDLE ? 0 : PLAN_UNLIMITED;
		return 0;
	}
	if (parsers[r->key->kind](node->text, &number) < 0 || number < r->key->min ||
	    number > r->key->max)
		return wrong(r, node);
	r->value->number = number;
	return 0;
}

static bool is_allowed(const struct key *key, const char *text)
{
	if (key->choices)
		return plan_has(key->choices, text);
	return key->is_valid(text);
}

static int read_text(const struct reading *r, const struct node *node)
{
	/* Only an image can be nothing. */
	if (node->kind == NODE_SCALAR && is_null(node) && r->key->is_valid == text_is_image)
		return 0;
	if (!is_text(node) || !is_allowed(r->key, node->text))
		return wrong(r, node);
	if (r->key == &policy_keys[KEY_SCRATCH_AT] && str_is(node->text, "host"))
		return wrong(r, node);
	r->value->text = node->text;
	return 0;
}

/* The items of a list or map, one for each child; NULL when out of memory. */
static struct policy_item *new_items(const struct reading *r, const struct node *node)
{
	struct policy_item *items = arena_array(r->source->arena, node->count + 1, sizeof *items);
	size_t i = 0;

	if (!items)
		return NULL;
	for (const struct node *child = node->first; child; child = child->next)
		items[i++].mark = child->mark;
	r->value->items = items;
	r->value->count = node->count;
	return items;
}

static int read_list(const struct reading *r, const struct node *node)
{
	struct policy_item *item;

	if (node->kind != NODE_LIST)
		return node_fail(r->source->err, r->source->name, node->mark,
				 "%s is not a list, expected [%s, ...]", r->key->path,
				 r->key->expected);
	item = new_items(r, node);
	if (!item)
		return no_memory(r);
	for (const struct node *child = node->first; child; child = child->next, item++) {
		if (!is_text(child) || !is_allowed(r->key, child->text))
			return wrong(r, child);
		for (struct policy_item *other = r->value->items; other < item; other++)
			if (!r->key->may_repeat && str_is(other->text, child->text))
				return node_fail(r->source->err, r->source->name, child->mark,
						 "%s names this twice, expected it once",
						 r->key->path);
		item->text = child->text;
	}
	return 0;
}

static int read_env(const struct reading *r, const struct node *node)
{
	struct policy_item *item;

	if (node->kind != NODE_MAP)
		return wrong(r, node);
	item = new_items(r, node);
	if (!item)
		return no_memory(r);
	for (const struct node *child = node->first; child; child = child->next, item++) {
		if (!text_is_name(child->key))
			return node_fail(r->source->err, r->source->name, child->key_mark,
					 "not a variable's name, expected letters, digits and _");
		if (!is_text(child))
			return node_fail(r->source->err, r->source->name, child->mark,
					 "%s.%s is not a text, expected text in quotes",
					 r->key->path, child->key);
		item->name = child->key;
		item->text = child->text;
	}
	return 0;
}

/* One key of a mount. */
static int read_mount_part(const struct reading *r, const struct node *part,
			   struct policy_item *item)
{
	enum plan_access access;

	if (str_is(part->key, "host") && is_text(part) && text_is_path(part->text)) {
		item->name = part->text;
		return 0;
	}
	if (str_is(part->key, "at") && is_text(part) && text_is_inside(part->text) &&
	    part->text[0] == '/') {
		item->text = part->text;
		return 0;
	}
	if (str_is(part->key, "mode") && is_text(part) &&
	    plan_access_parse(part->text, &access) == 0 && access != ACCESS_COW) {
		item->access = access;
		return 0;
	}
	if (plan_has((const char *const[]){ "host", "at", "mode", NULL }, part->key))
		return node_fail(r->source->err, r->source->name, part->mark,
				 "%s of a mount is not usable, expected %s", part->key,
				 part->key[0] == 'h'   ? "a path of the host"
				 : part->key[0] == 'a' ? policy_keys[KEY_SCRATCH_AT].expected
						       : "ro or rw");
	return node_fail(r->source->err, r->source->name, part->key_mark,
			 "an unknown key in a mount, expected host, at or mode");
}

static int read_mounts(const struct reading *r, const struct node *node)
{
	struct policy_item *item;

	if (node->kind != NODE_LIST)
		return wrong(r, node);
	item = new_items(r, node);
	if (!item)
		return no_memory(r);
	for (const struct node *child = node->first; child; child = child->next, item++) {
		if (child->kind != NODE_MAP)
			return wrong(r, child);
		for (const struct node *part = child->first; part; part = part->next) {
			int code = read_mount_part(r, part, item);

			if (code < 0)
				return code;
		}
		if (!item->name || !item->text)
			return node_fail(r->source->err, r->source->name, child->mark,
					 "a mount without %s, expected {host: PATH, at: PATH}",
					 item->name ? "at" : "host");
	}
	return 0;
}

static int read_rules(const struct reading *r, const struct node *node)
{
	static const char *const kinds[] = { "tag", "command", "path", NULL };
	struct policy_item *item;

	if (node->kind != NODE_LIST)
		return wrong(r, node);
	item = new_items(r, node);
	if (!item)
		return no_memory(r);
	for (const struct node *child = node->first; child; child = child->next, item++) {
		if (child->kind != NODE_MAP || child->count != 1 ||
		    !plan_has(kinds, child->first->key))
			return node_fail(r->source->err, r->source->name, child->mark,
					 "not a rule, expected {tag: NAME}, {command: PATTERN} or "
					 "{path: PATTERN}");
		if (!is_text(child->first) || !text_is_word(child->first->text))
			return node_fail(r->source->err, r->source->name, child->first->mark,
					 "not a pattern, expected text");
		item->name = child->first->key;
		item->text = child->first->text;
	}
	return 0;
}

static int read_gates(const struct reading *r, const struct node *node)
{
	return gates_read(r->source, r->key, node, r->value);
}

static int (*const readers[KIND_COUNT_])(const struct reading *, const struct node *) = {
	[KIND_VERSION] = read_version, [KIND_TIER] = read_tier,   [KIND_CHOICE] = read_choice,
	[KIND_BOOL] = read_bool,       [KIND_TIME] = read_number, [KIND_SIZE] = read_number,
	[KIND_COUNT] = read_number,    [KIND_CPUS] = read_number, [KIND_TEXT] = read_text,
	[KIND_LIST] = read_list,       [KIND_ENV] = read_env,     [KIND_MOUNTS] = read_mounts,
	[KIND_RULES] = read_rules,     [KIND_GATES] = read_gates,
};

int value_read(const struct policy_source *source, const struct key *key, const struct node *node,
	       struct policy_value *ret_value)
{
	struct policy_value value = { .is_set = true, .mark = node->mark, .node = node };
	struct reading r = { source, key, &value };
	int code = readers[key->kind](&r, node);

	if (code == 0)
		*ret_value = value;
	return code;
}

int value_read_text(const struct policy_source *source, const struct key *key, const char *text,
		    struct policy_value *ret_value)
{
	const struct node node = { .kind = NODE_SCALAR, .is_plain = true, .text = text };

	return value_read(source, key, &node, ret_value);
}
