/*
 * page_parts - the sections of the page, each by its file
 */
#pragma once

#include "jobs/page.h"

/* The style sheet and its hash as a policy names it, made by tools/embed from page.css. */
extern const char page_css[], page_css_digest[];

/* What was used against its ceilings: a table, and a plot of each. */
void page_budgets(const struct page *page, struct html *html);

/* Launches, ceilings, iterations, checkpoints, ends, in the order of the chain. */
void page_timeline(const struct page *page, struct html *html);

/* What the sandbox refused, equal ones folded. */
void page_violations(const struct page *page, struct html *html);

/* Each launch as it was set up and as it ended. */
void page_launches(const struct page *page, struct html *html);

/* What lies in the folder, and what of it the record vouches for. */
void page_folder(const struct page *page, struct html *html);

/* Reports of other kinds: how many, and the first and last of them. */
void page_said(const struct page *page, struct html *html);

/* A row's text, with "…" where the story or the page cut it. */
void page_text(struct html *html, const struct story_text *text, size_t most);

/* A time of the chain as people read it, in <time>. */
void page_time(struct html *html, const char *time);

/* An amount in its unit; the word for none is the caller's. */
void page_amount(struct html *html, enum story_used used, int64_t amount);

/* "Cost", "Running time", "Tokens", "Iterations". */
const char *page_used_name(enum story_used used);

/* The start of a section with a heading, of a table that may be wider than the page, and its end.
 * Our own words. `head` is the cells of its first row, parted by '|'. */
void page_section(struct html *html, const char *id, const char *heading);
void page_table(struct html *html, const char *caption, const char *head);
void page_table_end(struct html *html);
