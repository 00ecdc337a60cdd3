/*
 * YAML bytes to a tree, with libyaml's event API.
 *
 * The event API hands over one token's meaning at a time, so anchors, aliases, tags and
 * depth are refused before anything is built from them: an alias bomb never grows. Open
 * collections form a chain of parents, not a recursion. libyaml counts characters; they are
 * turned into byte offsets so that one value can be replaced in place (set.c).
 */
#include "policy/node.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/str.h"

struct reader {
	yaml_parser_t parser;
	struct arena *arena;
	const char *name;
	const uint8_t *bytes;
	size_t size;
	size_t known_chars, known_bytes; /* a character index and its byte offset */
	struct node *open;               /* innermost collection */
	struct node *root;
	unsigned depth;
	const char *key; /* read, its value not yet */
	struct policy_mark key_mark;
	bool has_document;
	struct csn_error *err;
};

int node_fail(struct csn_error *err, const char *name, struct policy_mark mark, const char *format,
	      ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (mark.line == 0)
		return csn_fail(err, -EINVAL, "policy", "%.200s: %s", name, text);
	return csn_fail(err, -EINVAL, "policy", "%.200s:%u:%u: %s", name, mark.line, mark.column,
			text);
}

const char *node_show(const char *text, char *ret_shown)
{
	size_t n = 0;

	for (; text[n] && n < NODE_SHOWN - 12; n++) {
		unsigned char c = (unsigned char)text[n];

		ret_shown[n] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	/* Do not cut a character in two. */
	while (text[n] && n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
		n--;
	snprintf(ret_shown + n, 8, "%s", text[n] ? "..." : "");
	return ret_shown;
}

static struct policy_mark mark_of(yaml_mark_t mark)
{
	return (struct policy_mark){ (unsigned)mark.line + 1, (unsigned)mark.column + 1 };
}

/* Line and column of a byte offset. */
static struct policy_mark mark_at(const struct reader *r, size_t offset)
{
	struct policy_mark mark = { 1, 1 };

	for (size_t i = 0; i < offset && i < r->size; i++) {
		if (r->bytes[i] == '\n')
			mark = (struct policy_mark){ mark.line + 1, 1 };
		else if ((r->bytes[i] & 0xC0) != 0x80)
			mark.column++;
	}
	return mark;
}

/* Byte offset of a character index. Marks mostly grow, so the walk goes on from the last. */
static size_t offset_of(struct reader *r, size_t chars)
{
	if (chars < r->known_chars)
		r->known_chars = r->known_bytes = 0;
	while (r->known_chars < chars && r->known_bytes < r->size) {
		do
			r->known_bytes++;
		while (r->known_bytes < r->size && (r->bytes[r->known_bytes] & 0xC0) == 0x80);
		r->known_chars++;
	}
	return r->known_bytes;
}

static int refuse(struct reader *r, const yaml_event_t *event, const char *what)
{
	return node_fail(r->err, r->name, mark_of(event->start_mark), "%s", what);
}

static int no_memory(struct reader *r)
{
	return csn_fail(r->err, -ENOMEM, "policy",
			"%.200s: too many values for a policy, or out of memory; make it shorter",
			r->name);
}

static int check_text(struct reader *r)
{
	size_t good = r->size, bad = 0;

	if (r->size > POLICY_MAX_BYTES)
		return csn_fail(r->err, -E2BIG, "policy", "%.200s: %zu bytes, expected at most %d",
				r->name, r->size, POLICY_MAX_BYTES);
	if (r->size == 0 || str_is_utf8(r->bytes, r->size))
		return 0;
	/* The longest good prefix, by halving: a cut character is not good, its start is. */
	while (bad + 1 < good) {
		size_t mid = bad + (good - bad) / 2, cut = mid;

		while (cut > bad && cut < r->size && (r->bytes[cut] & 0xC0) == 0x80)
			cut--;
		if (str_is_utf8(r->bytes, cut))
			bad = mid;
		else
			good = mid;
	}
	return node_fail(r->err, r->name, mark_at(r, bad),
			 "a NUL or a byte that is not UTF-8, expected UTF-8 text");
}

/* Puts a new node in its place in the tree. */
static int attach(struct reader *r, struct node *node)
{
	struct node *up = r->open;

	if (!up) {
		r->root = node;
		return 0;
	}
	if (up->count >= NODE_MAX_WIDTH)
		return node_fail(r->err, r->name, node->mark,
				 "too many entries, expected at most %d", NODE_MAX_WIDTH);
	if (up->kind == NODE_MAP) {
		node->key = r->key;
		node->key_mark = r->key_mark;
		r->key = NULL;
	}
	node->parent = up;
	if (up->last)
		up->last->next = node;
	else
		up->first = node;
	up->last = node;
	up->count++;
	return 0;
}

static struct node *new_node(struct reader *r, const yaml_event_t *event, enum node_kind kind)
{
	struct node *node = arena_alloc(r->arena, sizeof *node);

	if (!node)
		return NULL;
	node->kind = kind;
	node->mark = mark_of(event->start_mark);
	node->start = offset_of(r, event->start_mark.index);
	node->end = offset_of(r, event->end_mark.index);
	return node;
}

static int on_key(struct reader *r, const yaml_event_t *event, const char *text)
{
	char shown[NODE_SHOWN];

	if (node_get(r->open, text))
		return node_fail(r->err, r->name, mark_of(event->start_mark),
				 "duplicate key %s, expected it once", node_show(text, shown));
	r->key = text;
	r->key_mark = mark_of(event->start_mark);
	return 0;
}

static int on_scalar(struct reader *r, const yaml_event_t *event)
{
	yaml_scalar_style_t style = event->data.scalar.style;
	const char *value = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	struct node *node;
	char *text;

	if (event->data.scalar.anchor)
		return refuse(r, event, "an anchor, expected a plain value");
	if (event->data.scalar.tag)
		return refuse(r, event, "a tag, expected a plain value");
	/* "\0" in double quotes is legal YAML and would cut the text short in C. */
	if (memchr(value, 0, length))
		return refuse(r, event, "a NUL in a text, expected none");
	text = arena_copy(r->arena, value, length);
	if (!text)
		return no_memory(r);
	if (r->open && r->open->kind == NODE_MAP && !r->key)
		return on_key(r, event, text);
	node = new_node(r, event, NODE_SCALAR);
	if (!node)
		return no_memory(r);
	node->text = text;
	node->is_plain = style == YAML_PLAIN_SCALAR_STYLE;
	node->is_flow = style != YAML_LITERAL_SCALAR_STYLE && style != YAML_FOLDED_SCALAR_STYLE;
	return attach(r, node);
}

static int open_collection(struct reader *r, const yaml_event_t *event, enum node_kind kind)
{
	struct node *node;
	int code;

	if (r->open && r->open->kind == NODE_MAP && !r->key)
		return refuse(r, event, "a list or map as a key, expected a name");
	if (++r->depth > NODE_MAX_DEPTH)
		return refuse(r, event, "nesting too deep, expected at most 16 levels");
	node = new_node(r, event, kind);
	if (!node)
		return no_memory(r);
	code = attach(r, node);
	if (code == 0)
		r->open = node;
	return code;
}

static int on_list(struct reader *r, const yaml_event_t *event)
{
	int code;

	if (event->data.sequence_start.anchor)
		return refuse(r, event, "an anchor, expected a plain list");
	if (event->data.sequence_start.tag)
		return refuse(r, event, "a tag, expected a plain list");
	code = open_collection(r, event, NODE_LIST);
	if (code == 0)
		r->open->is_flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
	return code;
}

static int on_map(struct reader *r, const yaml_event_t *event)
{
	int code;

	if (event->data.mapping_start.anchor)
		return refuse(r, event, "an anchor, expected a plain map");
	if (event->data.mapping_start.tag)
		return refuse(r, event, "a tag, expected a plain map");
	code = open_collection(r, event, NODE_MAP);
	if (code == 0)
		r->open->is_flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
	return code;
}

static int on_close(struct reader *r, const yaml_event_t *event)
{
	r->open->end = offset_of(r, event->end_mark.index);
	r->open = r->open->parent;
	r->depth--;
	return 0;
}

static int on_document(struct reader *r, const yaml_event_t *event)
{
	if (r->has_document)
		return refuse(r, event, "a second document, expected one");
	if (event->data.document_start.version_directive ||
	    event->data.document_start.tag_directives.start !=
		    event->data.document_start.tag_directives.end)
		return refuse(r, event, "a directive, expected none");
	r->has_document = true;
	return 0;
}

static int on_alias(struct reader *r, const yaml_event_t *event)
{
	return refuse(r, event, "an alias, expected the value itself");
}

static int on_nothing(struct reader *r, const yaml_event_t *event)
{
	(void)r;
	(void)event;
	return 0;
}

static int (*const handlers[])(struct reader *, const yaml_event_t *) = {
	[YAML_NO_EVENT] = on_nothing,           [YAML_STREAM_START_EVENT] = on_nothing,
	[YAML_STREAM_END_EVENT] = on_nothing,   [YAML_DOCUMENT_START_EVENT] = on_document,
	[YAML_DOCUMENT_END_EVENT] = on_nothing, [YAML_ALIAS_EVENT] = on_alias,
	[YAML_SCALAR_EVENT] = on_scalar,        [YAML_SEQUENCE_START_EVENT] = on_list,
	[YAML_SEQUENCE_END_EVENT] = on_close,   [YAML_MAPPING_START_EVENT] = on_map,
	[YAML_MAPPING_END_EVENT] = on_close,
};

/* libyaml's own complaint, in our form. */
static int syntax_error(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	struct policy_mark mark;

	if (p->error == YAML_MEMORY_ERROR)
		return no_memory(r);
	if (r->size >= 3 && memcmp(r->bytes, "\xEF\xBB\xBF", 3) == 0)
		return node_fail(r->err, r->name, (struct policy_mark){ 1, 1 },
				 "a byte order mark, expected YAML without one; save the file as "
				 "UTF-8 without BOM");
	mark = p->error == YAML_READER_ERROR ? mark_at(r, p->problem_offset)
					     : mark_of(p->problem_mark);
	return node_fail(r->err, r->name, mark, "%s, expected YAML",
			 p->problem ? p->problem : "a syntax error");
}

static int read_events(struct reader *r)
{
	bool is_done = false;

	while (!is_done) {
		yaml_event_t event;
		int code;

		if (!yaml_parser_parse(&r->parser, &event))
			return syntax_error(r);
		code = handlers[event.type](r, &event);
		is_done = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
		if (code < 0)
			return code;
	}
	return 0;
}

int node_read(const struct policy_source *source, const void *bytes, size_t size,
	      const struct node **ret_root)
{
	struct reader r = {
		.arena = source->arena,
		.name = source->name,
		.bytes = bytes,
		.size = size,
		.err = source->err,
	};
	int code = check_text(&r);

	if (code < 0)
		return code;
	if (!yaml_parser_initialize(&r.parser))
		return no_memory(&r);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, size ? bytes : (const uint8_t *)"", size);
	code = read_events(&r);
	yaml_parser_delete(&r.parser);
	if (code < 0)
		return code;
	if (!r.root)
		return node_fail(source->err, source->name, (struct policy_mark){ 1, 1 },
				 "an empty file, expected version: 1");
	*ret_root = r.root;
	return 0;
}

const struct node *node_get(const struct node *map, const char *key)
{
	for (const struct node *node = map->first; node; node = node->next)
		if (str_is(node->key, key))
			return node;
	return NULL;
}
