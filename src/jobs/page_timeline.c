/*
 * The timeline: two lists of the story, turns and progress, in the order of the chain. Where the
 * story kept no rows, one says how many there were.
 */
#include "jobs/page_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { CELL = 900, LISTS = 2, ITEMS = LISTS * (STORY_FIRST + STORY_LAST + 1) };

struct item {
	uint64_t order;              /* of the line, doubled: a gap stands before one */
	const struct story_row *row; /* NULL: a gap */
	uint64_t omitted;
	const char *what;
};

static size_t add_list(const struct story_list *list, const char *what, struct item *items)
{
	size_t kept = story_kept(list), count = 0;

	for (size_t i = 0; i < kept; i++) {
		const struct story_row *row = story_row(list, i);

		if (i == STORY_FIRST && list->count > kept)
			items[count++] = (struct item){ .order = row->seq * 2 - 1,
							.omitted = list->count - kept,
							.what = what };
		items[count++] = (struct item){ .order = row->seq * 2, .row = row };
	}
	return count;
}

static int by_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

/* ---- what a row says ------------------------------------------------------------------------ */

static void say_limits(const struct story_row *row, bool has_old, struct html *html)
{
	const char *comma = "";

	for (int i = 0; i < STORY_USED; i++) {
		enum story_used used = (enum story_used)i;
		int64_t now = story_ceiling(&row->limits, used);
		int64_t old = story_ceiling(&row->old, used);

		if (has_old ? now == old : now < 0)
			continue;
		html_printf(html, "%s%s ", comma, page_used_name(used));
		if (has_old && old < 0)
			html_add(html, "none → ");
		if (has_old && old >= 0) {
			page_amount(html, used, old);
			html_add(html, " → ");
		}
		if (now < 0)
			html_add(html, "none");
		else
			page_amount(html, used, now);
		comma = "; ";
	}
	if (!*comma)
		html_add(html, "none");
}

static void say_made(const struct story_row *row, struct html *html)
{
	html_add(html, "Ceilings: ");
	say_limits(row, false, html);
}

static void say_launch(const struct story_row *row, struct html *html)
{
	html_printf(html, "Launch %lld", (long long)row->number);
	if (!row->name[0])
		return;
	html_add(html, ", after it was ");
	html_text(html, str_is(row->name, "running") ? "lost" : row->name,
		  strlen(str_is(row->name, "running") ? "lost" : row->name), CELL);
}

static void say_ceilings(const struct story_row *row, struct html *html)
{
	say_limits(row, true, html);
}

static void say_end(const struct story_row *row, struct html *html)
{
	html_text(html, row->name, strlen(row->name), CELL);
	if (row->text.size) {
		html_add(html, ": ");
		page_text(html, &row->text, CELL);
	}
	html_printf(html, ", status %lld", (long long)row->number);
}

static void say_iteration(const struct story_row *row, struct html *html)
{
	html_add(html, "Iteration ");
	html_count(html, row->number);
	html_add(html, row->text.size ? ": <span class=\"said\">" : "<span>");
	page_text(html, &row->text, CELL);
	html_add(html, "</span>");
}

static void say_text(const struct story_row *row, struct html *html)
{
	html_add(html, "<span class=\"said\">");
	page_text(html, &row->text, CELL);
	html_add(html, "</span>");
}

static const struct {
	const char *name;
	void (*say)(const struct story_row *row, struct html *html);
} kinds[] = {
	[STORY_MADE] = { "made", say_made },
	[STORY_LAUNCH] = { "launch", say_launch },
	[STORY_CEILING] = { "ceilings", say_ceilings },
	[STORY_APPROVED] = { "approved", say_text },
	[STORY_END] = { "end", say_end },
	[STORY_ITERATION] = { "iteration", say_iteration },
	[STORY_CHECKPOINT] = { "checkpoint", say_text },
	[STORY_SAID] = { "report", say_text },
	[STORY_REFUSED] = { "refused", say_text },
};

static void print_row(const struct story_row *row, struct html *html)
{
	const char *name = kinds[row->kind].name;

	html_printf(html, "<tr class=\"is-%s\"><td class=\"number\">", name);
	html_count(html, (int64_t)row->seq);
	html_add(html, "</td><td class=\"time\">");
	page_time(html, row->time);
	html_add(html, "</td><td class=\"kind\">");
	if (row->kind == STORY_SAID)
		html_text(html, row->name, strlen(row->name), CELL);
	else
		html_add(html, name);
	html_add(html, "</td><td>");
	kinds[row->kind].say(row, html);
	html_add(html, "</td></tr>\n");
}

static void print_items(struct item *items, size_t count, struct html *html)
{
	qsort(items, count, sizeof *items, by_order);
	for (size_t i = 0; i < count; i++) {
		if (items[i].row) {
			print_row(items[i].row, html);
			continue;
		}
		html_add(html, "<tr class=\"gap\"><td colspan=\"4\">… ");
		html_count(html, (int64_t)items[i].omitted);
		html_printf(html, " more %s are in the record and not listed here …</td></tr>\n",
			    items[i].what);
	}
}

void page_timeline(const struct page *page, struct html *html)
{
	struct item items[ITEMS];
	size_t count =
		add_list(&page->story->turns, "launches, ends and changes of ceilings", items);

	count += add_list(&page->story->progress, "iterations and checkpoints", items + count);
	page_section(html, "timeline", "Timeline");
	page_table(html, "Launches, ceilings, iterations, checkpoints and ends",
		   "#Line|Time (UTC)|What|Said");
	print_items(items, count, html);
	page_table_end(html);
	html_add(html, "</section>\n");
}

/* ---- what the worker said beside it --------------------------------------------------------- */

static void kinds_of(const struct story *story, struct html *html)
{
	if (story->kind_count == 0)
		return;
	page_table(html, "Reports by kind", "Kind|#Reports");
	for (size_t i = 0; i < story->kind_count; i++) {
		html_add(html, "<tr><th scope=\"row\">");
		html_text(html, story->kinds[i].name, strlen(story->kinds[i].name), CELL);
		html_add(html, "</th><td class=\"number\">");
		html_count(html, (int64_t)story->kinds[i].count);
		html_add(html, "</td></tr>\n");
	}
	if (story->kinds_elsewhere) {
		html_add(html,
			 "<tr class=\"gap\"><th scope=\"row\">others</th><td class=\"number\">");
		html_count(html, (int64_t)story->kinds_elsewhere);
		html_add(html, "</td></tr>\n");
	}
	page_table_end(html);
}

void page_said(const struct page *page, struct html *html)
{
	struct item items[ITEMS];
	const struct story *story = page->story;
	size_t count = add_list(&story->said, "reports", items);

	page_section(html, "said", "Reports of the worker");
	if (story->kind_count == 0 && count == 0)
		html_add(html, "<p>It reported nothing.</p>\n");
	kinds_of(story, html);
	if (count > 0) {
		page_table(html, "Tool calls, other reports, and refused ones",
			   "#Line|Time (UTC)|Kind|Said");
		print_items(items, count, html);
		page_table_end(html);
	}
	html_add(html, "</section>\n");
}
