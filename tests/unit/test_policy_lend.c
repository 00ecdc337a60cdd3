/* Which folders are lent and where, what strict_when sees, and what stays out of messages. */
#include "policy_help.h"

#include "base/path.h"

static void test_mounts_never_lent(void)
{
	const struct {
		const char *mount;
		int code;
		const char *text;
	} rows[] = {
		{ "/:/x", -EPERM, "root of the file system" },
		{ "/home/u:/x", -EPERM, "home directory" },
		{ "/home/u/proj/..:/x", -EPERM, "home directory" },
		{ "..:/x", -EPERM, "home directory" },
		{ "/home:/x", -EPERM, "home directory" },
		{ "/root:/x", -EPERM, "home directory" },
		{ "/home/u/.local/state/caisson/runs:/x", -EPERM, "run root" },
		{ "/home/u/.local/state/caisson/runs/r1:/x", -EPERM, "run root" },
		{ "/home/u/.local:/x", -EPERM, "run root" },
		{ "/var/run/docker.sock:/x", -EPERM, "services" },
		{ "/run/podman/podman.sock:/x", -EPERM, "services" },
		{ "/srv/docker.sock:/x", -EPERM, "privileged service" },
		{ "/proc:/x", -EPERM, "kernel" },
		{ "/sys/fs:/x", -EPERM, "kernel" },
		{ "/dev:/x", -EPERM, "kernel" },
		{ "/dev/sda:/x", -EPERM, "kernel" },
		{ "/etc:/x:rw", -EPERM, "mount it ro" },
		{ "/usr/lib:/x:rw", -EPERM, "mount it ro" },
		{ "/srv:/..", -EINVAL, "not a place" },
		{ "/srv:/a/../b", -EINVAL, "not a place" },
		{ "/srv:/", -EINVAL, "not a place" },
		{ "/srv:/./", -EINVAL, "not a place" },
		{ "/srv:/proc/self", -EINVAL, "not a place" },
		{ "/srv://proc", -EINVAL, "not a place" },
		{ "/srv:/./proc", -EINVAL, "not a place" },
		{ "/srv:/sys", -EINVAL, "not a place" },
		{ "/srv:/dev/shm", -EINVAL, "not a place" },
		{ "/srv:/usr/local", -EINVAL, "not a place" },
		{ "/srv:/etc/passwd", -EINVAL, "not a place" },
		{ "/srv:/bin", -EINVAL, "not a place" },
		{ "/srv:/lib64", -EINVAL, "not a place" },
		{ "/srv:/libx32/x", -EINVAL, "not a place" },
		{ "/srv:/workspace", -EINVAL, "cover the workspace" },
		{ "/srv:/tmp", -EINVAL, "cover the scratch" },
		{ "/srv", -EINVAL, "expected HOST:AT" },
		{ "/srv:x", -EINVAL, "expected HOST:AT" },
		{ ":/x", -EINVAL, "expected HOST:AT" },
		{ "/srv:/x:cow", 0, "" }, /* a place called x:cow */
		{ "/srv/a\nb:/x", -EINVAL, "expected HOST:AT" },
		{ "/../..:/x", -EINVAL, "climb above" },
		{ "/etc/ssl:/x", 0, "" },
		{ "/dev/shm/x:/x", 0, "" },
		{ "/home/u/.cache:/tmp/home/.cache", 0, "" },
		{ "/srv:/libs", -EINVAL, "not a place" },
		{ "/srv:/workspace/lib", 0, "" },
	};
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy_request request = { .mounts = LIST(rows[i].mount) };
		struct csn_error err = { 0 };
		struct plan plan;
		int code = decide(NULL, &request, false, &plan, &err);

		if (code == 0)
			plan_done(&plan);
		if (code != rows[i].code || !strstr(err.text, rows[i].text)) {
			printf("# %s: %d %s\n", rows[i].mount, code, err.text);
			wrong++;
		}
	}
	CHECK(wrong == 0);
}

/* A host with links: what each path is behind them. */
static const struct link {
	const char *path, *real;
	enum policy_kind kind;
} links[] = {
	{ "/srv/to-root", "/", POLICY_FOLDER },
	{ "/srv/to-home", "/home/u", POLICY_FOLDER },
	{ "/srv/to-runs", "/home/u/.local/state/caisson/runs", POLICY_FOLDER },
	{ "/srv/to-run", "/home/u/.local/state/caisson/runs/r1", POLICY_FOLDER },
	{ "/srv/to-proc", "/proc/1", POLICY_FOLDER },
	{ "/srv/to-etc", "/etc", POLICY_FOLDER },
	{ "/srv/to-docker", "/srv/docker.sock", POLICY_SPECIAL },
	{ "/srv/socket", "/srv/socket", POLICY_SPECIAL },
	{ "/srv/a/out", "/srv/b", POLICY_FOLDER },
	{ "/srv/ugly", "/srv/\xff", POLICY_FOLDER },
	{ "/srv/file", "/srv/file", POLICY_FILE },
	{ "/home/u/proj/out", "/home/u/secret", POLICY_FOLDER },
	{ "/home/u/proj/in", "/home/u/proj/data", POLICY_FOLDER },
	{ "/disk", "/mnt/disk", POLICY_FOLDER },
};

static int resolve(const char *path, struct policy_real *ret_real)
{
	const struct link *link = NULL;

	if (strstr(path, "missing"))
		return -ENOENT;
	if (strstr(path, "shut"))
		return -EACCES;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (path_is_beneath(path, links[i].path))
			link = &links[i];
	ret_real->kind = link ? link->kind : POLICY_FOLDER;
	snprintf(ret_real->path, sizeof ret_real->path, "%s%s", link ? link->real : path,
		 link ? path + strlen(link->path) : "");
	return 0;
}

/* Every path is judged and lent as what it is behind its links. */
static void test_links_are_followed_first(void)
{
	const struct {
		const char *yaml, *mount, *workspace;
		int code;
		const char *text; /* of the refusal, or the mount's host, or the workspace */
	} rows[] = {
		{ NULL, "/srv/to-root:/x", NULL, -EPERM, "root of the file system" },
		{ NULL, "/srv/to-home:/x", NULL, -EPERM, "home directory" },
		{ NULL, "/srv/to-runs:/x", NULL, -EPERM, "run root" },
		{ NULL, "/srv/to-run:/x", NULL, -EPERM, "run root" },
		{ NULL, "/srv/to-proc:/x", NULL, -EPERM, "kernel" },
		{ NULL, "/srv/to-etc:/x:rw", NULL, -EPERM, "mount it ro" },
		{ NULL, "/srv/to-etc:/x", NULL, 0, "/etc" },
		{ NULL, "/srv/to-docker:/x", NULL, -EPERM, "socket" },
		{ NULL, "/srv/socket:/x", NULL, -EPERM, "socket" },
		{ NULL, "/srv/ugly:/x", NULL, -EPERM, "UTF-8" },
		{ NULL, "/srv/file:/x", NULL, 0, "/srv/file" },
		{ NULL, "/srv/missing:/x", NULL, -ENOENT, "--mount: /srv/missing does not exist" },
		{ NULL, "/srv/shut:/x", NULL, -EACCES, "--mount: /srv/shut cannot be used" },
		{ NULL, "out:/x", NULL, -EPERM, "leads out of the project" },
		{ NULL, "in/a:/x", NULL, 0, "/home/u/proj/data/a" },
		{ NULL, "/disk/a:/x", NULL, 0, "/mnt/disk/a" },
		{ NULL, NULL, "/srv/to-root", -EPERM, "root of the file system" },
		{ NULL, NULL, "/srv/to-etc", -EPERM, "system directory" },
		{ NULL, NULL, "/srv/to-run", -EPERM, "run root" },
		{ NULL, NULL, "/srv/file", -EPERM, "is a file" },
		{ NULL, NULL, "/srv/missing", -ENOENT, "--workspace: /srv/missing does not exist" },
		{ NULL, NULL, "out", -EPERM, "leads out of the project" },
		{ NULL, NULL, "/disk", 0, "/mnt/disk" },
		{ "mounts: [{host: /srv/to-home, at: /x}]", NULL, NULL, -EPERM, "home directory" },
		{ "mounts: [{host: /srv/to-run, at: /x}]", NULL, NULL, -EPERM, "run root" },
		{ "mounts: [{host: out, at: /x}]", NULL, NULL, -EPERM,
		  "p.yaml:2:10: /home/u/proj/out leads out" },
		{ "mounts: [{host: missing, at: /x}]", NULL, NULL, -ENOENT,
		  "p.yaml:2:10: /home/u/proj/missing" },
		{ "mounts: [{host: /disk, at: /x}]", NULL, NULL, 0, "/mnt/disk" },
		{ "mounts: [{host: /disk, at: /x}]", "/disk/a:/x", NULL, 0, "/mnt/disk/a" },
		{ "mounts: [{host: /srv/a, at: /x}]", "/srv/a/out:/x", NULL, -EPERM,
		  "mount_roots" },
		{ "mount_roots: [/srv/a]", "/srv/a/out:/x", NULL, -EPERM, "mount_roots" },
		{ "mount_roots: [/srv/a]", "/srv/a/b:/x", NULL, 0, "/srv/a/b" },
		{ "mount_roots: [/disk]", "/disk/a:/x", NULL, 0, "/mnt/disk/a" },
		{ "mount_roots: [/disk]", "/mnt/disk/a:/x", NULL, 0, "/mnt/disk/a" },
		{ "mount_roots: [/srv/missing]", NULL, NULL, 0, "/home/u/proj" },
		{ "workspace: {path: /srv/to-home}", NULL, NULL, -EPERM, "home directory" },
		{ "workspace: {path: out}", NULL, NULL, -EPERM, "leads out of the project" },
		{ "workspace: {path: in}", NULL, NULL, 0, "/home/u/proj/data" },
		{ "workspace: {path: /disk}", NULL, "/mnt/disk/a", 0, "/mnt/disk/a" },
	};
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy_request request = { .mounts = LIST(rows[i].mount),
						  .workspace = rows[i].workspace };
		struct policy_facts where = facts(true);
		struct csn_error err = { 0 };
		struct plan plan = { 0 };
		const char *lent = "";
		int code;

		where.resolve = resolve;
		code = decide_at(rows[i].yaml, &request, &where, &plan, &err);
		if (code == 0)
			lent = plan.mount_count ? plan.mounts[0].host : plan.workspace.host;
		if (code != rows[i].code ||
		    (code ? !strstr(err.text, rows[i].text) : !str_is(lent, rows[i].text))) {
			printf("# row %zu: %d %s%s\n", i, code, err.text, lent);
			wrong++;
		}
		plan_done(&plan);
	}
	CHECK(wrong == 0);
}

static void test_mounts_do_not_cover_each_other(void)
{
	const struct {
		const char *const *mounts;
		int code;
	} rows[] = {
		{ LIST("/srv/a:/x", "/srv/b:/y"), 0 },
		{ LIST("/srv/a:/x", "/srv/b:/x"), -EINVAL },
		{ LIST("/srv/a:/x", "/srv/b:/x/y"), 0 },
		{ LIST("/srv/a:/x/y", "/srv/b:/x"), -EINVAL },
		{ LIST("/srv/a:/x", "/srv/b:/xy"), 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy_request request = { .mounts = rows[i].mounts };
		struct csn_error err = { 0 };
		struct plan plan;

		CHECK(decide(NULL, &request, false, &plan, &err) == rows[i].code);
	}
}

static void test_workspaces_never_lent(void)
{
	const struct {
		const char *folder, *at, *text;
		int code;
	} rows[] = {
		{ "/", NULL, "root of the file system", -EPERM },
		{ "/home", NULL, "home directory", -EPERM },
		{ "/home/u", NULL, "--workspace DIR", -EPERM },
		{ "/home/u/", NULL, "workspace: {path: DIR}", -EPERM },
		{ "/home/u/proj/..", NULL, "home directory", -EPERM },
		{ "/usr", NULL, "system directory", -EPERM },
		{ "/etc", NULL, "system directory", -EPERM },
		{ "/var", NULL, "system directory", -EPERM },
		{ "/lib64", NULL, "system directory", -EPERM },
		{ "/proc/self", NULL, "kernel", -EPERM },
		{ "/home/u/.local/state/caisson/runs/r", NULL, "run root", -EPERM },
		{ "/home/u/.local", NULL, "", 0 }, /* the run root inside is hidden by the wall */
		{ "/tmp/x", "host", "", 0 },
		{ "/usr/src/x", NULL, "", 0 },
		{ "/usr/src/x", "host", "--at /workspace", -EINVAL },
		{ "/srv/x", "/tmp", "scratch", -EINVAL },
		{ "/srv/x", "/proc/x", "expected an absolute path", -EINVAL },
		{ "/srv/x", "w", "expected an absolute path", -EINVAL },
	};
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy_request request = { .workspace = rows[i].folder,
						  .workspace_at = rows[i].at };
		struct csn_error err = { 0 };
		struct plan plan;
		int code = decide(NULL, &request, false, &plan, &err);

		if (code == 0)
			plan_done(&plan);
		if (code != rows[i].code || !strstr(err.text, rows[i].text)) {
			printf("# %s: %d %s\n", rows[i].folder, code, err.text);
			wrong++;
		}
	}
	CHECK(wrong == 0);
}

/* A narrower workspace does not unhide or unprotect anything. */
static void test_narrowed_workspace(void)
{
	const struct {
		const char *yaml, *folder, *hide, *protect; /* hide NULL: refused */
	} rows[] = {
		{ "tier: balanced", "src", "[\".env\", \".env.*\", \"*.pem\"]",
		  "[\".git/hooks\", \".git/config\", \".envrc\", \".vscode\"]" },
		{ "tier: balanced", ".git", "[\".env\", \".env.*\", \"*.pem\"]",
		  "[hooks, config, \".envrc\", \".vscode\"]" },
		{ "tier: balanced", ".git/hooks", NULL, NULL },
		{ "tier: balanced", ".git/hooks/x", NULL, NULL },
		{ "tier: balanced", ".vscode", NULL, NULL },
		{ "workspace: {hide: [\"a/*/c\"], protect: []}", "a", "[\"*/c\"]", "[]" },
		{ "workspace: {hide: [\"a/*/c\"], protect: []}", "a/b", NULL, NULL },
		{ "workspace: {hide: [\"a/*/c\"], protect: []}", "b/b", "[\"a/*/c\"]", "[]" },
		{ "workspace: {hide: [\"**/secrets/**\"], protect: []}", "secrets", NULL, NULL },
		{ "workspace: {hide: [\"secrets\"], protect: []}", "a/secrets/b", NULL, NULL },
	};
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char folder[256];
		struct policy_request request = { .workspace = folder };
		struct csn_error err = { 0 };
		struct plan plan;
		int code;

		snprintf(folder, sizeof folder, "/home/u/proj/%s", rows[i].folder);
		code = decide(rows[i].yaml, &request, true, &plan, &err);
		if (!rows[i].hide && code == -EPERM && strchr(err.text, '\n'))
			continue;
		if (rows[i].hide && code == 0 &&
		    str_is(shown(&plan, "workspace.hide"), rows[i].hide) &&
		    str_is(shown(&plan, "workspace.protect"), rows[i].protect))
			continue;
		printf("# %s %s: %d %s\n", rows[i].yaml, rows[i].folder, code,
		       code ? err.text : shown(&plan, "workspace.hide"));
		wrong++;
	}
	CHECK(wrong == 0);
}

static void test_strict_when(void)
{
	const struct {
		const char *rule;
		struct policy_request request;
		bool is_hit;
	} rows[] = {
		{ "{tag: payments}", { .tags = LIST("x", "payments") }, true },
		{ "{tag: payments}", { .tags = LIST("payment") }, false },
		{ "{tag: payments}", { 0 }, false },
		{ "{command: \"*migrate*\"}", { .argv = LIST("rake", "db:migrate", "now") }, true },
		{ "{command: \"rake db:*\"}", { .argv = LIST("rake", "db:migrate") }, true },
		{ "{command: \"rake db\"}", { .argv = LIST("rake", "db", "x") }, false },
		{ "{command: \"*\"}", { .argv = LIST("true") }, true },
		{ "{command: \"*\"}", { 0 }, false },
		{ "{path: \"**/secrets/**\"}", { .argv = LIST("cat", "a/secrets/key") }, true },
		{ "{path: \"**/secrets/**\"}", { .argv = LIST("cat", "secrets/key") }, true },
		{ "{path: \"**/secrets/**\"}", { .argv = LIST("ls", "secrets") }, true },
		{ "{path: \"**/secrets/**\"}", { .argv = LIST("ls", "x/../secrets/y") }, true },
		{ "{path: \"**/secrets/**\"}", { .argv = LIST("tar", "--file=secrets/y") }, true },
		{ "{path: \"**/secrets/**\"}",
		  { .argv = LIST("sh", "-c", "cat 'secrets/y';") },
		  true },
		{ "{path: \"**/secrets/**\"}", { .argv = LIST("cat", "mysecrets/key") }, false },
		{ "{path: \"secrets/**\"}",
		  { .argv = LIST("cat", "/home/u/proj/secrets/k") },
		  true },
		{ "{path: \"secrets/**\"}", { .argv = LIST("cat", "/workspace/secrets/k") }, true },
		{ "{path: \"**/secrets/**\"}", { .workspace = "/home/u/proj/secrets" }, true },
		{ "{path: \"**/secrets/**\"}", { .mounts = LIST("/srv/secrets:/x") }, true },
		{ "{path: \"**/secrets/**\"}", { .mounts = LIST("/srv/open:/x") }, false },
		{ "{tag: a}, {command: \"make *\"}", { .argv = LIST("make", "x") }, true },
	};
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char yaml[256];
		struct csn_error err = { 0 };
		struct plan plan;
		const struct plan_note *note;

		snprintf(yaml, sizeof yaml, "mount_roots: [/srv]\nstrict_when: [%s]", rows[i].rule);
		if (decide(yaml, &rows[i].request, true, &plan, &err) < 0)
			printf("# %s\n", err.text);
		note = note_of(&plan, "tier");
		if ((plan.tier == TIER_STRICT) != rows[i].is_hit ||
		    plan.strict_by_policy != rows[i].is_hit || (note != NULL) != rows[i].is_hit ||
		    (note && !str_starts(note->where, "p.yaml:3:")) ||
		    (rows[i].is_hit && plan.limits.command_ms != 60000)) {
			printf("# row %zu, %s\n", i, rows[i].rule);
			wrong++;
		}
		plan_done(&plan);
	}
	CHECK(wrong == 0);
}

static void test_strict_when_by_cwd(void)
{
	struct policy_facts where = facts(true);
	struct policy_request request = { 0 };
	struct csn_error err = { 0 };
	struct plan plan;

	where.cwd = "/home/u/proj/secrets";
	CHECK(decide_at("strict_when: [{path: \"**/secrets/**\"}]", &request, &where, &plan,
			&err) == 0);
	CHECK(plan.tier == TIER_STRICT);
	CHECK(plan.required & FEATURE_MEMORY);
	plan_done(&plan);
}

/* Values of variables are the caller's secrets: they are in the plan and nowhere else. */
static void test_secrets_stay_out_of_notes(void)
{
	struct policy_request request = { .env = LIST("TOKEN=hunter2") };
	struct csn_error err = { 0 };
	struct plan plan;

	CHECK(decide(NULL, &request, false, &plan, &err) == 0);
	CHECK(plan_has(plan.env_set, "TOKEN=hunter2"));
	for (size_t i = 0; i < plan.note_count; i++)
		CHECK(!strstr(plan.notes[i].now, "hunter2"));
	plan_done(&plan);
	CHECK(decide("tier: balanced", &request, true, &plan, &err) == -EPERM);
	CHECK(!strstr(err.text, "hunter2"));
}

static void test_many_flags(void)
{
	const char *mounts[300] = { NULL };
	struct policy_request request = { .mounts = mounts };
	struct csn_error err = { 0 };
	struct plan plan;

	for (size_t i = 0; i < 299; i++)
		mounts[i] = "/srv/a:/x";
	CHECK(decide(NULL, &request, false, &plan, &err) == -E2BIG);
}

static const struct tap_test tests[] = {
	{ "hosts and places that are never mounted", test_mounts_never_lent },
	{ "links are followed before anything is judged", test_links_are_followed_first },
	{ "mounts do not cover each other", test_mounts_do_not_cover_each_other },
	{ "folders that are never a workspace", test_workspaces_never_lent },
	{ "a narrower workspace hides and protects as much", test_narrowed_workspace },
	{ "strict_when sees tags, commands and paths", test_strict_when },
	{ "strict_when sees the current folder", test_strict_when_by_cwd },
	{ "values of variables are in no note and no message", test_secrets_stay_out_of_notes },
	{ "too many flags are refused", test_many_flags },
};

TAP_MAIN(tests)
