/* The environment inside: a fixed set, what is passed by name, what the plan sets; nothing else. */
#include "monitor/env.h"

#include "base/str.h"
#include "tap.h"

static const char *const caller[] = {
	"HOME=/home/alice",
	"USER=alice",
	"PATH=/home/alice/bin:/usr/bin",
	"LANG=de_DE.UTF-8",
	"SECRET_KEY=hush",
	"TERM=screen",
	"LD_PRELOAD=x.so",
	"LANGUAGE=de",
	"SSH_AUTH_SOCK=/run/x",
	"EMPTY=",
	NULL,
};

static struct plan plan;
static struct arena arena;
static const char *const *passed;
static char **items;

static void start(void)
{
	static const char *none[] = { NULL };

	CHECK(plan_init(&plan, TIER_AUTO) == 0);
	plan.env_pass = none;
	arena_init(&arena, 1 << 20);
}

static void make(const struct env_facts *facts)
{
	items = env_make(&plan, facts, &arena, &passed);
	CHECK(items);
}

/* The value of a name, NULL if it is not there; there is never more than one. */
static const char *value(const char *name)
{
	size_t n = strlen(name);
	const char *found = NULL;

	for (char **item = items; *item; item++)
		if (strncmp(*item, name, n) == 0 && (*item)[n] == '=') {
			CHECK(!found);
			found = *item + n + 1;
		}
	return found;
}

static void expect(const char *const (*rows)[2], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *found = value(rows[i][0]);

		if (!found || !str_is(found, rows[i][1]))
			printf("# %s=%s\n", rows[i][0], found ? found : "(none)");
		CHECK(found && str_is(found, rows[i][1]));
	}
}

static size_t count_items(void)
{
	size_t n = 0;

	while (items[n])
		n++;
	return n;
}

static void fixed_set(void)
{
	static const char *const rows[][2] = {
		{ "HOME", "/tmp/home" },
		{ "USER", "sandbox" },
		{ "LOGNAME", "sandbox" },
		{ "SHELL", "/bin/bash" },
		{ "TMPDIR", "/tmp" },
		{ "PATH", "/usr/local/bin:/usr/bin:/bin" },
		{ "XDG_CACHE_HOME", "/tmp/home/.cache" },
		{ "XDG_CONFIG_HOME", "/tmp/home/.config" },
		{ "XDG_DATA_HOME", "/tmp/home/.local/share" },
		{ "XDG_STATE_HOME", "/tmp/home/.local/state" },
		{ "XDG_RUNTIME_DIR", "/tmp/home/.run" },
		{ "CAISSON", "1" },
		{ "NO_UPDATE_NOTIFIER", "1" },
		{ "npm_config_update_notifier", "false" },
		{ "PIP_DISABLE_PIP_VERSION_CHECK", "1" },
		{ "GIT_OPTIONAL_LOCKS", "0" },
		{ "PYTHONDONTWRITEBYTECODE", "1" },
		{ "npm_config_fetch_retries", "0" },
		{ "PIP_RETRIES", "0" },
	};

	start();
	plan.workspace.access = ACCESS_RO;
	make(&(struct env_facts){ .caller = caller });
	expect(rows, ARRAY_SIZE(rows));
	CHECK(count_items() == ARRAY_SIZE(rows)); /* nothing of the caller's */
	CHECK(passed && !passed[0]);
}

static void quiet_only_while_read_only(void)
{
	start();
	plan.workspace.access = ACCESS_RW;
	make(&(struct env_facts){ .caller = caller });
	CHECK(!value("GIT_OPTIONAL_LOCKS") && !value("PYTHONDONTWRITEBYTECODE"));
}

static void passes_by_name(void)
{
	static const char *names[] = { "LANG", "TERM", "MISSING", "EMPTY", "LAN", "USER", NULL };

	start();
	plan.env_pass = names;
	make(&(struct env_facts){ .caller = caller });
	CHECK_STR(value("LANG"), "de_DE.UTF-8");
	CHECK_STR(value("TERM"), "screen");
	CHECK_STR(value("EMPTY"), "");
	CHECK_STR(value("USER"), "alice"); /* asked for by name */
	CHECK(!value("MISSING") && !value("LAN") && !value("LANGUAGE"));
	CHECK(!value("SECRET_KEY") && !value("LD_PRELOAD") && !value("SSH_AUTH_SOCK"));
	/* names for the audit log, never values, and only of what was there */
	CHECK_STR(passed[0], "LANG");
	CHECK_STR(passed[1], "TERM");
	CHECK_STR(passed[2], "EMPTY");
	CHECK_STR(passed[3], "USER");
	CHECK(!passed[4]);
}

static void set_wins(void)
{
	static const char *names[] = { "LANG", NULL };
	static const char *set[] = { "LANG=C", "HOME=/workspace", "PATH=/opt/x", "NEW=a=b",
				     "EMPTY=", "NEW=c",           "CAISSON=2",   NULL };

	start();
	plan.env_pass = names;
	plan.env_set = set;
	make(&(struct env_facts){ .caller = caller });
	CHECK_STR(value("LANG"), "C");
	CHECK_STR(value("HOME"), "/workspace");
	CHECK_STR(value("PATH"), "/opt/x");
	CHECK_STR(value("NEW"), "c"); /* the last one */
	CHECK_STR(value("EMPTY"), "");
	CHECK_STR(value("CAISSON"), "2");
}

static void path_order(void)
{
	static const char *const paths[] = { "/workspace/.venv/bin", "/opt/python/bin", NULL };

	start();
	make(&(struct env_facts){ .caller = caller, .paths = paths });
	CHECK_STR(value("PATH"),
		  "/workspace/.venv/bin:/opt/python/bin:/usr/local/bin:/usr/bin:/bin");
}

static void terminal(void)
{
	static const char *names[] = { "TERM", NULL };

	start();
	make(&(struct env_facts){ .caller = caller });
	CHECK(!value("TERM"));
	make(&(struct env_facts){ .caller = caller, .has_tty = true });
	CHECK_STR(value("TERM"), "xterm-256color");
	plan.env_pass = names;
	make(&(struct env_facts){ .caller = caller, .has_tty = true });
	CHECK_STR(value("TERM"), "screen");
}

static void identity(void)
{
	struct env_facts facts = { .caller = caller, .git_name = "A B", .git_email = "a@b" };

	start();
	make(&facts);
	CHECK(!value("GIT_AUTHOR_NAME")); /* known, but not lent */
	plan.git_identity = true;
	make(&facts);
	CHECK_STR(value("GIT_AUTHOR_NAME"), "A B");
	CHECK_STR(value("GIT_COMMITTER_NAME"), "A B");
	CHECK_STR(value("GIT_AUTHOR_EMAIL"), "a@b");
	CHECK_STR(value("GIT_COMMITTER_EMAIL"), "a@b");
	make(&(struct env_facts){ .caller = caller });
	CHECK(!value("GIT_AUTHOR_NAME"));
}

/* Where the wall has no view of its own, scratch is a folder of the host's. */
static void scratch_elsewhere(void)
{
	start();
	make(&(struct env_facts){ .caller = caller, .scratch = "/tmp/caisson-x" });
	CHECK_STR(value("TMPDIR"), "/tmp/caisson-x");
	CHECK_STR(value("HOME"), "/tmp/caisson-x/home");
	CHECK_STR(value("XDG_RUNTIME_DIR"), "/tmp/caisson-x/home/.run");
}

static void local(void)
{
	start();
	make(&(struct env_facts){ .caller = caller, .is_local = true });
	CHECK_STR(value("HOME"), "/home/alice");
	CHECK_STR(value("USER"), "alice");
	CHECK_STR(value("PATH"), "/home/alice/bin:/usr/bin");
	CHECK(!value("SECRET_KEY") && !value("LD_PRELOAD") && !value("LANG"));
}

/* Out of memory, or more than there is room for: an error, never a part of it. */
static void bounded(void)
{
	static const char *set[1001];
	static char texts[1000][16];

	start();
	for (int i = 0; i < 1000; i++) {
		snprintf(texts[i], sizeof texts[i], "N%d=x", i);
		set[i] = texts[i];
	}
	plan.env_set = set;
	CHECK(!env_make(&plan, &(struct env_facts){ .caller = caller }, &arena, &passed));
	set[300] = NULL;
	CHECK(env_make(&plan, &(struct env_facts){ .caller = caller }, &arena, &passed));
	for (size_t quota = 0; quota < 9000; quota += 500) {
		_cleanup_arena_ struct arena small;

		arena_init(&small, quota);
		items = env_make(&plan, &(struct env_facts){ .caller = caller }, &small, &passed);
		CHECK(!items || count_items() >= 300);
	}
}

static const struct tap_test tests[] = {
	{ "the fixed set, and nothing of the caller's", fixed_set },
	{ "tools are quiet in a read-only workspace", quiet_only_while_read_only },
	{ "what is passed is passed by its name", passes_by_name },
	{ "what the plan sets wins", set_wins },
	{ "toolchains stand first in PATH", path_order },
	{ "a terminal has a name", terminal },
	{ "an identity is lent on demand", identity },
	{ "scratch may be elsewhere", scratch_elsewhere },
	{ "without a wall home and PATH are the caller's", local },
	{ "too much is an error", bounded },
};

TAP_MAIN(tests)
