/*
 * The page's head: what the job is, how it ended, and whether its record can be believed; then the
 * sections in the order in which a reader asks. See page.h.
 */
#include "jobs/page.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "jobs/money.h"
#include "jobs/page_parts.h"

enum { NAME = 300, PATH_SHOWN = 1500 };

const char *page_state(const struct page *page)
{
	const char *status = page->story->status;

	if (page->is_running)
		return "running";
	if (str_is(status, "running"))
		return "lost";
	return *status ? status : "new";
}

/* How a state is said: a word on its badge, whether it is good, and a sentence. */
static const struct state_words {
	const char *state, *reason; /* NULL: any */
	const char *tone, *sentence;
} words[] = {
	{ "finished", NULL, "good", "The worker ended by itself, with status 0." },
	{ "running", NULL, "open",
	  "It is running: this page is what was on record when it was made." },
	{ "lost", NULL, "bad",
	  "Its launcher was killed or the machine went down: the last launch has no end on "
	  "record." },
	{ "new", NULL, "open", "It was made and never launched." },
	{ "stopped", NULL, "open", "Somebody stopped it." },
	{ "limited", "max_cost_usd", "open", "It reached its ceiling of money." },
	{ "limited", "max_time_minutes", "open", "It reached its ceiling of running time." },
	{ "limited", "max_tokens_total", "open", "It reached its ceiling of tokens." },
	{ "limited", "max_iterations", "open", "It reached its ceiling of iterations." },
	{ "limited", "idle", "open", "It neither reported nor wrote anything for too long." },
	{ "limited", "log", "open", "Its log reached the largest size that is kept." },
	{ "limited", NULL, "open", "It reached a ceiling." },
	{ "failed", "exited", "bad",
	  "The worker ended by itself, with a status that says failure." },
	{ "failed", "signaled", "bad", "The worker was killed by a signal." },
	{ "failed", "memory", "bad", "The worker used more memory than its limit." },
	{ "failed", "lost", "bad", "The wall or the agent inside it died." },
	{ "failed", "start_failed", "bad", "The worker could not be started." },
	{ "failed", NULL, "bad", "It failed." },
	{ "made", NULL, "open", "It was made and never launched." },
};

static const struct state_words *find_words(const struct page *page)
{
	static const struct state_words unknown = { "", NULL, "open", "" };
	const struct story_text *reason = &page->story->reason;
	const char *state = page_state(page);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_is(words[i].state, state) &&
		    (!words[i].reason ||
		     (strlen(words[i].reason) == reason->size &&
		      memcmp(words[i].reason, reason->data, reason->size) == 0)))
			return &words[i];
	return &unknown;
}

/* ---- small parts ---------------------------------------------------------------------------- */

void page_text(struct html *html, const struct story_text *text, size_t most)
{
	html_text(html, text->data, text->size, most);
	if (text->is_cut)
		html_add(html, "…");
}

void page_time(struct html *html, const char *time)
{
	bool is_ours = strlen(time) == strlen("2026-01-02T03:04:05.678Z") && time[10] == 'T';

	if (!is_ours) {
		html_text(html, time, strlen(time), CLOCK_TEXT);
		return;
	}
	html_add(html, "<time datetime=\"");
	html_text(html, time, strlen(time), CLOCK_TEXT);
	html_add(html, "\">");
	html_text(html, time, 10, CLOCK_TEXT);
	html_add(html, " ");
	html_text(html, time + 11, 8, CLOCK_TEXT);
	html_add(html, "</time>");
}

void page_amount(struct html *html, enum story_used used, int64_t amount)
{
	char money[MONEY_TEXT];

	if (used == STORY_COST) {
		money_format(amount, money);
		html_add(html, money);
	} else if (used == STORY_TIME) {
		html_duration(html, amount);
	} else {
		html_count(html, amount);
	}
}

const char *page_used_name(enum story_used used)
{
	static const char *const names[] = { "Cost", "Running time", "Tokens", "Iterations" };

	return names[used];
}

void page_section(struct html *html, const char *id, const char *heading)
{
	html_printf(html, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id, id,
		    heading);
}

void page_table(struct html *html, const char *caption, const char *head)
{
	html_printf(html,
		    "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"%s\">"
		    "<table>\n<caption>%s</caption>\n<thead><tr>",
		    caption, caption);
	while (*head) {
		int size = (int)strcspn(head, "|");

		/* '#' in front: a column of numbers. */
		if (*head == '#')
			html_printf(html, "<th scope=\"col\" class=\"number\">%.*s</th>", size - 1,
				    head + 1);
		else
			html_printf(html, "<th scope=\"col\">%.*s</th>", size, head);
		head += size;
		head += *head == '|';
	}
	html_add(html, "</tr></thead>\n<tbody>\n");
}

void page_table_end(struct html *html)
{
	html_add(html, "</tbody></table></div>\n");
}

/* ---- the record ----------------------------------------------------------------------------- */

static void proof_good(const struct page *page, struct html *html)
{
	html_add(html,
		 "<div class=\"proof good\" role=\"note\"><p><strong>Record verified.</strong> "
		 "All ");
	html_count(html, (int64_t)page->story->lines);
	html_add(html,
		 " lines of its hash chain are whole and in order; the chain, the manifest and "
		 "the files it lists agree with <code>heads.jsonl</code>.</p></div>\n");
}

static void proof_open(const struct page *page, struct html *html)
{
	const struct verdict *verdict = page->verdict;

	html_add(html, "<div class=\"proof open\" role=\"note\"><p><strong>Record not closed "
		       "yet.</strong> ");
	html_count(html, (int64_t)page->story->lines);
	html_add(html,
		 " lines of its hash chain are whole and in order, but its last launch has not "
		 "been closed, so nothing outside the folder vouches for its end: ");
	html_text(html, verdict->reason, strlen(verdict->reason), NAME);
	html_add(html, ".</p></div>\n");
}

static void proof_broken(const struct page *page, struct html *html)
{
	const struct verdict *verdict = page->verdict;

	html_add(html, "<div class=\"proof bad\" role=\"alert\"><p class=\"loud\">Record broken");
	if (verdict->line)
		html_printf(html, " at line %llu", (unsigned long long)verdict->line);
	html_add(html, "</p>\n<p><code>");
	html_text(html, verdict->file, strlen(verdict->file), NAME);
	html_add(html, "</code>: ");
	html_text(html, verdict->reason, strlen(verdict->reason), NAME);
	html_add(html, ".</p>\n<p>This page is made of ");
	html_count(html, (int64_t)page->story->lines);
	html_add(html, " lines of the chain that fit together. That is no proof: somebody or "
		       "something changed this record, and nothing outside it vouches for them. "
		       "What comes after the broken line is not shown.</p></div>\n");
}

static void proof(const struct page *page, struct html *html)
{
	if (page->verdict->is_good)
		proof_good(page, html);
	else if (page->verdict->is_open)
		proof_open(page, html);
	else
		proof_broken(page, html);
}

/* ---- the head ------------------------------------------------------------------------------- */

static void begin(const struct page *page, struct html *html)
{
	html_add(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		       "style-src '");
	html_add(html, page_css_digest);
	html_add(html, "'; base-uri 'none'; form-action 'none'\">\n"
		       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		       "<meta name=\"referrer\" content=\"no-referrer\">\n<title>Job ");
	html_text(html, page->id, strlen(page->id), NAME);
	html_add(html, ": ");
	html_text(html, page_state(page), strlen(page_state(page)), NAME);
	html_add(html, "</title>\n<style>");
	html_add(html, page_css);
	html_add(html, "</style>\n</head>\n<body>\n<main>\n");
}

static void fact(struct html *html, const char *name, enum story_used used, const struct book *book)
{
	int64_t ceiling = story_ceiling(&book->limits, used);

	html_printf(html, "<div><dt>%s</dt><dd>", name);
	page_amount(html, used, story_amount(book, used));
	if (ceiling >= 0) {
		html_add(html, " <span class=\"of\">of ");
		page_amount(html, used, ceiling);
		html_add(html, "</span>");
	}
	html_add(html, "</dd></div>\n");
}

static void count(struct html *html, const char *name, int64_t number)
{
	html_printf(html, "<div><dt>%s</dt><dd>", name);
	html_count(html, number);
	html_add(html, "</dd></div>\n");
}

static void facts(const struct page *page, struct html *html)
{
	const struct story *story = page->story;

	html_add(html, "<dl class=\"facts\">\n");
	for (int used = 0; used < STORY_USED; used++)
		fact(html, page_used_name((enum story_used)used), (enum story_used)used,
		     &story->book);
	count(html, "Launches", (int64_t)story->launch_count);
	count(html, "Reports entered", story->book.reports);
	count(html, "Reports refused", story->book.refused);
	count(html, "Denied attempts", (int64_t)story->attempts);
	html_add(html, "</dl>\n<dl class=\"more\">\n<div><dt>Started</dt><dd>");
	page_time(html, story->made);
	html_add(html, " UTC</dd></div>\n<div><dt>Last entry</dt><dd>");
	page_time(html, story->last);
	html_add(html, " UTC</dd></div>\n<div><dt>Last checkpoint</dt><dd><span class=\"said\">");
	html_text(html, story->book.checkpoint[0] ? story->book.checkpoint : "none",
		  strlen(story->book.checkpoint[0] ? story->book.checkpoint : "none"), NAME);
	html_add(html, "</span></dd></div>\n<div><dt>Worker</dt><dd><code class=\"said\">");
	html_command(html, json_object_get(story->config, "worker"), PATH_SHOWN);
	html_add(html, "</code></dd></div>\n<div><dt>Data set</dt><dd><code class=\"said\">");
	html_json(html, json_object_get(story->config, "data"), PATH_SHOWN);
	html_add(html, "</code></dd></div>\n</dl>\n");
}

static void title(const struct page *page, struct html *html)
{
	const struct state_words *said = find_words(page);
	const struct story_text *reason = &page->story->reason;
	const char *state = page_state(page);

	html_add(html,
		 "<header>\n<p class=\"kind\">Caisson job report</p>\n<h1><span class=\"said\">");
	html_text(html, page->id, strlen(page->id), NAME);
	html_printf(html, "</span> <span class=\"state %s\">", said->tone);
	html_text(html, state, strlen(state), NAME);
	html_printf(html, "</span></h1>\n<p class=\"end\">%s", said->sentence);
	if (reason->size && !page->is_running) {
		html_add(html, " <span class=\"of\">(");
		page_text(html, reason, NAME);
		html_printf(html, ", status %lld)</span>", (long long)page->story->exit_status);
	}
	html_add(html, "</p>\n</header>\n");
}

static void end(const struct page *page, struct html *html)
{
	char now[CLOCK_TEXT], root[PATH_SHOWN];

	clock_format(page->now_ms, now);
	if (str_shell_word(page->root, root, sizeof root) < 0)
		memcpy(root, "DIR", sizeof "DIR");
	html_add(html, "<footer>\n<p>Made at ");
	page_time(html, now);
	html_add(html, " UTC by caisson ");
	html_text(html, page->version, strlen(page->version), NAME);
	html_add(html,
		 ". Cost, tokens and iterations are what the worker reported; time, the facts "
		 "of its launches and the denied attempts are the launcher's own. Characters "
		 "that could move or hide others are shown escaped, as <code>\\x1b</code>.</p>\n"
		 "<p>This page is a copy and proves nothing by itself. The record does: "
		 "<code class=\"said\">caisson runs verify --run-dir ");
	html_text(html, root, strlen(root), PATH_SHOWN);
	html_add(html, " ");
	html_text(html, page->id, strlen(page->id), NAME);
	html_add(html, "</code></p>\n</footer>\n</main>\n</body>\n</html>\n");
}

int page_write(const struct page *page, struct html *html)
{
	begin(page, html);
	title(page, html);
	proof(page, html);
	if (page->story->has_job) {
		facts(page, html);
		page_budgets(page, html);
		page_timeline(page, html);
		page_violations(page, html);
		page_launches(page, html);
		page_said(page, html);
	}
	page_folder(page, html);
	end(page, html);
	return html->error;
}
