/*
 * A reader of expressions that gives up early; see literal.h. It walks along the outermost level
 * and gathers runs of plain characters; the longest run is kept. A group counts as unknown, an
 * alternative on the outermost level ends the search for a run, and anything with "(?" or an
 * escape that is not listed ends all.
 */
#include "search/literal.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const char *at;
	char run[LITERAL_MAX];
	size_t size;
	unsigned depth;    /* of groups */
	bool is_lost;      /* something unknown: nothing may be concluded */
	bool has_choice;   /* "|" on the outermost level */
	bool after_repeat; /* the last thing was a quantifier */
	struct literal best;
};

static void end_run(struct reader *r)
{
	if (r->depth == 0 && r->size > r->best.size) {
		memcpy(r->best.text, r->run, r->size);
		r->best.size = r->size;
	}
	r->size = 0;
}

static void add_char(struct reader *r, char byte)
{
	if (r->depth > 0)
		return;
	if (r->size == LITERAL_MAX) {
		r->best.is_whole = false;
		end_run(r);
	}
	r->run[r->size++] = byte;
}

/* Something that is no plain character. */
static void other(struct reader *r)
{
	r->best.is_whole = false;
	end_run(r);
}

/* The last character may be absent: all its bytes go. */
static void drop_char(struct reader *r)
{
	while (r->size > 0 && ((unsigned char)r->run[r->size - 1] & 0xc0) == 0x80)
		r->size--;
	if (r->size > 0)
		r->size--;
}

static void read_repeat(struct reader *r)
{
	size_t digits = strspn(r->at + 1, "0123456789, ");
	bool is_counted = *r->at == '{' && digits > 0 && r->at[1 + digits] == '}';

	if (r->after_repeat && *r->at == '+')
		r->best.may_scan = false;
	if (!r->after_repeat && *r->at != '+')
		drop_char(r);
	other(r);
	r->at += is_counted ? digits + 2 : 1;
	r->after_repeat = true;
}

static void read_escape(struct reader *r)
{
	char byte = r->at[1];

	r->at += byte ? 2 : 1;
	r->best.is_whole = false;
	if (byte == 't')
		byte = '\t';
	else if (byte && strchr("bdswhS", byte))
		;
	else if (byte && strchr("WDnr", byte))
		r->best.may_scan = false;
	else if (!byte || (unsigned char)byte >= 0x80 || isalnum((unsigned char)byte))
		r->is_lost = true;
	if (byte && (byte == '\t' || !isalnum((unsigned char)byte)))
		add_char(r, byte);
	else
		other(r);
}

/* One member of a class, from its first to its last byte; NULL: it does not end. */
static const char *read_member(struct reader *r, const char *at)
{
	if (*at == '[' && at[1] && strchr(":.=", at[1])) {
		r->best.may_scan = false;
		return strchr(at, ']');
	}
	if (*at != '\\')
		return at;
	at++;
	if (!*at || *at == 'Q' || *at == 'E')
		return NULL;
	if (strchr("SWDHVNRnrvsxopP0123456789", *at))
		r->best.may_scan = false;
	return at;
}

/* Over a class. What it means does not matter, only where it ends and whether it runs on. */
static void read_class(struct reader *r)
{
	const char *at = r->at + 1;

	other(r);
	if (*at == '^') {
		r->best.may_scan = false;
		at++;
	}
	if (*at == ']')
		at++;
	while (at && *at && *at != ']') {
		at = read_member(r, at);
		at = at ? at + 1 : NULL;
	}
	if (at && *at)
		r->at = at + 1;
	else
		r->is_lost = true;
}

static void read_group(struct reader *r)
{
	bool is_plain = r->at[1] == '?' && r->at[2] == ':';

	other(r);
	if (*r->at == ')') {
		r->depth -= r->depth > 0;
		r->at++;
		return;
	}
	r->is_lost |= r->at[1] == '*' || (r->at[1] == '?' && !is_plain);
	r->depth++;
	r->at += is_plain ? 3 : 1;
}

static void read_one(struct reader *r)
{
	char byte = *r->at;

	if (strchr("*?+{", byte)) {
		read_repeat(r);
		return;
	}
	r->after_repeat = false;
	if (byte == '\\') {
		read_escape(r);
	} else if (byte == '[') {
		read_class(r);
	} else if (byte == '(' || byte == ')') {
		read_group(r);
	} else if (strchr(".^$|", byte)) {
		r->has_choice |= byte == '|' && r->depth == 0;
		other(r);
		r->at++;
	} else {
		add_char(r, byte);
		r->at++;
	}
}

/* The less common in source text, the higher. */
static unsigned rarity(unsigned char byte)
{
	static const char common[] = " etaonirsldcu_mpfh-gb\"./(),;:=yvw*\t0x1'k><2A";
	const char *found = byte ? strchr(common, byte) : NULL;

	return found ? (unsigned)(found - common) : sizeof common;
}

void literal_read(const char *pattern, struct literal *ret_literal)
{
	struct reader r = { .at = pattern, .best = { .is_whole = true, .may_scan = true } };

	while (*r.at && !r.is_lost)
		read_one(&r);
	end_run(&r);
	if (r.is_lost)
		r.best = (struct literal){ 0 };
	if (r.has_choice)
		r.best.size = 0;
	r.best.is_whole &= r.best.size > 0;
	for (size_t i = 1; i < r.best.size; i++)
		if (rarity((unsigned char)r.best.text[i]) >
		    rarity((unsigned char)r.best.text[r.best.rare]))
			r.best.rare = i;
	*ret_literal = r.best;
}

const char *literal_find(const struct literal *literal, const char *data, size_t size)
{
	const char *at, *end;

	if (size < literal->size)
		return NULL;
	at = data + literal->rare;
	end = at + (size - literal->size + 1);
	while ((at = memchr(at, literal->text[literal->rare], (size_t)(end - at)))) {
		if (memcmp(at - literal->rare, literal->text, literal->size) == 0)
			return at - literal->rare;
		at++;
	}
	return NULL;
}
