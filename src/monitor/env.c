/* The environment of a program inside; see env.h. Fixed entries are a table. */
#include "monitor/env.h"

#include <string.h>

#include "base/str.h"

enum { ENV_MAX = 512 };

/* Beneath HOME and TMPDIR, which are elsewhere where the wall has no view of its own. */
static const char *const in_scratch[] = {
	"TMPDIR=%s",
	"HOME=%s/home",
	"XDG_CACHE_HOME=%s/home/.cache",
	"XDG_CONFIG_HOME=%s/home/.config",
	"XDG_DATA_HOME=%s/home/.local/share",
	"XDG_STATE_HOME=%s/home/.local/state",
	"XDG_RUNTIME_DIR=%s/home/.run",
};

static const char *const of_caller[] = { "HOME", "USER", "LOGNAME", "PATH", "TMPDIR" };

static const char *const fixed[] = {
	"USER=sandbox",
	"LOGNAME=sandbox",
	"SHELL=/bin/bash",
	/* Tools that ask their registry for news of themselves. */
	"NO_UPDATE_NOTIFIER=1",
	"npm_config_update_notifier=false",
	"PIP_DISABLE_PIP_VERSION_CHECK=1",
	"CAISSON=1",
};

/* Where there is no network, to try again is to wait: npm does for longer than a command may last.
 */
static const char *const impatient[] = { "npm_config_fetch_retries=0", "PIP_RETRIES=0" };

/* A read-only workspace would make noise: tools try to write what they do not need. */
static const char *const quiet[] = { "GIT_OPTIONAL_LOCKS=0", "PYTHONDONTWRITEBYTECODE=1" };

struct env {
	char **items;
	size_t count;
	struct arena *arena;
};

static size_t name_length(const char *item)
{
	return strcspn(item, "=");
}

/* Later entries replace earlier ones of the same name. */
static bool put(struct env *env, const char *item)
{
	size_t n = item ? name_length(item) : 0;

	for (size_t i = 0; item && i < env->count; i++)
		if (name_length(env->items[i]) == n && strncmp(env->items[i], item, n) == 0) {
			env->items[i] = (char *)item;
			return true;
		}
	if (!item || env->count + 1 >= ENV_MAX)
		return false;
	env->items[env->count++] = (char *)item;
	return true;
}

const char *env_find(const char *const *caller, const char *name)
{
	size_t n = strlen(name);

	for (; caller && *caller; caller++)
		if (strncmp(*caller, name, n) == 0 && (*caller)[n] == '=')
			return *caller;
	return NULL;
}

static bool put_places(struct env *env, const struct env_facts *facts)
{
	const char *scratch = facts->scratch ? facts->scratch : "/tmp";
	bool is_good = true;

	for (size_t i = 0; !facts->is_local && is_good && i < ARRAY_SIZE(in_scratch); i++) {
		const char *tail = strchr(in_scratch[i], '%') + 2;
		int name = (int)name_length(in_scratch[i]);
		const char *item =
			arena_printf(env->arena, "%.*s=%s%s", name, in_scratch[i], scratch, tail);

		is_good = item && put(env, item);
	}
	for (size_t i = 0; facts->is_local && is_good && i < ARRAY_SIZE(of_caller); i++) {
		const char *item = env_find(facts->caller, of_caller[i]);

		is_good = !item || put(env, item);
	}
	return is_good;
}

/* Gates come last: in a folder that commands can write nothing takes the place of a tool. */
static bool put_path(struct env *env, const struct env_facts *facts)
{
	const char *const *paths = facts->paths;
	const char *joined = "/usr/local/bin:/usr/bin:/bin";
	size_t n = 0;

	if (facts->gates_at)
		joined = arena_printf(env->arena, "%s:%s/bin", joined, facts->gates_at);
	for (; paths && paths[n]; n++)
		;
	while (joined && n > 0)
		joined = arena_printf(env->arena, "%s:%s", paths[--n], joined);
	joined = joined ? arena_printf(env->arena, "PATH=%s", joined) : NULL;
	return joined && put(env, joined);
}

static bool put_gates(struct env *env, const struct env_facts *facts)
{
	return !facts->gates_at ||
	       put(env, arena_printf(env->arena, "CAISSON_GATES=%s/gates", facts->gates_at));
}

static bool put_tools(struct env *env, const char *const *tools)
{
	bool is_good = true;

	for (; is_good && tools && *tools; tools++)
		is_good = put(env, *tools);
	return is_good;
}

static bool put_identity(struct env *env, const struct env_facts *facts)
{
	static const char *const names[] = { "GIT_AUTHOR_NAME=%s", "GIT_COMMITTER_NAME=%s" };
	static const char *const mails[] = { "GIT_AUTHOR_EMAIL=%s", "GIT_COMMITTER_EMAIL=%s" };
	bool is_good = true;

	for (int i = 0; i < 2; i++) {
		int n = (int)name_length(names[i]), m = (int)name_length(mails[i]);

		if (facts->git_name)
			is_good &= put(env, arena_printf(env->arena, "%.*s=%s", n, names[i],
							 facts->git_name));
		if (facts->git_email)
			is_good &= put(env, arena_printf(env->arena, "%.*s=%s", m, mails[i],
							 facts->git_email));
	}
	return is_good;
}

static bool put_passed(struct env *env, const struct plan *plan, const struct env_facts *facts,
		       const char **ret_names)
{
	size_t n = 0;

	for (const char **name = plan->env_pass; name && *name && n + 1 < ENV_MAX; name++) {
		const char *item = env_find(facts->caller, *name);

		if (!item)
			continue;
		if (!put(env, item))
			return false;
		ret_names[n++] = *name;
	}
	return true;
}

static bool put_fixed(struct env *env, const struct plan *plan, const struct env_facts *facts)
{
	bool is_cut_off = plan->network == NETWORK_NONE && !facts->is_local, is_good = true;

	for (size_t i = 0; is_good && i < ARRAY_SIZE(fixed); i++)
		is_good = put(env, fixed[i]);
	for (size_t i = 0; is_good && i < ARRAY_SIZE(quiet); i++)
		is_good = plan->workspace.access != ACCESS_RO || put(env, quiet[i]);
	for (size_t i = 0; is_good && i < ARRAY_SIZE(impatient); i++)
		is_good = !is_cut_off || put(env, impatient[i]);
	return is_good;
}

static bool put_own(struct env *env, const struct plan *plan, const struct env_facts *facts)
{
	bool is_good = true;

	if (facts->has_tty && !env_find((const char *const *)env->items, "TERM"))
		is_good = put(env, "TERM=xterm-256color");
	if (is_good && plan->git_identity)
		is_good = put_identity(env, facts);
	for (const char **item = plan->env_set; is_good && item && *item; item++)
		is_good = put(env, *item);
	return is_good;
}

char **env_make(const struct plan *plan, const struct env_facts *facts, struct arena *arena,
		const char *const **ret_passed)
{
	struct env env = { arena_array(arena, ENV_MAX, sizeof *env.items), 0, arena };
	const char **passed = arena_array(arena, ENV_MAX, sizeof *passed);
	bool is_good =
		env.items && passed && put_fixed(&env, plan, facts) && put_places(&env, facts);

	if (is_good && !facts->is_local)
		is_good = put_path(&env, facts) && put_tools(&env, facts->tools) &&
			  put_gates(&env, facts);
	is_good = is_good && put_passed(&env, plan, facts, passed) && put_own(&env, plan, facts) &&
		  put_tools(&env, facts->told);
	if (!is_good)
		return NULL;
	*ret_passed = passed;
	return env.items;
}
