/*
 * Text helpers; see str.h. The pattern matcher keeps one backtracking point for `*`
 * and one for `**`: an older star never has to be tried again once a later one has
 * matched, so there is no exponential case (the trap in recursive globbing).
 */
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const uint64_t year_ms = UINT64_C(365) * 24 * 3600 * 1000;
static const uint64_t size_max = UINT64_C(1) << 53;

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{ "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 }
};

static const struct unit size_units[] = { { "GiB", UINT64_C(1) << 30 },
					  { "MiB", UINT64_C(1) << 20 },
					  { "KiB", UINT64_C(1) << 10 },
					  { "B", 1 },
					  { "", 1 } };

bool str_starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Digits at the start of `text`; returns how many, 0 if none, and clamps on overflow. */
static size_t scan_digits(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t n = 0;

	for (; text[n] >= '0' && text[n] <= '9'; n++) {
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[n] - '0'), &value))
			value = UINT64_MAX;
		if (n > 20)
			value = UINT64_MAX;
	}
	*ret_value = value;
	return n;
}

int str_parse_u64(const char *text, uint64_t max, uint64_t *ret_value)
{
	uint64_t value;
	size_t n = scan_digits(text, &value);

	if (n == 0 || text[n])
		return -EINVAL;
	if (n > 20 || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

static int parse_unit(const char *text, const struct unit *units, size_t count, uint64_t max,
		      uint64_t *ret_value)
{
	uint64_t value;
	size_t n = scan_digits(text, &value);

	if (n == 0)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (!str_is(text + n, units[i].name))
			continue;
		if (n > 19 || __builtin_mul_overflow(value, units[i].factor, &value) || value > max)
			return -ERANGE;
		*ret_value = value;
		return 0;
	}
	return -EINVAL;
}

int str_parse_duration(const char *text, uint64_t *ret_ms)
{
	return parse_unit(text, duration_units, ARRAY_SIZE(duration_units), year_ms, ret_ms);
}

int str_parse_size(const char *text, uint64_t *ret_bytes)
{
	return parse_unit(text, size_units, ARRAY_SIZE(size_units), size_max, ret_bytes);
}

static void format_unit(uint64_t value, const struct unit *units, char *ret_text, size_t size)
{
	while (units->factor > 1 && (value == 0 || value % units->factor))
		units++;
	snprintf(ret_text, size, "%" PRIu64 "%s", value / units->factor, units->name);
}

void str_format_duration(uint64_t ms, char *ret_text, size_t size)
{
	format_unit(ms, duration_units, ret_text, size);
}

void str_format_size(uint64_t bytes, char *ret_text, size_t size)
{
	format_unit(bytes, size_units, ret_text, size);
}

/* First bytes of UTF-8 sequences and what may follow them at once: table 3-7 of Unicode. */
static const struct {
	uint8_t first, last; /* range of the first byte */
	uint8_t more;        /* bytes that follow */
	uint8_t low, high;   /* range of the second byte */
} utf8_rows[] = {
	{ 0x01, 0x7F, 0, 0, 0 },       { 0xC2, 0xDF, 1, 0x80, 0xBF }, { 0xE0, 0xE0, 2, 0xA0, 0xBF },
	{ 0xE1, 0xEC, 2, 0x80, 0xBF }, { 0xED, 0xED, 2, 0x80, 0x9F }, { 0xEE, 0xEF, 2, 0x80, 0xBF },
	{ 0xF0, 0xF0, 3, 0x90, 0xBF }, { 0xF1, 0xF3, 3, 0x80, 0xBF }, { 0xF4, 0xF4, 3, 0x80, 0x8F },
};

/* Length of the well-formed sequence at `s`, 0 if there is none. */
static size_t utf8_length(const uint8_t *s, size_t size)
{
	for (size_t row = 0; row < ARRAY_SIZE(utf8_rows); row++) {
		size_t more = utf8_rows[row].more;

		if (s[0] < utf8_rows[row].first || s[0] > utf8_rows[row].last)
			continue;
		if (more == 0)
			return 1;
		if (size <= more || s[1] < utf8_rows[row].low || s[1] > utf8_rows[row].high)
			return 0;
		for (size_t i = 2; i <= more; i++)
			if ((s[i] & 0xC0) != 0x80)
				return 0;
		return more + 1;
	}
	return 0;
}

bool str_is_utf8(const void *data, size_t size)
{
	const uint8_t *s = data;

	while (size > 0) {
		size_t n = utf8_length(s, size);

		if (n == 0)
			return false;
		s += n;
		size -= n;
	}
	return true;
}

size_t str_decode(const void *data, size_t size, unsigned *ret_code)
{
	const uint8_t *at = data;
	size_t length = at[0] ? utf8_length(at, size) : 1;

	*ret_code = length > 1 ? at[0] & (0x7Fu >> length) : at[0];
	for (size_t i = 1; i < length; i++)
		*ret_code = *ret_code << 6 | (at[i] & 0x3Fu);
	return length;
}

bool str_is_unsafe(unsigned code)
{
	static const unsigned ranges[][2] = {
		{ 0x00, 0x1F },       { 0x7F, 0x9F },     { 0xAD, 0xAD },     { 0x34F, 0x34F },
		{ 0x61C, 0x61C },     { 0x115F, 0x1160 }, { 0x17B4, 0x17B5 }, { 0x180B, 0x180F },
		{ 0x200B, 0x200F },   { 0x2028, 0x202E }, { 0x2060, 0x206F }, { 0x2800, 0x2800 },
		{ 0x3164, 0x3164 },   { 0xFE00, 0xFE0F }, { 0xFEFF, 0xFEFF }, { 0xFFA0, 0xFFA0 },
		{ 0xE0000, 0xE0FFF },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (code >= ranges[i][0] && code <= ranges[i][1])
			return true;
	return false;
}

/* What has both looks, text and picture (Unicode's emoji-variation-sequences), but for digits and
 * signs of ASCII: behind one of them nobody sees a difference. */
static bool is_emoji(unsigned code)
{
	static const unsigned ranges[][2] = {
		{ 0xA9, 0xA9 },     { 0xAE, 0xAE },     { 0x203C, 0x203C }, { 0x2049, 0x2049 },
		{ 0x2122, 0x2122 }, { 0x2139, 0x2139 }, { 0x2194, 0x2199 }, { 0x21A9, 0x21AA },
		{ 0x231A, 0x231B }, { 0x2328, 0x2328 }, { 0x23CF, 0x23CF }, { 0x23E9, 0x23FA },
		{ 0x24C2, 0x24C2 }, { 0x25AA, 0x25AB }, { 0x25B6, 0x25B6 }, { 0x25C0, 0x25C0 },
		{ 0x25FB, 0x25FE }, { 0x2600, 0x27BF }, { 0x2934, 0x2935 }, { 0x2B05, 0x2B07 },
		{ 0x2B1B, 0x2B1C }, { 0x2B50, 0x2B50 }, { 0x2B55, 0x2B55 }, { 0x3030, 0x3030 },
		{ 0x303D, 0x303D }, { 0x3297, 0x3297 }, { 0x3299, 0x3299 }, { 0x1F000, 0x1FAFF },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (code >= ranges[i][0] && code <= ranges[i][1])
			return true;
	return false;
}

size_t str_safe_length(const void *data, size_t size)
{
	static const char picture[] = "\xEF\xB8\x8F"; /* U+FE0F, which chooses the picture */
	unsigned code;
	size_t n = str_decode(data, size, &code), more = sizeof picture - 1;

	if (n == 0 || str_is_unsafe(code))
		return 0;
	return is_emoji(code) && size - n >= more &&
			       memcmp((const char *)data + n, picture, more) == 0
		       ? n + more
		       : n;
}

size_t str_escape_one(const void *data, size_t size, bool keeps_lines,
		      char ret_text[STR_ESCAPED_MAX])
{
	const uint8_t *at = data;
	unsigned code = 0;
	size_t safe = str_safe_length(at, size);
	size_t length = safe ? safe : str_decode(at, size, &code);

	if (length == 0) {
		snprintf(ret_text, STR_ESCAPED_MAX, "\\x%02x", at[0]);
	} else if (safe || (keeps_lines && (code == '\n' || code == '\t'))) {
		memcpy(ret_text, at, length);
		ret_text[length] = 0;
	} else if (code == '\n') {
		snprintf(ret_text, STR_ESCAPED_MAX, "\\n");
	} else {
		snprintf(ret_text, STR_ESCAPED_MAX, code < 0x100 ? "\\x%02x" : "\\u{%x}", code);
	}
	return length ? length : 1;
}

void str_escape(const char *text, bool keeps_lines, char *ret_text, size_t size)
{
	size_t left = strlen(text), used = 0, length, step;
	char one[STR_ESCAPED_MAX];

	for (; left > 0; text += step, left -= step, used += length) {
		step = str_escape_one(text, left, keeps_lines, one);
		length = strlen(one);
		if (used + length >= size)
			break;
		memcpy(ret_text + used, one, length);
	}
	ret_text[used] = 0;
}

/* Length of the character at `at` if it may be printed, else 0. */
static size_t safe_length(const char *at)
{
	return str_safe_length(at, strnlen(at, 7));
}

/* Letters that no shell gives a meaning in a word; zsh does to `=` at its start. */
static bool is_plain_word(const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_-+./:,=@%";

	return *word && *word != '=' && !word[strspn(word, plain)];
}

static bool is_printable(const char *word)
{
	size_t n;

	for (; *word; word += n) {
		n = safe_length(word);
		if (n == 0)
			return false;
	}
	return true;
}

/*
 * What stands for the character at `at`, of `n` bytes (0: not to be printed, one byte of it). A
 * backslash stands outside the single quotes, where fish would take it for an escape. Within $'…'
 * there is no quote and no `!`: a shell that does not know the form ends at the same place.
 */
static void shell_letter(const char *at, size_t n, bool is_ansi, char ret_text[8])
{
	if (is_ansi && (n == 0 || *at == '\'' || *at == '!'))
		snprintf(ret_text, 8, *at == '\n' ? "\\n" : "\\%03o", (uint8_t)*at);
	else if (*at == '\\')
		snprintf(ret_text, 8, is_ansi ? "\\\\" : "'\\\\'");
	else if (*at == '\'')
		snprintf(ret_text, 8, "'\\''");
	else
		snprintf(ret_text, 8, "%.*s", (int)n, at);
}

int str_shell_word(const char *word, char *ret_text, size_t size)
{
	bool is_plain = is_plain_word(word), is_ansi = !is_printable(word);
	const char *before = is_plain ? "" : is_ansi ? "$'" : "'", *after = is_plain ? "" : "'";
	size_t used = strlen(before), end = used + strlen(after) + 1, n;
	char letter[8];

	*ret_text = 0;
	if (end > size)
		return -ENAMETOOLONG;
	memcpy(ret_text, before, used);
	for (; *word; word += n ? n : 1) {
		n = safe_length(word);
		shell_letter(word, n, is_ansi, letter);
		end += strlen(letter);
		if (end > size) {
			*ret_text = 0;
			return -ENAMETOOLONG;
		}
		memcpy(ret_text + used, letter, strlen(letter));
		used += strlen(letter);
	}
	memcpy(ret_text + used, after, strlen(after) + 1);
	return 0;
}

/* Matches one class "[...]" at *pattern against c; moves *pattern past it. */
static bool class_matches(const char **pattern, char c)
{
	const char *p = *pattern + 1;
	bool negate = *p == '!' || *p == '^', hit = false;

	if (negate)
		p++;
	for (bool first = true; *p && (first || *p != ']'); first = false) {
		char low = *p++, high = low;

		if (p[0] == '-' && p[1] && p[1] != ']') {
			high = p[1];
			p += 2;
		}
		hit |= c >= low && c <= high;
	}
	*pattern = *p ? p + 1 : p;
	return hit != negate && c != '/';
}

/* One pattern element other than a star against one character. */
static bool element_matches(const char **pattern, char c, bool path)
{
	if (**pattern == '[' && path)
		return class_matches(pattern, c);
	if (**pattern == '?') {
		++*pattern;
		return !path || c != '/';
	}
	if (**pattern == '\\' && path && (*pattern)[1])
		++*pattern;
	return *(*pattern)++ == c;
}

struct star {
	const char *pattern; /* after the star; NULL: no star yet */
	const char *text;    /* where its match ends so far */
	bool folders;        /* a "**" that stands for whole components: ends after a '/' only */
};

static bool retry(struct star *star, bool stop_at_slash, const char **p, const char **t)
{
	if (!star->pattern || !*star->text || (stop_at_slash && *star->text == '/'))
		return false;
	star->text++;
	while (star->folders && *star->text && star->text[-1] != '/')
		star->text++;
	*p = star->pattern;
	*t = star->text;
	return true;
}

/* Notes a star at *p and moves past it. A slash after "**" belongs to the star. */
static void note_star(const char **p, const char *t, bool path, struct star *one, struct star *all)
{
	bool both = path && (*p)[1] == '*';

	*p += both ? 2 : 1;
	if (path && !both) {
		*one = (struct star){ .pattern = *p, .text = t };
		return;
	}
	*all = (struct star){ .folders = both && **p == '/' };
	*p += all->folders ? 1 : 0;
	all->pattern = *p;
	all->text = t;
	*one = (struct star){ 0 };
}

/*
 * `one` failed: what follows it matches nowhere between where it began and where it ended. A match
 * of "**" that is longer lets it begin later, so only what lies beyond its end is worth trying:
 * nothing if the text ended there; the next component if it was stopped by a slash that nothing
 * between the two stars can match.
 */
static bool is_worth_more(const struct star *one, struct star *all)
{
	if (!one->pattern || !all->pattern)
		return true;
	if (!*one->text)
		return false;
	if (!memchr(all->pattern, '/', (size_t)(one->pattern - all->pattern)))
		all->text = one->text;
	return true;
}

static bool matches(const char *p, const char *t, bool path)
{
	struct star one = { 0 }, all = { 0 };

	while (*t || *p) {
		const char *next = p;

		if (*p == '*') {
			note_star(&p, t, path, &one, &all);
			continue;
		}
		if (*t && *p && element_matches(&next, *t, path)) {
			p = next;
			t++;
			continue;
		}
		if (retry(&one, true, &p, &t))
			continue;
		if (!is_worth_more(&one, &all))
			return false;
		one.pattern = NULL;
		if (!retry(&all, false, &p, &t))
			return false;
	}
	return true;
}

bool str_path_matches(const char *pattern, const char *path)
{
	const char *last = strrchr(path, '/');

	if (!strchr(pattern, '/') && last)
		path = last + 1;
	return matches(pattern, path, true);
}

bool str_path_covers(const char *pattern, const char *path)
{
	char part[PATH_MAX];

	snprintf(part, sizeof part, "%s", path);
	while (*part) {
		char *slash = strrchr(part, '/');

		if (str_path_matches(pattern, part))
			return true;
		*(slash ? slash : part) = 0;
	}
	return false;
}

bool str_matches(const char *pattern, const char *text)
{
	return matches(pattern, text, false);
}
