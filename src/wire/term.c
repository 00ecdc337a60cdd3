/*
 * Questions about terms; see term.h. Comparison is what finds a map's duplicate keys, so
 * its cost is linear in the smaller term: maps are compared along their sorted keys.
 */
#include "wire/term.h"

#include <string.h>

static int order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_bytes(const struct term *a, const struct term *b)
{
	int r = order(a->bytes.size, b->bytes.size);

	if (r == 0 && a->bytes.size)
		r = memcmp(a->bytes.data, b->bytes.data, a->bytes.size);
	return r ? r : order(a->bits, b->bits);
}

/* By bits: a total order, in which 0.0 and -0.0 differ. */
static int compare_floats(const struct term *a, const struct term *b)
{
	uint64_t left, right;

	memcpy(&left, &a->real, sizeof left);
	memcpy(&right, &b->real, sizeof right);
	return order(left, right);
}

static int compare_items(const struct term *a, const struct term *b)
{
	int r = order(a->count, b->count);

	for (size_t i = 0; r == 0 && i < a->count; i++)
		r = term_compare(&a->items[i], &b->items[i]);
	return r;
}

static const struct term *find(const struct term *map, const struct term *key)
{
	for (size_t i = 0; i + 1 < map->count; i += 2) {
		if (term_compare(&map->items[i], key) == 0)
			return &map->items[i + 1];
	}
	return NULL;
}

/* For maps that somebody built by hand: equal or not. */
static int differ_maps(const struct term *a, const struct term *b)
{
	for (size_t i = 0; i + 1 < a->count; i += 2) {
		const struct term *value = find(b, &a->items[i]);
		if (!value || term_compare(value, &a->items[i + 1]) != 0)
			return 1;
	}
	return 0;
}

static int compare_maps(const struct term *a, const struct term *b)
{
	int r = order(a->count, b->count);

	if (r == 0 && a->count && (!a->sorted || !b->sorted))
		return differ_maps(a, b);
	for (size_t i = 0; r == 0 && i < a->count / 2; i++) {
		r = term_compare(a->sorted[i], b->sorted[i]);
		if (r == 0)
			r = term_compare(a->sorted[i] + 1, b->sorted[i] + 1);
	}
	return r;
}

int term_compare(const struct term *a, const struct term *b)
{
	if (a->type != b->type)
		return order(a->type, b->type);
	switch (a->type) {
	case TERM_INT:
		return (a->integer > b->integer) - (a->integer < b->integer);
	case TERM_FLOAT:
		return compare_floats(a, b);
	case TERM_TUPLE:
	case TERM_LIST:
	case TERM_IMPROPER:
		return compare_items(a, b);
	case TERM_MAP:
		return compare_maps(a, b);
	case TERM_BIGINT:
	case TERM_ATOM:
	case TERM_BINARY:
	case TERM_BITS:
	case TERM_OPAQUE:
		break;
	}
	return compare_bytes(a, b);
}

bool term_equal(const struct term *a, const struct term *b)
{
	return term_compare(a, b) == 0;
}

bool term_is_atom(const struct term *term, const char *name)
{
	size_t size = strlen(name);

	return term->type == TERM_ATOM && term->bytes.size == size &&
	       (size == 0 || memcmp(term->bytes.data, name, size) == 0);
}

const struct term *term_get(const struct term *map, const char *key)
{
	if (map->type != TERM_MAP)
		return NULL;
	for (size_t i = 0; i + 1 < map->count; i += 2) {
		if (term_is_atom(&map->items[i], key))
			return &map->items[i + 1];
	}
	return NULL;
}
