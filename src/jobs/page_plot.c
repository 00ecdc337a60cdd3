/*
 * What was used against its ceilings, in numbers and as a plot each.
 *
 * The axis is the time that the job ran, all launches together: a pause of a week between two is
 * no stretch of it, but a mark. The curve is drawn against the ceiling where both can be seen; a
 * ceiling far above what was used is said, and the meter shows the share.
 */
#include "jobs/page_parts.h"

#include <inttypes.h>

#include "base/str.h"

enum { WIDE = 480, HIGH = 190, LEFT = 70, RIGHT = 470, TOP = 12, BOTTOM = 160, FAR = 5, SHOWN = 4 };

/* From amounts to the drawing. */
struct scale {
	enum story_used used;
	int64_t wall_ms, top;
};

static double x_of(const struct scale *scale, int64_t wall_ms)
{
	double share = (double)wall_ms / (double)scale->wall_ms;

	return LEFT + (RIGHT - LEFT) * (share < 0 ? 0 : share > 1 ? 1 : share);
}

static double y_of(const struct scale *scale, int64_t amount)
{
	double share = (double)amount / (double)scale->top;

	return BOTTOM - (BOTTOM - TOP) * (share < 0 ? 0 : share > 1 ? 1 : share);
}

static int64_t highest_ceiling(const struct story *story, enum story_used used)
{
	int64_t most = -1;

	for (size_t i = 0; i < story->step_count; i++) {
		int64_t ceiling = story_ceiling(&story->steps[i].limits, used);

		most = ceiling > most ? ceiling : most;
	}
	return most;
}

static struct scale make_scale(const struct story *story, enum story_used used)
{
	int64_t amount = story_amount(&story->book, used), ceiling = highest_ceiling(story, used);
	int64_t top = amount;

	if (ceiling > top && (amount == 0 || ceiling / FAR <= amount))
		top = ceiling;
	return (struct scale){ .used = used,
			       .wall_ms = story->book.wall_ms > 0 ? story->book.wall_ms : 1,
			       .top = top > 0 ? top + top / 12 + (top < 12) : 1 };
}

/* A step at a time: an amount stands until the next report. Only time goes by itself. */
static void curve(const struct story *story, const struct scale *scale, struct html *html)
{
	double last = BOTTOM;

	html_printf(html, "<path class=\"curve\" d=\"M%d %d", LEFT, BOTTOM);
	for (size_t i = 0; i < story->curve.count; i++) {
		const struct story_point *point = &story->curve.points[i];
		double y = y_of(scale, point->used[scale->used]);

		if (last - y < 0.05 && y - last < 0.05)
			continue;
		html_printf(html, scale->used == STORY_TIME ? "L%.1f %.1f" : "H%.1fV%.1f",
			    x_of(scale, point->wall_ms), y);
		last = y;
	}
	html_printf(html, "H%d\"/>\n", RIGHT);
}

static void ceilings(const struct story *story, const struct scale *scale, struct html *html)
{
	bool is_drawn = false;

	html_add(html, "<path class=\"ceiling\" d=\"");
	for (size_t i = 0; i < story->step_count; i++) {
		int64_t ceiling = story_ceiling(&story->steps[i].limits, scale->used);
		double x = x_of(scale, story->steps[i].wall_ms), y = y_of(scale, ceiling);

		if (ceiling < 0 || ceiling > scale->top) {
			is_drawn = false;
			continue;
		}
		html_printf(html, is_drawn ? "V%.1f" : "M%.1f %.1f", is_drawn ? y : x, y);
		html_printf(html, "H%.1f",
			    i + 1 < story->step_count ? x_of(scale, story->steps[i + 1].wall_ms)
						      : (double)RIGHT);
		is_drawn = true;
	}
	html_add(html, is_drawn ? "\"/>\n" : "M0 0\"/>\n");
}

static void marks(const struct story *story, const struct scale *scale, struct html *html)
{
	html_add(html, "<path class=\"mark\" d=\"M0 0");
	for (size_t i = 0; i < story->mark_count; i++)
		if (story->marks[i] > 0)
			html_printf(html, "M%.1f %dV%d", x_of(scale, story->marks[i]), TOP, BOTTOM);
	html_add(html, "\"/>\n");
}

/* A tick of the vertical axis. */
static void tick(const struct scale *scale, int64_t amount, struct html *html)
{
	double y = y_of(scale, amount);

	html_printf(html,
		    "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
		    "text-anchor=\"end\">",
		    LEFT, y, RIGHT, LEFT - 6, y + 4);
	if (amount)
		page_amount(html, scale->used, amount);
	else
		html_add(html, "0");
	html_add(html, "</text>\n");
}

static void meter(int64_t amount, int64_t ceiling, struct html *html)
{
	double share = ceiling > 0 ? (double)amount / (double)ceiling : amount > 0;

	if (ceiling < 0)
		return;
	html_printf(html,
		    "<svg class=\"meter%s\" viewBox=\"0 0 100 3\" preserveAspectRatio=\"none\" "
		    "aria-hidden=\"true\"><rect class=\"all\" width=\"100\" height=\"3\"/>"
		    "<rect class=\"bar\" width=\"%.1f\" height=\"3\"/></svg>\n",
		    share >= 1 ? " full" : "", share > 1 ? 100.0 : share * 100);
}

static void draw(const struct story *story, const struct scale *scale, struct html *html)
{
	int64_t amount = story_amount(&story->book, scale->used);

	html_printf(html,
		    "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s over "
		    "the time the job ran\">\n",
		    WIDE, HIGH, page_used_name(scale->used));
	tick(scale, 0, html);
	if (amount > 0)
		tick(scale, amount, html);
	if (story_ceiling(&story->book.limits, scale->used) > 0 &&
	    story_ceiling(&story->book.limits, scale->used) <= scale->top &&
	    (double)story_ceiling(&story->book.limits, scale->used) >
		    (double)amount + (double)scale->top / 10)
		tick(scale, story_ceiling(&story->book.limits, scale->used), html);
	marks(story, scale, html);
	ceilings(story, scale, html);
	curve(story, scale, html);
	html_printf(html,
		    "<text x=\"%d\" y=\"%d\">0</text><text x=\"%d\" y=\"%d\" "
		    "text-anchor=\"end\">",
		    LEFT, BOTTOM + 18, RIGHT, BOTTOM + 18);
	html_duration(html, story->book.wall_ms);
	html_add(html, "</text>\n</svg>\n");
}

static void figure(const struct story *story, enum story_used used, struct html *html)
{
	const struct scale scale = make_scale(story, used);
	int64_t amount = story_amount(&story->book, used);
	int64_t ceiling = story_ceiling(&story->book.limits, used);

	html_printf(html, "<figure>\n<figcaption><strong>%s</strong> ", page_used_name(used));
	page_amount(html, used, amount);
	if (ceiling >= 0) {
		html_add(html, " <span class=\"of\">of ");
		page_amount(html, used, ceiling);
		html_add(html, ceiling > scale.top ? ", above this plot</span>" : "</span>");
	} else {
		html_add(html, " <span class=\"of\">no ceiling</span>");
	}
	html_add(html, "</figcaption>\n");
	draw(story, &scale, html);
	meter(amount, ceiling, html);
	html_add(html, "</figure>\n");
}

static void say_ceiling(enum story_used used, int64_t ceiling, struct html *html)
{
	if (ceiling < 0)
		html_add(html, "none");
	else
		page_amount(html, used, ceiling);
}

static bool is_change(const struct story *story, enum story_used used, size_t step)
{
	return step == 0 || story_ceiling(&story->steps[step].limits, used) !=
				    story_ceiling(&story->steps[step - 1].limits, used);
}

/* What it was at first, and its changes: the first and the last of many. */
static void history(const struct story *story, enum story_used used, struct html *html)
{
	size_t changes = 0, at = 0;

	for (size_t i = 0; i < story->step_count; i++)
		changes += is_change(story, used, i);
	for (size_t i = 0; i < story->step_count; i++) {
		if (!is_change(story, used, i))
			continue;
		if (at++ >= SHOWN && at + SHOWN <= changes) {
			if (at == SHOWN + 1)
				html_printf(html, " → <span class=\"of\">%zu more</span>",
					    changes - 2 * SHOWN);
			continue;
		}
		html_add(html, at > 1 ? " → " : "");
		say_ceiling(used, story_ceiling(&story->steps[i].limits, used), html);
		if (at == 1)
			continue;
		html_add(html, " <span class=\"of\">after ");
		html_duration(html, story->steps[i].wall_ms);
		html_add(html, "</span>");
	}
	if (story->steps_lost)
		html_add(html, " <span class=\"of\">(changes between are not listed)</span>");
}

static void row(const struct story *story, enum story_used used, struct html *html)
{
	int64_t amount = story_amount(&story->book, used);
	int64_t ceiling = story_ceiling(&story->book.limits, used);

	html_printf(html, "<tr><th scope=\"row\">%s</th><td class=\"number\">",
		    page_used_name(used));
	page_amount(html, used, amount);
	html_add(html, "</td><td class=\"number\">");
	say_ceiling(used, ceiling, html);
	html_add(html, "</td><td class=\"number\">");
	if (ceiling > 0)
		html_printf(html, "%.1f %%", 100 * (double)amount / (double)ceiling);
	html_add(html, "</td><td>");
	history(story, used, html);
	html_add(html, "</td></tr>\n");
}

void page_budgets(const struct page *page, struct html *html)
{
	page_section(html, "budgets", "Budgets");
	page_table(html, "What was used, against its ceilings",
		   "Of|#Used|#Ceiling|#Share|The ceiling over time");
	for (int used = 0; used < STORY_USED; used++)
		row(page->story, (enum story_used)used, html);
	page_table_end(html);
	html_add(html, "<p class=\"note\">Over the time that the job ran, all launches together. "
		       "Dashed: the ceiling in force. Upright lines: where it was resumed.</p>\n"
		       "<div class=\"plots\">\n");
	for (int used = 0; used < STORY_USED; used++)
		figure(page->story, (enum story_used)used, html);
	html_add(html, "</div>\n</section>\n");
}
