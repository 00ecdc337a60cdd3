/* See html.h. One place where a text becomes markup, so that there is one place to look at. */
#include "jobs/html.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/dump.h"
#include "base/str.h"

enum { PRINTED = 1024, WORD = 16 << 10, WORDS = 256 << 10 };

void html_init(struct html *html, size_t max)
{
	*html = (struct html){ 0 };
	buf_init(&html->buf, max);
}

void html_done(struct html *html)
{
	buf_done(&html->buf);
}

void html_add(struct html *html, const char *markup)
{
	if (html->error == 0)
		html->error = buf_add_text(&html->buf, markup);
}

void html_printf(struct html *html, const char *format, ...)
{
	char text[PRINTED];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof text)
		html->error = html->error ? html->error : -EMSGSIZE; /* half a tag is no tag */
	html_add(html, text);
}

/* One character that is safe to print, as HTML has it. */
static const char *entity(const char *letter)
{
	static const char *const entities[][2] = {
		{ "&", "&amp;" },   { "<", "&lt;" },  { ">", "&gt;" },
		{ "\"", "&quot;" }, { "'", "&#39;" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(entities); i++)
		if (str_is(letter, entities[i][0]))
			return entities[i][1];
	return letter;
}

void html_text(struct html *html, const void *data, size_t size, size_t most)
{
	const char *at = data, *shown;
	char one[STR_ESCAPED_MAX];
	size_t length, used = 0;

	for (; size > 0; at += length, size -= length) {
		length = str_escape_one(at, size, false, one);
		shown = entity(one);
		used += strlen(shown);
		if (used > most) {
			html_add(html, "…");
			return;
		}
		html_add(html, shown);
	}
}

void html_json(struct html *html, const json_t *value, size_t most)
{
	char *text = NULL;
	size_t size;

	if (json_is_string(value)) {
		html_text(html, json_string_value(value), json_string_length(value), most);
	} else if (value && dump_json((json_t *)value, DUMP_CANONICAL, &text, &size) == 0) {
		html_text(html, text, size, most);
		free(text);
	}
}

static bool is_words(const json_t *list)
{
	const json_t *word;
	size_t i;

	json_array_foreach(list, i, word)
		if (!json_is_string(word))
			return false;
	return json_is_array(list);
}

/* One that is too long, or that holds what no argument can, stands as it is. */
static void add_word(struct buf *text, const json_t *word)
{
	const char *plain = json_string_value(word);
	char quoted[WORD];

	if (strlen(plain) == json_string_length(word) &&
	    str_shell_word(plain, quoted, sizeof quoted) == 0)
		buf_add_text(text, quoted);
	else
		buf_add(text, plain, json_string_length(word));
}

void html_command(struct html *html, const json_t *argv, size_t most)
{
	_cleanup_buf_ struct buf text;
	const json_t *word;
	size_t i;

	if (!is_words(argv)) {
		html_json(html, argv, most);
		return;
	}
	buf_init(&text, WORDS);
	json_array_foreach(argv, i, word) {
		if (i > 0)
			buf_add_byte(&text, ' ');
		add_word(&text, word); /* what does not fit is beyond `most` */
	}
	html_text(html, buf_size(&text) ? buf_at(&text) : NULL, buf_size(&text), most);
}

void html_words(struct html *html, const json_t *words, size_t most)
{
	const json_t *word;
	size_t i, before = buf_size(&html->buf), used;

	if (!is_words(words)) {
		html_json(html, words, most);
		return;
	}
	html_add(html, json_array_size(words) ? "" : "none");
	json_array_foreach(words, i, word) {
		used = buf_size(&html->buf) - before;
		if (used >= most) {
			html_add(html, ", …");
			return;
		}
		html_add(html, i ? ", " : "");
		html_json(html, word, most - used);
	}
}

void html_count(struct html *html, int64_t number)
{
	char digits[32], text[48];
	size_t size = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number), used = 0;

	for (size_t i = 0; i < size; i++) {
		if (i > 0 && (size - i) % 3 == 0 && digits[i - 1] != '-')
			text[used++] = ',';
		text[used++] = digits[i];
	}
	text[used] = 0;
	html_add(html, text);
}

void html_duration(struct html *html, int64_t ms)
{
	long long seconds = (long long)ms / 1000, minutes = seconds / 60;

	if (ms < 1000)
		html_printf(html, "%lld ms", (long long)ms);
	else if (seconds < 60)
		html_printf(html, "%.1f s", (double)(ms / 100) / 10);
	else if (minutes < 60)
		html_printf(html, "%lld min %lld s", minutes, seconds % 60);
	else
		html_printf(html, "%lld h %lld min", minutes / 60, minutes % 60);
}

void html_size(struct html *html, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double number = (double)bytes;
	size_t unit = 0;

	for (; number >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
		number /= 1024;
	html_printf(html, unit ? "%.1f %s" : "%.0f %s", number, units[unit]);
}
