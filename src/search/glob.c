/* Patterns to parts, and sets of positions along a path; see glob.h. */
#include "search/glob.h"

#include <stdio.h>
#include <string.h>

#include "search/brace.h"
#include "search/part.h"

/* ---- parsing -------------------------------------------------------------------------------- */

struct parser {
	struct arena *arena;
	struct glob_part *parts;
	size_t count;
	struct refusal *refusal;
};

/* The slash or end after `at`; a class is over before one counts. */
static size_t part_end(const char *text, size_t at)
{
	while (text[at] && text[at] != '/') {
		if (text[at] == '[')
			at = brace_class_end(text, at);
		else
			at += text[at] == '\\' && text[at + 1] != '/' ? 2 : 1;
	}
	return at;
}

static int add_part(struct parser *parser, const char *text, size_t begin, size_t end)
{
	const struct part_text source = { text, begin, end };
	struct glob_part part, *parts = parser->parts;
	size_t size = end - begin;

	if (size == 0 || (size == 1 && text[begin] == '.'))
		return 0;
	if (size == 2 && text[begin] == '.' && text[begin + 1] == '.')
		return refuse(parser->refusal, "invalid_pattern",
			      "byte %zu: \"..\" would leave the folder that is searched", begin);
	if (parser->count == GLOB_PARTS)
		return refuse(parser->refusal, "invalid_pattern",
			      "byte %zu: more than %d parts altogether", begin, GLOB_PARTS);
	if (part_compile(&source, parser->arena, &part, parser->refusal) < 0)
		return -1;
	if (part.is_anywhere && parser->count > 0 && parts[parser->count - 1].is_anywhere &&
	    !parts[parser->count - 1].is_last)
		return 0; /* a second one adds nothing */
	parts[parser->count++] = part;
	return 0;
}

/* Adds an alternative; one without any part, "" or "./", means nothing. */
static int add_alternative(struct parser *parser, const char *text, enum glob_kind kind)
{
	size_t at = 0, end;

	if (!text[strspn(text, "./")])
		return 0;
	if (kind == GLOB_PATHS && text[0] == '/')
		return refuse(parser->refusal, "invalid_pattern",
			      "byte 0: patterns are relative; name the folder beside it");
	if (kind == GLOB_FILTER && !strchr(text, '/') && parser->count < GLOB_PARTS)
		parser->parts[parser->count++] = (struct glob_part){ .is_anywhere = true };
	for (;; at = end + 1) {
		end = part_end(text, at);
		if (add_part(parser, text, at, end) < 0)
			return -1;
		if (!text[end])
			break;
	}
	parser->parts[parser->count - 1].is_last = true;
	parser->parts[parser->count - 1].wants_folder = text[end - 1] == '/';
	return 0;
}

/* Where braces made it, the byte is that of what they made. */
static int in_alternative(struct refusal *refusal, const char *text)
{
	char detail[sizeof refusal->detail];

	snprintf(detail, sizeof detail, "%s", refusal->detail);
	snprintf(refusal->detail, sizeof refusal->detail, "%.300s (in \"%.150s\")", detail, text);
	return -1;
}

int glob_parse(const char *pattern, enum glob_kind kind, struct arena *arena, struct glob *ret_glob,
	       struct refusal *refusal)
{
	struct parser parser = { .arena = arena, .refusal = refusal };
	struct brace_list list;

	if (brace_expand(pattern, arena, &list, refusal) < 0)
		return -1;
	parser.parts = arena_array(arena, GLOB_PARTS, sizeof *parser.parts);
	if (!parser.parts)
		return refuse(refusal, "enomem", "out of memory");
	for (size_t i = 0; i < list.count; i++)
		if (add_alternative(&parser, list.items[i], kind) < 0)
			return strcmp(list.items[i], pattern) == 0
				       ? -1
				       : in_alternative(refusal, list.items[i]);
	if (parser.count == 0)
		return refuse(refusal, "invalid_pattern", "byte 0: this pattern means no name");
	*ret_glob = (struct glob){ parser.parts, parser.count };
	return 0;
}

/* ---- matching ------------------------------------------------------------------------------- */

/* "**" may also be no folder at all: the part after it is possible at once. */
static void add_position(const struct glob *glob, struct glob_set *set, size_t part)
{
	set->words[part / 64] |= UINT64_C(1) << part % 64;
	if (glob->parts[part].is_anywhere && !glob->parts[part].is_last)
		set->words[(part + 1) / 64] |= UINT64_C(1) << (part + 1) % 64;
}

static void clear(const struct glob *glob, struct glob_set *set)
{
	memset(set->words, 0, (glob->count + 63) / 64 * sizeof *set->words);
}

void glob_start(const struct glob *glob, struct glob_set *ret_set)
{
	clear(glob, ret_set);
	for (size_t i = 0; i < glob->count; i++)
		if (i == 0 || glob->parts[i - 1].is_last)
			add_position(glob, ret_set, i);
}

/* One position. */
static int step_part(const struct glob *glob, size_t at, const struct glob_name *name,
		     struct glob_set *ret_set)
{
	const struct glob_part *part = &glob->parts[at];
	size_t next = part->is_anywhere ? at : at + 1;
	int verdict = GLOB_NONE;

	if (!part->is_anywhere && !part_matches(part, name->text, name->size))
		return GLOB_NONE;
	if (part->is_last && (name->is_folder || !part->wants_folder))
		verdict |= GLOB_MATCHES;
	if (name->is_folder && (part->is_anywhere || !part->is_last)) {
		verdict |= GLOB_BENEATH;
		if (ret_set)
			add_position(glob, ret_set, next);
	}
	return verdict;
}

int glob_step(const struct glob *glob, const struct glob_set *set, const struct glob_name *name,
	      struct glob_set *ret_set)
{
	int verdict = GLOB_NONE;

	if (ret_set)
		clear(glob, ret_set);
	for (size_t word = 0; word < (glob->count + 63) / 64; word++)
		for (uint64_t bits = set->words[word]; bits; bits &= bits - 1)
			verdict |= step_part(glob, word * 64 + (size_t)__builtin_ctzll(bits), name,
					     ret_set);
	return verdict;
}

void glob_beneath(const struct glob *glob, const char *folder, const char *end,
		  struct glob_set *ret_set)
{
	struct glob_set sets[2];
	int now = 0;

	glob_start(glob, &sets[now]);
	for (folder += strspn(folder, "/"); folder < end; folder += strspn(folder, "/")) {
		struct glob_name name = { folder, strcspn(folder, "/"), true };

		glob_step(glob, &sets[now], &name, &sets[!now]);
		now = !now;
		folder += name.size;
	}
	*ret_set = sets[now];
}

bool glob_matches(const struct glob *glob, const char *path)
{
	const char *last = strrchr(path, '/');
	struct glob_name name = { .text = last ? last + 1 : path };
	struct glob_set set;

	name.size = strlen(name.text);
	glob_beneath(glob, path, name.text, &set);
	return glob_step(glob, &set, &name, NULL) & GLOB_MATCHES;
}
