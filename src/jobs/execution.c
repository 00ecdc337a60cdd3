/* The `execution:` block; see execution.h. Every key is a row of one table. */
#include "jobs/execution.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "policy/node.h"

enum { QUOTA = 4 << 20, WORDS_MAX = 64 };

static const struct word_key {
	const char *key;
	bool is_container; /* in the map `container` */
	size_t at;
	const char *choices[3]; /* NULL first: any text */
	const char *expected;
} words[] = {
	{ "mode",
	  false,
	  offsetof(struct execution, mode),
	  { "host", "container" },
	  "host or container" },
	{ "runtime",
	  true,
	  offsetof(struct execution, runtime),
	  { "docker", "podman" },
	  "docker or podman" },
	{ "image", true, offsetof(struct execution, image), { NULL }, "the name of an image" },
	{ "network",
	  true,
	  offsetof(struct execution, network),
	  { "none", "default" },
	  "none or default" },
};

static char *text_in(struct execution *execution, const struct word_key *key)
{
	return (char *)execution + key->at;
}

static bool is_choice(const struct word_key *key, const char *text)
{
	if (!*text || strlen(text) >= EXECUTION_TEXT)
		return false;
	for (size_t i = 0; key->choices[0] && i < ARRAY_SIZE(key->choices); i++)
		if (key->choices[i] && str_is(key->choices[i], text))
			return true;
	return !key->choices[0] && text[0] != '-';
}

int execution_set(struct execution *execution, const char *key, const char *text,
		  struct csn_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!str_is(words[i].key, key))
			continue;
		if (!is_choice(&words[i], text))
			return csn_fail(err, -EINVAL, "job", "%s: %.200s, expected %s", key, text,
					words[i].expected);
		snprintf(text_in(execution, &words[i]), EXECUTION_TEXT, "%s", text);
		return 0;
	}
	return csn_fail(err, -EINVAL, "job", "%s: no such key", key);
}

/* ---- the file ------------------------------------------------------------------------------- */

struct reading {
	struct execution *execution;
	const char *name;
	struct csn_error *err;
};

static int complain(struct reading *reading, struct policy_mark mark, const char *key,
		    const char *expected)
{
	return node_fail(reading->err, reading->name, mark, "%s, expected %s", key, expected);
}

static int read_word(struct reading *reading, const struct node *node, const struct word_key *key)
{
	if (node->kind != NODE_SCALAR || !is_choice(key, node->text))
		return complain(reading, node->mark, key->key, key->expected);
	snprintf(text_in(reading->execution, key), EXECUTION_TEXT, "%s", node->text);
	return 0;
}

static int read_bypass(struct reading *reading, const struct node *node)
{
	bool is_true = node->kind == NODE_SCALAR && str_is(node->text, "true");

	if (!is_true && !(node->kind == NODE_SCALAR && str_is(node->text, "false")))
		return complain(reading, node->mark, "use_bypass_permissions", "true or false");
	reading->execution->use_bypass = is_true;
	return 0;
}

static int read_runner(struct reading *reading, const struct node *node)
{
	json_t *list = json_array();

	json_decref(reading->execution->inner_runner);
	reading->execution->inner_runner = list;
	if (node->kind != NODE_LIST || node->count > WORDS_MAX)
		return complain(reading, node->mark, "inner_runner", "a list of words");
	for (const struct node *word = node->first; word; word = word->next) {
		if (word->kind != NODE_SCALAR || !*word->text)
			return complain(reading, word->mark, "inner_runner", "a list of words");
		if (json_array_append_new(list, json_string(word->text)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_map(struct reading *reading, const struct node *map, bool is_container);

static int read_key(struct reading *reading, const struct node *node, bool is_container)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].is_container == is_container && str_is(words[i].key, node->key))
			return read_word(reading, node, &words[i]);
	if (is_container && str_is(node->key, "use_bypass_permissions"))
		return read_bypass(reading, node);
	if (!is_container && str_is(node->key, "inner_runner"))
		return read_runner(reading, node);
	if (!is_container && str_is(node->key, "container"))
		return read_map(reading, node, true);
	return complain(reading, node->key_mark, "unknown key",
			is_container ? "runtime, image, network, use_bypass_permissions"
				     : "mode, container, inner_runner");
}

static int read_map(struct reading *reading, const struct node *map, bool is_container)
{
	int r = 0;

	if (map->kind != NODE_MAP)
		return complain(reading, map->mark, is_container ? "container" : "execution",
				"a map");
	for (const struct node *node = map->first; node && r == 0; node = node->next)
		r = read_key(reading, node, is_container);
	return r;
}

int execution_read(const char *name, const void *bytes, size_t size,
		   struct execution *ret_execution, struct csn_error *err)
{
	struct reading reading = { ret_execution, name, err };
	_cleanup_arena_ struct arena arena;
	struct policy_source source = { &arena, name, err };
	const struct node *root, *block = NULL;
	int r;

	arena_init(&arena, QUOTA);
	r = node_read(&source, bytes, size, &root);
	if (r == 0 && root->kind == NODE_MAP)
		block = node_get(root, "execution");
	return r == 0 && block ? read_map(&reading, block, false) : r;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

json_t *execution_json(const struct execution *execution)
{
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *text = (const char *)execution + words[i].at;

		if (*text)
			json_object_set_new(object, words[i].key, json_string(text));
	}
	if (execution->use_bypass >= 0)
		json_object_set_new(object, "use_bypass_permissions",
				    json_boolean(execution->use_bypass));
	if (execution->inner_runner)
		json_object_set(object, "inner_runner", execution->inner_runner);
	return object;
}

void execution_from(const json_t *json, struct execution *ret_execution)
{
	const json_t *bypass = json_object_get(json, "use_bypass_permissions");
	json_t *runner = json_object_get(json, "inner_runner");

	*ret_execution = EXECUTION_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *text = json_string_value(json_object_get(json, words[i].key));

		if (text)
			execution_set(ret_execution, words[i].key, text, NULL);
	}
	if (json_is_boolean(bypass))
		ret_execution->use_bypass = json_is_true(bypass);
	ret_execution->inner_runner = json_is_array(runner) ? json_incref(runner) : NULL;
}

void execution_done(struct execution *execution)
{
	json_decref(execution->inner_runner);
	execution->inner_runner = NULL;
}
