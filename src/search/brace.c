/*
 * Expansion in two passes. The first checks the whole pattern, so that every error has its place
 * in what the caller wrote; the second takes the first outermost brace, and puts head +
 * alternative + tail back on a work list until nothing has a brace: no recursion over input.
 */
#include "search/brace.h"

#include <string.h>

#include "base/str.h"

enum { WORK_BYTES_MAX = 4 << 20 }; /* all texts ever made in one expansion */

size_t brace_class_end(const char *pattern, size_t at)
{
	size_t i = at + 1;

	if (pattern[i] == '!' || pattern[i] == '^')
		i++;
	if (pattern[i] == ']')
		i++;
	for (; pattern[i] && pattern[i] != ']'; i++) {
		if (pattern[i] == '\\' && pattern[i + 1]) {
			i++;
		} else if (pattern[i] == '[' && pattern[i + 1] == ':') {
			const char *end = strstr(pattern + i + 2, ":]");

			if (!end)
				return 0;
			i = (size_t)(end - pattern) + 1;
		}
	}
	return pattern[i] ? i + 1 : 0;
}

/* Index after the item at `at`: a class, an escaped byte, one byte. 0: it does not end. */
static size_t past_item(const char *pattern, size_t at)
{
	if (pattern[at] == '[')
		return brace_class_end(pattern, at);
	if (pattern[at] == '\\')
		return pattern[at + 1] ? at + 2 : 0;
	return at + 1;
}

/* Is what lies in this brace a range, "1..3"? Its only alternative, that is. */
static bool is_range(const char *inside, size_t size)
{
	const char *dots = memmem(inside, size, "..", 2);

	return dots && dots > inside && dots + 2 < inside + size && !memchr(inside, ',', size) &&
	       !memchr(inside, '{', size) && !memchr(inside, '/', size);
}

static int check(const char *pattern, struct refusal *refusal)
{
	size_t open[BRACE_DEPTH], depth = 0;

	for (size_t i = 0, next; pattern[i]; i = next) {
		next = past_item(pattern, i);
		if (next == 0)
			return refuse(refusal, "invalid_pattern", "byte %zu: %s", i,
				      pattern[i] == '[' ? "this class has no end"
							: "nothing follows the backslash");
		if (pattern[i] == '{' && depth == BRACE_DEPTH)
			return refuse(refusal, "invalid_pattern",
				      "byte %zu: more than %d braces in each other", i,
				      BRACE_DEPTH);
		if (pattern[i] == '{')
			open[depth++] = i;
		if (pattern[i] != '}')
			continue;
		if (depth == 0)
			return refuse(refusal, "invalid_pattern",
				      "byte %zu: this brace was not begun; \\} means itself", i);
		depth--;
		if (is_range(pattern + open[depth] + 1, i - open[depth] - 1))
			return refuse(
				refusal, "invalid_pattern",
				"byte %zu: ranges in braces are not expanded; list what is meant",
				open[depth]);
	}
	if (depth > 0)
		return refuse(refusal, "invalid_pattern", "byte %zu: this brace has no end",
			      open[depth - 1]);
	return 0;
}

/* A text that still has a brace, and where: "HEAD{INSIDE}TAIL". */
struct split {
	const char *text;
	size_t head; /* bytes before the brace */
	size_t tail; /* index after it */
};

/* False: there is none. The pattern was checked, so everything ends. */
static bool find_brace(const char *text, struct split *ret_split)
{
	size_t i = 0, depth = 0;

	while (text[i] && text[i] != '{')
		i = past_item(text, i);
	if (!text[i])
		return false;
	*ret_split = (struct split){ .text = text, .head = i };
	do {
		depth += (text[i] == '{') - (text[i] == '}');
		i = past_item(text, i);
	} while (depth > 0);
	ret_split->tail = i;
	return true;
}

/* The end of the alternative that begins at `at`. */
static size_t alternative_end(const struct split *split, size_t at)
{
	size_t depth = 0;

	while (at < split->tail - 1 && (depth > 0 || split->text[at] != ',')) {
		depth += split->text[at] == '{';
		depth -= split->text[at] == '}';
		at = past_item(split->text, at);
	}
	return at;
}

static const char *join(struct arena *arena, const struct split *split, size_t begin, size_t end)
{
	size_t tail = strlen(split->text + split->tail), middle = end - begin;
	char *text = arena_alloc(arena, split->head + middle + tail + 1);

	if (!text)
		return NULL;
	memcpy(text, split->text, split->head);
	memcpy(text + split->head, split->text + begin, middle);
	memcpy(text + split->head + middle, split->text + split->tail, tail);
	return text;
}

/* Puts the alternatives in place of list[at]. Their number, 0: no room. */
static size_t expand_one(struct arena *arena, struct brace_list *list, size_t at,
			 const struct split *split)
{
	size_t count = 0, begin, end;

	for (begin = split->head + 1; begin < split->tail; begin = end + 1, count++)
		end = alternative_end(split, begin);
	if (list->count - 1 + count > BRACE_MAX)
		return 0;
	memmove(list->items + at + count, list->items + at + 1,
		(list->count - at - 1) * sizeof *list->items);
	begin = split->head + 1;
	for (size_t i = 0; i < count; i++, begin = end + 1) {
		end = alternative_end(split, begin);
		list->items[at + i] = join(arena, split, begin, end);
		if (!list->items[at + i])
			return 0;
	}
	list->count += count - 1;
	return count;
}

int brace_expand(const char *pattern, struct arena *arena, struct brace_list *ret_list,
		 struct refusal *refusal)
{
	struct brace_list list = { .count = 1 };
	_cleanup_arena_ struct arena work;
	struct split split;

	arena_init(&work, WORK_BYTES_MAX);
	if (check(pattern, refusal) < 0)
		return -1;
	list.items = arena_array(arena, BRACE_MAX, sizeof *list.items);
	if (!list.items)
		return refuse(refusal, "enomem", "out of memory");
	list.items[0] = pattern;
	for (size_t at = 0; at < list.count; at++)
		while (find_brace(list.items[at], &split))
			if (expand_one(&work, &list, at, &split) == 0)
				return refuse(
					refusal, "invalid_pattern",
					"byte %zu: the braces stand for more than %d patterns",
					strcspn(pattern, "{"), BRACE_MAX);
	for (size_t i = 0; i < list.count; i++) {
		list.items[i] = arena_text(arena, list.items[i]);
		if (!list.items[i])
			return refuse(refusal, "enomem", "out of memory");
	}
	*ret_list = list;
	return 0;
}
