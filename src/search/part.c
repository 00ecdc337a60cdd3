/*
 * One part of a pattern; see part.h. Most are a literal, "*" or "*.c", so the bytes before the
 * first and after the last wildcard are compared first, and for those nothing is left to do.
 */
#include "search/part.h"

#include <string.h>

#include "base/str.h"
#include "search/brace.h"

/* Length of the character at `text`; its code. What is no UTF-8 is a byte of its own kind. */
static size_t decode(const char *text, size_t size, uint32_t *ret_code)
{
	static const uint8_t masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	unsigned char first = (unsigned char)text[0];
	size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	*ret_code = first;
	if (length == 1)
		return 1;
	if (length > size || !str_is_utf8(text, length)) {
		*ret_code += PART_BYTE;
		return 1;
	}
	*ret_code &= masks[length];
	for (size_t i = 1; i < length; i++)
		*ret_code = *ret_code << 6 | ((unsigned char)text[i] & 0x3f);
	return length;
}

/* ---- compiling ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	struct glob_range ranges[4];
} posix_classes[] = {
	{ "alpha", { { 'A', 'Z' }, { 'a', 'z' } } },
	{ "digit", { { '0', '9' } } },
	{ "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } } },
	{ "upper", { { 'A', 'Z' } } },
	{ "lower", { { 'a', 'z' } } },
	{ "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } } },
	{ "space", { { ' ', ' ' }, { '\t', '\r' } } },
	{ "blank", { { ' ', ' ' }, { '\t', '\t' } } },
	{ "punct", { { '!', '/' }, { ':', '@' }, { '[', '`' }, { '{', '~' } } },
};

/* A part while it is compiled: each token takes at least a byte, so do most ranges. */
struct compiler {
	const char *text;
	size_t at, end;
	struct glob_token *tokens;
	struct glob_range *ranges;
	size_t token_count, range_count;
	struct refusal *refusal;
};

static int wrong(struct compiler *c, const char *what)
{
	return refuse(c->refusal, "invalid_pattern", "byte %zu: %s", c->at, what);
}

static int add_posix(struct compiler *c)
{
	const char *name = c->text + c->at + 2;
	size_t size = (size_t)(strstr(name, ":]") - name);

	for (size_t i = 0; i < ARRAY_SIZE(posix_classes); i++) {
		if (strlen(posix_classes[i].name) != size ||
		    memcmp(posix_classes[i].name, name, size) != 0)
			continue;
		for (size_t r = 0; r < 4 && posix_classes[i].ranges[r].first; r++)
			c->ranges[c->range_count++] = posix_classes[i].ranges[r];
		c->at += size + 4;
		return 0;
	}
	return wrong(c, "no class has this name");
}

/* One character of a class, without the backslash. */
static uint32_t class_char(struct compiler *c)
{
	uint32_t code;

	if (c->text[c->at] == '\\')
		c->at++;
	c->at += decode(c->text + c->at, c->end - c->at, &code);
	return code;
}

static int add_member(struct compiler *c, size_t close)
{
	size_t begin = c->at;
	struct glob_range range;

	if (c->text[c->at] == '[' && c->text[c->at + 1] == ':')
		return add_posix(c);
	range.first = range.last = class_char(c);
	if (c->text[c->at] == '-' && c->at + 1 < close) {
		c->at++;
		range.last = class_char(c);
	}
	if (range.last < range.first) {
		c->at = begin;
		return wrong(c, "this range ends before it begins");
	}
	c->ranges[c->range_count++] = range;
	return 0;
}

static int add_class(struct compiler *c)
{
	size_t begin = c->at, close = brace_class_end(c->text, c->at) - 1;
	struct glob_token *token = &c->tokens[c->token_count++];

	*token = (struct glob_token){ .kind = TOKEN_CLASS, .ranges = c->ranges + c->range_count };
	if (memchr(c->text + begin, '/', close - begin))
		return wrong(c, "no name holds a slash, so no class does");
	c->at++;
	token->is_negated = c->text[c->at] == '!' || c->text[c->at] == '^';
	c->at += token->is_negated;
	while (c->at < close)
		if (add_member(c, close) < 0)
			return -1;
	c->at = close + 1;
	token->range_count = (size_t)(c->ranges + c->range_count - token->ranges);
	return 0;
}

static int add_token(struct compiler *c)
{
	struct glob_token *token = &c->tokens[c->token_count];
	char byte = c->text[c->at];

	if (byte == '[')
		return add_class(c);
	*token = (struct glob_token){ .kind = byte == '*'   ? TOKEN_STAR
					      : byte == '?' ? TOKEN_ANY
							    : TOKEN_CHAR };
	if (byte == '*' && c->token_count > 0 && token[-1].kind == TOKEN_STAR) {
		c->at++;
		return 0;
	}
	c->token_count++;
	if (byte == '*' || byte == '?') {
		c->at++;
		return 0;
	}
	if (byte == '\\' && c->text[++c->at] == '/')
		return wrong(c, "a slash cannot be quoted");
	c->at += decode(c->text + c->at, c->end - c->at, &token->code);
	return 0;
}

/* The characters from `from` on, as they were before decode(); at most `room` bytes. */
static const char *literal(struct arena *arena, const struct compiler *c, size_t from, size_t to,
			   size_t *ret_size)
{
	char *text = arena_alloc(arena, 4 * (to - from) + 1), *at = text;

	if (!text)
		return NULL;
	for (size_t i = from; i < to; i++) {
		uint32_t code = c->tokens[i].code;

		if (code >= PART_BYTE) {
			*at++ = (char)(code - PART_BYTE);
		} else if (code < 0x80) {
			*at++ = (char)code;
		} else {
			unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

			*at++ = (char)((0xf00 >> more & 0xff) | code >> 6 * more);
			while (more-- > 0)
				*at++ = (char)(0x80 | (code >> 6 * more & 0x3f));
		}
	}
	*ret_size = (size_t)(at - text);
	return text;
}

static int find_literals(struct arena *arena, const struct compiler *c, struct glob_part *part)
{
	size_t head = 0, tail = c->token_count;

	while (head < c->token_count && c->tokens[head].kind == TOKEN_CHAR)
		head++;
	while (tail > head && c->tokens[tail - 1].kind == TOKEN_CHAR)
		tail--;
	part->head = literal(arena, c, 0, head, &part->head_size);
	part->tail = literal(arena, c, tail, c->token_count, &part->tail_size);
	part->has_star = tail - head == 1 && c->tokens[head].kind == TOKEN_STAR;
	part->is_simple = head == c->token_count || part->has_star;
	return part->head && part->tail ? 0 : -1;
}

int part_compile(const struct part_text *source, struct arena *arena, struct glob_part *ret_part,
		 struct refusal *refusal)
{
	size_t size = source->end - source->begin;
	struct compiler c = { source->text, source->begin, source->end, .refusal = refusal };
	struct glob_part part = { 0 };

	if (size == 2 && memcmp(source->text + source->begin, "**", 2) == 0) {
		*ret_part = (struct glob_part){ .is_anywhere = true };
		return 0;
	}
	c.tokens = arena_array(arena, size, sizeof *c.tokens);
	c.ranges = arena_array(arena, size, sizeof *c.ranges);
	if (!c.tokens || !c.ranges)
		return refuse(refusal, "enomem", "out of memory");
	while (c.at < source->end)
		if (add_token(&c) < 0)
			return -1;
	part.tokens = c.tokens;
	part.token_count = c.token_count;
	if (find_literals(arena, &c, &part) < 0)
		return refuse(refusal, "enomem", "out of memory");
	*ret_part = part;
	return 0;
}

/* ---- matching ------------------------------------------------------------------------------- */

static bool is_in_class(const struct glob_token *token, uint32_t code)
{
	for (size_t i = 0; i < token->range_count; i++)
		if (code >= token->ranges[i].first && code <= token->ranges[i].last)
			return !token->is_negated;
	return token->is_negated;
}

/* Bytes that a token takes at `name`, 0: it does not match. */
static size_t take(const struct glob_token *token, const char *name, size_t size)
{
	uint32_t code;
	size_t length = decode(name, size, &code);

	if (token->kind == TOKEN_CHAR)
		return code == token->code ? length : 0;
	if (token->kind == TOKEN_CLASS)
		return is_in_class(token, code) ? length : 0;
	return length;
}

/* Only the last star is ever taken back: what an earlier one could give, a later one can too. */
static bool tokens_match(const struct glob_part *part, const char *name, size_t size)
{
	size_t at = 0, token = 0, star = SIZE_MAX, star_at = 0, taken;

	while (at < size) {
		if (token < part->token_count && part->tokens[token].kind == TOKEN_STAR) {
			star = token++;
			star_at = at;
			continue;
		}
		taken = token < part->token_count ? take(&part->tokens[token], name + at, size - at)
						  : 0;
		if (taken > 0) {
			at += taken;
			token++;
		} else if (star != SIZE_MAX) {
			uint32_t code;

			star_at += decode(name + star_at, size - star_at, &code);
			at = star_at;
			token = star + 1;
		} else {
			return false;
		}
	}
	while (token < part->token_count && part->tokens[token].kind == TOKEN_STAR)
		token++;
	return token == part->token_count;
}

bool part_matches(const struct glob_part *part, const char *name, size_t size)
{
	if (size < part->head_size + part->tail_size ||
	    memcmp(name, part->head, part->head_size) != 0 ||
	    memcmp(name + size - part->tail_size, part->tail, part->tail_size) != 0)
		return false;
	if (part->is_simple)
		return part->has_star || size == part->head_size;
	return tokens_match(part, name, size);
}
