/*
 * Myers' greedy algorithm on lines (E. Myers, "An O(ND) Difference Algorithm", 1986)
 *
 * Common lines at both ends are cut off first; the rest is searched for a shortest edit of
 * at most MAX_EDITS steps. The furthest points of each step are kept to walk back, which
 * bounds memory by MAX_EDITS squared and time by MAX_EDITS times the lines.
 */
#include "monitor/differ.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { MAX_EDITS = 2000 };

struct line {
	const char *data;
	size_t size; /* with its newline, if it has one */
};

struct lines {
	struct line *items; /* owned */
	int count;
};

enum op { KEEP, DROP, ADD };

/* The edit script: one op for each line of either text, in order. */
struct script {
	enum op *ops; /* owned */
	int count;
};

struct search {
	const struct lines *old, *now;
	int start;                /* common lines at the front */
	int old_count, now_count; /* of the middle part */
	int **reach; /* owned: by step, the furthest x of each diagonal -step … step */
	int steps;
};

static int split(const struct differ_text *text, struct lines *ret_lines)
{
	const char *at = text->data, *end = at + text->size, *newline;

	if (text->size > DIFFER_MAX_BYTES)
		return -E2BIG;
	ret_lines->items = calloc(DIFFER_MAX_LINES, sizeof *ret_lines->items);
	if (!ret_lines->items)
		return -ENOMEM;
	for (; at < end; at = newline) {
		if (ret_lines->count == DIFFER_MAX_LINES)
			return -E2BIG;
		newline = memchr(at, '\n', (size_t)(end - at));
		newline = newline ? newline + 1 : end;
		ret_lines->items[ret_lines->count++] = (struct line){ at, (size_t)(newline - at) };
	}
	return 0;
}

static bool same(const struct line *a, const struct line *b)
{
	return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static bool same_middle(const struct search *search, int x, int y)
{
	return same(&search->old->items[search->start + x], &search->now->items[search->start + y]);
}

/* Where diagonal k of `step` starts: one down (added line) or one right (dropped line). */
static int step_x(const struct search *search, int step, int k)
{
	const int *before = search->reach[step - 1] + step - 1;

	if (k == -step || (k != step && before[k - 1] < before[k + 1]))
		return before[k + 1];
	return before[k - 1] + 1;
}

/* One step of the search. 1 when the end is reached, 0 to go on, -ENOMEM. */
static int search_step(struct search *search, int step)
{
	int *reach = calloc(2 * (size_t)step + 1, sizeof *reach), x, y;

	if (!reach)
		return -ENOMEM;
	search->reach[step] = reach;
	search->steps = step + 1;
	for (int k = -step; k <= step; k += 2) {
		x = step == 0 ? 0 : step_x(search, step, k);
		y = x - k;
		while (x < search->old_count && y >= 0 && y < search->now_count &&
		       same_middle(search, x, y))
			x++, y++;
		reach[step + k] = x;
		if (x >= search->old_count && y >= search->now_count)
			return 1;
	}
	return 0;
}

/* Walks back from the end, writing ops from `at` downwards; returns the first one's index. */
static int walk_back(const struct search *search, enum op *ops, int at)
{
	int x = search->old_count, y = search->now_count, k, from;

	for (int step = search->steps - 1; step > 0; step--) {
		k = x - y;
		from = step_x(search, step, k);
		while (x > from)
			ops[--at] = KEEP, x--, y--;
		/* An added line leaves x, a dropped one leaves y. */
		if (k == -step || (k != step && search->reach[step - 1][step - 1 + k - 1] <
							search->reach[step - 1][step - 1 + k + 1]))
			ops[--at] = ADD, y--;
		else
			ops[--at] = DROP, x--;
	}
	for (; x > 0; x--)
		ops[--at] = KEEP;
	return at;
}

static int find_script(const struct lines *old, const struct lines *now, struct script *ret_script)
{
	struct search search = { .old = old, .now = now };
	int tail = 0, total = old->count + now->count, at, r = 0;
	enum op *ops = calloc((size_t)total + 1, sizeof *ops);

	ret_script->ops = ops;
	while (search.start < old->count && search.start < now->count &&
	       same(&old->items[search.start], &now->items[search.start]))
		search.start++;
	while (tail < old->count - search.start && tail < now->count - search.start &&
	       same(&old->items[old->count - 1 - tail], &now->items[now->count - 1 - tail]))
		tail++;
	search.old_count = old->count - search.start - tail;
	search.now_count = now->count - search.start - tail;
	search.reach = calloc(MAX_EDITS, sizeof *search.reach);
	if (!ops || !search.reach)
		r = -ENOMEM;
	for (int step = 0; r == 0; step++)
		r = step < MAX_EDITS ? search_step(&search, step) : -E2BIG;
	if (r > 0) {
		/* Written from the back of the array, then moved to its front; KEEP is 0. */
		at = walk_back(&search, ops, total - tail);
		at -= search.start;
		ret_script->count = total - at;
		memmove(ops, ops + at, (size_t)ret_script->count * sizeof *ops);
	}
	for (int i = 0; i < search.steps; i++)
		free(search.reach[i]);
	free(search.reach);
	return r < 0 ? r : 0;
}

static int print_line(struct buf *buf, char mark, const struct line *line)
{
	int r = buf_add_byte(buf, (uint8_t)mark);

	if (r == 0)
		r = buf_add(buf, line->data, line->size);
	if (r == 0 && (line->size == 0 || line->data[line->size - 1] != '\n'))
		r = buf_add_text(buf, "\n\\ no newline at the end\n");
	return r;
}

/* Where a hunk stands: first op, one past its last, and the lines of both texts before it. */
struct hunk {
	int from, to;
	int old_line, now_line;
};

/* The next hunk from `hunk->to` on: changes less than two contexts apart belong together. */
static bool next_hunk(const struct script *script, struct hunk *hunk)
{
	int first, last, quiet = 0, i;

	for (first = hunk->to; first < script->count && script->ops[first] == KEEP; first++)
		;
	if (first == script->count)
		return false;
	for (i = last = first; i < script->count && quiet <= 2 * DIFFER_CONTEXT; i++) {
		quiet = script->ops[i] == KEEP ? quiet + 1 : 0;
		last = quiet ? last : i;
	}
	first = first - DIFFER_CONTEXT > hunk->to ? first - DIFFER_CONTEXT : hunk->to;
	last = last + DIFFER_CONTEXT < script->count ? last + DIFFER_CONTEXT + 1 : script->count;
	/* The lines skipped between two hunks count in both texts. */
	hunk->old_line += first - hunk->to;
	hunk->now_line += first - hunk->to;
	hunk->from = first;
	hunk->to = last;
	return true;
}

static int print_hunk(struct buf *buf, const struct script *script, struct hunk *hunk,
		      const struct lines *texts[2])
{
	int old_count = 0, now_count = 0, r;

	for (int i = hunk->from; i < hunk->to; i++) {
		old_count += script->ops[i] != ADD;
		now_count += script->ops[i] != DROP;
	}
	r = buf_printf(buf, "@@ -%d,%d +%d,%d @@\n", hunk->old_line + (old_count > 0), old_count,
		       hunk->now_line + (now_count > 0), now_count);
	for (int i = hunk->from; r == 0 && i < hunk->to; i++) {
		if (script->ops[i] == ADD)
			r = print_line(buf, '+', &texts[1]->items[hunk->now_line]);
		else
			r = print_line(buf, script->ops[i] == DROP ? '-' : ' ',
				       &texts[0]->items[hunk->old_line]);
		hunk->old_line += script->ops[i] != ADD;
		hunk->now_line += script->ops[i] != DROP;
	}
	return r;
}

int differ_unified(const struct differ_text *old, const struct differ_text *now,
		   struct buf *ret_diff)
{
	struct lines a = { 0 }, b = { 0 };
	const struct lines *texts[2] = { &a, &b };
	struct script script = { 0 };
	struct hunk hunk = { 0 };
	int r;

	r = split(old, &a);
	if (r == 0)
		r = split(now, &b);
	if (r == 0)
		r = find_script(&a, &b, &script);
	while (r == 0 && next_hunk(&script, &hunk))
		r = print_hunk(ret_diff, &script, &hunk, texts);
	free(script.ops);
	free(a.items);
	free(b.items);
	return r;
}

bool differ_is_text(const void *data, size_t size)
{
	return size == 0 || str_is_utf8(data, size);
}
