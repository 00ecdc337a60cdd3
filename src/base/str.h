/*
 * Text: comparisons, numbers with units, path patterns
 *
 * Every number from outside is parsed here, with a range; nothing else in the tree
 * turns text into an integer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))

static inline bool str_is(const char *a, const char *b)
{
	return __builtin_strcmp(a, b) == 0;
}

/* Does `text` begin with `prefix`? */
bool str_starts(const char *text, const char *prefix);

/* Decimal digits only, no sign, no blank, at most `max`. 0, -EINVAL or -ERANGE. */
int str_parse_u64(const char *text, uint64_t max, uint64_t *ret_value);

/*
 * "500ms", "45s", "3m", "2h" to milliseconds. A bare number is refused (-EINVAL): a
 * reader cannot tell its unit. -ERANGE above a year.
 */
int str_parse_duration(const char *text, uint64_t *ret_ms);

/* "512MiB", "64KiB", "1GiB", "4096B" or a bare number of bytes, to bytes; at most 2^53. */
int str_parse_size(const char *text, uint64_t *ret_bytes);

/* The shortest exact form of the same two, for messages. `size` >= 32. */
void str_format_duration(uint64_t ms, char *ret_text, size_t size);
void str_format_size(uint64_t bytes, char *ret_text, size_t size);

/* Is it valid UTF-8 without NUL and without surrogates (RFC 3629)? */
bool str_is_utf8(const void *data, size_t size);

/* Length of the UTF-8 sequence at `data` (`size` bytes, 1 or more) and its code point; 0: none. */
size_t str_decode(const void *data, size_t size, unsigned *ret_code);

/*
 * Could a character move a cursor, change a colour or reorder text: control characters,
 * bidirectional marks, what has no width? Such a one is never printed as it is.
 */
bool str_is_unsafe(unsigned code);

/*
 * Length of the character at `data` (`size` bytes, 1 or more) if it may be printed as it is, else
 * 0. An emoji with the selector that makes it a picture is one; alone that is unsafe.
 */
size_t str_safe_length(const void *data, size_t size);

enum { STR_ESCAPED_MAX = 16 };

/*
 * The first character of `data` (`size` bytes, 1 or more) as it is printed: itself, or \xNN, \n or
 * \u{NNNN} for one that is unsafe and for a byte that is no UTF-8; with `keeps_lines` newlines and
 * tabs stay. Returns how many bytes of `data` it was.
 */
size_t str_escape_one(const void *data, size_t size, bool keeps_lines,
		      char ret_text[STR_ESCAPED_MAX]);

/* All of `text` so, cut between two characters where `size` is too small. Allocates nothing. */
void str_escape(const char *text, bool keeps_lines, char *ret_text, size_t size);

/*
 * `word` as any shell takes it back, for a command that a person pastes: as it is, in single
 * quotes, or, where it holds what must not be printed, as $'…' (POSIX 2024; harmless text to a
 * shell that does not know it). 0, or -ENAMETOOLONG and "" when it does not fit: half a word is
 * no word.
 */
int str_shell_word(const char *word, char *ret_text, size_t size);

/*
 * Does a slash-separated path match a pattern? `*` and `?` stop at '/', `**` crosses
 * it, `[a-z]` and `[!a-z]` are classes, '\' quotes. A pattern without '/' is matched
 * against the last component, as in .gitignore. Linear in practice, and never worse
 * than pattern length times path length.
 */
bool str_path_matches(const char *pattern, const char *path);

/* Does the pattern match the path, or a folder above it? */
bool str_path_covers(const char *pattern, const char *path);

/* Does a whole text match a pattern in which only `*` and `?` are special? */
bool str_matches(const char *pattern, const char *text);
