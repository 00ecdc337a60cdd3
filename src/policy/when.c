/*
 * strict_when: does this request need the strongest wall?
 *
 * A rule that misses is a hole and one that hits too often costs a second, so paths are
 * tried in every spelling a shell or a flag would accept: whole arguments, their pieces
 * between blanks, quotes, operators and `=`, made absolute, relative to the workspace, and
 * as folders ("secrets" counts as "secrets/").
 */
#include "policy/decide.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"

enum { MAX_PATH = 4096, MAX_COMMAND = 4 << 20 };

struct attempt {
	struct decision *d;
	const char *pattern;
};

/* A path and the same path as a folder. */
static bool hits(const char *pattern, const char *path)
{
	char folder[MAX_PATH + 2];
	size_t n = strlen(path);

	if (str_path_matches(pattern, path))
		return true;
	if (n == 0 || n > MAX_PATH)
		return false;
	memcpy(folder, path, n);
	memcpy(folder + n, "/", 2);
	return str_path_matches(pattern, folder);
}

static bool path_hits(const struct attempt *a, const char *path)
{
	const char *bases[] = { a->d->plan->workspace.host, a->d->facts->project,
				a->d->facts->policy_dir, a->d->plan->workspace.at };
	char absolute[MAX_PATH];

	if (hits(a->pattern, path))
		return true;
	if (path_join(a->d->facts->cwd, path, absolute, sizeof absolute) < 0)
		return false;
	if (hits(a->pattern, absolute))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(bases); i++)
		if (bases[i] && path_is_beneath(absolute, bases[i]) &&
		    hits(a->pattern, path_tail(absolute, bases[i])))
			return true;
	return false;
}

/* A whole argument, and each of its pieces. */
static bool argument_hits(const struct attempt *a, const char *argument)
{
	static const char edges[] = " \t\n\"'`;|&<>()=,:";

	if (path_hits(a, argument))
		return true;
	while (*argument) {
		char piece[MAX_PATH];
		size_t n = strcspn(argument, edges);

		if (n > 0 && n < sizeof piece) {
			memcpy(piece, argument, n);
			piece[n] = 0;
			if (path_hits(a, piece))
				return true;
		}
		argument += n + strspn(argument + n, edges);
	}
	return false;
}

static bool path_rule(struct decision *d, const char *pattern, const char *command)
{
	const struct attempt a = { d, pattern };

	(void)command;
	for (const char *const *argv = d->request->argv; argv && *argv; argv++)
		if (argument_hits(&a, *argv))
			return true;
	for (size_t i = 0; i < d->plan->mount_count; i++)
		if (path_hits(&a, d->plan->mounts[i].host))
			return true;
	return path_hits(&a, d->facts->cwd) || path_hits(&a, d->plan->workspace.host);
}

static bool tag_rule(struct decision *d, const char *pattern, const char *command)
{
	(void)command;
	return d->request->tags && plan_has(d->request->tags, pattern);
}

static bool command_rule(struct decision *d, const char *pattern, const char *command)
{
	(void)d;
	return command && str_matches(pattern, command);
}

/* argv joined by blanks, in `arena`. */
static int join_command(struct decision *d, struct arena *arena, const char **ret_command)
{
	size_t size = 1, used = 0;
	char *text;

	for (const char *const *argv = d->request->argv; argv && *argv; argv++)
		size += strlen(*argv) + 1;
	text = arena_alloc(arena, size);
	if (!text)
		return csn_fail(d->err, -E2BIG, "policy",
				"the command is %zu bytes long, too long to compare with the "
				"policy's strict_when; put it into a script",
				size);
	for (const char *const *argv = d->request->argv; argv && *argv; argv++) {
		size_t n = strlen(*argv);

		if (used)
			text[used++] = ' ';
		memcpy(text + used, *argv, n);
		used += n;
	}
	*ret_command = d->request->argv ? text : NULL;
	return 0;
}

static const struct rule_kind {
	const char *name;
	bool (*is_hit)(struct decision *d, const char *pattern, const char *command);
} rule_kinds[] = {
	{ "tag", tag_rule },
	{ "command", command_rule },
	{ "path", path_rule },
};

static bool rule_hits(struct decision *d, const struct policy_item *rule, const char *command)
{
	for (size_t i = 0; i < ARRAY_SIZE(rule_kinds); i++)
		if (str_is(rule_kinds[i].name, rule->name))
			return rule_kinds[i].is_hit(d, rule->text, command);
	return true;
}

int decide_strict_rule(struct decision *d, const struct policy_item **ret_rule)
{
	_cleanup_arena_ struct arena arena = { .quota = MAX_COMMAND };
	const struct policy_value *rules;
	const char *command = NULL;
	int code;

	*ret_rule = NULL;
	if (!d->policy || !d->policy->values[KEY_STRICT_WHEN].count)
		return 0;
	code = join_command(d, &arena, &command);
	if (code < 0)
		return code;
	rules = &d->policy->values[KEY_STRICT_WHEN];
	for (size_t i = 0; !*ret_rule && i < rules->count; i++)
		if (rule_hits(d, &rules->items[i], command))
			*ret_rule = &rules->items[i];
	return 0;
}
