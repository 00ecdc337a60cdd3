/*
 * gen-protocol - prints docs/protocol.md from the tables of src/wire/messages.c
 *
 * usage: gen-protocol           prints it
 *        gen-protocol FILE      compares: 0 if FILE says exactly that, else 1
 *
 * The tables are what receivers check against, so the page cannot promise anything else.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "wire/frame.h"

enum { PAGE_MAX = 1 << 20 };

static const char intro[] =
	"# The protocol between monitor and agent\n\n"
	"This page is printed from the tables in `src/wire/messages.c` by `gen-protocol`; a test\n"
	"compares the two. Both sides check what they receive against the same tables.\n\n"
	"## Frames\n\n"
	"A frame is a length (4 bytes, big endian) and that many bytes: the version byte 131 and "
	"one\n"
	"term in Erlang's external term format. This is what an Erlang port with `{packet, 4}` "
	"and\n"
	"`term_to_binary/1` speaks. A message is a tuple, written as SMALL_TUPLE_EXT, whose first\n"
	"element is an atom.\n\n";

static const char terms[] =
	"- Atoms are read in every form (Latin-1 and UTF-8) and are never interned. An atom with "
	"a\n"
	"  zero byte is refused.\n"
	"- Integers outside 64 bits, pids, ports and references are kept as they are. No message "
	"has\n"
	"  a use for them, except as parts of plain values.\n"
	"- Refused: functions, compressed terms, distribution headers, atom cache references, "
	"local\n"
	"  terms, floats that are not finite, maps with the same key twice, lists whose tail is a\n"
	"  list, bytes after the term.\n\n"
	"Anything malformed, or sent by the wrong side, ends the sandbox as `lost` with a "
	"reason.\n\n";

static const char keys_intro[] =
	"## Types\n\n"
	"Keys of maps are atoms. An unknown key, a missing required key, a wrong type and a value\n"
	"above its bound are all refused. Bounds of texts and of lists of texts are in bytes, "
	"those\n"
	"of other lists in elements.\n\n"
	"| type | is |\n| --- | --- |\n";

struct type_word {
	char letter;
	const char *word;
};

static const struct type_word words[] = {
	{ 'i', "integer" },  { 'I', "integer or null" },
	{ 'a', "atom" },     { 'b', "bytes" },
	{ 't', "text" },     { 'p', "path" },
	{ 'm', "map" },      { 'B', "boolean" },
	{ 'A', "atoms" },    { 'L', "texts" },
	{ 'M', "text map" }, { 'R', "maps" },
};

static const char *type_word(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i].letter == letter)
			return words[i].word;
	}
	abort();
}

__attribute__((format(printf, 2, 3))) static void put(struct buf *page, const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (buf_add_text(page, text) < 0)
		abort();
}

/* A '|' inside a table cell is written "\|". */
static void put_cell(struct buf *page, const char *text)
{
	for (; *text; text++)
		put(page, *text == '|' ? "\\%c" : "%c", *text);
}

static void put_size(struct buf *page, uint64_t bytes)
{
	char text[32];

	str_format_size(bytes, text, sizeof text);
	put(page, "%s", text);
}

static void put_bound(struct buf *page, const struct frame_key *key)
{
	if (key->max == 0)
		put(page, "–");
	else if (strchr("bpLMt", key->type) && key->max % 1024 == 0)
		put_size(page, key->max);
	else
		put(page, "%llu", (unsigned long long)key->max);
}

static void put_rows(struct buf *page, const char *above, const struct frame_key *keys)
{
	for (; keys->name; keys++) {
		put(page, "| `%s%s` | %s | %s | ", above, keys->name, type_word(keys->type),
		    keys->required ? "yes" : "");
		put_bound(page, keys);
		put(page, " | ");
		put_cell(page, keys->what);
		put(page, " |\n");
		if (keys->keys) {
			char name[64];
			snprintf(name, sizeof name, "%s%s.", above, keys->name);
			put_rows(page, name, keys->keys);
		}
	}
}

static void put_keys(struct buf *page, const char *title, const struct frame_key *keys)
{
	if (!keys->name) {
		put(page, "%s: an empty map.\n\n", title);
		return;
	}
	put(page,
	    "%s:\n\n| key | type | required | at most | is |\n| --- | --- | --- | --- | --- |\n",
	    title);
	put_rows(page, "", keys);
	put(page, "\n");
}

static void put_messages(struct buf *page, const char *title, enum frame_side side)
{
	put(page, "%s\n\n| message | at most | meaning |\n| --- | --- | --- |\n", title);
	for (size_t i = 0; i < frame_message_count; i++) {
		const struct frame_message *m = &frame_messages[i];
		if (m->side != side)
			continue;
		put(page, "| `");
		put_cell(page, m->shape);
		put(page, "` | %u bytes | ", m->max_bytes);
		put_cell(page, m->what);
		if (m->max_integer)
			put(page, "; integers after Ref: at most %llu",
			    (unsigned long long)m->max_integer);
		if (m->max_binary)
			put(page, "; the binary: at most %llu bytes",
			    (unsigned long long)m->max_binary);
		put(page, " |\n");
	}
	put(page, "\n");
	for (size_t i = 0; i < frame_message_count; i++) {
		char name[64];
		if (frame_messages[i].side != side || !frame_messages[i].keys)
			continue;
		snprintf(name, sizeof name, "The map of `%s`", frame_messages[i].name);
		put_keys(page, name, frame_messages[i].keys);
	}
}

static void put_verbs(struct buf *page, const struct frame_verb *verbs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		put(page, "### %s\n\n`%s` %s.\n\n", verbs[i].name, verbs[i].name, verbs[i].what);
		if (verbs[i].notes)
			put(page, "%s\n\n", verbs[i].notes);
		put_keys(page, "Arguments", verbs[i].args);
		put_keys(page, "Result", verbs[i].result);
	}
}

static const char client[] =
	"## A client and a monitor\n\nThe monitor of a sandbox that stays speaks to its client as "
	"an agent speaks to a monitor: it\nsends `ready` by itself, and then answers the verbs "
	"above "
	"and these. Its `exec` answers\nwith an account. `bye` carries `code`, `stage` and `text`, "
	"all texts, when the sandbox ends\nfor a reason.\n\n";

static const char port[] =
	"## caisson port\n\n`caisson port` speaks frames on its standard input and output, so that "
	"an Erlang port with\n`[:binary, packet: 4]` or any program with a child can have a "
	"sandbox. `open` makes it; the process is\nthen the monitor of that sandbox, and its "
	"client is who holds the other ends. He hears no `ready`:\nwhat it says is in the reply to "
	"`open`. What fails of an `open` is told as `failed`, its Detail a stage,\na colon and a "
	"sentence. `close`, `stop` or the end of standard input ends the sandbox; the program "
	"ends\nwhen nothing of it is left, with status 0. A sandbox that ends otherwise says "
	"`bye`, "
	"and what is\nmalformed or out of turn `{failed, 0, invalid, Detail}` and then `bye`; the "
	"status is 125.\nWhat the program says to people goes to standard error.\n\nOf one that "
	"was "
	"joined, or that a `pool` had prepared, another process is the monitor, and the program "
	"passes frames on.\nOne from a pool ends with this program; its `close` is answered "
	"when every process in it is dead, without `result`.\n\n";

static const char paths[] =
	"Paths are resolved inside the wall when the call is carried out, beneath a descriptor; "
	"nothing\n"
	"is checked and then opened. A relative path begins in the workspace and stays in it: one "
	"that\n"
	"leads out, by `..` or by a link, is `einval`. An absolute path may name whatever lies "
	"inside the\n"
	"wall. What looks like a link in `/proc` and is none (`exe`, `fd/3`, `root`) is `eloop`. "
	"The\n"
	"detail of `failed` is one sentence with the path.\n\n"
	"A long call holds no other: it is done in slices, and `cancel` ends it with `cancelled`. "
	"What is\n"
	"not cut is a system call that does not return, as on a dead network file system: a clock\n"
	"outside ends that sandbox.\n\n";

static void put_page(struct buf *page)
{
	put(page, "%s", intro);
	put(page,
	    "- A frame is at most %d bytes; the tables say less for most messages, and a longer "
	    "one is\n"
	    "  refused before it is decoded.\n"
	    "- A term is nested at most %u levels deep and has at most %zu parts.\n",
	    FRAME_MAX, term_limits.depth, term_limits.count);
	put(page, "%s", terms);
	put(page, "%s", keys_intro);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		put(page, "| %s | %s |\n", words[i].word, frame_type_name(words[i].letter));
	put(page,
	    "\n`Ref` is a non-negative integer that the monitor chooses, new for each call. Of its "
	    "data\n%d bytes may be under way at first, each way; `window` adds to that.\n\n",
	    FRAME_WINDOW);
	put_messages(page, "## To the agent", FROM_MONITOR);
	put_messages(page, "## From the agent", FROM_AGENT);
	put_keys(page, "The map of `fact`", frame_ended);
	put(page,
	    "## Verbs\n\nThe map of `call`, and the map of its `reply`. An agent may know fewer "
	    "verbs (`ready` says\nwhich) and answers the others with `failed`, "
	    "`not_supported`.\n\n");
	put(page, "%s", paths);
	put_verbs(page, frame_verbs, frame_verb_count);
	put(page, "%s", client);
	put_keys(page, "The map of `fact`: a violation, while a call runs", frame_violation);
	put_verbs(page, frame_client_verbs, frame_client_verb_count);
	put(page, "%s", port);
	put_messages(page, "### To caisson port", FROM_OPENER);
	put_keys(page, "The map of `open`", frame_open);
	put_keys(page, "The reply to `open`", frame_opened);
	put_keys(page, "The reply to `close`", frame_closed);
	page->end--; /* the last blank line */
}

static int compare(const struct buf *page, const char *path)
{
	static char text[PAGE_MAX];
	FILE *file = fopen(path, "re");
	size_t size = file ? fread(text, 1, sizeof text, file) : 0;

	if (file)
		fclose(file);
	if (size == buf_size(page) && memcmp(text, buf_at(page), size) == 0)
		return 0;
	fprintf(stderr, "%s is not what the tables say; run: gen-protocol > %s\n", path, path);
	return 1;
}

int main(int argc, char **argv)
{
	_cleanup_buf_ struct buf page;

	buf_init(&page, PAGE_MAX);
	put_page(&page);
	if (argc == 2)
		return compare(&page, argv[1]);
	return fwrite(buf_at(&page), 1, buf_size(&page), stdout) == buf_size(&page) ? 0 : 1;
}
