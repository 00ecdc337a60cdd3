/*
 * Takes secrets out of texts before they are written: known values wherever they occur, and
 * what looks like a key of a well-known kind.
 *
 * The scanner goes over the bytes once. A known value is looked for with memmem(), which is
 * linear, and its next place is remembered. A pattern may read ahead only a bounded number of
 * bytes unless it matches (then it is consumed), or must begin where a word begins, so that
 * no byte is read more than a few times: "eyJeyJeyJ..." is linear too.
 *
 * Matching is on raw bytes; UTF-8 is repaired afterwards, so a broken byte hides no secret.
 */
#include "audit/audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum {
	VALUE_MIN = 6, /* shorter ones occur by chance: redacting them would destroy the text */
	NAME_MAX_TEXT = 64,
	DEPTH_MAX = 64,
};

struct secret {
	char *name;  /* owned, valid UTF-8 */
	char *value; /* owned */
	size_t size;
};

struct redactor {
	struct secret *secrets; /* owned */
	size_t count;
};

struct span {
	const char *at;
	size_t size;
};

/* ---- patterns ------------------------------------------------------------------------------ */

enum { UPPER = 1, LOWER = 2, DIGIT = 4, DASH = 8, BAR = 16, SIGN = 32 };
#define WORD (UPPER | LOWER | DIGIT)

static unsigned char_class(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return UPPER;
	if (c >= 'a' && c <= 'z')
		return LOWER;
	if (c >= '0' && c <= '9')
		return DIGIT;
	if (c == '-')
		return DASH;
	if (c == '_')
		return BAR;
	return c && strchr(".~+/=", c) ? SIGN : 0;
}

/* How many bytes of `text` from `from` on, at most `max`, are of these classes. */
static size_t run_of(struct span text, size_t from, unsigned classes, size_t max)
{
	size_t n = 0;

	while (n < max && from + n < text.size &&
	       (char_class((unsigned char)text.at[from + n]) & classes))
		n++;
	return n;
}

static const struct pattern {
	const char *name;
	const char *prefix;
	unsigned classes; /* of what follows the prefix */
	size_t min;       /* fewer bytes are no key */
	size_t max;
	bool at_word_start; /* a prefix that words contain too: "task-..." */
	bool ignores_case;
} patterns[] = {
	{ "aws-access-key", "AKIA", UPPER | DIGIT, 16, 16, false, false },
	{ "aws-access-key", "ASIA", UPPER | DIGIT, 16, 16, false, false },
	{ "github-token", "ghp_", WORD, 30, SIZE_MAX, false, false },
	{ "github-token", "gho_", WORD, 30, SIZE_MAX, false, false },
	{ "github-token", "ghu_", WORD, 30, SIZE_MAX, false, false },
	{ "github-token", "ghs_", WORD, 30, SIZE_MAX, false, false },
	{ "github-token", "ghr_", WORD, 30, SIZE_MAX, false, false },
	{ "github-token", "github_pat_", WORD | BAR, 30, SIZE_MAX, false, false },
	{ "gitlab-token", "glpat-", WORD | DASH | BAR, 20, SIZE_MAX, false, false },
	{ "api-key", "sk-", WORD | DASH | BAR, 20, SIZE_MAX, true, false },
	{ "slack-token", "xoxb-", WORD | DASH, 10, SIZE_MAX, false, false },
	{ "slack-token", "xoxp-", WORD | DASH, 10, SIZE_MAX, false, false },
	{ "slack-token", "xoxa-", WORD | DASH, 10, SIZE_MAX, false, false },
	{ "bearer", "Bearer ", WORD | DASH | BAR | SIGN, 16, SIZE_MAX, true, true },
};

static bool is_at(struct span text, size_t from, const char *word, bool ignores_case)
{
	size_t size = strlen(word);

	if (size > text.size - from)
		return false;
	return (ignores_case ? strncasecmp(text.at + from, word, size)
			     : memcmp(text.at + from, word, size)) == 0;
}

static bool is_word_start(struct span text, size_t from)
{
	return from == 0 || !(char_class((unsigned char)text.at[from - 1]) & (WORD | DASH | BAR));
}

static size_t match_table(struct span text, size_t from, const char **ret_name)
{
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		const struct pattern *p = &patterns[i];
		size_t prefix, n;

		/* Two bytes are cheap to compare, and rarely equal. */
		if ((p->prefix[0] | 0x20) != (text.at[from] | 0x20) || text.size - from < 2 ||
		    (p->prefix[1] | 0x20) != (text.at[from + 1] | 0x20))
			continue;
		prefix = strlen(p->prefix);
		if (!is_at(text, from, p->prefix, p->ignores_case) ||
		    (p->at_word_start && !is_word_start(text, from)))
			continue;
		n = run_of(text, from + prefix, p->classes, p->max);
		if (n >= p->min) {
			*ret_name = p->name;
			return prefix + n;
		}
	}
	return 0;
}

/* eyJ….….…: three dotted parts, the first two of them JSON objects in base64. */
static size_t match_jwt(struct span text, size_t from, const char **ret_name)
{
	size_t at = from;

	if (!is_at(text, from, "eyJ", false) || !is_word_start(text, from))
		return 0;
	for (int part = 0; part < 3; part++) {
		size_t n = run_of(text, at, WORD | DASH | BAR, SIZE_MAX);

		if (n < 8 && part < 2)
			return 0;
		at += n;
		if (part < 2 && (at >= text.size || text.at[at++] != '.'))
			return 0;
	}
	*ret_name = "jwt";
	return at - from;
}

/* From -----BEGIN … PRIVATE KEY----- to the end line, or to the end of the text. */
static size_t match_private_key(struct span text, size_t from, const char **ret_name)
{
	static const char key[] = "PRIVATE KEY", end[] = "-----END ", dashes[] = "-----";
	size_t head = text.size - from < 64 ? text.size - from : 64;
	const char *at = text.at + from, *stop = text.at + text.size;

	if (!is_at(text, from, "-----BEGIN ", false) || !memmem(at, head, key, sizeof key - 1))
		return 0;
	*ret_name = "private-key";
	at = memmem(at, (size_t)(stop - at), end, sizeof end - 1);
	if (at)
		at = memmem(at + 9, (size_t)(stop - at) - 9, dashes, sizeof dashes - 1);
	return (size_t)((at ? at + 5 : stop) - (text.at + from));
}

/* The bytes that any pattern begins with: nearly every text is passed over here. */
static const bool begins[256] = { ['A'] = true, ['B'] = true, ['b'] = true, ['e'] = true,
				  ['g'] = true, ['s'] = true, ['x'] = true, ['-'] = true };

static size_t match_pattern(struct span text, size_t from, const char **ret_name)
{
	size_t size;

	if (!begins[(unsigned char)text.at[from]])
		return 0;
	size = match_table(text, from, ret_name);
	if (size == 0)
		size = match_jwt(text, from, ret_name);
	if (size == 0)
		size = match_private_key(text, from, ret_name);
	return size;
}

/* ---- known values ---------------------------------------------------------------------------- */

int redactor_new(struct redactor **ret_redactor)
{
	struct redactor *redactor = calloc(1, sizeof *redactor);

	if (!redactor)
		return -ENOMEM;
	*ret_redactor = redactor;
	return 0;
}

/* A sandbox that stays is told the same value with each call. */
static bool knows(const struct redactor *redactor, const char *value)
{
	for (size_t i = 0; i < redactor->count; i++)
		if (str_is(redactor->secrets[i].value, value))
			return true;
	return false;
}

int redactor_add(struct redactor *redactor, const char *name, const char *value)
{
	struct secret secret = { .size = strlen(value) }, *secrets;

	if (secret.size < VALUE_MIN || knows(redactor, value))
		return 0;
	secrets = realloc(redactor->secrets, (redactor->count + 1) * sizeof *secrets);
	if (!secrets)
		return -ENOMEM;
	redactor->secrets = secrets;
	secret.name = str_is_utf8(name, strlen(name)) && strlen(name) <= NAME_MAX_TEXT
			      ? strdup(name)
			      : strdup("secret");
	secret.value = strdup(value);
	if (!secret.name || !secret.value) {
		free(secret.name);
		free(secret.value);
		return -ENOMEM;
	}
	secrets[redactor->count++] = secret;
	return 0;
}

void redactor_free(struct redactor *redactor)
{
	if (!redactor)
		return;
	for (size_t i = 0; i < redactor->count; i++) {
		explicit_bzero(redactor->secrets[i].value, redactor->secrets[i].size);
		free(redactor->secrets[i].value);
		free(redactor->secrets[i].name);
	}
	free(redactor->secrets);
	free(redactor);
}

static size_t find(struct span text, size_t from, const struct secret *secret)
{
	const char *at = memmem(text.at + from, text.size - from, secret->value, secret->size);

	return at ? (size_t)(at - text.at) : SIZE_MAX;
}

/* The longest known value at `from`; `next[i]` is where secret i occurs next. */
static size_t match_known(const struct redactor *redactor, struct span text, size_t from,
			  size_t *next, const char **ret_name)
{
	size_t size = 0;

	for (size_t i = 0; redactor && i < redactor->count; i++) {
		const struct secret *secret = &redactor->secrets[i];

		if (next[i] < from)
			next[i] = find(text, from, secret);
		if (next[i] == from && secret->size > size) {
			size = secret->size;
			*ret_name = secret->name;
		}
	}
	return size;
}

/* ---- output ------------------------------------------------------------------------------ */

/* The length of the valid character at `at`, 0 if it is none. NUL counts as none. */
static size_t utf8_size(const char *at, size_t room)
{
	unsigned char c = (unsigned char)*at;
	size_t size = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	if (c < 0x80)
		return c != 0;
	return size <= room && str_is_utf8(at, size) ? size : 0;
}

static int add_char(struct buf *out, struct span text, size_t *from)
{
	size_t size = utf8_size(text.at + *from, text.size - *from);
	int r = size ? buf_add(out, text.at + *from, size) : buf_add(out, "\xef\xbf\xbd", 3);

	*from += size ? size : 1;
	return r;
}

/* A known value that begins inside what is redacted and ends behind it belongs to it. */
static size_t extend(const struct redactor *redactor, struct span text, size_t from, size_t size,
		     size_t *next)
{
	for (size_t i = 0; redactor && i < redactor->count; i++) {
		while (next[i] < from + size) {
			if (next[i] + redactor->secrets[i].size > from + size)
				size = next[i] + redactor->secrets[i].size - from;
			next[i] = find(text, next[i] + 1, &redactor->secrets[i]);
		}
	}
	return size;
}

static int redact(const struct redactor *redactor, struct span text, size_t *next, struct buf *out)
{
	size_t from = 0;
	int r = 0;

	while (from < text.size && r == 0) {
		const char *name = NULL;
		size_t size = match_known(redactor, text, from, next, &name);

		if (size == 0)
			size = match_pattern(text, from, &name);
		if (size)
			size = extend(redactor, text, from, size, next);
		from += size;
		r = size ? buf_printf(out, "[REDACTED:%s]", name) : add_char(out, text, &from);
	}
	return r;
}

/* Nothing to take out and nothing to repair: so it is with nearly every text. */
static bool is_clean(const struct redactor *redactor, struct span text)
{
	const char *name;

	for (size_t i = 0; redactor && i < redactor->count; i++)
		if (find(text, 0, &redactor->secrets[i]) != SIZE_MAX)
			return false;
	for (size_t from = 0; from < text.size; from++)
		if (text.at[from] == 0 || match_pattern(text, from, &name))
			return false;
	return str_is_utf8(text.at, text.size);
}

json_t *redact_text(const struct redactor *redactor, const void *data, size_t size)
{
	struct span text = { .at = data, .size = size };
	size_t count = redactor ? redactor->count : 0, *next;
	_cleanup_buf_ struct buf out = { 0 };
	json_t *value = NULL;

	if (size > SIZE_MAX / 32)
		return NULL;
	if (is_clean(redactor, text))
		return json_stringn_nocheck(size ? data : "", size);
	buf_init(&out, size * 16 + 4096); /* 64 + 11 bytes of name for 6 of value at the worst */
	next = calloc(count + 1, sizeof *next);
	if (!next)
		return NULL;
	for (size_t i = 0; i < count; i++)
		next[i] = find(text, 0, &redactor->secrets[i]);
	if (redact(redactor, text, next, &out) == 0)
		value = json_stringn_nocheck(out.data ? (char *)buf_at(&out) : "", buf_size(&out));
	free(next);
	return value;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Is there nothing to change in it? Then it is shared, not copied. */
static bool is_clean_value(const struct redactor *redactor, json_t *value, unsigned depth)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_string(value))
		return is_clean(redactor, (struct span){ json_string_value(value),
							 json_string_length(value) });
	if (!json_is_object(value) && !json_is_array(value))
		return true;
	if (depth == 0)
		return false;
	json_object_foreach(value, key, item) {
		if (!is_clean(redactor, (struct span){ key, strlen(key) }) ||
		    !is_clean_value(redactor, item, depth - 1))
			return false;
	}
	json_array_foreach(value, i, item) {
		if (!is_clean_value(redactor, item, depth - 1))
			return false;
	}
	return true;
}

static json_t *redact_value(const struct redactor *redactor, json_t *value, unsigned depth);

static int redact_pair(const struct redactor *redactor, json_t *copy, const char *key,
		       json_t *clean)
{
	json_t *name = redact_text(redactor, key, strlen(key));
	int r = name ? json_object_set_new(copy, json_string_value(name), clean) : -1;

	if (!name)
		json_decref(clean);
	json_decref(name);
	return r;
}

static json_t *redact_items(const struct redactor *redactor, json_t *value, unsigned depth)
{
	json_t *copy = json_is_object(value) ? json_object() : json_array(), *item;
	const char *key;
	size_t i;
	int r = copy ? 0 : -1;

	json_object_foreach(value, key, item) {
		if (r == 0)
			r = redact_pair(redactor, copy, key, redact_value(redactor, item, depth));
	}
	json_array_foreach(value, i, item) {
		if (r == 0)
			r = json_array_append_new(copy, redact_value(redactor, item, depth));
	}
	if (r == 0)
		return copy;
	json_decref(copy);
	return NULL;
}

static json_t *redact_value(const struct redactor *redactor, json_t *value, unsigned depth)
{
	if (json_is_string(value))
		return redact_text(redactor, json_string_value(value), json_string_length(value));
	if (!json_is_object(value) && !json_is_array(value))
		return json_incref(value);
	return depth ? redact_items(redactor, value, depth - 1) : json_string("[cut: too deep]");
}

json_t *redact_json(const struct redactor *redactor, json_t *value)
{
	if (is_clean_value(redactor, value, DEPTH_MAX))
		return json_incref(value);
	return redact_value(redactor, value, DEPTH_MAX);
}
