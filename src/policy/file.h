/*
 * file - a parsed policy file, for the files of this room
 *
 * Values by key, each with its place. Nothing is decided yet: a value that is absent has
 * is_set false, and who reads it takes the built-in default.
 */
#pragma once

#include "base/arena.h"
#include "policy/keys.h"
#include "policy/node.h"
#include "policy/policy.h"

/* One entry of a list or map; which members are used depends on the kind. */
struct policy_item {
	struct policy_mark mark;
	const char *name; /* mount: host · env: name · rule: tag, command or path */
	const char *text; /* mount: at · env: value · rule: pattern · list: the text */
	unsigned access;  /* mount: enum plan_access */
};

struct policy_value {
	bool is_set;
	struct policy_mark mark;
	uint64_t number; /* numbers, choices, bools, tiers */
	bool approval;   /* the tier's name asks for it */
	const char *text;
	struct policy_item *items;
	size_t count;
	const struct node *node;
};

struct policy {
	struct arena arena;
	const char *name;
	const struct node *root;
	struct policy_value values[KEY_COUNT];
};

/* Reads one value; ret_value is untouched on failure. -EINVAL with a sentence, -ENOMEM. */
int value_read(const struct policy_source *source, const struct key *key, const struct node *node,
	       struct policy_value *ret_value);

/* The same for text from the command line. */
int value_read_text(const struct policy_source *source, const struct key *key, const char *text,
		    struct policy_value *ret_value);

/* Reads the list of gates, as value_read() does (gates.c). */
int gates_read(const struct policy_source *source, const struct key *key, const struct node *node,
	       struct policy_value *value);

/* Is one of them a function of the program that opens the sandbox? */
bool gates_have_function(const struct policy_value *value);

/*
 * policy_parse() with a byte quota, so that a test can make every allocation fail. The
 * source gives name and error; the arena is the policy's own.
 */
int policy_parse_within(const struct policy_source *source, const void *bytes, size_t size,
			size_t quota, struct policy **ret_policy);
