/*
 * html - a page that grows, and texts of somebody else's in it
 *
 * Text that a worker chose reaches a page through html_text() and html_json() alone: what could
 * move, hide or reorder other text is escaped as it is for a terminal (base/escape.h), and then
 * the five letters that mean something to HTML. Both say how much a text may take at most. A
 * failure (the ceiling, no memory) is kept in `error`; all later calls do nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"

struct html {
	struct buf buf;
	int error; /* 0, or the first failure: a negative errno */
};

/* Empty; `max` is the page's ceiling in bytes. html_done() frees what it holds. */
void html_init(struct html *html, size_t max);
void html_done(struct html *html);

/* Our own words and numbers, as they are: never a text from elsewhere. */
void html_add(struct html *html, const char *markup);
__attribute__((format(printf, 2, 3))) void html_printf(struct html *html, const char *format, ...);

/* `size` bytes of somebody else's as text or as the value of an attribute in quotes: at most `most`
 * bytes of the page, and "…" where it was cut. */
void html_text(struct html *html, const void *data, size_t size, size_t most);

/* The same for a value: a text as it is, anything else as compact JSON. NULL: nothing. */
void html_json(struct html *html, const json_t *value, size_t most);

/* A list of words as a shell takes them back, for a command; or parted by commas. What is no list
 * of texts is as html_json() has it. */
void html_command(struct html *html, const json_t *argv, size_t most);
void html_words(struct html *html, const json_t *words, size_t most);

/* "1,234,567". */
void html_count(struct html *html, int64_t number);

/* "850 ms", "12.4 s", "3 min 20 s", "5 h 12 min". */
void html_duration(struct html *html, int64_t ms);

/* "12 B", "3.4 KiB", "1.2 GiB". */
void html_size(struct html *html, uint64_t bytes);
