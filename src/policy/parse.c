/*
 * The tree of a file, sorted into the table of keys. Sections are one level deep, so this
 * is a loop in a loop; everything else a file could say is refused with its place.
 */
#include "policy/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* The tree of the longest useful file takes a fraction of this. */
enum { POLICY_QUOTA = 16 << 20, MAX_PATH = 64 };

/* Is `name` (with `section` before it, if any) the first part of a longer key? */
static bool is_section(const char *name)
{
	for (size_t i = 0; i < KEY_COUNT; i++) {
		size_t n = key_section(&policy_keys[i]);

		if (n && strlen(name) == n && memcmp(policy_keys[i].path, name, n) == 0)
			return true;
	}
	return false;
}

/* How many characters differ, as an edit distance would count for one-letter slips. */
static unsigned distance(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b), head = 0, tail = 0, rest;

	while (a[head] && a[head] == b[head])
		head++;
	while (tail < na - head && tail < nb - head && a[na - 1 - tail] == b[nb - 1 - tail])
		tail++;
	rest = (na > nb ? na : nb) - head - tail;
	return (unsigned)rest;
}

/* The word that row `id` stands for in a section ("" for the top); false: none. */
static bool word_of(size_t id, const char *section, char *ret_word)
{
	const char *path = policy_keys[id].path;
	size_t n = key_section(&policy_keys[id]), skip = strlen(section);

	if (skip && (n != skip || memcmp(path, section, n) != 0))
		return false;
	if (skip)
		snprintf(ret_word, MAX_PATH, "%s", path + skip + 1);
	else
		snprintf(ret_word, MAX_PATH, "%.*s", (int)(n ? n : strlen(path)), path);
	return true;
}

/* What `name` was meant to be: the nearest word of the section, or all of them. */
static void list_names(const char *section, const char *name, char *ret_list, size_t size)
{
	char word[MAX_PATH], last[MAX_PATH] = "";
	size_t used = 0;

	for (size_t id = 0; id < KEY_COUNT; id++) {
		if (!word_of(id, section, word) || str_is(word, last))
			continue;
		snprintf(last, sizeof last, "%s", word);
		if (strlen(name) < MAX_PATH && distance(word, name) <= 2) {
			snprintf(ret_list, size, "%s", word);
			return;
		}
		if (used < size)
			used += (size_t)snprintf(ret_list + used, size - used, "%s%s",
						 used ? ", " : "", word);
	}
}

static int unknown_key(const struct policy_source *source, const char *section,
		       const struct node *node)
{
	char names[384], shown[NODE_SHOWN];

	list_names(section, node->key, names, sizeof names);
	return node_fail(source->err, source->name, node->key_mark,
			 "unknown key %s%s%s, expected %s", section, *section ? "." : "",
			 node_show(node->key, shown), names);
}

/* One key of the top (section "") or of a section. */
static int load_key(struct policy *policy, const struct policy_source *source, const char *section,
		    const struct node *node)
{
	char path[MAX_PATH];
	int n = snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", node->key);
	enum key_id id = n < 0 || n >= MAX_PATH ? KEY_COUNT : key_find(path);

	/* A key with a dot in its own name ("limits.command: 5s") is not a path. */
	if (id == KEY_COUNT || strchr(node->key, '.'))
		return unknown_key(source, section, node);
	return value_read(source, &policy_keys[id], node, &policy->values[id]);
}

static int load_section(struct policy *policy, const struct policy_source *source,
			const struct node *map)
{
	if (map->kind != NODE_MAP)
		return node_fail(source->err, source->name, map->mark,
				 "%s is not a map, expected {KEY: VALUE}", map->key);
	for (const struct node *node = map->first; node; node = node->next) {
		int code = load_key(policy, source, map->key, node);

		if (code < 0)
			return code;
	}
	return 0;
}

/* Hosts that no mode lets through would read like a permission and be none. */
static int check_allow(const struct policy *policy, const struct policy_source *source)
{
	const struct policy_value *allow = &policy->values[KEY_NETWORK_ALLOW];
	const struct policy_value *mode = &policy->values[KEY_NETWORK_MODE];
	enum plan_network network = mode->is_set ? (enum plan_network)mode->number : NETWORK_NONE;

	if (allow->count == 0 || network == NETWORK_ALLOW)
		return 0;
	return node_fail(source->err, source->name, allow->mark,
			 "network.allow names hosts and under network.mode %s it says nothing, "
			 "expected mode: allow beside it, or allow: []",
			 plan_network_name(network));
}

static int load(struct policy *policy, const struct policy_source *source)
{
	const struct node *root = policy->root;

	if (root->kind != NODE_MAP)
		return node_fail(source->err, source->name, root->mark,
				 "not a map, expected version: 1 and other keys");
	for (const struct node *node = root->first; node; node = node->next) {
		int code = is_section(node->key) ? load_section(policy, source, node)
						 : load_key(policy, source, "", node);

		if (code < 0)
			return code;
	}
	if (!policy->values[KEY_VERSION].is_set)
		return node_fail(source->err, source->name, root->mark,
				 "no version, expected version: 1");
	return check_allow(policy, source);
}

static int no_memory(const struct policy_source *source)
{
	return csn_fail(source->err, -ENOMEM, "policy", "%.200s: out of memory", source->name);
}

static int fill(struct policy *policy, const struct policy_source *from, const void *bytes,
		size_t size)
{
	struct policy_source source = { &policy->arena, from->name, from->err };
	int code;

	policy->name = arena_text(&policy->arena, from->name);
	if (!policy->name)
		return no_memory(from);
	code = node_read(&source, bytes, size, &policy->root);
	return code < 0 ? code : load(policy, &source);
}

int policy_parse_within(const struct policy_source *source, const void *bytes, size_t size,
			size_t quota, struct policy **ret_policy)
{
	struct policy *policy = calloc(1, sizeof *policy);
	int code;

	if (!policy)
		return no_memory(source);
	arena_init(&policy->arena, quota);
	code = fill(policy, source, bytes, size);
	if (code < 0) {
		policy_free(policy);
		return code;
	}
	*ret_policy = policy;
	return 0;
}

int policy_parse(const char *name, const void *bytes, size_t size, struct policy **ret_policy,
		 struct csn_error *err)
{
	const struct policy_source source = { NULL, name, err };

	return policy_parse_within(&source, bytes, size, POLICY_QUOTA, ret_policy);
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	arena_done(&policy->arena);
	free(policy);
}
