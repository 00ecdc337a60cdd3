/* The scanner behind split.h: Lua's tokens, and how deep the blocks and brackets are. */
#include "split.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	KIND_END,      /* of the source, or of what can be read */
	KIND_NAME,     /* may be called: f, (f) */
	KIND_CLOSE,    /* ) ] }: the same */
	KIND_VALUE,    /* 1, true, nil, ..., break: nothing is called by it */
	KIND_STRING,   /* a value, or the argument of what stands before */
	KIND_OPEN,     /* ( [ {: begins a value, or goes on */
	KIND_UNARY,    /* not #: begins a value */
	KIND_OPERATOR, /* between two values; - and ~ too */
	KIND_DOT,      /* . : of a name */
	KIND_START,    /* local if while for repeat return goto do ::, begins a statement */
	KIND_FUNCTION,
	KIND_BLOCK_END, /* end */
	KIND_WORD,      /* then else elseif in until: inside of a statement */
	KIND_SEMICOLON,
};

struct token {
	enum kind kind;
	size_t at, size;
};

struct scan {
	char *text;
	size_t size, at, line;
	struct token last;  /* of this part; KIND_END: none yet */
	struct token first; /* of this part */
	unsigned depth;     /* blocks and brackets */
	bool awaits_do;     /* of a while or for at the top */
	bool is_block;      /* the part is complete with its `end` */
	bool has_label;     /* somewhere at the top */
	size_t part_at, part_line;
	struct split *split;
};

static const struct {
	const char *word;
	enum kind kind;
} words[] = {
	{ "and", KIND_OPERATOR }, { "break", KIND_VALUE },  { "do", KIND_START },
	{ "else", KIND_WORD },    { "elseif", KIND_WORD },  { "end", KIND_BLOCK_END },
	{ "false", KIND_VALUE },  { "for", KIND_START },    { "function", KIND_FUNCTION },
	{ "goto", KIND_START },   { "if", KIND_START },     { "in", KIND_WORD },
	{ "local", KIND_START },  { "nil", KIND_VALUE },    { "not", KIND_UNARY },
	{ "or", KIND_OPERATOR },  { "repeat", KIND_START }, { "return", KIND_START },
	{ "then", KIND_WORD },    { "true", KIND_VALUE },   { "until", KIND_WORD },
	{ "while", KIND_START },
};

static bool is_word(const struct scan *scan, const struct token *token, const char *word)
{
	return token->size == strlen(word) &&
	       memcmp(scan->text + token->at, word, token->size) == 0;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static int peek(const struct scan *scan, size_t ahead)
{
	return scan->at + ahead < scan->size ? (unsigned char)scan->text[scan->at + ahead] : -1;
}

static void skip(struct scan *scan, size_t count)
{
	for (; count > 0 && scan->at < scan->size; count--)
		scan->line += scan->text[scan->at++] == '\n';
}

/* `[[` or `[==[`: the number of `=` plus 2; 0: it is none. */
static size_t long_bracket(const struct scan *scan)
{
	size_t level = 0;

	if (peek(scan, 0) != '[')
		return 0;
	while (peek(scan, 1 + level) == '=')
		level++;
	return peek(scan, 1 + level) == '[' ? level + 2 : 0;
}

/* Whether it ends. */
static bool skip_long(struct scan *scan, size_t width)
{
	for (skip(scan, width); scan->at < scan->size; skip(scan, 1)) {
		size_t level = 0;

		if (peek(scan, 0) != ']')
			continue;
		while (peek(scan, 1 + level) == '=')
			level++;
		if (level == width - 2 && peek(scan, 1 + level) == ']') {
			skip(scan, width);
			return true;
		}
	}
	return false;
}

/* \z and \ before a line's end go on behind it; what else is escaped does not matter. */
static bool skip_string(struct scan *scan)
{
	int quote = peek(scan, 0);

	for (skip(scan, 1); scan->at < scan->size; skip(scan, 1)) {
		int c = peek(scan, 0);

		if (c == '\\' && peek(scan, 1) == 'z') {
			for (skip(scan, 2); isspace(peek(scan, 0));)
				skip(scan, 1);
			if (peek(scan, 0) < 0)
				return false;
			c = peek(scan, 0);
		}
		if (c == quote) {
			skip(scan, 1);
			return true;
		}
		if (c == '\\')
			skip(scan, 1);
		else if (c == '\n')
			return false;
	}
	return false;
}

static void skip_number(struct scan *scan)
{
	bool is_hex = peek(scan, 0) == '0' && (peek(scan, 1) == 'x' || peek(scan, 1) == 'X');

	for (;; skip(scan, 1)) {
		int c = peek(scan, 0), next = peek(scan, 1);
		bool is_exponent = is_hex ? c == 'p' || c == 'P' : c == 'e' || c == 'E';

		if (is_exponent && (next == '+' || next == '-'))
			skip(scan, 1);
		else if (!isalnum(c) && c != '.' && c != '_')
			return;
	}
}

static bool skip_blank(struct scan *scan)
{
	size_t width;

	for (;;) {
		while (isspace(peek(scan, 0)))
			skip(scan, 1);
		if (peek(scan, 0) != '-' || peek(scan, 1) != '-')
			return true;
		skip(scan, 2);
		width = long_bracket(scan);
		if (width > 0 && !skip_long(scan, width))
			return false;
		while (width == 0 && peek(scan, 0) >= 0 && peek(scan, 0) != '\n')
			skip(scan, 1);
	}
}

static enum kind word_kind(const struct scan *scan, const struct token *token)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (is_word(scan, token, words[i].word))
			return words[i].kind;
	return KIND_NAME;
}

static enum kind mark_kind(struct scan *scan)
{
	static const struct {
		const char *text;
		enum kind kind;
	} marks[] = { { "...", KIND_VALUE },   { "..", KIND_OPERATOR }, { "::", KIND_START },
		      { "==", KIND_OPERATOR }, { "~=", KIND_OPERATOR }, { "<=", KIND_OPERATOR },
		      { ">=", KIND_OPERATOR }, { "//", KIND_OPERATOR }, { "<<", KIND_OPERATOR },
		      { ">>", KIND_OPERATOR }, { "(", KIND_OPEN },      { "[", KIND_OPEN },
		      { "{", KIND_OPEN },      { ")", KIND_CLOSE },     { "]", KIND_CLOSE },
		      { "}", KIND_CLOSE },     { "#", KIND_UNARY },     { ".", KIND_DOT },
		      { ":", KIND_DOT },       { ";", KIND_SEMICOLON } };

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		size_t n = strlen(marks[i].text);

		if (scan->size - scan->at >= n &&
		    memcmp(scan->text + scan->at, marks[i].text, n) == 0) {
			skip(scan, n);
			return marks[i].kind;
		}
	}
	skip(scan, 1);
	return KIND_OPERATOR;
}

/* KIND_END for what does not end, too: the rest is one part, and the compiler says what it is. */
static struct token next_token(struct scan *scan)
{
	struct token token = { KIND_END, 0, 0 };
	bool is_whole = skip_blank(scan);
	size_t width;
	int c = peek(scan, 0);

	token.at = scan->at;
	if (!is_whole || c < 0)
		return token;
	width = long_bracket(scan);
	if (isalpha(c) || c == '_') {
		while (isalnum(peek(scan, 0)) || peek(scan, 0) == '_')
			skip(scan, 1);
		token.size = scan->at - token.at;
		token.kind = word_kind(scan, &token);
	} else if (isdigit(c) || (c == '.' && isdigit(peek(scan, 1)))) {
		skip_number(scan);
		token.kind = KIND_VALUE;
	} else if (width > 0 || c == '"' || c == '\'') {
		is_whole = width > 0 ? skip_long(scan, width) : skip_string(scan);
		token.kind = is_whole ? KIND_STRING : KIND_END;
	} else {
		token.kind = mark_kind(scan);
	}
	token.size = scan->at - token.at;
	return token;
}

/* ---- where a statement ends ------------------------------------------------------------------ */

static bool ends_value(enum kind kind)
{
	return kind == KIND_NAME || kind == KIND_CLOSE || kind == KIND_VALUE ||
	       kind == KIND_STRING || kind == KIND_BLOCK_END;
}

/* Does `token` begin a statement, after scan->last at the top? */
static bool begins(const struct scan *scan, const struct token *token)
{
	enum kind last = scan->last.kind;

	if (last == KIND_END || token->kind == KIND_END || scan->depth > 0 ||
	    (scan->awaits_do && token->kind == KIND_START && is_word(scan, token, "do")))
		return false;
	if (scan->is_block)
		return true;
	if (!ends_value(last))
		return false;
	switch (token->kind) {
	case KIND_NAME:
	case KIND_VALUE:
	case KIND_UNARY:
	case KIND_START:
	case KIND_FUNCTION:
		return true;
	case KIND_STRING:
	case KIND_OPEN: /* an argument, of what can be called */
		return last == KIND_VALUE || last == KIND_BLOCK_END;
	default:
		return false;
	}
}

static int add_part(struct scan *scan, size_t end)
{
	struct split *split = scan->split;
	struct split_part *parts = split->parts;

	while (end > scan->part_at && isspace((unsigned char)scan->text[end - 1]))
		end--;
	if (split->count == split->room) {
		split->room = split->room ? 2 * split->room : 16;
		parts = realloc(parts, split->room * sizeof *parts);
		if (!parts)
			return -ENOMEM;
		split->parts = parts;
	}
	parts[split->count++] =
		(struct split_part){ scan->part_at, end - scan->part_at, scan->part_line, true };
	return 0;
}

static void start_part(struct scan *scan, const struct token *token, size_t line)
{
	scan->part_at = token->at;
	scan->part_line = line;
	scan->first = *token;
	scan->last = (struct token){ KIND_END, 0, 0 };
	scan->awaits_do = scan->is_block = false;
}

static bool is_first(const struct scan *scan, const char *word)
{
	return is_word(scan, &scan->first, word);
}

/* `do` belongs to the loop whose head stands before it, or is a block of its own. */
static void count_depth(struct scan *scan, const struct token *token)
{
	bool opens = token->kind == KIND_OPEN || token->kind == KIND_FUNCTION ||
		     (token->kind == KIND_START &&
		      (is_word(scan, token, "do") || is_word(scan, token, "if") ||
		       is_word(scan, token, "repeat")));
	bool closes = token->kind == KIND_CLOSE || token->kind == KIND_BLOCK_END ||
		      (token->kind == KIND_WORD && is_word(scan, token, "until"));

	if (scan->depth == 0 && token->kind == KIND_START) {
		if (is_word(scan, token, "while") || is_word(scan, token, "for"))
			scan->awaits_do = true;
		else if (is_word(scan, token, "do"))
			scan->awaits_do = false;
	}
	if (scan->depth == 0 && (is_word(scan, token, "goto") || is_word(scan, token, "::")))
		scan->has_label = true;
	scan->depth += opens;
	scan->depth -= closes && scan->depth > 0;
}

/* A function with a name, a loop, a branch: complete with the `end` that brings it to the top. */
static bool is_complete(const struct scan *scan, const struct token *token)
{
	static const char *const blocks[] = { "do", "if", "while", "for" };

	if (token->kind != KIND_BLOCK_END || scan->depth > 0 || scan->awaits_do)
		return false;
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
		if (is_first(scan, blocks[i]))
			return true;
	return false;
}

static int take(struct scan *scan, const struct token *token, size_t line)
{
	int r;

	if (scan->depth == 0 && token->kind == KIND_SEMICOLON) {
		r = scan->last.kind == KIND_END ? 0 : add_part(scan, token->at);
		scan->last = (struct token){ KIND_END, 0, 0 };
		return r;
	}
	if (begins(scan, token)) {
		r = add_part(scan, scan->last.at + scan->last.size);
		if (r < 0)
			return r;
		scan->last = (struct token){ KIND_END, 0, 0 };
	}
	if (scan->last.kind == KIND_END)
		start_part(scan, token, line);
	count_depth(scan, token);
	scan->is_block = is_complete(scan, token);
	scan->last = *token;
	return 0;
}

static int cut(struct scan *scan)
{
	struct token token;
	int r;

	do {
		size_t line;

		skip_blank(scan);
		line = scan->line;
		token = next_token(scan);
		r = token.kind == KIND_END ? 0 : take(scan, &token, line);
	} while (r == 0 && token.kind != KIND_END);
	if (r == 0 && token.at < scan->size) { /* something that does not end */
		if (scan->last.kind == KIND_END)
			start_part(scan, &token, scan->line);
		return add_part(scan, scan->size);
	}
	return r == 0 && scan->last.kind != KIND_END ? add_part(scan, scan->size) : r;
}

/* ---- variables of the session ---------------------------------------------------------------- */

static void blank(struct scan *scan, const struct token *token)
{
	memset(scan->text + token->at, ' ', token->size);
}

/* `<const>` says nothing where every variable is one; `<close>` would have to close it. */
static int blank_attribute(struct scan *scan, struct token *token)
{
	struct token name = next_token(scan), closing = next_token(scan);

	if (is_word(scan, &name, "close"))
		return -EINVAL;
	if (name.kind != KIND_NAME || !is_word(scan, &closing, ">"))
		return 0; /* no Lua: the compiler says so */
	blank(scan, token);
	blank(scan, &name);
	blank(scan, &closing);
	return 0;
}

/* A part that begins with `local`. */
static int make_global(struct scan *scan, struct split_part *part)
{
	struct token local, token;

	scan->at = part->at;
	scan->size = part->at + part->size;
	local = next_token(scan);
	if (!is_word(scan, &local, "local"))
		return 0;
	token = next_token(scan);
	part->has_value = token.kind != KIND_NAME;
	for (; token.kind != KIND_END; token = next_token(scan)) {
		if (is_word(scan, &token, "<") && blank_attribute(scan, &token) < 0)
			return -EINVAL;
		if (is_word(scan, &token, "=")) {
			part->has_value = true;
			break;
		}
		if (token.kind == KIND_FUNCTION)
			break;
	}
	blank(scan, &local);
	return 0;
}

static void join(struct split *split, size_t size)
{
	struct split_part *parts = split->parts;

	for (size_t i = 0; i < split->count; i++)
		if (!parts[i].has_value)
			return; /* `local x` beside a label: left as it was cut */
	parts[0].size = size - parts[0].at;
	split->count = 1;
}

int split_source(char *source, size_t size, struct split *ret_split)
{
	struct scan scan = {
		.text = source, .size = size, .line = 1, .split = ret_split, .part_line = 1
	};
	int r;

	*ret_split = (struct split){ 0 };
	r = cut(&scan);
	for (size_t i = 0; r == 0 && i < ret_split->count; i++) {
		struct split_part *part = &ret_split->parts[i];

		if (make_global(&scan, part) < 0) {
			ret_split->error = "local <close> is restricted: a session's variable is "
					   "never closed";
			ret_split->error_line = part->line;
			return -EINVAL;
		}
	}
	if (r == 0 && scan.has_label && ret_split->count > 0)
		join(ret_split, size);
	return r;
}

void split_done(struct split *split)
{
	free(split->parts);
	*split = (struct split){ 0 };
}
