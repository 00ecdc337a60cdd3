/*
 * What the launcher knows of its own: each launch as it was set up and as it ended, what was
 * denied, and what lies in the folder.
 */
#include "jobs/page_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { CELL = 700, COMMAND = 1500, MOUNTS = 12, NAMES = 1000, DIGEST = 16 };

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* ---- violations ----------------------------------------------------------------------------- */

static void violation(const struct story_violation *seen, struct html *html)
{
	html_add(html, "<tr><td class=\"number\">");
	html_count(html, (int64_t)seen->count);
	html_add(html, "</td><td class=\"kind\">");
	page_text(html, &seen->event, CELL);
	html_add(html, seen->is_certain ? "" : " <span class=\"of\">(uncertain)</span>");
	html_add(html, "</td><td><span class=\"said\">");
	page_text(html, &seen->say, CELL);
	html_add(html, "</span> <span class=\"of\">Rule: <span class=\"said\">");
	page_text(html, &seen->rule, CELL);
	html_add(html, "</span></span></td><td class=\"time\">");
	page_time(html, seen->first);
	if (!str_is(seen->first, seen->last)) {
		html_add(html, " … ");
		page_time(html, seen->last);
	}
	html_printf(html, "</td><td class=\"number\">%llu</td></tr>\n",
		    (unsigned long long)seen->seq);
}

void page_violations(const struct page *page, struct html *html)
{
	const struct story *story = page->story;

	page_section(html, "violations", "Denied attempts");
	if (story->violation_count == 0) {
		html_add(html, "<p>None: nothing the worker tried was outside what it was "
			       "lent.</p>\n</section>\n");
		return;
	}
	page_table(html, "What the sandbox refused, equal attempts folded",
		   "#Times|Event|What was denied|When (UTC)|#Line");
	for (size_t i = 0; i < story->violation_count; i++)
		violation(&story->violations[i], html);
	if (story->attempts_elsewhere) {
		html_add(html, "<tr class=\"gap\"><td class=\"number\">");
		html_count(html, (int64_t)story->attempts_elsewhere);
		html_add(html,
			 "</td><td colspan=\"4\">attempts of other kinds are in the record and "
			 "not listed here</td></tr>\n");
	}
	page_table_end(html);
	html_add(html, "</section>\n");
}

/* ---- launches ------------------------------------------------------------------------------- */

static void define(struct html *html, const char *name, const json_t *value, size_t most)
{
	if (!value || (json_is_string(value) && json_string_length(value) == 0))
		return;
	html_printf(html, "<div><dt>%s</dt><dd><span class=\"said\">", name);
	if (json_is_null(value))
		html_add(html, "none");
	else if (json_is_array(value))
		html_words(html, value, most);
	else
		html_json(html, value, most);
	html_add(html, "</span></dd></div>\n");
}

static void mounts(const json_t *list, struct html *html)
{
	const json_t *mount;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	page_table(html, "What was lent", "Inside|On the host|Mode");
	json_array_foreach(list, i, mount) {
		if (i == MOUNTS) {
			html_printf(html,
				    "<tr class=\"gap\"><td colspan=\"3\">%zu more</td></tr>\n",
				    json_array_size(list) - i);
			break;
		}
		html_add(html, "<tr><td><code class=\"said\">");
		html_json(html, json_object_get(mount, "at"), CELL);
		html_add(html, "</code></td><td><code class=\"said\">");
		html_json(html, json_object_get(mount, "host"), CELL);
		html_add(html, "</code></td><td>");
		html_json(html, json_object_get(mount, "mode"), CELL);
		html_add(html, "</td></tr>\n");
	}
	page_table_end(html);
}

static void span(const struct story_launch *launch, struct html *html)
{
	html_add(html, "<div><dt>Began</dt><dd>");
	page_time(html, launch->began);
	html_add(html, " UTC</dd></div>\n<div><dt>Ended</dt><dd>");
	if (launch->ended[0]) {
		page_time(html, launch->ended);
		html_add(html, " UTC, after ");
		html_duration(html, launch->wall_to - launch->wall_from);
		html_add(html, " of running");
	} else {
		html_add(html, "not on record");
	}
	html_add(html, "</dd></div>\n");
}

static void exit_of(const struct story_launch *launch, struct html *html)
{
	const json_t *end = json_object_get(launch->exited, "termination");
	const json_t *value;

	if (!launch->end && !launch->exited)
		return;
	html_add(html, "<div><dt>Exit</dt><dd>");
	html_json(html, json_object_get(launch->end, "status"), CELL);
	if (text_at(end, "reason")[0]) {
		html_add(html, "; worker ");
		html_json(html, json_object_get(end, "reason"), CELL);
	}
	value = json_object_get(end, "exit_code");
	if (json_is_integer(value))
		html_printf(html, ", exit code %lld", (long long)json_integer_value(value));
	if (text_at(end, "signal_name")[0]) {
		html_add(html, ", ");
		html_json(html, json_object_get(end, "signal_name"), CELL);
	}
	if (text_at(end, "clock")[0]) {
		html_add(html, ", clock ");
		html_json(html, json_object_get(end, "clock"), CELL);
	}
	html_printf(html, "; status %lld</dd></div>\n",
		    (long long)json_integer_value(json_object_get(launch->end, "exit_status")));
}

static void usage(const struct story_launch *launch, struct html *html)
{
	const json_t *peak = json_object_get(launch->usage, "mem_peak_bytes");
	const json_t *cpu = json_object_get(launch->usage, "cpu_ms");

	if (!json_is_integer(peak) && !json_is_number(cpu))
		return;
	html_add(html, "<div><dt>Used</dt><dd>");
	if (json_is_number(cpu) && json_number_value(cpu) >= 0 && json_number_value(cpu) < 1e15) {
		html_duration(html, (int64_t)json_number_value(cpu));
		html_add(html, " of processor time");
	}
	if (json_is_integer(peak) && json_integer_value(peak) >= 0) {
		html_add(html, json_is_number(cpu) ? ", " : "");
		html_size(html, (uint64_t)json_integer_value(peak));
		html_add(html, " of memory at most");
	}
	html_add(html, "</dd></div>\n");
}

/* The exit is logged with the same facts as the launch: a difference is worth a word. */
static void differences(const struct story_launch *launch, struct html *html)
{
	static const char *const keys[] = { "runtime", "image",           "mounts",
					    "network", "permission_mode", "env_passed" };

	if (!launch->started || !launch->exited)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!json_equal(json_object_get(launch->started, keys[i]),
				json_object_get(launch->exited, keys[i])))
			html_printf(html,
				    "<p class=\"warn\">%s at the exit is not what it was at the "
				    "launch.</p>\n",
				    keys[i]);
}

static void launch(const struct story_launch *launch, struct html *html)
{
	const json_t *started = launch->started;

	html_printf(html, "<section class=\"launch\">\n<h3>Launch %lld</h3>\n<dl class=\"more\">\n",
		    (long long)launch->number);
	span(launch, html);
	exit_of(launch, html);
	if (!started)
		html_add(html, "<div><dt>Setup</dt><dd>not on record: nothing ran</dd></div>\n");
	if (started) {
		html_add(html, "<div><dt>Command</dt><dd><code class=\"said\">");
		html_command(html, json_object_get(started, "command"), COMMAND);
		html_add(html, "</code></dd></div>\n");
	}
	define(html, "Runtime", json_object_get(started, "runtime"), CELL);
	define(html, "Tier", json_object_get(started, "tier"), CELL);
	define(html, "Image", json_object_get(started, "image"), CELL);
	define(html, "Network", json_object_get(started, "network"), CELL);
	define(html, "Permission mode", json_object_get(started, "permission_mode"), CELL);
	define(html, "Variables passed (names)", json_object_get(started, "env_passed"), NAMES);
	define(html, "Policy SHA-256", json_object_get(started, "policy_sha256"), CELL);
	usage(launch, html);
	html_printf(html,
		    "<div><dt>On record</dt><dd>line %llu: %llu lockdown steps, %llu grants, "
		    "%llu denied attempts</dd></div>\n</dl>\n",
		    (unsigned long long)launch->seq, (unsigned long long)launch->steps,
		    (unsigned long long)launch->grants, (unsigned long long)launch->violations);
	mounts(json_object_get(started, "mounts"), html);
	differences(launch, html);
	html_add(html, "</section>\n");
}

void page_launches(const struct page *page, struct html *html)
{
	const struct story *story = page->story;
	size_t kept = story_launches(story);

	page_section(html, "launches", "Launches and exits");
	if (kept == 0)
		html_add(html, "<p>There was none.</p>\n");
	for (size_t i = 0; i < kept; i++) {
		if (i == STORY_LAUNCHES_FIRST && story->launch_count > kept) {
			html_add(html, "<p class=\"gap\">… ");
			html_count(html, (int64_t)(story->launch_count - kept));
			html_add(html,
				 " more launches are in the record and not listed here …</p>\n");
		}
		launch(story_launch(story, i), html);
	}
	html_add(html, "</section>\n");
}

/* ---- files ---------------------------------------------------------------------------------- */

/* The manifest's entries by path; a new object. */
static json_t *by_path(const json_t *manifest)
{
	json_t *object = json_object(), *entry;
	size_t i;

	json_array_foreach(json_object_get(manifest, "files"), i, entry)
		json_object_set(object, text_at(entry, "path"), entry);
	return object;
}

static void print_file(const struct folder_file *file, const json_t *entry, bool is_checkpoint,
		       struct html *html)
{
	char time[CLOCK_TEXT];
	const char *sha = text_at(entry, "sha256");

	clock_format(file->changed_ms, time);
	html_add(html, "<tr><td><code class=\"said\">");
	html_text(html, file->path, strlen(file->path), CELL);
	html_add(html, is_checkpoint ? "</code> <span class=\"tag\">checkpoint</span></td>"
				     : "</code></td>");
	html_add(html, "<td class=\"number\">");
	html_size(html, file->size);
	html_add(html, "</td><td class=\"time\">");
	page_time(html, time);
	html_add(html, "</td><td>");
	if (*sha) {
		html_add(html, "<code>");
		html_text(html, sha, strnlen(sha, DIGEST), CELL);
		html_add(html, "…</code>");
	} else {
		html_add(html, entry ? "size only" : "–");
	}
	html_add(html, "</td></tr>\n");
}

static void summary(const struct folder *folder, struct html *html)
{
	html_add(html, "<p>");
	html_count(html, (int64_t)folder->count);
	html_add(html, " files of ");
	html_size(html, folder->bytes);
	if (folder->links || folder->others)
		html_printf(html, ", %llu symbolic links, %llu others",
			    (unsigned long long)folder->links, (unsigned long long)folder->others);
	html_add(html, folder->is_cut ? "; the folder was not looked through to its end" : "");
	html_add(html,
		 ", beside the account's own. As they are now: names and times are the "
		 "worker's to choose; what the record vouches for has a digest, taken when the "
		 "last launch was closed.</p>\n");
}

void page_folder(const struct page *page, struct html *html)
{
	const struct folder *folder = page->folder;
	json_t *listed = by_path(page->manifest);

	page_section(html, "files", "Files in the job's folder");
	summary(folder, html);
	if (folder->kept)
		page_table(html, "The last changed first",
			   "File|#Size|Changed (UTC)|SHA-256 on record");
	for (size_t i = 0; i < folder->kept; i++) {
		const struct folder_file *file = &folder->files[i];

		print_file(file, json_object_get(listed, file->path),
			   json_object_get(page->story->checkpoints, file->path) != NULL, html);
	}
	if (folder->count > folder->kept) {
		html_add(html, "<tr class=\"gap\"><td colspan=\"4\">… ");
		html_count(html, (int64_t)(folder->count - folder->kept));
		html_add(html, " more files that were changed before …</td></tr>\n");
	}
	if (folder->kept)
		page_table_end(html);
	html_add(html, "</section>\n");
	json_decref(listed);
}
