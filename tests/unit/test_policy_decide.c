/* Decisions as tables: file, flags and facts on the left, the plan or the refusal on the right. */
#include "policy/file.h"
#include "tap.h"

#include <errno.h>

#include "base/str.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static struct policy_facts facts(bool is_trusted)
{
	return (struct policy_facts){
		.cwd = "/home/u/proj",
		.project = "/home/u/proj",
		.home = "/home/u",
		.run_root = "/home/u/.local/state/caisson/runs",
		.policy_dir = "/home/u/proj",
		.policy_is_trusted = is_trusted,
	};
}

static int decide_at(const char *yaml, const struct policy_request *request,
		     const struct policy_facts *where, struct plan *ret_plan, struct csn_error *err)
{
	struct policy *policy = NULL;
	char text[4096];
	int code = 0;

	if (yaml) {
		snprintf(text, sizeof text, "%s%s", strstr(yaml, "version:") ? "" : "version: 1\n",
			 yaml);
		code = policy_parse("p.yaml", text, strlen(text), &policy, err);
	}
	if (code == 0)
		code = policy_decide(policy, request, where, ret_plan, err);
	policy_free(policy);
	return code;
}

static int decide(const char *yaml, const struct policy_request *request, bool is_trusted,
		  struct plan *ret_plan, struct csn_error *err)
{
	struct policy_facts where = facts(is_trusted);

	return decide_at(yaml, request, &where, ret_plan, err);
}

static const char *shown(const struct plan *plan, const char *key)
{
	static struct buf buf;

	buf_done(&buf);
	buf_init(&buf, 1 << 16);
	CHECK(key_find(key) != KEY_COUNT);
	CHECK(key_show(&policy_keys[key_find(key)], plan, SHOW_VALUES, &buf) == 0);
	return buf_text(&buf);
}

static const struct plan_note *note_of(const struct plan *plan, const char *key)
{
	for (size_t i = plan->note_count; i-- > 0;)
		if (str_is(plan->notes[i].what, key))
			return &plan->notes[i];
	return NULL;
}

enum { UNTRUSTED, TRUSTED };

struct good {
	const char *yaml;
	struct policy_request request;
	bool is_trusted;
	const char *key, *value; /* what the plan says afterwards */
	const char *where;       /* of the note; NULL: no note */
	bool loosens;
};

static int try_good(const struct good *row)
{
	struct csn_error err = { 0 };
	struct plan plan;
	const struct plan_note *note;
	int code = decide(row->yaml, &row->request, row->is_trusted, &plan, &err), wrong;

	if (code < 0) {
		printf("# %s: refused: %s\n", row->yaml ? row->yaml : row->key, err.text);
		return 1;
	}
	note = note_of(&plan, row->key);
	wrong = !str_is(shown(&plan, row->key), row->value) ||
		(row->where != NULL) != (note != NULL) ||
		(note && (!str_is(note->where, row->where) || note->loosens != row->loosens));
	if (wrong)
		printf("# %s: %s is %s, by %s, loosens %d\n", row->yaml ? row->yaml : "no file",
		       row->key, shown(&plan, row->key), note ? note->where : "nobody",
		       note ? note->loosens : 0);
	plan_done(&plan);
	return wrong;
}

static void check_good(const struct good *rows, size_t count)
{
	int wrong = 0;

	for (size_t i = 0; i < count; i++)
		wrong += try_good(&rows[i]);
	CHECK(wrong == 0);
}

struct refusal {
	const char *yaml;
	struct policy_request request;
	bool is_trusted;
	int code;
	const char *text; /* part of the sentence */
};

/* The YAML after the first newline of a refusal, as a trusted file, must permit the request. */
static int try_permit(const struct refusal *row, const char *sentence)
{
	const char *yaml = strchr(sentence, '\n');
	struct csn_error err = { 0 };
	struct plan plan;
	int code;

	if (!yaml || row->code != -EPERM || strstr(yaml, "DIR"))
		return 0;
	code = decide(yaml + 1, &row->request, TRUSTED, &plan, &err);
	if (code == 0) {
		plan_done(&plan);
		return 0;
	}
	printf("# does not permit:%s: %s\n", yaml, err.text);
	return 1;
}

static void check_refusals(const struct refusal *rows, size_t count, bool wants_yaml)
{
	int wrong = 0;

	for (size_t i = 0; i < count; i++) {
		struct csn_error err = { 0 };
		struct plan plan;
		int code = decide(rows[i].yaml, &rows[i].request, rows[i].is_trusted, &plan, &err);

		if (code != rows[i].code || !strstr(err.text, rows[i].text) ||
		    (wants_yaml && !strchr(err.text, '\n'))) {
			printf("# row %zu: %d %s\n", i, code, err.text);
			wrong++;
		}
		wrong += try_permit(&rows[i], err.text);
	}
	CHECK(wrong == 0);
}

/* Tiers, none of which a request can lower. */
static void test_tiers(void)
{
	const struct good rows[] = {
		{ NULL, { 0 }, 0, "tier", "balanced", NULL, 0 },
		{ NULL, { .tier = "strict" }, 0, "tier", "strict", "--tier", 0 },
		{ NULL, { .tier = "strict" }, 0, "limits.memory", "1536MiB", NULL, 0 },
		{ NULL, { .tier = "HUMANAPPROVE" }, 0, "tier", "assisted", "--tier", 0 },
		{ NULL, { .tier = "HumanApprove" }, 0, "approval", "required", "--tier", 0 },
		{ NULL, { .tier = "assisted" }, 0, "limits_mode", "hard", NULL, 0 },
		{ NULL, { .tier = "assisted" }, 0, "approval", "none", NULL, 0 },
		{ "tier: auto", { 0 }, TRUSTED, "tier", "auto", "p.yaml:2:7", 1 },
		{ "tier: auto", { .tier = "balanced" }, TRUSTED, "tier", "balanced", "--tier", 0 },
		{ "tier: local", { 0 }, TRUSTED, "tier", "local", "p.yaml:2:7", 1 },
		{ "tier: local", { .tier = "local" }, TRUSTED, "tier", "local", "p.yaml:2:7", 1 },
		{ "tier: strict", { 0 }, UNTRUSTED, "tier", "strict", "p.yaml:2:7", 0 },
		{ "tier: ManualOnly", { 0 }, UNTRUSTED, "approval", "required", "p.yaml:2:7", 0 },
		{ "{version: 1, tier: HumanApprove, approval: none}",
		  { 0 },
		  TRUSTED,
		  "approval",
		  "required",
		  "p.yaml:1:20",
		  0 },
		{ "tier: assisted\nlimits_mode: best",
		  { 0 },
		  TRUSTED,
		  "limits_mode",
		  "best",
		  "p.yaml:3:14",
		  1 },
		{ "overrides: {per_request: true}",
		  { .tier = "auto" },
		  TRUSTED,
		  "tier",
		  "auto",
		  "--tier",
		  1 },
	};
	const struct refusal bad[] = {
		{ NULL, { .tier = "auto" }, 0, -EPERM, "auto is weaker" },
		{ NULL, { .tier = "local" }, 0, -EPERM, "no wall at all" },
		{ "tier: strict",
		  { .tier = "assisted" },
		  TRUSTED,
		  -EPERM,
		  "weaker than the policy's" },
		{ "overrides: {per_request: true}",
		  { .tier = "local" },
		  TRUSTED,
		  -EPERM,
		  "tier: local" },
		{ NULL, { .tier = "strictest" }, 0, -EINVAL, "no such tier" },
	};

	check_good(rows, ARRAY_SIZE(rows));
	check_refusals(bad, ARRAY_SIZE(bad) - 1, true);
	check_refusals(bad, ARRAY_SIZE(bad), false);
}

static void test_who_asked_for_strict(void)
{
	const struct {
		const char *yaml, *tier;
		bool by_request, by_policy;
	} rows[] = {
		{ NULL, "strict", true, false },
		{ NULL, NULL, false, false },
		{ "tier: strict", NULL, false, true },
		{ "tier: strict", "strict", true, true },
		{ "strict_when: [{tag: t}]", NULL, false, true },
		{ "strict_when: [{tag: t}]", "ManualOnly", true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy_request request = { .tier = rows[i].tier, .tags = LIST("t") };
		struct csn_error err = { 0 };
		struct plan plan;

		CHECK(decide(rows[i].yaml, &request, true, &plan, &err) == 0);
		CHECK(plan.strict_by_request == rows[i].by_request);
		CHECK(plan.strict_by_policy == rows[i].by_policy);
		plan_done(&plan);
	}
}

/* One row for each key that a stranger's file may not loosen. */
static void test_trust(void)
{
	static const char *const loosening[] = {
		"tier: local",
		"tier: virtual",
		"tier: auto",
		"backend: command",
		"backend: kubernetes",
		"backend: local",
		"workspace: {path: ..}",
		"workspace: {path: /srv/x}",
		"workspace: {mode: rw}",
		"workspace: {hide: [.env]}",
		"workspace: {hide: []}",
		"workspace: {protect: []}",
		"mounts: [{host: /srv/a, at: /a}]",
		"mount_roots: [/srv]",
		"scratch: {at: /scratch}",
		"scratch: {size: 1GiB}",
		"scratch: {size: none}",
		"network: {mode: loopback}",
		"network: {mode: allow}",
		"network: {mode: engine}",
		"network: {allow: [example.org]}",
		"limits: {command: 46s}",
		"limits: {command: none}",
		"limits: {budget: 181s}",
		"limits: {startup: 11s}",
		"limits: {cpus: 2.001}",
		"limits: {memory: 1025MiB}",
		"limits: {processes: 257}",
		"limits: {output: 11MiB}",
		"limits: {open_files: 1025}",
		"tier: assisted\nlimits_mode: best",
		"env: {pass: [AWS_KEY]}",
		"env: {set: {A: b}}",
		"env: {git_identity: true}",
		"container: {image: evil}",
		"overrides: {per_request: true}",
		"gates: [read_file]",
	};
	static const char *const tightening[] = {
		"tier: balanced",
		"tier: strict",
		"approval: required",
		"backend: process",
		"workspace: {path: .}",
		"workspace: {path: src}",
		"workspace: {mode: cow}",
		"workspace: {at: host}",
		"workspace: {hide: [.env, .env.*, \"*.pem\", \"*.key\"]}",
		"scratch: {size: 1MiB}",
		"limits: {command: 1s, memory: 1MiB, cpus: 0.5, idle: 5m}",
		"limits_mode: hard",
		"env: {pass: [LANG]}",
		"env: {pass: []}",
		"toolchains: none",
		"observe: [reads]",
		"on_violation: kill",
		"strict_when: [{command: \"*\"}]",
		"container: {rootless: required}",
		"overrides: {per_request: false}",
		"mounts: []",
		"mount_roots: []",
		"network: {mode: none}",
	};
	struct policy_request request = { 0 };
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(loosening); i++) {
		struct csn_error err = { 0 };
		struct plan plan;
		int code = decide(loosening[i], &request, UNTRUSTED, &plan, &err);

		if (code != -EPERM || !str_starts(err.text, "p.yaml:") ||
		    !strstr(err.text, "caisson policy trust")) {
			printf("# untrusted %s: %d %s\n", loosening[i], code, err.text);
			wrong++;
		}
		code = decide(loosening[i], &request, TRUSTED, &plan, &err);
		if (code == 0)
			plan_done(&plan);
		else
			printf("# trusted %s: %s\n", loosening[i], err.text);
		/* The folder above is the home directory: refused for that, trusted or not. */
		wrong += code != 0 && !strstr(loosening[i], "..");
	}
	for (size_t i = 0; i < ARRAY_SIZE(tightening); i++) {
		struct csn_error err = { 0 };
		struct plan plan;

		if (decide(tightening[i], &request, UNTRUSTED, &plan, &err) == 0) {
			for (size_t n = 0; n < plan.note_count; n++)
				wrong += plan.notes[n].loosens;
			CHECK(!plan.policy_is_trusted && str_is(plan.policy_path, "p.yaml"));
			plan_done(&plan);
		} else {
			printf("# untrusted %s: %s\n", tightening[i], err.text);
			wrong++;
		}
	}
	CHECK(wrong == 0);
}

static void test_grants(void)
{
	const struct good rows[] = {
		/* No file: the caller lends what is his. */
		{ NULL, { 0 }, 0, "workspace.path", "/home/u/proj", NULL, 0 },
		{ NULL,
		  { .workspace = "/srv/x" },
		  0,
		  "workspace.path",
		  "/srv/x",
		  "--workspace",
		  0 },
		{ NULL,
		  { .workspace_mode = "rw" },
		  0,
		  "workspace.mode",
		  "rw",
		  "--workspace mode",
		  0 },
		{ NULL, { .workspace_at = "host" }, 0, "workspace.at", "/home/u/proj", "--at", 0 },
		{ NULL, { .workspace_at = "/w//x" }, 0, "workspace.at", "/w/x", "--at", 0 },
		{ NULL, { .network = "loopback" }, 0, "network.mode", "loopback", "--network", 0 },
		{ NULL, { .backend = "oci" }, 0, "backend", "oci", "--backend", 0 },
		{ NULL, { .env = LIST("A", "B=c d") }, 0, "env.set", "{B: \"c d\"}", "--env", 0 },
		{ NULL,
		  { .env = LIST("A", "A") },
		  0,
		  "env.pass",
		  "[LANG, TERM, NO_COLOR, COLORTERM, TZ, A]",
		  "--env",
		  0 },
		{ NULL, { .env = LIST("B=1", "B=2") }, 0, "env.set", "{B: 2}", "--env", 0 },
		{ NULL,
		  { .mounts = LIST("data:/d", "/srv/a:b:/x:rw") },
		  0,
		  "mounts",
		  "[{host: /home/u/proj/data, at: /d, mode: ro}, "
		  "{host: \"/srv/a:b\", at: /x, mode: rw}]",
		  "--mount",
		  0 },
		/* A file: flags only narrow. */
		{ "workspace: {mode: rw}",
		  { .workspace_mode = "ro" },
		  TRUSTED,
		  "workspace.mode",
		  "ro",
		  "--workspace mode",
		  0 },
		{ "workspace: {mode: rw}",
		  { .workspace_mode = "cow" },
		  TRUSTED,
		  "workspace.mode",
		  "cow",
		  "--workspace mode",
		  0 },
		{ "tier: balanced",
		  { .workspace_mode = "cow" },
		  UNTRUSTED,
		  "workspace.mode",
		  "cow",
		  "--workspace mode",
		  0 },
		{ "tier: balanced",
		  { .workspace = "/home/u/proj/src" },
		  UNTRUSTED,
		  "workspace.path",
		  "/home/u/proj/src",
		  "--workspace",
		  0 },
		{ "env: {pass: [A]}",
		  { .env = LIST("A", "A=1") },
		  TRUSTED,
		  "env.set",
		  "{A: 1}",
		  "--env",
		  0 },
		{ "mount_roots: [/srv]",
		  { .mounts = LIST("/srv/x:/x:rw") },
		  TRUSTED,
		  "mounts",
		  "[{host: /srv/x, at: /x, mode: rw}]",
		  "--mount",
		  0 },
		{ "mounts: [{host: data, at: /d, mode: rw}]",
		  { .mounts = LIST("data:/d") },
		  TRUSTED,
		  "mounts",
		  "[{host: /home/u/proj/data, at: /d, mode: ro}]",
		  "--mount",
		  0 },
		{ "network: {mode: allow, allow: [a.org, b.org]}",
		  { .allow = LIST("b.org") },
		  TRUSTED,
		  "network.allow",
		  "[b.org]",
		  "--allow",
		  0 },
		{ "network: {mode: engine}",
		  { .network = "none" },
		  TRUSTED,
		  "network.mode",
		  "none",
		  "--network",
		  0 },
		/* What the file itself grants. */
		{ "workspace: {path: src}",
		  { 0 },
		  TRUSTED,
		  "workspace.path",
		  "/home/u/proj/src",
		  "p.yaml:2:19",
		  0 },
		{ "workspace: {mode: rw}",
		  { 0 },
		  TRUSTED,
		  "workspace.mode",
		  "rw",
		  "p.yaml:2:19",
		  1 },
		{ "mounts: [{host: data/, at: /workspace/data}]",
		  { 0 },
		  TRUSTED,
		  "mounts",
		  "[{host: /home/u/proj/data, at: /workspace/data, mode: ro}]",
		  "p.yaml:2:9",
		  1 },
		{ "network: {mode: engine}",
		  { 0 },
		  TRUSTED,
		  "network.mode",
		  "engine",
		  "p.yaml:2:17",
		  1 },
	};
	const struct refusal bad[] = {
		{ "tier: balanced",
		  { .workspace_mode = "rw" },
		  TRUSTED,
		  -EPERM,
		  "workspace: {mode: rw}" },
		{ "overrides: {per_request: true}",
		  { .workspace_mode = "rw" },
		  TRUSTED,
		  -EPERM,
		  "rw" },
		{ "tier: balanced", { .workspace = "/srv/x" }, TRUSTED, -EPERM, "path: /srv/x" },
		{ "tier: balanced", { .workspace = "/home/u/proj2" }, TRUSTED, -EPERM, "proj2" },
		{ "tier: balanced",
		  { .network = "loopback" },
		  TRUSTED,
		  -EPERM,
		  "{mode: loopback}" },
		{ "tier: balanced",
		  { .env = LIST("AWS") },
		  TRUSTED,
		  -EPERM,
		  "COLORTERM, TZ, AWS]" },
		{ "tier: balanced",
		  { .env = LIST("AWS=x") },
		  TRUSTED,
		  -EPERM,
		  "COLORTERM, TZ, AWS]" },
		{ "env: {set: {A: b}}", { .env = LIST("A=c") }, TRUSTED, -EPERM, "TZ, A]" },
		{ "tier: balanced",
		  { .mounts = LIST("/srv/x:/x") },
		  TRUSTED,
		  -EPERM,
		  "mount_roots: [/srv/x]" },
		{ "mount_roots: [/srv/y]",
		  { .mounts = LIST("/srv/yy:/x") },
		  TRUSTED,
		  -EPERM,
		  "[/srv/y, /srv/yy]" },
		{ "mounts: [{host: data, at: /d}]",
		  { .mounts = LIST("data:/d:rw") },
		  TRUSTED,
		  -EPERM,
		  "mount_roots" },
		{ NULL, { .network = "allow" }, 0, -EPERM, "network: {mode: allow}" },
		{ NULL, { .network = "engine" }, 0, -EPERM, "network: {mode: engine}" },
		{ NULL, { .allow = LIST("a.org") }, 0, -EPERM, "{mode: allow, allow: [a.org]}" },
		{ "network: {mode: allow, allow: [a.org]}",
		  { .allow = LIST("b.org") },
		  TRUSTED,
		  -EPERM,
		  "allow: [b.org]" },
		{ "backend: docker",
		  { .backend = "process" },
		  TRUSTED,
		  -EPERM,
		  "backend: process" },
		{ "tier: balanced", { .backend = "command" }, TRUSTED, -EPERM, "backend: command" },
	};

	check_good(rows, ARRAY_SIZE(rows));
	/* A file that repeats data: the last two rows of mounts collide when read back. */
	check_refusals(bad, ARRAY_SIZE(bad), true);
}

static void test_bounds(void)
{
	const struct good rows[] = {
		{ NULL, { 0 }, 0, "limits.command", "45s", NULL, 0 },
		{ NULL,
		  { .limits = LIST("command=10s") },
		  0,
		  "limits.command",
		  "10s",
		  "--limit command",
		  0 },
		{ NULL,
		  { .limits = LIST("command=20s", "command=10s", "command=30s") },
		  0,
		  "limits.command",
		  "30s",
		  "--limit command",
		  0 },
		{ NULL,
		  { .limits = LIST("scratch=1MiB") },
		  0,
		  "scratch.size",
		  "1MiB",
		  "--limit scratch",
		  0 },
		{ NULL,
		  { .limits = LIST("cpus=0.5") },
		  0,
		  "limits.cpus",
		  "0.500",
		  "--limit cpus",
		  0 },
		{ NULL, { .limits = LIST("idle=5m") }, 0, "limits.idle", "5m", "--limit idle", 0 },
		{ NULL, { .stays = true }, 0, "limits.idle", "30m", NULL, 0 },
		{ NULL, { .stays = true }, 0, "limits.budget", "none", NULL, 0 },
		{ "limits: {budget: 1h}",
		  { .stays = true },
		  UNTRUSTED,
		  "limits.budget",
		  "1h",
		  "p.yaml:2:18",
		  0 },
		{ "limits: {command: 10m}",
		  { 0 },
		  TRUSTED,
		  "limits.command",
		  "10m",
		  "p.yaml:2:19",
		  1 },
		{ "limits: {command: 45s}", { 0 }, TRUSTED, "limits.command", "45s", NULL, 0 },
		{ "limits: {command: 10m}",
		  { .limits = LIST("command=5m") },
		  TRUSTED,
		  "limits.command",
		  "5m",
		  "--limit command",
		  0 },
		{ "limits: {command: none}",
		  { .limits = LIST("command=5m") },
		  TRUSTED,
		  "limits.command",
		  "5m",
		  "--limit command",
		  0 },
		{ "overrides: {per_request: true}",
		  { .limits = LIST("command=none") },
		  TRUSTED,
		  "limits.command",
		  "none",
		  "--limit command",
		  1 },
		{ "overrides: {per_request: true}",
		  { .allow = LIST("a.org") },
		  TRUSTED,
		  "network.mode",
		  "allow",
		  "--allow",
		  1 },
		{ "tier: strict\nlimits: {memory: 1200MiB}",
		  { 0 },
		  UNTRUSTED,
		  "limits.memory",
		  "1200MiB",
		  "p.yaml:3:18",
		  0 },
	};
	const struct refusal bad[] = {
		{ NULL,
		  { .limits = LIST("command=46s") },
		  0,
		  -EPERM,
		  "\nversion: 1\nlimits: {command: 46s}" },
		{ NULL, { .limits = LIST("command=none") }, 0, -EPERM, "limits: {command: none}" },
		{ NULL,
		  { .limits = LIST("memory=4GiB", "scratch=2GiB", "command=1h") },
		  0,
		  -EPERM,
		  "scratch: {size: 2GiB}\nlimits: {command: 1h, memory: 4GiB}" },
		{ NULL,
		  { .stays = true, .limits = LIST("idle=0") },
		  0,
		  -EPERM,
		  "limits: {idle: 0}" },
		{ NULL, { .stays = true, .limits = LIST("idle=31m") }, 0, -EPERM, "{idle: 31m}" },
		{ "limits: {command: 10s}",
		  { .limits = LIST("command=11s") },
		  TRUSTED,
		  -EPERM,
		  "policy's 10s" },
		{ "limits: {command: 10s}",
		  { .limits = LIST("command=11s") },
		  UNTRUSTED,
		  -EPERM,
		  "policy's 10s" },
	};
	const struct refusal nonsense[] = {
		{ NULL, { .limits = LIST("command") }, 0, -EINVAL, "expected KEY=VALUE" },
		{ NULL, { .limits = LIST("=1s") }, 0, -EINVAL, "expected KEY=VALUE" },
		{ NULL, { .limits = LIST("comand=1s") }, 0, -EINVAL, "no such limit" },
		{ NULL, { .limits = LIST("command=0") }, 0, -EINVAL, "expected a time" },
		{ NULL, { .limits = LIST("command=-1s") }, 0, -EINVAL, "--limit command: " },
		{ NULL, { .limits = LIST("memory=1TB") }, 0, -EINVAL, "expected a size" },
		{ NULL, { .backend = "dockre" }, 0, -EINVAL, "--backend: backend is \"dockre\"" },
		{ NULL, { .workspace_mode = "wr" }, 0, -EINVAL, "expected ro, rw or cow" },
		{ NULL, { .network = "all" }, 0, -EINVAL, "expected none, loopback" },
		{ NULL, { .allow = LIST("http://x") }, 0, -EINVAL, "is not a host" },
		{ NULL, { .env = LIST("1A=b") }, 0, -EINVAL, "not a variable's name" },
		{ NULL, { .env = LIST("=b") }, 0, -EINVAL, "not a variable's name" },
		{ NULL, { .env = LIST("A\nB=b") }, 0, -EINVAL, "not a variable's name" },
		{ NULL, { .env = LIST("A=\xff") }, 0, -EINVAL, "not UTF-8" },
	};

	check_good(rows, ARRAY_SIZE(rows));
	check_refusals(bad, ARRAY_SIZE(bad), true);
	check_refusals(nonsense, ARRAY_SIZE(nonsense), false);
}

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
	{ "a tier is a minimum that no request lowers", test_tiers },
	{ "strict remembers who asked", test_who_asked_for_strict },
	{ "a file found by search only tightens", test_trust },
	{ "grants are lent by flags, narrowed where a file speaks", test_grants },
	{ "bounds are loosened by a file only", test_bounds },
	{ "hosts and places that are never mounted", test_mounts_never_lent },
	{ "mounts do not cover each other", test_mounts_do_not_cover_each_other },
	{ "folders that are never a workspace", test_workspaces_never_lent },
	{ "a narrower workspace hides and protects as much", test_narrowed_workspace },
	{ "strict_when sees tags, commands and paths", test_strict_when },
	{ "strict_when sees the current folder", test_strict_when_by_cwd },
	{ "values of variables are in no note and no message", test_secrets_stay_out_of_notes },
	{ "too many flags are refused", test_many_flags },
};

TAP_MAIN(tests)
