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

enum { BASES = 4 };

/* What is asked for: to start a sandbox, or of one that runs. */
struct matter {
	const char *const *argv;  /* NULL-terminated; NULL: no command yet */
	const char *const *tags;  /* NULL-terminated, may be NULL */
	const char *cwd;          /* relative words begin there */
	const char *bases[BASES]; /* a path beneath one is also tried relative to it; NULL: none */
	const struct plan *plan;  /* whose mounts and workspace are asked for too; NULL: none */
};

struct attempt {
	const struct matter *matter;
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
	char absolute[MAX_PATH];

	if (hits(a->pattern, path))
		return true;
	if (path_join(a->matter->cwd, path, absolute, sizeof absolute) < 0)
		return false;
	if (hits(a->pattern, absolute))
		return true;
	for (size_t i = 0; i < BASES; i++)
		if (a->matter->bases[i] && path_is_beneath(absolute, a->matter->bases[i]) &&
		    hits(a->pattern, path_tail(absolute, a->matter->bases[i])))
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

static bool path_rule(const struct matter *matter, const char *pattern, const char *command)
{
	const struct attempt a = { matter, pattern };

	(void)command;
	for (const char *const *argv = matter->argv; argv && *argv; argv++)
		if (argument_hits(&a, *argv))
			return true;
	for (size_t i = 0; matter->plan && i < matter->plan->mount_count; i++)
		if (path_hits(&a, matter->plan->mounts[i].host))
			return true;
	return path_hits(&a, matter->cwd) ||
	       (matter->plan && path_hits(&a, matter->plan->workspace.host));
}

static bool tag_rule(const struct matter *matter, const char *pattern, const char *command)
{
	(void)command;
	return matter->tags && plan_has(matter->tags, pattern);
}

static bool command_rule(const struct matter *matter, const char *pattern, const char *command)
{
	(void)matter;
	return command && str_matches(pattern, command);
}

/* argv joined by blanks, in `arena`; NULL without one. */
static int join_command(const char *const *argv, struct arena *arena, const char **ret_command,
			struct csn_error *err)
{
	size_t size = 1, used = 0;
	char *text;

	for (const char *const *word = argv; word && *word; word++)
		size += strlen(*word) + 1;
	text = arena_alloc(arena, size);
	if (!text)
		return csn_fail(err, -E2BIG, "policy",
				"the command is %zu bytes long, too long to compare with the "
				"policy's strict_when; put it into a script",
				size);
	for (const char *const *word = argv; word && *word; word++) {
		size_t n = strlen(*word);

		if (used)
			text[used++] = ' ';
		memcpy(text + used, *word, n);
		used += n;
	}
	*ret_command = argv ? text : NULL;
	return 0;
}

static const struct rule_kind {
	const char *name;
	bool (*is_hit)(const struct matter *matter, const char *pattern, const char *command);
} rule_kinds[] = {
	{ "tag", tag_rule },
	{ "command", command_rule },
	{ "path", path_rule },
};

static bool rule_hits(const struct matter *matter, const struct plan_rule *rule,
		      const char *command)
{
	for (size_t i = 0; i < ARRAY_SIZE(rule_kinds); i++)
		if (str_is(rule_kinds[i].name, rule->kind))
			return rule_kinds[i].is_hit(matter, rule->pattern, command);
	return true;
}

int decide_strict_rule(struct decision *d, const struct policy_item **ret_rule)
{
	_cleanup_arena_ struct arena arena = { .quota = MAX_COMMAND };
	const struct matter matter = { .argv = d->request->argv,
				       .tags = d->request->tags,
				       .cwd = d->facts->cwd,
				       .bases = { d->plan->workspace.host, d->facts->project,
						  d->facts->policy_dir, d->plan->workspace.at },
				       .plan = d->plan };
	const struct policy_value *rules;
	const char *command = NULL;
	int code;

	*ret_rule = NULL;
	if (!d->policy || !d->policy->values[KEY_STRICT_WHEN].count)
		return 0;
	code = join_command(matter.argv, &arena, &command, d->err);
	if (code < 0)
		return code;
	rules = &d->policy->values[KEY_STRICT_WHEN];
	for (size_t i = 0; !*ret_rule && i < rules->count; i++) {
		const struct plan_rule rule = { rules->items[i].name, rules->items[i].text, "" };

		if (rule_hits(&matter, &rule, command))
			*ret_rule = &rules->items[i];
	}
	return 0;
}

int decide_keep_rules(struct decision *d)
{
	const struct policy_value *rules = d->policy ? &d->policy->values[KEY_STRICT_WHEN] : NULL;
	struct plan *plan = d->plan;

	if (!rules || !rules->count || plan->tier == TIER_STRICT)
		return 0;
	plan->strict_when = arena_array(&plan->arena, rules->count, sizeof *plan->strict_when);
	if (!plan->strict_when)
		return decide_no_memory(d);
	for (size_t i = 0; i < rules->count; i++) {
		struct plan_rule *rule = &plan->strict_when[i];

		rule->kind = arena_text(&plan->arena, rules->items[i].name);
		rule->pattern = arena_text(&plan->arena, rules->items[i].text);
		rule->where = decide_place(d, rules->items[i].mark);
		if (!rule->kind || !rule->pattern || !rule->where)
			return decide_no_memory(d);
	}
	plan->strict_count = rules->count;
	return 0;
}

static int refuse(const struct plan_rule *rule, struct csn_error *err)
{
	return csn_fail(
		err, -EPERM, "policy",
		"StrictModeRequired: %.120s: strict_when: {%s: %.80s} wants tier strict for "
		"this, and this sandbox is none: start one with --tier strict",
		rule->where, rule->kind, rule->pattern);
}

int policy_may_call(const struct plan *plan, const struct policy_call *call, struct csn_error *err)
{
	_cleanup_arena_ struct arena arena = { .quota = MAX_COMMAND };
	const struct matter matter = { .argv = call->argv,
				       .tags = call->tags,
				       .cwd = call->cwd,
				       .bases = { plan->workspace.at, plan->workspace.host } };
	const char *command = NULL;
	int code = 0;

	if (plan->strict_count)
		code = join_command(matter.argv, &arena, &command, err);
	for (size_t i = 0; code == 0 && i < plan->strict_count; i++)
		if (rule_hits(&matter, &plan->strict_when[i], command))
			code = refuse(&plan->strict_when[i], err);
	return code;
}
