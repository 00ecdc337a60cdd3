/*
 * Messages against their tables; see frame.h. A type letter is a row: is the value of
 * that shape, and how much does it weigh. The weight is held against the bound of the
 * message or key, so no handler sees a value that its table does not permit.
 */
#include "wire/frame.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "wire/etf.h"

enum { NAME_TEXT = 64 };

struct type {
	char letter;
	bool (*is)(const struct term *term, uint64_t *weight);
	const char *name;
};

static bool is_integer(const struct term *term, uint64_t *weight)
{
	if (term->type != TERM_INT || term->integer < 0)
		return false;
	*weight = (uint64_t)term->integer;
	return true;
}

static bool is_integer_or_null(const struct term *term, uint64_t *weight)
{
	return term_is_atom(term, "null") || is_integer(term, weight);
}

static bool is_atom(const struct term *term, uint64_t *weight)
{
	(void)weight;
	return term->type == TERM_ATOM;
}

static bool is_boolean(const struct term *term, uint64_t *weight)
{
	(void)weight;
	return term_is_atom(term, "true") || term_is_atom(term, "false");
}

static bool is_binary(const struct term *term, uint64_t *weight)
{
	if (term->type != TERM_BINARY)
		return false;
	*weight += term->bytes.size;
	return true;
}

static bool is_binary_or_eof(const struct term *term, uint64_t *weight)
{
	return term_is_atom(term, "eof") || is_binary(term, weight);
}

/* The kernel would end the text at a zero byte, and a check and its use would differ. */
static bool is_text(const struct term *term, uint64_t *weight)
{
	return is_binary(term, weight) &&
	       (term->bytes.size == 0 || !memchr(term->bytes.data, 0, term->bytes.size));
}

static bool is_path(const struct term *term, uint64_t *weight)
{
	return is_text(term, weight) && term->bytes.size > 0;
}

static bool is_variable_name(const struct term *term, uint64_t *weight)
{
	return is_path(term, weight) && !memchr(term->bytes.data, '=', term->bytes.size);
}

static bool is_list_of(const struct term *term, enum term_type type, uint64_t *weight)
{
	if (term->type != TERM_LIST)
		return false;
	for (size_t i = 0; i < term->count; i++) {
		if (term->items[i].type != type)
			return false;
	}
	*weight = term->count;
	return true;
}

static bool is_atom_list(const struct term *term, uint64_t *weight)
{
	return is_list_of(term, TERM_ATOM, weight);
}

static bool is_map_list(const struct term *term, uint64_t *weight)
{
	return is_list_of(term, TERM_MAP, weight);
}

static bool is_text_list(const struct term *term, uint64_t *weight)
{
	if (term->type != TERM_LIST)
		return false;
	for (size_t i = 0; i < term->count; i++) {
		if (!is_text(&term->items[i], weight))
			return false;
	}
	return true;
}

static bool is_text_map(const struct term *term, uint64_t *weight)
{
	if (term->type != TERM_MAP)
		return false;
	for (size_t i = 0; i + 1 < term->count; i += 2) {
		if (!is_variable_name(&term->items[i], weight) ||
		    !is_text(&term->items[i + 1], weight))
			return false;
	}
	return true;
}

static bool is_map(const struct term *term, uint64_t *weight)
{
	(void)weight;
	if (term->type != TERM_MAP)
		return false;
	for (size_t i = 0; i < term->count; i += 2) {
		if (term->items[i].type != TERM_ATOM)
			return false;
	}
	return true;
}

static const struct type types[] = {
	{ 'i', is_integer, "a non-negative integer" },
	{ 'I', is_integer_or_null, "a non-negative integer or null" },
	{ 'a', is_atom, "an atom" },
	{ 'b', is_binary, "a binary" },
	{ 'd', is_binary_or_eof, "a binary or eof" },
	{ 't', is_text, "a binary without zero bytes" },
	{ 'p', is_path, "a path: a binary, not empty, without zero bytes" },
	{ 'm', is_map, "a map with atoms as keys" },
	{ 'B', is_boolean, "a boolean" },
	{ 'A', is_atom_list, "a list of atoms" },
	{ 'L', is_text_list, "a list of binaries without zero bytes" },
	{ 'M', is_text_map, "a map of binaries without zero bytes, no `=` in keys" },
	{ 'R', is_map_list, "a list of maps" },
};

static const struct type *find_type(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (types[i].letter == letter)
			return &types[i];
	}
	return NULL;
}

const char *frame_type_name(char type)
{
	const struct type *found = find_type(type);

	return found ? found->name : NULL;
}

/* Names come from the peer: they are printed as Erlang would quote them, and cut. */
static int refuse(struct csn_error *err, const struct term *name, const char *why)
{
	char text[NAME_TEXT];

	term_print(name, text, sizeof text);
	return csn_fail(err, -EBADMSG, "wire", "a message is refused: %s %s", text, why);
}

static int check_value(char letter, const struct term *value, uint64_t max, const char *name,
		       struct csn_error *err)
{
	const struct type *type = find_type(letter);
	uint64_t weight = 0;

	if (!type || !type->is(value, &weight))
		return csn_fail(err, -EBADMSG, "wire", "a message is refused: %s is not %s", name,
				type ? type->name : "of a known type");
	if (max && weight > max)
		return csn_fail(err, -EBADMSG, "wire",
				"a message is refused: %s is too large: %llu, at most %llu", name,
				(unsigned long long)weight, (unsigned long long)max);
	return 0;
}

static const struct frame_key *find_key(const struct frame_key *keys, const struct term *name)
{
	for (; keys->name; keys++) {
		if (term_is_atom(name, keys->name))
			return keys;
	}
	return NULL;
}

/* Recursion follows the tables, which are ours, not the input. */
static int check_nested(const struct frame_key *key, const struct term *value,
			struct csn_error *err)
{
	int r = 0;

	if (!key->keys)
		return 0;
	if (key->type == 'm')
		return frame_check_map(key->keys, value, err);
	for (size_t i = 0; r == 0 && i < value->count; i++)
		r = frame_check_map(key->keys, &value->items[i], err);
	return r;
}

static int check_pair(const struct frame_key *keys, const struct term *pair, struct csn_error *err)
{
	const struct frame_key *key = find_key(keys, &pair[0]);
	int r;

	if (!key)
		return refuse(err, &pair[0], "is an unknown key");
	r = check_value(key->type, &pair[1], key->max, key->name, err);
	return r < 0 ? r : check_nested(key, &pair[1], err);
}

int frame_check_map(const struct frame_key *keys, const struct term *map, struct csn_error *err)
{
	int r = 0;

	if (map->type != TERM_MAP)
		return refuse(err, map, "is not a map");
	for (size_t i = 0; r == 0 && i + 1 < map->count; i += 2)
		r = check_pair(keys, &map->items[i], err);
	for (; r == 0 && keys->name; keys++) {
		if (keys->required && !term_get(map, keys->name))
			r = csn_fail(err, -EBADMSG, "wire",
				     "a message is refused: the key %s is missing", keys->name);
	}
	return r;
}

/* Is the atom one of the words? */
static bool is_among(const struct term *atom, const char *words)
{
	size_t size;

	for (; *words; words += size + (words[size] == ' ')) {
		size = strcspn(words, " ");
		if (atom->bytes.size == size && memcmp(atom->bytes.data, words, size) == 0)
			return true;
	}
	return false;
}

static int check_arg(const struct frame_message *message, size_t n, const struct term *arg,
		     struct csn_error *err)
{
	char letter = message->args[n];
	uint64_t max = 0;
	int r;

	if (letter == 'i' && n > 0)
		max = message->max_integer;
	else if (letter == 'b' || letter == 'd')
		max = message->max_binary;
	r = check_value(letter, arg, max, message->shape, err);
	if (r == 0 && letter == 'a' && message->atoms && !is_among(arg, message->atoms))
		r = refuse(err, arg, "is no stream of this side");
	if (r == 0 && letter == 'm' && message->keys)
		r = frame_check_map(message->keys, arg, err);
	return r;
}

static int find_message(const struct term *name, enum frame_side side, struct csn_error *err)
{
	bool is_known = false;

	for (size_t i = 0; i < frame_message_count; i++) {
		if (!term_is_atom(name, frame_messages[i].name))
			continue;
		if (frame_messages[i].side & side)
			return (int)i;
		is_known = true;
	}
	return refuse(err, name, is_known ? "is not this side's to send" : "is unknown");
}

static int check_arity(int index, size_t arity, struct csn_error *err)
{
	const struct frame_message *message = &frame_messages[index];

	if (arity == strlen(message->args) + 1)
		return index;
	return csn_fail(err, -EBADMSG, "wire", "a message is refused: %s has %zu elements",
			message->shape, arity);
}

int frame_check(const struct term *term, enum frame_side side, struct csn_error *err)
{
	int index, r = 0;

	if (term->type != TERM_TUPLE || term->count == 0 || term->items[0].type != TERM_ATOM)
		return refuse(err, term, "is not a tuple that begins with an atom");
	index = find_message(&term->items[0], side, err);
	if (index >= 0)
		index = check_arity(index, term->count, err);
	if (index < 0)
		return index;
	for (size_t i = 1; r == 0 && i < term->count; i++)
		r = check_arg(&frame_messages[index], i - 1, &term->items[i], err);
	return r < 0 ? r : index;
}

/* Where the name of a message is: after 131 104 N tag and one or two bytes of length. */
static bool see_name(const uint8_t *payload, size_t size, struct term *ret)
{
	size_t head = 5, length;

	if (size < 6 || payload[0] != ETF_VERSION || payload[1] != ETF_SMALL_TUPLE)
		return false;
	if (payload[3] == ETF_SMALL_ATOM_UTF8 || payload[3] == ETF_SMALL_ATOM) {
		length = payload[4];
	} else if (payload[3] == ETF_ATOM_UTF8 || payload[3] == ETF_ATOM) {
		length = (size_t)payload[4] << 8 | payload[5];
		head = 6;
	} else {
		return false;
	}
	if (length > size - head)
		return false;
	*ret = (struct term){ .type = TERM_ATOM, .bytes = { payload + head, length } };
	return true;
}

int frame_sniff(const uint8_t *payload, size_t size, enum frame_side side, struct csn_error *err)
{
	struct term name;
	int index;

	if (!see_name(payload, size, &name))
		return csn_fail(err, -EBADMSG, "wire",
				"a message is refused: it is not a tuple that begins with an atom");
	index = find_message(&name, side, err);
	if (index >= 0)
		index = check_arity(index, payload[2], err);
	if (index >= 0 && size > frame_messages[index].max_bytes)
		return csn_fail(err, -EBADMSG, "wire",
				"a message is refused: %s of %zu bytes, at most %u are taken",
				frame_messages[index].shape, size, frame_messages[index].max_bytes);
	return index;
}

int frame_decode(struct arena *arena, struct term_input payload, enum frame_side side,
		 struct term *ret_term, struct csn_error *err)
{
	int index = frame_sniff(payload.data, payload.size, side, err);
	struct term term;
	int r;

	if (index < 0)
		return index;
	payload.is_lasting = index == FRAME_DATA_IN || index == FRAME_DATA_OUT;
	r = term_decode(arena, payload, &term_limits, &term, err);
	if (r == 0)
		r = frame_check(&term, side, err);
	if (r < 0)
		return r;
	*ret_term = term;
	return r;
}

static const struct frame_verb *find_verb(const struct frame_verb *verbs, size_t count,
					  const struct term *atom)
{
	for (size_t i = 0; i < count; i++)
		if (term_is_atom(atom, verbs[i].name))
			return &verbs[i];
	return NULL;
}

const struct frame_verb *frame_find_verb(const struct term *atom)
{
	return find_verb(frame_verbs, frame_verb_count, atom);
}

const struct frame_verb *frame_find_client_verb(const struct term *atom)
{
	const struct frame_verb *verb =
		find_verb(frame_client_verbs, frame_client_verb_count, atom);

	return verb ? verb : frame_find_verb(atom);
}
